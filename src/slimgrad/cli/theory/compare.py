"""``slimgrad theory compare``: quantizers of one width side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from slimgrad.cli.output import FLAG, print_json
from slimgrad.cli.theory.answer import print_rows
from slimgrad.cli.theory.configuration import Configuration, Grid, grid_of
from slimgrad.cli.theory.data import components, symbol_probabilities

COLUMNS = {
    "variance_bound": "bound",
    "relaxed_variance": "worst case",
    "expected_variance": "mean",
    "expected_nonzeros_bound": "non-zeros",
    "fixed_width_bits": "fixed bits",
    "entropy_bits": "entropy bits",
    "steps_ratio": "steps",
    "bits_ratio": "total bits",
}
EDEN_BITS = 4


def compare(
    *,
    bits: int = 4,
    bucket_size: int = 512,
    data: str | None = None,
    json: Annotated[bool, FLAG] = False,
) -> int:
    """Quantizers of the same width side by side: variance, bits, and what both do to training.

    "mean" is over the data; for eden over its random rotation of any vector, in the limit of long
    buckets; for the dither of any vector whose largest component does not widen the step.

    "steps" and "total bits" are multiples of training with exact float32 gradients when noise
    decides: the second moment, hence the number of steps, grows by 1 + the variance.

    Args:
        bits: Width of a component, 2 to 8, its sign included.
        bucket_size: Components that share a norm.
        data: Also the mean over this data: gauss, laplace, or a .npy or .pt file.
        json: Print JSON on stdout and nothing else there.
    """
    grids = compared_grids(bits, bucket_size)
    vector, source = (None, "") if data is None else components(data, bucket_size)
    rows = [{"quantizer": grid.name, **facts(grid, vector)} for grid in grids]
    rows += other_methods(bits, bucket_size)
    if json:
        print_json({"bits": bits, "bucket_size": bucket_size, "data": source, "rows": rows})
        return 0
    keys = [key for key in COLUMNS if any(key in row for row in rows)]
    print(f"{bits} bits, buckets of {bucket_size:,}{', ' + source if source else ''}")
    cells = [[row["quantizer"], *(row.get(key) for key in keys)] for row in rows]
    print_rows(cells, ["", *(COLUMNS[key] for key in keys)])
    print('"steps" and "total bits": times those of exact float32 gradients, where noise decides')
    return 0


def compared_grids(bits: int, bucket_size: int) -> list[Grid]:
    """The quantizers of a comparison, under short names.

    Raises:
        ConfigError: bits or bucket_size out of range.
    """
    from slimgrad import theory

    base = Configuration(bits=bits, bucket_size=bucket_size)
    grids = [
        replace(grid_of(replace(base, quantizer=name, norm=norm)), name=f"{name} {norm}")
        for name, norm in (
            ("nuqsgd", "l2"),
            ("nuqsgd", "linf"),
            ("qsgd", "l2"),
            ("qsgdinf", "linf"),
        )
    ]
    first = grids[0]
    for norm in ("l2", "linf"):
        levels = theory.minimax_levels(first.s, bucket_size, norm)
        grids.append(
            replace(
                first, name=f"best levels {norm}", levels=levels, norm=norm, powers_of_half=False
            )
        )
    return grids


def other_methods(bits: int, bucket_size: int) -> list[dict[str, float | str]]:
    """Rows of methods without a grid of levels for these bits."""
    from slimgrad import theory

    powers = {"variance_bound": theory.natural_variance_bound()}
    rows: list[tuple[str, float, dict[str, float], float | None]]
    rows = [("natural (9 bits)", 9.0, powers, None)]
    if bits <= EDEN_BITS:  # in buckets of 512, whatever was asked
        rows.append(("eden, buckets of 512", bits + 32 / 512, {}, theory.eden_variance(bits)))
    terngrad = {"variance_bound": theory.terngrad_variance_bound(bucket_size)}
    rows.append(("terngrad", 2 + 32 / bucket_size, terngrad, None))
    most = 2 ** (bits - 1) - 1
    dithered = {"variance_bound": theory.dithered_variance_bound(1.0, bucket_size, most)}
    mean = theory.dithered_variance(1.0)
    rows.append(("dither, step 1 rms", bits + 32 / bucket_size, dithered, mean))
    return [_row(*row) for row in rows]


def _row(
    name: str, width: float, known: dict[str, float], mean: float | None
) -> dict[str, float | str]:
    variance = mean if mean is not None else known["variance_bound"]
    row: dict[str, float | str] = {"quantizer": name, **known, "fixed_width_bits": width}
    if mean is not None:
        row["expected_variance"] = mean
    return row | {"steps_ratio": 1 + variance, "bits_ratio": (1 + variance) * width / 32}


def facts(grid: Grid, vector: object) -> dict[str, float]:
    """The columns of one row; with ``vector`` also what is measured on it."""
    from slimgrad import theory

    levels, n = grid.levels, grid.bucket_size
    bound = theory.variance_bound(levels, n, grid.norm)
    found = {"variance_bound": bound}
    if grid.norm == "l2":
        found["relaxed_variance"] = theory.worst_case_variance(levels, n, relaxed=True)
    least = min(found.values())  # both hold
    found["expected_nonzeros_bound"] = theory.expected_nonzeros_bound(levels, n, grid.norm)
    width = grid.bits + 32 / n
    found |= {"fixed_width_bits": width, "steps_ratio": 1 + least}
    found["bits_ratio"] = (1 + least) * width / 32
    if vector is not None:
        density = theory.MagnitudeDensity.from_vector(vector, n, grid.norm)  # pyright: ignore[reportArgumentType]
        found["expected_variance"] = theory.expected_variance(levels, density)
        pmf = symbol_probabilities(vector, levels, n, grid.norm)  # pyright: ignore[reportArgumentType]
        found["entropy_bits"] = theory.entropy_bits(pmf) + 32 / n
    return found
