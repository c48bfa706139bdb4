"""Entries of a matrix sorted by tile, and tiles of X turned into their excess."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numba.core.errors import TypingError
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.kernels.tiles import (
    TILE,
    DenseTiles,
    SparseTiles,
    Sums,
    entries_of_tile,
    excess,
    excess_of,
    pack_entries,
    tile_side,
)


@njit
def called(tile, data, i, j, side):
    """The class of ``data`` decides what this calls, as in a pass."""
    return excess(tile, data, i, j, side)


@given(
    seed=st.integers(0, 1000),
    shape=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    tile=st.integers(1, 7),
)
def test_packed_entries_are_the_entries_of_each_tile(seed, shape, tile):
    rng = np.random.default_rng(seed)
    M = rng.random(shape) * (rng.random(shape) < 0.4)
    rows, cols = np.nonzero(M)
    packed = pack_entries(rows, cols, M[rows, cols], shape, symmetric=False, tile=tile)
    rebuilt = np.zeros(shape)
    for i in range(-(-shape[0] // tile)):
        for j in range(-(-shape[1] // tile)):
            r, c, v = entries_of_tile(packed, i, j)
            rebuilt[r + i * tile, c + j * tile] += v
    assert_array_equal(rebuilt, M)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("zero_weight", [1.0, 0.25])
@pytest.mark.parametrize("at_least", [False, True])
@given(seed=st.integers(0, 1000), shape=st.tuples(st.integers(1, 12), st.integers(1, 12)))
def test_excess_is_the_formula(dtype, zero_weight, at_least, seed, shape):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape).astype(dtype)
    M = (rng.random(shape) * (rng.random(shape) < 0.4)).astype(dtype)
    unknown = rng.random(shape) < 0.2
    M[unknown] = 0
    above, zeros = np.maximum(0, X), (M == 0) & ~unknown
    met = (M > 0) & (X > M) & at_least
    short = (M > 0) & ~met
    expected = np.where(short, X - M, np.where(zeros, zero_weight * above, 0))
    settings = dtype(zero_weight), at_least

    def packed(matrix):
        rows, cols = np.nonzero(matrix)
        return pack_entries(rows, cols, matrix[rows, cols], shape, symmetric=False)

    tiles = {"dense": X.copy(), "sparse": X.copy()}
    sums = {
        kind: called(tiles[kind], data, 0, 0, TILE)
        for kind, data in {
            "dense": DenseTiles(np.where(unknown, dtype(-1), M), *settings),
            "sparse": SparseTiles(packed(M), packed(unknown), *settings),
        }.items()
    }
    wide = X.astype(float)
    right = Sums(
        fit=np.sum((M - wide)[short] ** 2),
        error=np.sum((M - np.maximum(0, wide))[short] ** 2),
        positive=np.sum(np.maximum(0, wide)[zeros] ** 2),
        negative=np.sum(np.minimum(0, wide)[zeros] ** 2),
        free=np.sum(wide[unknown | met] ** 2) - np.sum(M[met].astype(float) ** 2),
        active=np.count_nonzero(wide[zeros] > 0),
        inner=np.sum(((M - wide) * wide)[short]),
    )
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    for kind in tiles:
        assert_allclose(tiles[kind], expected, rtol=tolerance, atol=tolerance)
        assert_allclose(sums[kind], right, rtol=tolerance, atol=tolerance)


class ConstantTiles(NamedTuple):
    """M with the same number everywhere."""

    number: float


@excess_of(ConstantTiles)
def constant_excess(tile, data, i, j, side):
    for row in range(tile.shape[0]):
        for col in range(tile.shape[1]):
            tile[row, col] -= data.number + i + j + side
    return 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0


def test_another_kind_of_data():
    tile = np.full((2, 3), 10.0)
    assert called(tile, ConstantTiles(0.5), 1, 2, 4) == (1, 2, 3, 4, 5, 6, 7)
    assert_array_equal(tile, np.full((2, 3), 2.5))


def test_only_compiled_code_knows_the_kind():
    with pytest.raises(NotImplementedError, match="outside compiled code"):
        excess(np.ones((1, 1)), ConstantTiles(0.5), 0, 0, 1)
    with pytest.raises(TypingError, match="excess"):
        called(np.ones((1, 1)), Sums(*range(7)), 0, 0, 1)


@given(n=st.integers(1, 10**7), rank=st.integers(1, 1000))
def test_sides_of_tiles(n, rank):
    side = tile_side(n, rank)
    blocks = -(-n // side)
    assert blocks <= 2000  # so that the packed entries stay small
    assert side <= max(320, -(-n // 2000))
    assert side >= min(n, 72)
    assert blocks * side - n < blocks  # equal but for one row
    if 2000 <= n <= 200_000:
        assert blocks >= 7  # so that many threads have work
        assert side == tile_side(n, rank + 1) or rank in (8, 16, 32, 48)


def test_products_of_small_ranks_are_small():
    """OpenBLAS multiplies matrices with at most a million multiplications without copying them."""
    for rank in range(1, 49):
        assert tile_side(10_000, rank) ** 2 * rank <= 1e6
