"""Inner products and scaled sums of large arrays, without temporary arrays and in threads.

The parts of an array do not depend on the number of threads, and neither do the bits of a sum over them.
"""

from __future__ import annotations

import numpy as np

from symrelu.kernels.jit import compiled
from symrelu.kernels.threads import run_tasks, slices, workers_for

# Numbers that a thread takes at once. Smaller arrays, which fit into a cache, are not divided.
_PART = 2**17

# A number that is read from memory takes as long as this many multiplications in a matrix product.
_SLOWNESS = 100


def inner(A: np.ndarray, B: np.ndarray) -> float:
    """Return the sum of A * B, multiplied and summed in float64."""
    a, b = _flat(A, B)
    parts = slices(a.size, _PART)
    sums = np.zeros(len(parts))

    def add(k: int) -> None:
        sums[k] = _inner(a[parts[k]], b[parts[k]])

    run_tasks(add, range(len(parts)), workers_for(_SLOWNESS * a.size))
    return float(sums.sum())


def add_scaled(A: np.ndarray, weight: float, B: np.ndarray) -> np.ndarray:
    """Return A + weight * B, in the type of A."""
    out = np.empty(A.shape, A.dtype)
    a, b = _flat(A, B)
    c, factor = out.reshape(-1), A.dtype.type(weight)
    run_tasks(
        lambda part: _add_scaled(a[part], factor, b[part], c[part]),
        slices(a.size, _PART),
        workers_for(_SLOWNESS * a.size),
    )
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
