"""Labels of nodes, predicted from the rows of an embedding of the graph."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from symrelu import LinkPredictor, SymReLU
from symrelu.datasets import load_graph
from tasks.base import Table, Task, Value
from tasks.controls import normalised
from tasks.netmf import netmf_matrix

DATA = ("cora", "email-Eu-core")
LABELLED = 0.1  # share of the labels that the classifier sees


def of_links(M: Any, seed: int) -> np.ndarray:
    return LinkPredictor(random_state=seed).fit(M).embedding_


def of_symrelu(M: Any, seed: int, columns: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of defaults that changed, and of the limit of steps
        return SymReLU(columns, random_state=seed).fit(M).embedding_


def spectral(M: Any, seed: int, columns: int, regularization: float) -> np.ndarray:
    """Return the leading eigenvectors of the normalised graph, the last ones of its normalised Laplacian."""
    N, _ = normalised(M, regularization)
    return eigsh(N, columns, which="LA", v0=np.random.default_rng(seed).standard_normal(M.shape[0]))[1]


def netmf(M: Any, seed: int, columns: int = 80) -> np.ndarray:
    v0 = np.random.default_rng(seed).standard_normal(M.shape[0])
    values, vectors = eigsh(netmf_matrix(M), columns, which="LM", v0=v0)
    return vectors * np.sqrt(np.abs(values))


def rows(M: Any, seed: int) -> Any:
    return sparse.csr_array(M)


METHODS: dict[str, Callable[..., Any]] = {
    "LinkPredictor().embedding_": of_links,
    "SymReLU, 80 columns": functools.partial(of_symrelu, columns=80),
    "SymReLU, 16 columns": functools.partial(of_symrelu, columns=16),
    "spectral, 80 columns": functools.partial(spectral, columns=80, regularization=0.0),
    "spectral, 16 columns": functools.partial(spectral, columns=16, regularization=0.0),
    "spectral, regularised degrees, 80 columns": functools.partial(spectral, columns=80, regularization=1.0),
    "NetMF, 80 columns": netmf,
    "rows of the adjacency matrix": rows,
}


def perform(name: str, method: str, seed: int) -> Iterator[Value]:
    """Columns are standardised over all nodes, except those of the sparse adjacency matrix."""
    graph = load_graph(name)
    features = METHODS[method](graph.M, seed)
    if not sparse.issparse(features):
        features = StandardScaler().fit_transform(features)
    order = np.random.default_rng(seed).permutation(len(graph.target))
    seen, hidden = np.split(order, [round(LABELLED * len(order))])
    model = LogisticRegression(max_iter=2000).fit(features[seen], graph.target[seen])
    yield Value("accuracy", model.score(features[hidden], graph.target[hidden]))


def applies(method: str, name: str, seed: int) -> bool:
    return True


features = Task(
    "features",
    DATA,
    tuple(METHODS),
    perform,
    applies,
    (
        Table(
            "features",
            "Features: accuracy of logistic regression with 10 % of the labels",
            dict.fromkeys(DATA, "accuracy"),
        ),
    ),
    hindsight="accuracy",
)
