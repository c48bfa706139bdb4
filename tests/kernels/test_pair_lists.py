"""Lists of pairs, new and after some rows have moved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.kernels.pair_lists import TooManyPairs, scan_again, scan_all, scan_block
from symrelu.kernels.row_references import new_references, refer


def example(n, seed, zeros=0):
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((n, 4))
    U[rng.choice(n, zeros, replace=False)] = 0
    known = rng.random((n, n)) < 0.2
    return rng, U, np.array([1.0, 1.0, 1.0, -1.0]), sparse.csr_array((known | known.T).astype(float))


def pairs_above(U, signs, slack, known):
    """Return the pairs i <= j by the definition."""
    lengths = np.linalg.norm(U, axis=1)
    cosines = (U * signs) @ U.T / np.maximum(np.outer(lengths, lengths), 1e-300)
    listed = (cosines > -slack) & (known.toarray() == 0) & (lengths > 0) & (lengths > 0)[:, None]
    return np.argwhere(np.triu(listed))


def pairs_in(listed):
    rows = np.repeat(np.arange(len(listed.indptr) - 1), np.diff(listed.indptr))
    return np.stack([rows, listed.indices], axis=1)


@pytest.mark.parametrize("side", [3, 8, 100])
@pytest.mark.parametrize("slack", [0.0, 0.1, 2.0])
def test_all_pairs_above_the_threshold(slack, side):
    _, U, signs, known = example(50, 0, zeros=3)
    listed = scan_all(new_references(U, signs), slack, known, side, 10**6)
    assert_array_equal(pairs_in(listed), pairs_above(U, signs, slack, known))


@given(st.integers(1, 40), st.integers(0, 1000), st.integers(1, 9), st.floats(0, 0.5))
def test_after_some_rows_have_moved(n, seed, side, slack):
    """The list is that of a new scan, with the columns of each row in ascending order."""
    rng, U, signs, known = example(n, seed, zeros=n // 5)
    references = new_references(U, signs)
    listed = scan_all(references, slack, known, side, 10**6)
    for _ in range(3):
        rows = np.flatnonzero(rng.random(n) < rng.random())
        U[rows] = rng.standard_normal((len(rows), 4))
        refer(references, rows, U)
        listed = scan_again(listed, rows, references, slack, known, side, 10**6)
        assert_array_equal(pairs_in(listed), pairs_above(U, signs, slack, known))


def test_too_many_pairs():
    _, U, signs, known = example(60, 0)
    references = new_references(U, signs)
    listed = scan_all(references, 0.0, known, 16, 10**6)
    with pytest.raises(TooManyPairs):
        scan_all(references, 0.0, known, 16, len(listed.indices) - 1)
    with pytest.raises(TooManyPairs):
        scan_again(listed, np.array([0]), references, 0.0, known, 16, len(listed.indices) - 1)


def test_a_scan_ends_when_all_blocks_together_have_too_many():
    """Otherwise each block could hold as many pairs as the whole list may."""
    n, side = 60, 10
    references = new_references(np.ones((n, 2), np.float32), np.ones(2))
    nothing = np.zeros(n + 1, np.int64), np.empty(0, np.int32)
    total, counts = np.full(1, 5), np.zeros(side, np.int64)
    everywhere = np.ones(n, np.bool_)
    scan_block(np.arange(side), *references, everywhere, np.float32(0), *nothing, True, 4, total, counts)
    assert 0 < counts.sum() <= side**2
    assert total[0] == 5 + counts.sum()
