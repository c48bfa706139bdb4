"""Fingerprints of matrices."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from symrelu.problem import Problem, fingerprint


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
