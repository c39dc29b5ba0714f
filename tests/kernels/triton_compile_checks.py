"""The Triton kernels compile for a GPU, and round where the reference does.

No GPU is needed to compile. test_triton.py runs this where the interpreter is off.
"""

from __future__ import annotations

import pytest
import torch
from triton import compile as compile_kernel
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from slimgrad.core.errors import BackendError
from slimgrad.kernels.triton import dequantize, packing, quantize, scales, topk

TYPES = {
    **dict.fromkeys(("x", "out", "scales", "levels", "inverse_gaps", "values"), "*fp32"),
    **dict.fromkeys(("packed", "counts", "above", "equal"), "*i32"),
    **dict.fromkeys(("places", "above_before", "equal_before"), "*i64"),
    **dict.fromkeys(("symbols", "tail"), "*u8"),
    **dict.fromkeys(("n", "bucket_size", "key"), "i64"),
    **dict.fromkeys(("m", "prefix", "threshold", "ties"), "i32"),
    "alpha": "fp32",
}
KERNELS = [
    *((scales._scale_kernel, {"L2": l2}) for l2 in (True, False)),
    *((quantize._quantize_kernel, {"GRID": g, "BITS": b}) for g, b in ((1, 3), (2, 4), (3, 8))),
    (packing._pack_kernel, {"BITS": 7}),
    (packing._unpack_kernel, {"BITS": 7}),
    (dequantize._add_kernel, {"BITS": 4}),
    (topk._count_digit_kernel, {"LOW": 20, "WIDTH": 11}),
    (topk._count_kernel, {}),
    (topk._place_kernel, {}),
]


@pytest.mark.parametrize(("kernel", "constants"), KERNELS, ids=str)
def test_a_kernel_compiles_and_neither_fuses_nor_flushes(kernel, constants):
    types = {name: TYPES.get(name, "constexpr") for name in kernel.arg_names}
    source = ASTSource(kernel, types, constexprs=constants)
    made = compile_kernel(
        source, target=GPUTarget("cuda", 90, 32), options={"enable_fp_fusion": False}
    )
    assert ".visible .entry" in made.asm["ptx"]
    assert not {part for part in ("fma.", ".ftz", ".approx") if part in made.asm["ptx"]}


def test_a_tensor_on_the_cpu_is_refused():
    with pytest.raises(BackendError, match="vector is on the CPU"):
        topk.topk_places(torch.ones(8), 3)
