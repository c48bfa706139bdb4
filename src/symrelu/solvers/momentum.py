"""Momentum: the extrapolation weight of step k, and the extrapolated point."""

from __future__ import annotations

from typing import Any


def extrapolation_weight(momentum: float, k: int) -> float:
    """Return the weight ``momentum * (k - 1) / (k + 2)`` of step k; zero for k = 0 and 1."""
    return momentum * max(0, k - 1) / (k + 2)


def extrapolate(U: Any, previous: Any, weight: float) -> Any:
    """Return U + weight (U - previous), or U itself, not a copy, if the weight is zero."""
    return U + weight * (U - previous) if weight > 0 else U
