"""Comparisons of the products of rows of integers."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numba.core.errors import TypingError
from numpy.testing import assert_array_equal

from symrelu.kernels.integer_rows import (
    ROWS_AT_ONCE,
    SCALE,
    STRIP,
    compare_chosen,
    compare_rows,
    packed_zeros,
    plain_zeros,
    rounding_of_rows,
)

# Without the cache on disk, which does not notice changes of intrinsics in another directory.


@njit
def compare_all(rows, packed, threshold, words):
    for strip in range(len(packed)):
        for first in range(0, len(rows), ROWS_AT_ONCE):
            compare_rows(rows, first, packed, strip, threshold, words)


def compared(rows, others, threshold):
    """Return which products of rows are above the threshold, by bits of words."""
    packed = packed_zeros(*others.shape)
    flat = packed.transpose(0, 2, 1, 3).reshape(-1, 2 * packed.shape[1]).copy()
    flat[: len(others), : others.shape[1]] = others
    packed = np.ascontiguousarray(flat.reshape(len(packed), STRIP, -1, 2).transpose(0, 2, 1, 3))
    left = np.zeros((-(-len(rows) // ROWS_AT_ONCE) * ROWS_AT_ONCE, flat.shape[1]), np.int16)
    left[: len(rows), : rows.shape[1]] = rows
    words = np.zeros((len(left), len(packed) + 1), np.int64)
    compare_all(left, packed, np.int32(threshold), words)
    assert_array_equal(words[:, -1], 0)  # nothing is written beyond the strips
    bits = np.unpackbits(words[:, :-1].view(np.uint8), axis=1, bitorder="little")
    return bits[: len(rows), : len(others)].astype(bool)


@njit
def choose_all(rows, others, threshold, found):
    for i in range(len(rows)):
        for j in range(len(others)):
            # In any order, and some of them twice.
            a, b, c, d = j, 0, (j + 1) % len(others), len(others) - 1 - j
            found[i, j] = compare_chosen(rows[i], others, a, b, c, d, threshold)


def compared_with_chosen(rows, others, threshold):
    """Return the same, by bits for rows that are chosen one by one."""
    left, right = (plain_zeros(*matrix.shape) for matrix in (rows, others))
    left[:, : rows.shape[1]], right[:, : rows.shape[1]] = rows, others
    found = np.zeros((len(rows), len(others)), np.int64)
    choose_all(left, right, np.int32(threshold), found)
    above, j = found % 2 == 1, np.arange(len(others))
    for bit, chosen in enumerate((j, 0 * j, (j + 1) % len(others), len(others) - 1 - j)):
        assert_array_equal(found >> bit & 1, above[:, chosen])
    assert found.max() < 2**4
    return above


WAYS = [compared, compared_with_chosen]


@pytest.mark.parametrize("compare", WAYS)
@given(st.integers(1, 9), st.integers(1, 140), st.integers(1, 70), st.integers(0, 1000))
def test_products_above_the_threshold(compare, m, n, columns, seed):
    rng = np.random.default_rng(seed)
    rows, others = (rng.integers(-4000, 4000, (k, columns)) for k in (m, n))
    products = rows @ others.T
    for threshold in (products.flat[0], products.flat[0] - 1, 0):  # one of them is not above itself
        assert_array_equal(compare(rows, others, threshold), products > threshold)


@pytest.mark.parametrize("compare", WAYS)
@pytest.mark.parametrize("columns", [1, 2, 33, 1000])
def test_the_longest_rows_do_not_overflow(compare, columns):
    """Products of rows of length one, rounded upwards, are below 2^31; so are sums over some of the columns."""
    alike = np.full((1, columns), np.ceil(SCALE / np.sqrt(columns)), np.int64)
    square = int(np.sum(alike * alike))
    assert square < 2**31
    assert compare(alike, alike, square - 1)[0, 0]
    assert not compare(alike, -alike, -square)[0, 0]
    assert compare(alike, -alike, -square - 1)[0, 0]


@pytest.mark.parametrize(("columns", "filled"), [(1, 32), (31, 32), (32, 32), (33, 64)])
def test_plain_rows_are_whole_vectors(columns, filled):
    rows = plain_zeros(3, columns)
    assert rows.shape == (3, filled)
    assert rows.dtype == np.int16
    assert not rows.any()


@pytest.mark.parametrize(
    "change", [np.asfortranarray, lambda rows: rows[:, ::2], lambda rows: rows.astype(np.int32)]
)
def test_arrays_of_another_layout_or_type_are_refused(change):
    """Otherwise other numbers would be read than were passed."""
    rows, packed, threshold = plain_zeros(4, 64), packed_zeros(4, 64), np.int32(0)
    with pytest.raises(TypingError, match="are required, got"):
        choose_all(rows, change(rows), threshold, np.empty((4, 4), np.int64))
    with pytest.raises(TypingError, match="are required, got"):
        compare_all(change(rows), packed, threshold, np.empty((4, 2), np.int64))


@pytest.mark.parametrize("columns", [1, 3, 32, 400])
def test_rounding(columns):
    U = np.random.default_rng(0).standard_normal((200, columns))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    error = np.linalg.norm(np.rint(SCALE * U) / SCALE - U, axis=1)
    assert error.max() <= rounding_of_rows(columns) < 1e-3


PROGRAM = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from kernels.test_integer_rows import WAYS
from kernels.test_lanes import LANES, subtract
rng = np.random.default_rng(0)
rows, others = (rng.integers(-4000, 4000, (k, 33)) for k in (7, 130))
for compare in WAYS:
    assert (compare(rows, others, 10**6) == (rows @ others.T > 10**6)).all()
left, right, out = np.ones((8, LANES)), rng.standard_normal((8, LANES)), np.zeros((1, LANES))
subtract(out, 0, left, 0, 1, right, 0, 1, 2)
assert abs(out + right.sum(axis=0)).max() < 1e-14
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="needs a processor like that one")
def test_a_processor_with_shorter_vectors():
    """The shape of the code depends on the registers that there are."""
    processor = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma"}
    tests = str(Path(__file__).parents[1])
    subprocess.run([sys.executable, "-c", PROGRAM, tests], env={**os.environ, **processor}, check=True)
