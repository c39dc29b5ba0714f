"""Quantizers, one a file, filed under their names."""

from slimgrad.comm.quantizers.base import LevelGrid, Quantized, Quantizer
from slimgrad.comm.quantizers.dithered import Dithered
from slimgrad.comm.quantizers.nuqsgd import NUQSGD
from slimgrad.comm.quantizers.qsgd import QSGD
from slimgrad.comm.quantizers.qsgdinf import QSGDinf
from slimgrad.core.registry import Registry

QUANTIZERS = Registry[type[Quantizer]]("quantizer")
for _quantizer in (NUQSGD, QSGD, QSGDinf, Dithered):
    QUANTIZERS.add(_quantizer.name)(_quantizer)

__all__ = [
    "NUQSGD",
    "QSGD",
    "QUANTIZERS",
    "Dithered",
    "LevelGrid",
    "QSGDinf",
    "Quantized",
    "Quantizer",
]
