"""Vectors and settings that the tests of the rotating kernels share."""

from __future__ import annotations

import math

import torch

from slimgrad.theory import normal_levels


def settings_of(bits: int, spread: float | None = None) -> tuple[dict, dict]:
    """What quantizing takes, and what both ways take."""
    levels = normal_levels(bits)
    shared = {
        "levels": tuple(torch.tensor([level / levels[-1] for level in levels]).tolist()),
        "bits": bits,
        "key": 0xFEDCBA9876543210 + bits,
    }
    return {"unit": levels[-1], "spread": 3 / 64 if spread is None else spread}, shared


def normal(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))


def special_vectors() -> dict[str, torch.Tensor]:
    spoiled = normal(2100)
    spoiled[3], spoiled[600], spoiled[2099] = math.inf, math.nan, -math.inf
    one_hot = torch.zeros(1100)
    one_hot[700] = -2.0
    factors = torch.tensor([1.0, 1e-35, 0.0, 1e25, 1e-42, 1e37, 1e-9, 3e8])
    return {
        "zeros": torch.zeros(1100),
        "negative zeros": -torch.zeros(1100),
        "one component": one_hot,
        "one huge component": one_hot * 1.7e38,
        "equal": torch.full((1100,), -0.1),
        "smallest denormal": torch.full((1100,), 1e-45),
        "one denormal": (one_hot != 0).float() * 1e-45,
        "denormals": normal(1100) * 1e-40,
        "fourth powers underflow": normal(1100) * 1e-12,
        "squares overflow": normal(1100) * 1e25,
        "norm overflows": torch.full((1100,), -3e38),
        "near the largest": normal(1100).clamp(-1, 1) * 3.4e38,
        "all magnitudes": normal(1100) * torch.logspace(-44, 37, 1100),
        "heavy tails": normal(1100) ** 7,
        "not finite": spoiled,
        "side by side": normal(4096) * factors.repeat_interleave(512),
    }
