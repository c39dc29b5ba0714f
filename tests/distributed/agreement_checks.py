"""Checks of settings, failures and unequal messages, each run by every rank of a world."""

import os
import threading

import pytest
import torch
import torch.distributed as dist
from rank_world import assert_same_on_all_ranks, gathered, loss_of, mean_by_hand, network, wrap

import slimgrad
from slimgrad.comm.codecs import CODECS, Codec, Fixed
from slimgrad.comm.exchange import AllGather, all_gather
from slimgrad.comm.policy import Policy
from slimgrad.core.errors import ConfigError, FrameError, NoEffectWarning


def different_settings_are_refused_on_every_rank(rank, world_size):
    odd = rank == world_size - 1
    four, three = slimgrad.NUQSGD(bits=4), slimgrad.NUQSGD(bits=3)
    cases = [
        ((four, three), {}, ["bits=4", "bits=3"]),
        ((four, slimgrad.QSGD(bits=4)), {}, ["NUQSGD", "QSGD(bits=4"]),
        ((four, slimgrad.NUQSGD(bucket_size=64)), {}, ["bucket_size=512", "bucket_size=64"]),
        ((four, None), {}, ["NUQSGD", "None"]),
        ((four, four), {"codec": ("fixed", "raw")}, ["codec is fixed", "raw on rank"]),
        ((None, None), {"exchange": ("all_reduce", "all_gather")}, ["all_reduce", "all_gather"]),
        (
            (four, four),
            {"policy": (None, Policy(min_numel=5))},
            ["min_numel=1024", "min_numel=5"],
        ),
        # Rank 0's state is what a resumed run loads everywhere.
        ((four, four), {"seed": (3, 4)}, ["seed is 3", "4 on rank"]),
    ]
    for quantizers, settings, words in cases:
        model = wrap(network())
        mine = {name: values[odd] for name, values in settings.items()}
        with pytest.raises(ConfigError, match="ranks were given different") as caught:
            slimgrad.compress(model, quantizers[odd], **mine)
        text = str(caught.value)
        assert all(word in text for word in [*words, "rank 0", f"rank {world_size - 1}"]), text
        # Nothing was installed: the module trains as before.
        loss_of(model, 0, rank).backward()
    assert [t for t in threading.enumerate() if t.name.startswith("slimgrad")] == []


def a_second_hook_is_refused(rank, world_size):
    model = wrap(network())
    handle = slimgrad.compress(model, slimgrad.NUQSGD())
    with pytest.raises(ConfigError, match="has a communication hook already"):
        slimgrad.compress(model, slimgrad.NUQSGD())
    loss_of(model, 0, rank).backward()
    assert_same_on_all_ranks([p.grad for p in model.parameters()], world_size)
    handle.close()


def settings_without_effect_warn(rank, world_size):
    with pytest.warns(NoEffectWarning, match="nothing is compressed"):
        everything = slimgrad.compress(
            wrap(network()), slimgrad.NUQSGD(), policy=Policy(exact_names=("*",))
        )
    with pytest.warns(NoEffectWarning, match="'heaad' of the policy matches no parameter"):
        nothing = slimgrad.compress(
            wrap(network()), slimgrad.NUQSGD(), policy=Policy(exact_names=("heaad",))
        )
    everything.close()
    nothing.close()


class RunLength(Codec):
    """For these tests: pairs (count, byte) of the packed symbols; its length varies."""

    name = "test_run_length"
    code_id = 250

    def encode(self, quantized):
        values, counts = torch.unique_consecutive(quantized.packed, return_counts=True)
        pairs = []
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            pairs += [255, value] * (count // 255) + [count % 255, value]
        return torch.tensor(pairs, dtype=torch.uint8)

    def decode(self, payload, n, bits):
        packed = payload[1::2].repeat_interleave(payload[0::2].long())
        return Fixed().decode(packed, n, bits)

    def payload_bounds(self, n, bits):
        return 0, 2 * Fixed().payload_bounds(n, bits)[1]

    def expected_bits(self, probabilities, bits):
        return float("nan")


def messages_of_unequal_length_give_the_same_mean(rank, world_size):
    CODECS.add(RunLength.name)(RunLength)
    gradients = {}
    for codec in ("fixed", RunLength.name):
        model = wrap(network())
        handle = slimgrad.compress(model, slimgrad.NUQSGD(bits=4), codec=codec)
        if rank == 0:
            model.module[2].weight.register_hook(lambda gradient: gradient * 0)
        loss_of(model, 0, rank).backward()
        gradients[codec] = [p.grad.clone() for p in model.parameters()]
        sent = gathered(torch.tensor([handle.report().sent_bytes]), world_size)
        assert (len({int(s) for s in sent}) == 1) == (codec == "fixed")
        handle.close()
    for fixed, varying in zip(*gradients.values(), strict=True):
        assert torch.equal(fixed, varying)


def a_damaged_frame_names_tensor_and_rank(rank, world_size):
    model = wrap(network())
    handle = slimgrad.compress(model, slimgrad.NUQSGD(bits=4))
    loss_of(model, 0, rank).backward()
    received = handle._channel.gather_bytes

    def damaging(message, **settings):
        messages = received(message, **settings)
        messages[1][70] ^= 1
        return messages

    handle._channel.gather_bytes = damaging
    with pytest.raises(RuntimeError, match=r"rank \d: bucket 0 of step 1: ExchangeError: frame of"):
        loss_of(model, 1, rank).backward()
    handle.close()


def a_message_that_is_no_frame_names_its_rank(rank, world_size):
    model = wrap(network())
    handle = slimgrad.compress(model, slimgrad.NUQSGD(bits=4))
    handle._channel.gather_bytes = lambda message, **_: [message, message[:-1]]
    with pytest.raises(RuntimeError, match=r"message from rank 1: .*the frame claims"):
        loss_of(model, 1, rank).backward()
    handle.close()


def a_failure_on_the_thread_reaches_the_backward_pass(rank, world_size):
    model = wrap(network())
    handle = slimgrad.compress(model, slimgrad.NUQSGD(bits=4))
    loss_of(model, 0, rank).backward()
    decode, all_gather._decode_mean = all_gather._decode_mean, broken
    try:
        with pytest.raises(RuntimeError, match=f"rank {rank}: bucket 0 of step 1: FrameError: bad"):
            loss_of(model, 1, rank).backward()
    finally:
        all_gather._decode_mean = decode
    # The ranks no longer agree on what comes next: everything later fails at once.
    again = handle._channel.submit(lambda: torch.ones(1), "another bucket")
    with pytest.raises(RuntimeError, match="another bucket was not exchanged after an earlier"):
        again.wait()
    handle.close()


def broken(*_):
    raise FrameError("bad", 3)


def after_close_the_backward_pass_says_so(rank, world_size):
    model = wrap(network())
    handle = slimgrad.compress(model, slimgrad.NUQSGD(bits=4))
    loss_of(model, 0, rank).backward()
    handle.close()
    with pytest.raises(RuntimeError, match="compression was closed"):
        loss_of(model, 1, rank).backward()


def an_exchange_of_nothing_is_legal(rank, world_size):
    model = wrap(network())
    handle = slimgrad.compress(model, None, exchange=AllGather.name)
    bucket = slimgrad.comm.exchange.GradientBucket(torch.empty(0), (), "nothing")
    future = AllGather().mean(bucket, handle._compressor, handle._channel, step=0, seed=0)
    assert future.wait().numel() == 0
    loss_of(model, 0, rank).backward()
    assert handle.report().bits_per_component > 32
    assert handle.report().exact_share == 1.0
    handle.close()


def a_group_of_some_ranks_works(rank, world_size):
    group = dist.new_group([0, 2])
    if rank != 1:
        for _ in range(2):
            model = wrap(network(), process_group=group)
            handle = slimgrad.compress(model, slimgrad.NUQSGD(bits=4))
            alone = network()
            loss_of(model, 0, rank).backward()
            loss_of(alone, 0, rank).backward()
            parts = [torch.empty(64, 64) for _ in range(2)]
            dist.all_gather(parts, alone[2].weight.grad, group=group)
            expected = mean_by_hand("2.weight", parts, slimgrad.NUQSGD(bits=4), step=0)
            assert torch.equal(model.module[2].weight.grad, expected)
            handle.close()
    dist.barrier()


def a_dead_rank_ends_the_others_with_one_readable_error(rank, world_size):
    model = wrap(network())
    slimgrad.compress(model, slimgrad.NUQSGD(bits=4))
    # DDP rebuilds its buckets, with collectives of its own, before the second step.
    for step in range(2):
        loss_of(model, step, rank).backward()
    if rank == world_size - 1:
        os._exit(0)
    with pytest.raises(RuntimeError, match=rf"rank {rank}: bucket \d+ of step 2"):
        loss_of(model, 2, rank).backward()
