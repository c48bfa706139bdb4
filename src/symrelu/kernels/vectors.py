"""Inner products and scaled sums of large arrays, without temporary arrays and in threads.

Such work waits for memory, so functions for several arrays at once read each number once. The parts of an array
do not depend on the number of threads, and neither do the bits of a sum over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symrelu.kernels.jit import compiled
from symrelu.kernels.threads import run_tasks, single_threaded_blas, slices, workers_for

# Numbers that a thread takes at once, and the size up to which an array is not divided: it fits into a cache.
_PART = 2**15
_WHOLE = 2**17

# A number that is read from memory takes as long as this many multiplications in a matrix product.
_SLOWNESS = 100

# Numbers of an array that stay in a cache while those of others pass by: few enough for the second cache of a
# core, and so many that memory is read ahead.
_CHUNK = 2**14

# Functions for several arrays are compiled for each multiple of this number of arrays.
_ARRAYS_AT_ONCE = 8


def inner(A: np.ndarray, B: np.ndarray) -> float:
    """Return the sum of A * B, multiplied and summed in float64."""
    a, b = _flat(A, B)
    if a.size <= _WHOLE:
        return _inner(a, b)
    parts = slices(a.size, _PART)
    sums = np.zeros(len(parts))

    def add(k: int) -> None:
        sums[k] = _inner(a[parts[k]], b[parts[k]])

    _run(add, range(len(parts)), a.size)
    return float(sums.sum())


def add_scaled(A: np.ndarray, weight: float, B: np.ndarray) -> np.ndarray:
    """Return A + weight * B, in the type of A."""
    out = np.empty(A.shape, A.dtype)
    a, b = _flat(A, B)
    c, factor = out.reshape(-1), A.dtype.type(weight)
    _run(lambda part: _add_scaled(a[part], factor, b[part], c[part]), _parts(a.size), a.size)
    return out


def inner_each(A: np.ndarray, others: Sequence[np.ndarray]) -> list[float]:
    """Return the sum of A * B for each B among others, multiplied and summed in float64."""
    if not others:
        return []
    a, arrays = A.reshape(-1), _padded(others)
    if a.size <= _WHOLE:
        sums = np.zeros(len(others))
        _inner_each(a, arrays, 0, a.size, sums)
        return sums.tolist()
    parts = slices(a.size, _PART)
    sums = np.zeros((len(parts), len(others)))
    _run(
        lambda k: _inner_each(a, arrays, parts[k].start, parts[k].stop, sums[k]),
        range(len(parts)),
        a.size * len(others),
    )
    return sums.sum(axis=0).tolist()


def combined(scale: float, A: np.ndarray, weights: Sequence[float], others: Sequence[np.ndarray]) -> np.ndarray:
    """Return scale * A plus the sum of weight * B over others, in the type of A."""
    out = np.empty(A.shape, A.dtype)
    a, c, arrays = A.reshape(-1), out.reshape(-1), _padded(others) or _padded((A,))
    factor, factors = A.dtype.type(scale), np.asarray(weights, A.dtype)
    _run(
        lambda part: _combined(factor, a, factors, arrays, part.start, part.stop, c),
        _parts(a.size),
        a.size * (1 + len(others)),
    )
    return out


def scale_columns(A: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return A * weights, with one weight for each column."""
    if A.size <= _WHOLE or not A.flags.c_contiguous:
        return A * weights
    out = np.empty_like(A)

    def multiply(rows: slice) -> None:
        np.multiply(A[rows], weights, out=out[rows])

    _run(multiply, _parts_of_rows(A), A.size)
    return out


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A B for a long A and a small B."""
    out = np.empty((len(A), B.shape[1]), A.dtype)

    def multiply(rows: slice) -> None:
        np.dot(A[rows], B, out=out[rows])

    run_tasks(multiply, _parts_of_rows(A), workers_for(_work_of_products(A, B)))
    return out


def concatenated(parts: Sequence[np.ndarray], dtype: Any) -> np.ndarray:
    """Return one array with all numbers of several, in threads."""
    ends = np.cumsum([part.size for part in parts], dtype=np.int64)
    out = np.empty(ends[-1] if len(parts) else 0, dtype)

    def write(k: int) -> None:
        out[ends[k] - parts[k].size : ends[k]] = parts[k]

    if out.size <= _WHOLE:
        return np.concatenate([np.empty(0, dtype), *parts])
    run_tasks(write, range(len(parts)), workers_for(_SLOWNESS * out.size))
    return out


def cross_gram(A: np.ndarray, B: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Return A^T B for two long arrays, in their type or another one."""
    kind = np.dtype(dtype or A.dtype)
    if A.size <= _WHOLE:
        with single_threaded_blas():
            return np.dot(A.astype(kind, copy=False).T, B.astype(kind, copy=False))
    parts = _parts_of_rows(A)
    grams = np.empty((len(parts), A.shape[1], B.shape[1]), kind)

    def multiply(k: int) -> None:
        a, b = (C[parts[k]].astype(kind, copy=False) for C in (A, B))
        np.dot(a.T, b, out=grams[k])

    run_tasks(multiply, range(len(parts)), workers_for(_work_of_products(A, B)))
    return grams.sum(axis=0)


def _work_of_products(A: np.ndarray, B: np.ndarray) -> float:
    """Return the work of multiplying a long array and reading it."""
    return A.size * (_SLOWNESS + B.shape[1])


def _run(work: Callable[[Any], None], parts: Sequence[Any], numbers: int) -> None:
    """Work on parts that together read so many numbers, in threads if there are several parts."""
    if len(parts) > 1:
        run_tasks(work, parts, workers_for(_SLOWNESS * numbers))
        return
    # Of a small array, which takes a few microseconds: to count the threads would take longer.
    for part in parts:
        work(part)


def _parts(size: int) -> list[slice]:
    return slices(size, _PART if size > _WHOLE else max(1, size))


def _parts_of_rows(A: np.ndarray) -> list[slice]:
    return slices(len(A), max(1, (_PART if A.size > _WHOLE else A.size) // max(1, A.shape[1])))


def _padded(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return flat arrays, of which the last one is repeated: compiled code depends on their number."""
    flat = tuple(B.reshape(-1) for B in arrays)
    return flat + flat[-1:] * (-len(flat) % _ARRAYS_AT_ONCE)


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


# Loops over slices begin at zero. From any other number on, an index could be negative, which has to be tested,
# and such loops do not vectorise.


@compiled
def _inner_each(a, arrays, first, last, sums):  # type: ignore[no-untyped-def]
    for begin in range(first, last, _CHUNK):
        chunk = slice(begin, min(begin + _CHUNK, last))
        x = a[chunk]
        for k in range(len(sums)):
            sums[k] += _inner(x, arrays[k][chunk])


@compiled
def _combined(scale, a, weights, arrays, first, last, out):  # type: ignore[no-untyped-def]
    for begin in range(first, last, _CHUNK):
        chunk = slice(begin, min(begin + _CHUNK, last))
        x, z = a[chunk], out[chunk]
        for t in range(x.size):
            z[t] = scale * x[t]
        for k in range(len(weights)):
            y, weight = arrays[k][chunk], weights[k]
            for t in range(x.size):
                z[t] += weight * y[t]
