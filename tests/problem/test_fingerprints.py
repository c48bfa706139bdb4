"""Fingerprints of matrices."""

import numpy as np
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
