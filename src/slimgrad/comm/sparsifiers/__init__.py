"""Sparsifiers, one a file, filed under their names."""

from slimgrad.comm.sparsifiers.atomo import Atomo
from slimgrad.comm.sparsifiers.base import Kept, Sparsifier
from slimgrad.comm.sparsifiers.randomk import RandomK
from slimgrad.comm.sparsifiers.threshold import Threshold
from slimgrad.comm.sparsifiers.topk import TopK
from slimgrad.core.registry import Registry

SPARSIFIERS = Registry[type[Sparsifier]]("sparsifier")
for _sparsifier in (Atomo, RandomK, Threshold, TopK):
    SPARSIFIERS.add(_sparsifier.name)(_sparsifier)

__all__ = ["SPARSIFIERS", "Atomo", "Kept", "RandomK", "Sparsifier", "Threshold", "TopK"]
