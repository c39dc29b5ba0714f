import pickle

import pytest
import torch

from slimgrad import theory
from slimgrad.comm.quantizers import NUQSGD, QSGD, QUANTIZERS, QSGDinf
from slimgrad.comm.quantizers.level import PROBABILITY_RESOLUTION, magnitudes
from slimgrad.core.errors import ConfigError

CLASSES = [NUQSGD, QSGD, QSGDinf]


def test_registry_files_each_class_under_its_file_name():
    assert {cls.name for cls in CLASSES} <= set(QUANTIZERS)
    for name in QUANTIZERS:
        cls = QUANTIZERS.get(name)
        assert cls.name == name
        assert cls.__module__.endswith(f".{name}")
    assert all(cls.unbiased for cls in CLASSES)
    with pytest.raises(ConfigError, match="did you mean 'nuqsgd'"):
        QUANTIZERS.get("nuqsdg")


@pytest.mark.parametrize("bits", range(2, 9))
def test_levels_fill_the_symbol(bits):
    m = 2 ** (bits - 1) - 1
    assert magnitudes(bits) == m
    assert NUQSGD(bits=bits).level_grid.levels == theory.exponential_levels(m - 1)
    assert QSGD(bits=bits).level_grid.levels == theory.uniform_levels(m)
    assert QSGDinf(bits=bits).level_grid.levels == theory.uniform_levels(m)
    for cls in CLASSES:
        assert len(cls(bits=bits).level_grid.levels) == m + 1


def test_grids_and_norms():
    assert NUQSGD().level_grid.grid == "exponential"
    assert NUQSGD(ratio=0.4).level_grid.grid == "table"
    assert QSGD().level_grid.grid == QSGDinf().level_grid.grid == "uniform"
    assert (NUQSGD().norm, NUQSGD(norm="linf").norm) == ("l2", "linf")
    assert (QSGD().norm, QSGDinf().norm) == ("l2", "linf")


def test_table_levels_are_float32():
    levels = NUQSGD(bits=5, ratio=0.7).level_grid.levels
    assert levels == tuple(torch.tensor(levels, dtype=torch.float32).tolist())
    assert levels[-2] == pytest.approx(0.7)


def test_equality_hash_repr_and_pickle():
    assert NUQSGD(bits=4) == NUQSGD()
    assert NUQSGD() != NUQSGD(bits=3)
    assert QSGD() != QSGDinf()
    assert len({NUQSGD(), NUQSGD(), NUQSGD(ratio=0.4), QSGD(), QSGDinf()}) == 4
    assert repr(NUQSGD()) == "NUQSGD(bits=4, bucket_size=512, norm='l2', ratio=0.5)"
    for quantizer in (NUQSGD(bits=3, ratio=0.3), QSGD(bits=8), QSGDinf(bucket_size=7)):
        assert eval(repr(quantizer)) == quantizer
        assert pickle.loads(pickle.dumps(quantizer)) == quantizer


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("bits", [1, 9, 0, -4, 4.0, True, "4"])
def test_bits_out_of_range_are_named(cls, bits):
    with pytest.raises(ConfigError, match=rf"{cls.__name__} needs bits from 2 to 8.*bits={bits!r}"):
        cls(bits=bits)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("bucket_size", [0, -1, 2**31, 512.0, False])
def test_bucket_sizes_out_of_range_are_named(cls, bucket_size):
    with pytest.raises(ConfigError, match=f"bucket_size={bucket_size!r}"):
        cls(bucket_size=bucket_size)


def test_unknown_norm_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'l2'"):
        NUQSGD(norm="L2")


@pytest.mark.parametrize("ratio", [0.0, 1.0, 1.5, -1, "half", None, True])
def test_ratio_out_of_range_is_named(ratio):
    with pytest.raises(ConfigError, match=f"ratio={ratio!r}"):
        NUQSGD(ratio=ratio)


@pytest.mark.parametrize(("bits", "ratio"), [(8, 0.3), (8, 0.1), (6, 0.01), (8, 1 - 1e-9)])
def test_levels_float32_cannot_hold_are_refused(bits, ratio):
    with pytest.raises(ConfigError, match="float32 cannot tell apart"):
        NUQSGD(bits=bits, ratio=ratio)


def test_variance_bound_is_that_of_the_longest_bucket_at_the_drawn_resolution():
    quantizer = NUQSGD(bits=4, bucket_size=512)
    levels = quantizer.level_grid.levels
    exact = theory.variance_bound(levels, 512)
    drawn = theory.rounding_resolution_bound(levels, 512, PROBABILITY_RESOLUTION)
    assert quantizer.variance_bound(10**6) == exact + drawn
    assert quantizer.variance_bound(10**6) == pytest.approx(0.1527, abs=1e-4)
    assert quantizer.variance_bound(100) < quantizer.variance_bound(512)
    assert QSGDinf(bits=4).variance_bound(512) == pytest.approx(1.190, abs=1e-3)
    assert QSGD(bits=4).variance_bound(0) == 0.0


@pytest.mark.parametrize("serial", [False, True])
def test_quantized_says_how_it_was_made(serial):
    quantizer = QSGDinf(bits=5, bucket_size=10)
    vector = torch.linspace(-1, 1, 25)
    quantized = quantizer.quantize(vector, key=2**64 - 1, serial=serial)
    assert (quantized.n, quantized.bits, quantized.bucket_size) == (25, 5, 10)
    assert quantized.grid == quantizer.level_grid
    assert (quantized.norm, quantized.key) == ("linf", 2**64 - 1)
    peaks = [vector[k : k + 10].abs().max() for k in (0, 10, 20)]
    assert torch.equal(quantized.scales, torch.stack(peaks))
