"""Quantizers, one a file, filed under their names."""

from slimgrad.comm.quantizers.adaptive import AdaptiveQuantizer
from slimgrad.comm.quantizers.alq import ALQ
from slimgrad.comm.quantizers.amq import AMQ
from slimgrad.comm.quantizers.base import LevelGrid, Quantized, Quantizer
from slimgrad.comm.quantizers.dithered import Dithered
from slimgrad.comm.quantizers.eden import EDEN
from slimgrad.comm.quantizers.efsign import EFSign
from slimgrad.comm.quantizers.levels import Levels
from slimgrad.comm.quantizers.natural import Natural
from slimgrad.comm.quantizers.nozero import NoZero
from slimgrad.comm.quantizers.nuqsgd import NUQSGD
from slimgrad.comm.quantizers.qsgd import QSGD
from slimgrad.comm.quantizers.qsgdinf import QSGDinf
from slimgrad.comm.quantizers.sign import Sign
from slimgrad.comm.quantizers.terngrad import TernGrad
from slimgrad.core.registry import Registry

QUANTIZERS = Registry[type[Quantizer]]("quantizer")
for _quantizer in (EDEN, NUQSGD, QSGD, QSGDinf, Dithered):
    QUANTIZERS.add(_quantizer.name)(_quantizer)
for _quantizer in (ALQ, AMQ, EFSign, Levels, Natural, NoZero, Sign, TernGrad):
    QUANTIZERS.add(_quantizer.name)(_quantizer)

__all__ = [
    "ALQ",
    "AMQ",
    "EDEN",
    "NUQSGD",
    "QSGD",
    "QUANTIZERS",
    "AdaptiveQuantizer",
    "Dithered",
    "EFSign",
    "LevelGrid",
    "Levels",
    "Natural",
    "NoZero",
    "QSGDinf",
    "Quantized",
    "Quantizer",
    "Sign",
    "TernGrad",
]
