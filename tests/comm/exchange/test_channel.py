import gc
import threading

import pytest
import torch

from slimgrad.comm.exchange.channel import Channel
from slimgrad.core.errors import ExchangeError


def communication_threads():
    return [t for t in threading.enumerate() if t.name == "slimgrad-communication"]


@pytest.fixture
def channel(one_rank):
    channel = Channel(one_rank)
    yield channel
    channel.close()


def test_jobs_run_in_order_on_one_other_thread(channel):
    seen = []

    def job(number):
        seen.append((number, threading.current_thread().name, torch.is_grad_enabled()))
        return torch.tensor(number)

    futures = [channel.submit(lambda n=n: job(n), f"job {n}") for n in range(20)]
    assert [int(future.wait()) for future in futures] == list(range(20))
    assert seen == [(n, "slimgrad-communication", False) for n in range(20)]


def test_a_failure_names_rank_and_job_and_stops_what_follows(channel):
    def fail():
        raise ValueError("no such thing")

    assert int(channel.submit(lambda: torch.tensor(1), "first").wait()) == 1
    failed, later = (
        channel.submit(fail, "bucket 7 of step 3"),
        channel.submit(lambda: torch.tensor(2), "bucket 8 of step 3"),
    )
    with pytest.raises(RuntimeError, match="rank 0: bucket 7 of step 3: ValueError: no such thing"):
        failed.wait()
    with pytest.raises(
        RuntimeError, match="rank 0: bucket 8 of step 3 was not exchanged after an earlier failure"
    ):
        later.wait()


def test_close_finishes_what_is_queued_and_refuses_more(one_rank):
    channel = Channel(one_rank)
    release = threading.Event()

    def wait():
        release.wait(10)
        return torch.tensor(5)

    queued = channel.submit(wait, "queued")
    release.set()
    channel.close()
    channel.close()
    assert int(queued.wait()) == 5
    with pytest.raises(RuntimeError, match="rank 0: late: compression was closed"):
        channel.submit(lambda: torch.tensor(0), "late").wait()
    assert communication_threads() == []


def test_a_forgotten_channel_stops_its_thread(one_rank):
    channel = Channel(one_rank)
    assert len(communication_threads()) == 1
    del channel
    gc.collect()
    assert communication_threads() == []


def test_gathered_bytes_of_one_rank(channel):
    message = torch.arange(5, dtype=torch.uint8)
    for same_length in (True, False):
        (received,) = channel.gather_bytes(message, same_length=same_length, limit_bytes=5)
        assert torch.equal(received, message)
        empty = torch.empty(0, dtype=torch.uint8)
        assert channel.gather_bytes(empty, same_length=same_length, limit_bytes=5)[0].numel() == 0


def test_a_message_over_the_limit_is_refused(channel):
    with pytest.raises(ExchangeError, match="rank 0 announces a message of 9 bytes, at most 8"):
        channel.gather_bytes(torch.zeros(9, dtype=torch.uint8), same_length=False, limit_bytes=8)
