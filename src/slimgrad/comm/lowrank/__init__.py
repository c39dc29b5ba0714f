"""Low-rank methods, one a file, filed under their names."""

from slimgrad.comm.lowrank.atomo import SpectralAtomo
from slimgrad.comm.lowrank.base import Factors, LowRank
from slimgrad.comm.lowrank.powersgd import PowerSGD
from slimgrad.core.registry import Registry

LOW_RANK = Registry[type[LowRank]]("low-rank method")
for _method in (PowerSGD, SpectralAtomo):
    LOW_RANK.add(_method.name)(_method)

__all__ = ["LOW_RANK", "Factors", "LowRank", "PowerSGD", "SpectralAtomo"]
