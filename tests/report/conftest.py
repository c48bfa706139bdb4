"""Fits to report on."""

import warnings

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from symrelu import LinkPredictor, NeighborEmbedding, SymReLU, SymReLUClustering, decompose

KINDS = ("Solution", "SymReLU", "linkage", "directions", "LinkPredictor", "NeighborEmbedding")


@pytest.fixture(scope="session")
def miserables():
    return nx.les_miserables_graph()


@pytest.fixture(scope="session")
def models(miserables):
    """A fit of each kind to the same graph."""
    M = sparse.csr_array(nx.to_scipy_sparse_array(miserables, dtype=float))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fits are short
        return {
            "Solution": decompose(M, 8, n_negative=1, diagonal="ignore", max_iter=30, random_state=0),
            "SymReLU": SymReLU(8, max_iter=30, random_state=0).fit(miserables),
            "linkage": SymReLUClustering(5, method="linkage", max_iter=20, random_state=0).fit(miserables),
            "directions": SymReLUClustering(5, method="directions", random_state=0).fit(miserables),
            "LinkPredictor": LinkPredictor(6, n_init=2, max_iter=5, random_state=0).fit(miserables),
            "NeighborEmbedding": NeighborEmbedding(12, max_iter=300, random_state=0).fit(miserables),
        }


@pytest.fixture
def places():
    """Positions for a map of the graph, so that none has to be computed."""
    return np.random.default_rng(0).standard_normal((77, 2))
