"""Fingerprints of matrices."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.problem import Problem, RowIndex, fingerprint


def test_fingerprints():
    dense = np.maximum(0, np.random.default_rng(0).standard_normal((1500, 3)))
    assert fingerprint(dense) == fingerprint(sparse.csr_array(dense)) == fingerprint(sparse.csr_matrix(dense))
    changed = dense.copy()
    changed[1400, 2] += 1e-9
    assert len({fingerprint(m) for m in (dense, changed, dense[:, ::-1], dense.astype(np.float32))}) == 4
    assert fingerprint(None) is None
    # As 0.1.0 wrote them into checkpoints.
    assert fingerprint(np.eye(3)) == "2f10e3cb0f3d3d4ac09c04b546bbca426b3753f7db425802cefd2dd2055fed6a"
    assert Problem.of(np.eye(3)).fingerprint() == {"mask": None, "matrix": fingerprint(np.eye(3))}


def backwards(dense):
    """Return a csr_array that lists the entries of each row from right to left."""
    csr = sparse.csr_array(dense)
    order = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in pairwise(csr.indptr)])
    return sparse.csr_array((csr.data[order], csr.indices[order], csr.indptr), shape=csr.shape)


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 20), dtype=st.sampled_from([np.float32, np.float64, bool])
)
def test_a_fingerprint_is_of_the_entries_alone(seed, n, dtype):
    rng = np.random.default_rng(seed)
    dense = ((rng.random((n, n)) < 0.3) * rng.integers(1, 5, (n, n))).astype(dtype)
    forms = (dense, np.asfortranarray(dense), sparse.csr_array(dense), backwards(dense))
    assert len({fingerprint(form) for form in forms}) == 1
    changed = dense.copy()
    i, j = rng.integers(0, n, 2)
    changed[i, j] = not dense[i, j]
    assert fingerprint(changed) != fingerprint(dense)


@pytest.mark.parametrize("n", [1023, 1024, 1025, 2048])
def test_blocks_of_rows_are_not_confused(n):
    column = np.zeros((n, 1))
    prints = set()
    for row in (0, 1, n - 2, n - 1):
        column[:] = 0
        column[row] = 1
        prints.add(fingerprint(column))
    assert len(prints) == 4
    assert fingerprint(np.zeros((n, 1))) != fingerprint(np.zeros((n, 2)))


# Rows

FORMS = {
    "dense": np.asarray,
    "columns first": np.asfortranarray,
    "sparse": sparse.csr_array,
    "backwards": backwards,
    "float32": lambda dense: dense.astype(np.float32),
    "sparse float32": lambda dense: sparse.csr_array(dense.astype(np.float32)),
}


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 20),
    fitted=st.sampled_from(sorted(FORMS)),
    asked=st.sampled_from(sorted(FORMS)),
)
def test_rows_are_recognised_in_every_form(seed, n, fitted, asked):
    rng = np.random.default_rng(seed)
    M = (rng.random((n, n)) < 0.3) * rng.integers(1, 5, (n, n)) / 4
    rows = M[rng.integers(0, n, 7)]
    new = np.vstack([rows, rows + 0.1, 0 * rows[:1]])
    without_own = M - np.diag(np.diag(M))
    fitted_rows = [*enumerate(M), *enumerate(without_own)]
    first = [next((k for k, one in fitted_rows if (one == row).all()), -1) for row in new]
    if "float32" in asked:
        first = [k if (row.astype(np.float32) == row).all() else -1 for k, row in zip(first, new, strict=True)]
    places, same_mask = RowIndex.of(FORMS[fitted](M), None).find(FORMS[asked](new), None)
    assert_array_equal(places, first)
    assert_array_equal(same_mask, places >= 0)


def test_rows_and_their_masks():
    M = np.array([[0.0, 1, 0, 0], [1, 0, 2, 0], [0, 2, 0, 0], [0, 0, 0, 0]])
    mask = np.zeros((4, 4), bool)
    mask[0, 3] = mask[3, 0] = True
    none = np.zeros((4, 4), bool)
    for form in (np.asarray, sparse.csr_array):
        places, same = RowIndex.of(M, mask).find(M[::-1], form(mask[::-1]))
        assert places.tolist() == [3, 2, 1, 0]
        assert same.all()
        assert RowIndex.of(M, None).find(M, form(mask))[1].tolist() == [False, True, True, False]
        assert RowIndex.of(M, mask).find(M, form(none))[1].tolist() == [False, True, True, False]
        assert RowIndex.of(M, None).find(M, form(none))[1].all()
    assert RowIndex.of(M, mask).find(M, None)[1].tolist() == [False, True, True, False]
    places, same = RowIndex.of(M, None).find(sparse.csr_array((0, 4)), None)
    assert places.shape == same.shape == (0,)


def test_a_row_takes_sixteen_bytes():
    index = RowIndex.of(sparse.random_array((3000, 3000), density=0.01, rng=0), None)
    assert index.rows.nbytes == 16 * 3000
    assert len(set(index.rows.tolist())) == 3000


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 12),
    fitted=st.sampled_from(sorted(FORMS)),
    asked=st.sampled_from(sorted(FORMS)),
    own=st.sampled_from([0.0, 0.5, np.nan, -1.0]),
    hidden=st.sampled_from(["neither", "fitted", "asked", "both"]),
)
def test_the_own_entry_of_a_row_does_not_matter(seed, n, fitted, asked, own, hidden):
    rng = np.random.default_rng(seed)
    M = np.tril(rng.integers(1, 2**20, (n, n)) / 2**20, -1)  # no two rows are equal, with or without a diagonal
    M += M.T
    mask = np.triu(rng.random((n, n)) < 0.3, 1)
    mask |= mask.T
    observed = np.where(mask, 0, M)
    with_own = mask | np.eye(n, dtype=bool)
    index = RowIndex.of(
        FORMS[fitted](observed + np.diag(np.full(n, own))), with_own if hidden in ("fitted", "both") else mask
    )
    places, same = index.find(FORMS[asked](observed), with_own if hidden in ("asked", "both") else mask)
    if (observed.sum(axis=1) > 0).all():
        assert_array_equal(places, np.arange(n))
        assert same.all()


def test_a_row_with_its_own_entry_is_found_before_one_without():
    M = np.array([[0.0, 1, 1], [1, 1, 1], [1, 1, 0]])
    assert RowIndex.of(M, None).find(M, None)[0].tolist() == [0, 1, 2]
    twins = np.array([[1.0, 0, 0], [0, 0, 0], [0, 0, 0]])
    assert RowIndex.of(twins, None).find(twins, None)[0].tolist() == [0, 1, 1]


def test_a_mask_of_the_own_entries_alone():
    M = np.array([[0.0, 1, 0], [1, 0, 2], [0, 2, 0]])
    own = np.eye(3, dtype=bool)
    for form in (np.asarray, sparse.csr_array):
        assert RowIndex.of(M, None).find(M, form(own))[1].all()
        assert RowIndex.of(M, form(own)).find(M, None)[1].all()
        other = np.roll(own, 1, axis=1)
        assert not RowIndex.of(M, None).find(M, form(other))[1].any()
