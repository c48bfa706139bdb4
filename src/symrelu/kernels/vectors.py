"""Inner products and scaled sums of large arrays, without temporary arrays."""

from __future__ import annotations

import numpy as np

from symrelu.kernels.jit import compiled


def inner(A: np.ndarray, B: np.ndarray) -> float:
    """Return the sum of A * B, multiplied and summed in float64."""
    return float(_inner(*_flat(A, B)))


def add_scaled(A: np.ndarray, weight: float, B: np.ndarray) -> np.ndarray:
    """Return A + weight * B, in the type of A."""
    out = np.empty(A.shape, A.dtype)
    a, b = _flat(A, B)
    _add_scaled(a, A.dtype.type(weight), b, out.reshape(-1))
    return out


def _flat(A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Of an array that is not contiguous, reshape makes a copy.
    return A.reshape(-1), B.reshape(-1)


@compiled
def _inner(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(a.size):
        total += np.float64(a[k]) * np.float64(b[k])
    return total


@compiled
def _add_scaled(a, weight, b, out):  # type: ignore[no-untyped-def]
    for k in range(a.size):
        out[k] = a[k] + weight * b[k]
