"""Cheaper gradients for PyTorch: approximate backward passes and compressed gradient exchange.

Names are imported when first used, so ``import slimgrad`` alone loads neither torch nor kernels.

>>> import slimgrad
>>> slimgrad.TopOne()
TopOne(scale=1.0)
>>> slimgrad.NUQSGD(bits=4)
NUQSGD(bits=4, bucket_size=512, norm='l2', ratio=0.5)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slimgrad import theory as theory
    from slimgrad.approx import Alternate as Alternate
    from slimgrad.approx import BlockMeans as BlockMeans
    from slimgrad.approx import EveryNthLayer as EveryNthLayer
    from slimgrad.approx import EveryNthStep as EveryNthStep
    from slimgrad.approx import Exact as Exact
    from slimgrad.approx import Random as Random
    from slimgrad.approx import RowSampling as RowSampling
    from slimgrad.approx import SampleSampling as SampleSampling
    from slimgrad.approx import Skip as Skip
    from slimgrad.approx import StratifiedSampling as StratifiedSampling
    from slimgrad.approx import TopOne as TopOne
    from slimgrad.approx import Zero as Zero
    from slimgrad.approx import approximate as approximate
    from slimgrad.approx import tune as tune
    from slimgrad.comm.compressor import Compressor as Compressor
    from slimgrad.comm.ddp import compress as compress
    from slimgrad.comm.feedback import DGC as DGC
    from slimgrad.comm.feedback import ErrorFeedback as ErrorFeedback
    from slimgrad.comm.lowrank import PowerSGD as PowerSGD
    from slimgrad.comm.policy import Policy as Policy
    from slimgrad.comm.quantizers import EDEN as EDEN
    from slimgrad.comm.quantizers import NUQSGD as NUQSGD
    from slimgrad.comm.quantizers import QSGD as QSGD
    from slimgrad.comm.quantizers import Dithered as Dithered
    from slimgrad.comm.quantizers import QSGDinf as QSGDinf
    from slimgrad.comm.sparsifiers import RandomK as RandomK
    from slimgrad.comm.sparsifiers import TopK as TopK

__version__ = "0.1.0"

# Public name -> module that holds it; one line a name, sorted by module, then name.
_HOMES = {
    "Alternate": "slimgrad.approx",
    "BlockMeans": "slimgrad.approx",
    "EveryNthLayer": "slimgrad.approx",
    "EveryNthStep": "slimgrad.approx",
    "Exact": "slimgrad.approx",
    "Random": "slimgrad.approx",
    "RowSampling": "slimgrad.approx",
    "SampleSampling": "slimgrad.approx",
    "Skip": "slimgrad.approx",
    "StratifiedSampling": "slimgrad.approx",
    "TopOne": "slimgrad.approx",
    "Zero": "slimgrad.approx",
    "approximate": "slimgrad.approx",
    "tune": "slimgrad.approx",
    "Compressor": "slimgrad.comm.compressor",
    "compress": "slimgrad.comm.ddp",
    "EDEN": "slimgrad.comm.quantizers",
    "DGC": "slimgrad.comm.feedback",
    "ErrorFeedback": "slimgrad.comm.feedback",
    "PowerSGD": "slimgrad.comm.lowrank",
    "Policy": "slimgrad.comm.policy",
    "NUQSGD": "slimgrad.comm.quantizers",
    "QSGD": "slimgrad.comm.quantizers",
    "Dithered": "slimgrad.comm.quantizers",
    "QSGDinf": "slimgrad.comm.quantizers",
    "RandomK": "slimgrad.comm.sparsifiers",
    "TopK": "slimgrad.comm.sparsifiers",
}
_SUBMODULES = ("approx", "comm", "core", "diagnose", "kernels", "theory")

__all__ = [
    "DGC",
    "EDEN",
    "NUQSGD",
    "QSGD",
    "Alternate",
    "BlockMeans",
    "Compressor",
    "Dithered",
    "ErrorFeedback",
    "EveryNthLayer",
    "EveryNthStep",
    "Exact",
    "Policy",
    "PowerSGD",
    "QSGDinf",
    "Random",
    "RandomK",
    "RowSampling",
    "SampleSampling",
    "Skip",
    "StratifiedSampling",
    "TopK",
    "TopOne",
    "Zero",
    "__version__",
    "approximate",
    "compress",
    "theory",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _SUBMODULES:
        value = importlib.import_module(f"slimgrad.{name}")
    else:
        raise AttributeError(f"module 'slimgrad' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
