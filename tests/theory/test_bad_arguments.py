"""Whatever is passed, a theory function answers with a number or with a ConfigError."""

import dataclasses
import inspect
import math

import numpy as np
import pytest

from slimgrad import theory
from slimgrad.core.errors import ConfigError

LEVELS = (0.0, 0.25, 0.5, 1.0)
DENSITY = theory.MagnitudeDensity([0.1, 0.3, 0.7])
VALUES = {
    "added_variance": 0.1,
    "added_variances": [0.1, 0.2],
    "allowed_variance": 0.5,
    "batch_size": 128,
    "bits": 4,
    "blocks": [0, 0],
    "bucket_size": 2,
    "budget": 1.5,
    "c": 1.0,
    "coefficients": [3.0, 1.0],
    "d": 32,
    "density": DENSITY,
    "draws": 2,
    "first": np.ones((2, 3)),
    "fresh": np.ones((2, 3)),
    "gap": 0.1,
    "grad_map": [1.0, 2.0],
    "grad_maps": np.ones((1, 2)),
    "grad_rows": np.ones((2, 1)),
    "gradient": [1.0, 2.0],
    "indices": [0, 1, -2],
    "input_rows": np.ones((2, 3)),
    "k": 5,
    "largest_index": 7,
    "layer_seconds": [1.0, 2.0],
    "least_rate": 0.1,
    "levels": LEVELS,
    "limit_bits": 4,
    "magnitudes": [0.1, 0.2],
    "means": [0.1, 0.2],
    "memory": [2.0, 1.0],
    "n": 1024,
    "noise": 0.5,
    "noise_scale": 100.0,
    "nonzeros": 20.0,
    "norm": "l2",
    "other_seconds": 1.0,
    "patches": np.ones((2, 3)),
    "probabilities": [0.5, 0.5],
    "probability": 0.5,
    "radius": 1.0,
    "rank": 1,
    "ratio": 0.5,
    "relaxed": True,
    "resolution": 0.01,
    "s": 2,
    "scales": [0.1, 0.2],
    "scores": [1.0, 2.0],
    "second_moment": 1.0,
    "singular_values": [2.0, 1.0],
    "smoothness": 1.0,
    "step_rms": 1.0,
    "sweeps": 5,
    "symbols": 16,
    "terms": np.eye(2),
    "tolerance": 1e-6,
    "uniform_share": 0.1,
    "vector": [1.0, -2.0, 3.0],
    "weights": [1.0, 1.0],
    "world_size": 4,
}
OWN = {
    "approximation_pays": {"layer_seconds": 1.0},
    "no_zero_variance_bound": {"levels": (0.5, 1.0)},
    "no_zero_expected_variance": {"levels": (0.5, 1.0)},
    "random_k_variance": {"k": 3},
    "top_one_bias": {"patches": np.ones((1, 2, 3))},
}
# Objects, flags and stopping rules are what their annotation says.
TRUSTED = {"density", "relaxed", "tolerance"}
BAD = [
    None, "x", math.nan, math.inf, -math.inf, -1, -0.5, 0, 10**400, 1e308, 5e-324, True,
    [], [1e200, 1e200], [[1e200], [1e-200]], [math.nan, 1.0], [-1.0, 1.0], [[1.0]], [0.0, 0.0],
    np.zeros((0, 3)), {},
]  # fmt: skip
FUNCTIONS = sorted(
    name for name in theory.__all__ if inspect.isfunction(getattr(theory, name, None))
)


def calls(name):
    parameters = inspect.signature(getattr(theory, name)).parameters
    return {key: {**VALUES, **OWN.get(name, {})}[key] for key in parameters}


def numbers(answer):
    if dataclasses.is_dataclass(answer):
        answer = list(dataclasses.asdict(answer).values())
    if isinstance(answer, list | tuple):
        return [value for part in answer for value in numbers(part)]
    return np.ravel(np.asarray(answer, dtype=float)).tolist() if not callable(answer) else []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_good_call_answers_with_finite_numbers(name):
    assert all(math.isfinite(value) for value in numbers(getattr(theory, name)(**calls(name))))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("error")
def test_a_bad_argument_gives_a_number_or_a_named_error(name):
    function, good = getattr(theory, name), calls(name)
    for key in good.keys() - TRUSTED:
        for value in BAD:
            message, answer = "", 0.0
            try:
                answer = function(**{**good, key: value})
            except ConfigError as error:
                message = str(error)
            assert "\n" not in message
            assert len(message) < 300
            assert not any(math.isnan(number) for number in numbers(answer)), (key, value)


def test_densities_answer_bad_arguments_alike():
    for value in BAD:
        for call in (
            lambda v: theory.MagnitudeDensity(v),
            lambda v: theory.MagnitudeDensity([0.1, 0.2], v),
            lambda v: theory.MagnitudeDensity.from_vector(v, 2),
            lambda v: theory.MagnitudeDensity.from_vector([1.0, 2.0], v),
            lambda v: theory.MagnitudeDensity.from_histogram(v, [1.0]),
            lambda v: theory.MagnitudeDensity.from_histogram([0.0, 1.0], v),
            lambda v: theory.MagnitudeDensity.from_cdf(lambda r: r, v),
        ):
            try:
                density = call(value)
            except ConfigError:
                continue
            assert math.isfinite(density.second_moment)
