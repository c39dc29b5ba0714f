"""The slow decoder and examples of quantizers made importable, and a process group of one rank."""

import gc
import sys
from pathlib import Path

import pytest
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "quantizers"))


@pytest.fixture
def one_rank():
    """A default process group with this process alone in it."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    # A DDP module that a cycle keeps alive would end on the group's own thread and wait for ever.
    gc.collect()
    dist.destroy_process_group()
