"""Inner products and scaled sums of large arrays, without temporary arrays and in threads.

Such work waits for memory, so functions for several arrays at once read each number once. The parts of an array
do not depend on the number of threads, and neither do the bits of a sum over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from symrelu.kernels.jit import compiled
from symrelu.kernels.threads import (
    next_share,
    run_supply,
    run_tasks,
    single_threaded_blas,
    slices,
    workers_for,
)

# Arrays up to this size, which fit into a cache, are not divided.
_WHOLE = 2**17

# Numbers of a sum whose result is added to those of the others, and numbers of one call of BLAS.
_PART = 2**15
_PART_OF_PRODUCTS = 2**16

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
    if a.size <= _PART:
        return _inner(a, b)
    sums = np.zeros(-(-a.size // _PART))
    _run(lambda parts: _inner_of_parts(a, b, parts.start, parts.stop, sums), len(sums), a.size)
    return float(sums.sum())


def add_scaled(A: np.ndarray, weight: float, B: np.ndarray) -> np.ndarray:
    """Return A + weight * B, in the type of A."""
    out = np.empty(A.shape, A.dtype)
    a, b = _flat(A, B)
    c, factor = out.reshape(-1), A.dtype.type(weight)
    _run(lambda part: _add_scaled(a[part], factor, b[part], c[part]), a.size, a.size)
    return out


def inner_each(A: np.ndarray, others: Sequence[np.ndarray]) -> list[float]:
    """Return the sum of A * B for each B among others, multiplied and summed in float64."""
    if not others:
        return []
    a, arrays = A.reshape(-1), _padded(others)
    if a.size <= _PART:
        total = np.zeros(len(others))
        _inner_each(a, arrays, 0, a.size, total)
        return total.tolist()
    sums = np.zeros((-(-a.size // _PART), len(others)))
    _run(
        lambda parts: _inner_each_of_parts(a, arrays, parts.start, parts.stop, sums),
        len(sums),
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
        a.size,
        a.size * (1 + len(others)),
    )
    return out


def scale_columns(A: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return A * weights, with one weight for each column."""
    if A.size <= _WHOLE or not A.flags.c_contiguous:
        return A * weights
    out, factors = np.empty_like(A), np.asarray(weights, A.dtype)
    _run(lambda rows: _scale_columns(A[rows], factors, out[rows]), len(A), A.size)
    return out


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A B for a long array and a small one."""
    A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)  # with the bits of BLAS for any memory order
    out = np.empty((len(A), B.shape[1]), A.dtype)
    work = _work_of_products(A, B)
    run_supply(
        lambda supply: _multiply_shares(supply, A, B, out), len(A), _rows_of_a_part(A), work, workers_for(work)
    )
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
    parts = slices(len(A), _rows_of_a_part(A))
    grams = np.empty((len(parts), A.shape[1], B.shape[1]), kind)

    def multiply(k: int) -> None:
        a, b = (C[parts[k]].astype(kind, copy=False) for C in (A, B))
        np.dot(a.T, b, out=grams[k])

    run_tasks(multiply, range(len(parts)), workers_for(_work_of_products(A, B)))
    return grams.sum(axis=0)


@lru_cache
def compile_for(dtype: np.dtype[Any]) -> None:
    """Compile what arrays of this type need, in sums over up to sixteen arrays, with calls on nothing."""
    nothing = np.empty(0, dtype)
    _inner(nothing, nothing)
    _inner_of_parts(nothing, nothing, 0, 0, np.empty(0))
    _add_scaled(nothing, dtype.type(1), nothing, nothing)
    for count in (_ARRAYS_AT_ONCE, 2 * _ARRAYS_AT_ONCE):
        _inner_each(nothing, (nothing,) * count, 0, 0, np.empty(0))
        _inner_each_of_parts(nothing, (nothing,) * count, 0, 0, np.empty((0, 1)))
        _combined(dtype.type(1), nothing, nothing, (nothing,) * count, 0, 0, nothing)
    no_rows = nothing.reshape(0, 0)
    _scale_columns(no_rows, nothing, no_rows)
    product(no_rows, no_rows)


def _work_of_products(A: np.ndarray, B: np.ndarray) -> float:
    """Return the work of multiplying a long array and reading it."""
    return A.size * (_SLOWNESS + B.shape[1])


def _run(work: Callable[[slice], None], count: int, numbers: int) -> None:
    """Divide the items up to ``count``, for which so many numbers are read, among threads: a slice for each."""
    # A small array takes a few microseconds: to count the threads would take longer.
    workers = workers_for(_SLOWNESS * numbers) if numbers > _WHOLE else 1
    if workers > 1:
        run_tasks(work, slices(count, -(-count // workers)), workers)
    else:
        work(slice(0, count))


def _rows_of_a_part(A: np.ndarray) -> int:
    """Return how many rows of an array are multiplied by one call of BLAS."""
    return max(1, _PART_OF_PRODUCTS // max(1, A.shape[1]))


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


@compiled
def _scale_columns(A, weights, out):  # type: ignore[no-untyped-def]
    for i in range(len(A)):
        for c in range(weights.size):
            out[i, c] = A[i, c] * weights[c]


@compiled
def _multiply_shares(supply, A, B, out):  # type: ignore[no-untyped-def]
    """Take shares of the rows of A, and multiply them."""
    for _ in range(supply.shares):
        first, last = next_share(supply)
        if first >= supply.total:
            return
        np.dot(A[first:last], B, out[first:last])


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
def _inner_of_parts(a, b, first, last, sums):  # type: ignore[no-untyped-def]
    for k in range(first, last):
        sums[k] = _inner(a[k * _PART : (k + 1) * _PART], b[k * _PART : (k + 1) * _PART])


@compiled
def _inner_each_of_parts(a, arrays, first, last, sums):  # type: ignore[no-untyped-def]
    for k in range(first, last):
        _inner_each(a, arrays, k * _PART, min((k + 1) * _PART, a.size), sums[k])


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
