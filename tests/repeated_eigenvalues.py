"""Matrices whose leading eigenvalues repeat."""

import numpy as np


def random_block(size, seed):
    B = np.random.default_rng(seed).random((size, size))
    return B + B.T


def bipartite(B):
    return np.block([[np.zeros_like(B), B], [B.T, np.zeros_like(B)]])


# Issue 11.7: matrices whose leading eigenvalues repeat, at either end of the spectrum.
REPEATED = {
    "identity": np.eye(200),
    "few blocks": np.kron(np.eye(8), random_block(12, 1)),
    "many blocks": np.kron(np.eye(30), random_block(4, 2)),
    "components of a normalised graph": np.kron(np.eye(6), np.ones((20, 20)) / 20),
    "complete graph": np.ones((50, 50)) - np.eye(50),
    "cycle": np.roll(np.eye(60), 1, 0) + np.roll(np.eye(60), -1, 0),
    "bipartite": bipartite(np.kron(np.eye(5), random_block(6, 3))),
    "hypercube": sum(np.kron(np.eye(2**k), np.kron([[0, 1], [1, 0]], np.eye(2 ** (5 - k)))) for k in range(6)),
    "low rank": np.kron(np.eye(3), np.ones((20, 20))),
}
