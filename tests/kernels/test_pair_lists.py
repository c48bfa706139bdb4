"""Lists of pairs, new and after some rows have moved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.kernels.integer_rows import SCALE
from symrelu.kernels.pair_lists import (
    TooManyPairs,
    insert_sorted,
    packed_bits,
    scan_again,
    scan_all,
    scan_rows,
)
from symrelu.kernels.row_references import full_slack, new_references, refer


def example(n, seed, zeros=0):
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((n, 4))
    U[rng.choice(n, zeros, replace=False)] = 0
    known = rng.random((n, n)) < 0.2
    return rng, U, np.array([1.0, 1.0, 1.0, -1.0]), sparse.csr_array((known | known.T).astype(float))


def cosines_of(U, signs, known):
    """Return the cosines of the pairs that may be listed, and -infinity for all others."""
    lengths = np.linalg.norm(U, axis=1)
    cosines = (U * signs) @ U.T / np.maximum(np.outer(lengths, lengths), 1e-300)
    allowed = (known.toarray() == 0) & (lengths > 0) & (lengths > 0)[:, None]
    return np.where(allowed, cosines, -np.inf)


def products_of(references, known):
    """Return the exact products of the integers of the pairs that may be listed."""
    n, columns = len(references.nonzero), len(references.signs)
    rows = references.packed.transpose(0, 2, 1, 3).reshape(-1, 2 * references.packed.shape[1])
    rows = rows[:n, :columns].astype(np.int64)
    allowed = (known.toarray() == 0) & references.nonzero & references.nonzero[:, None]
    return np.where(allowed, (rows * references.signs) @ rows.T, np.iinfo(np.int64).min)


def pairs_in(listed):
    rows = np.repeat(np.arange(len(listed.indptr) - 1), np.diff(listed.indptr))
    return np.stack([rows, listed.indices], axis=1)


@pytest.mark.parametrize("n", [1, 50, 64, 129, 300])
@pytest.mark.parametrize("slack", [0.0, 0.1, 2.0])
def test_all_pairs_above_the_threshold(slack, n):
    """All pairs whose cosine is above -slack are listed, and few others."""
    _, U, signs, known = example(n, 0, zeros=n // 20)
    cosines = cosines_of(U, signs, known)
    listed = np.zeros((n, n), bool)
    listed[tuple(pairs_in(scan_all(new_references(U, signs), full_slack(slack, 4), known, n * n)).T)] = True
    assert listed[cosines > -slack].all()
    assert not listed[cosines < -slack - 1e-3].any()


@given(st.integers(1, 150), st.integers(0, 1000), st.floats(0, 0.5))
def test_after_some_rows_have_moved(n, seed, slack):
    """The list is that of a new scan: exactly the products of integers above the threshold, in order.

    A pair i, j is there as j, i too.
    """
    rng, U, signs, known = example(n, seed, zeros=n // 5)
    references = new_references(U, signs)
    listed = scan_all(references, slack, known, 10**6)
    for _ in range(3):
        rows = np.flatnonzero(rng.random(n) < rng.random())
        U[rows] = rng.standard_normal((len(rows), 4))
        refer(references, rows, U)
        listed = scan_again(listed, rows, references, slack, known, 10**6)
        products = products_of(references, known)
        found = np.argwhere(products > -slack * SCALE**2)
        assert_array_equal(pairs_in(listed), pairs_in(scan_all(references, slack, known, 10**6)))
        here = np.zeros((n, n), bool)
        here[tuple(pairs_in(listed).T)] = True
        assert_array_equal(here, here.T)
        # The threshold is a little lower, because a rounded reference can be longer than one.
        assert {*map(tuple, found)} <= {*map(tuple, pairs_in(listed))}
        assert products[tuple(pairs_in(listed).T)].min(initial=0) > -(slack + 1e-3) * SCALE**2


def test_too_many_pairs():
    _, U, signs, known = example(60, 0)
    references = new_references(U, signs)
    listed = scan_all(references, 0.0, known, 10**6)
    with pytest.raises(TooManyPairs):
        scan_all(references, 0.0, known, len(listed.indices) - 1)
    with pytest.raises(TooManyPairs):
        scan_again(listed, np.array([0]), references, 0.0, known, len(listed.indices) - 1)


def test_a_scan_ends_when_all_calls_together_have_too_many():
    """Otherwise each call could hold as many pairs as the whole list may."""
    n = 300
    references = new_references(np.ones((n, 2), np.float32), np.ones(2))
    nothing = np.zeros(n + 1, np.int64), np.empty(0, np.int32)
    total, counts = np.full(1, 5), np.zeros(n, np.int64)
    everywhere = packed_bits(np.ones(n, np.bool_))
    columns = scan_rows(np.arange(n), *references, everywhere, np.int32(0), *nothing, True, 4, total, counts)
    assert 0 < len(columns) == counts.sum() < n * (n + 1) // 2
    assert total[0] == 5 + 2 * counts.sum() - np.count_nonzero(counts)  # the diagonal counts once


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_sorted_numbers_are_inserted(numbers, others):
    others -= numbers
    array = np.full(80, -1, np.int32)
    array[5 : 5 + len(numbers)] = sorted(numbers)
    end = insert_sorted(array, 5, 5 + len(numbers), np.array(sorted(others), np.int32))
    assert array[5:end].tolist() == sorted(numbers | others)
    assert (array[:5] == -1).all()
    assert (array[end:] == -1).all()
