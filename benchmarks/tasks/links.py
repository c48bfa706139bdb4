"""Prediction of hidden links."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from math import ceil, log
from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh

from symrelu import LinkPredictor
from symrelu.datasets import load_graph
from symrelu.fit.link_evaluation import LinkSplit, evaluate_scores, link_splits
from symrelu.fit.normalised_graph import NormalisedGraph
from symrelu.problem import Problem
from tasks import earlier
from tasks.base import Table, Task, Value
from tasks.controls import linear_fit, normalised
from tasks.data import COMMUNITIES, hub_graph, preferential_graph
from tasks.netmf import netmf_matrix

GRAPHS = ("email-Eu-core", "polblogs", "cora", "celegans", "usair", "ecoli", "ppi", "pubmed")
# Graphs that are drawn: links depend on the degrees alone, on who came first, on blocks alone.
DRAWN: dict[str, Callable[[], Any]] = {
    "hubs": hub_graph,
    "Barabási-Albert": preferential_graph,
    "ten blocks of 100": lambda: COMMUNITIES["ten blocks of 100"](0).M,
}
RANKS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
KATZ = (0.05, 0.2, 0.5)  # beta times the largest eigenvalue λ
SPLITS = 10  # drawn at once, so that a split does not depend on how many are used
NAMES = {
    "auc_uniform": "AUC",
    "auc_degree": "AUC, drawn by degree",
    "average_precision": "average precision",
    "hits_at_50": "Hits@50",
    "mrr": "MRR",
}
Scores = np.ndarray | dict[str, np.ndarray]


@functools.lru_cache(maxsize=2)
def splits(name: str) -> list[LinkSplit]:
    """Return training graphs, hidden links and negatives, as LinkPredictor.evaluate draws them."""
    graph = DRAWN[name]() if name in DRAWN else load_graph(name).M
    problem = Problem.of(graph, diagonal="ignore")
    return list(link_splits(problem, 0.1, SPLITS, np.random.default_rng(0)))


def split(name: str, seed: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Return a training graph, test pairs i and j with uniform negatives, and whether they are links."""
    drawn = splits(name)[seed]
    i, j = np.concatenate([drawn.links, drawn.uniform], axis=1)
    return drawn.train, i, j, np.repeat([1, 0], drawn.links.shape[1])


# Scores of pairs = method(train, i, j, seed), for each setting if a method has several


def predictor(train: Any, i: np.ndarray, j: np.ndarray, seed: int, **changed: Any) -> Scores:
    return LinkPredictor(random_state=seed, **changed).fit(train).score_pairs(i, j)


def earlier_predictor(train: Any, i: np.ndarray, j: np.ndarray, seed: int) -> Scores:
    return earlier.run_earlier("links", train, i=i, j=j, seed=seed)


def without_relu(train: Any, i: np.ndarray, j: np.ndarray, seed: int, *, smooth: bool) -> Scores:
    """Return scores of the same model without the ReLU: the mean X of as many fits, times the degrees.

    ``smooth`` takes the smooth ReLU of the mean X, as LinkPredictor does.
    """
    settings = LinkPredictor()
    graph = NormalisedGraph.of(Problem.of(train, diagonal="ignore"), settings.degree_regularization)
    X = np.zeros(len(i))
    for k in range(settings.n_init):
        U, signature = linear_fit(
            graph.problem.M,
            settings.n_components,
            n_negative=settings.n_negative,
            alpha=graph.problem.alpha_of(graph.suggested_shrinkage),
            zero_weight=settings.zero_weight,
            init=settings.init,
            max_iter=settings.max_iter,
            seed=1000 * k + seed,
        )
        X += np.einsum("kr,kr->k", U[i] * signature, U[j]) / settings.n_init
    scale = graph.root_degrees[i] * graph.root_degrees[j]
    return scale * ((X + np.sqrt(X**2 + graph.root_mean_square**2)) / 2 if smooth else X)


def leading_eigenpairs(M: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenpairs of largest absolute value, in descending order of it."""
    v0 = np.random.default_rng(seed).standard_normal(M.shape[0])
    values, vectors = eigsh(M, k=max(RANKS), which="LM", v0=v0)
    order = np.argsort(-np.abs(values))
    return values[order], vectors[:, order]


def truncated(M: Any, i: np.ndarray, j: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Return entries of the best approximations of M of several ranks."""
    values, vectors = leading_eigenpairs(M, seed)
    return {f"rank {r}": np.sum(vectors[i, :r] * values[:r] * vectors[j, :r], axis=1) for r in RANKS}


def normalised_eigen(train: Any, i: np.ndarray, j: np.ndarray, seed: int) -> Scores:
    N, roots = normalised(train)
    return {setting: X * roots[i] * roots[j] for setting, X in truncated(N, i, j, seed).items()}


def netmf(train: Any, i: np.ndarray, j: np.ndarray, seed: int) -> Scores:
    return truncated(netmf_matrix(train), i, j, seed)


def katz(train: Any, i: np.ndarray, j: np.ndarray, seed: int) -> Scores:
    """Count paths of all lengths, a path of length l by beta^l."""
    largest = eigsh(train, k=1, v0=np.ones(train.shape[0]), return_eigenvectors=False)[0]
    nodes, places = np.unique(i, return_inverse=True)
    first = train[:, nodes].toarray() / largest
    scores = {}
    for share in KATZ:
        term = share * first
        total = term.copy()
        for _ in range(ceil(log(1e-8) / log(share))):  # until the rest of the series is negligible
            term = train @ term * (share / largest)
            total += term
        scores[f"beta {share:g} / λ"] = total[j, places]
    return scores


def common_neighbours(train: Any, i: np.ndarray, j: np.ndarray, seed: int, weight: Any) -> Scores:
    """Return the sum over the common neighbours of a weight of their degree."""
    degree = np.asarray(train.sum(axis=1)).ravel()
    # A node of degree one is never a common neighbour; the floor only avoids a division by zero.
    weighted = train.multiply(weight(np.maximum(degree, 1.5))[None, :]).tocsr()
    return np.asarray((weighted[i].multiply(train[j])).sum(axis=1)).ravel()


def preferential_attachment(
    train: Any, i: np.ndarray, j: np.ndarray, seed: int, *, regularization: float
) -> Scores:
    _, roots = normalised(train, regularization)
    return (roots[i] * roots[j]) ** 2


EARLIER = "LinkPredictor 0.1.0"
METHODS: dict[str, Callable[..., Scores]] = {
    "preferential attachment": functools.partial(preferential_attachment, regularization=0.0),
    "preferential attachment, regularised degrees": functools.partial(
        preferential_attachment, regularization=1.0
    ),
    "common neighbours": functools.partial(common_neighbours, weight=np.ones_like),
    "Adamic-Adar": functools.partial(common_neighbours, weight=lambda degree: 1 / np.log(degree)),
    "resource allocation": functools.partial(common_neighbours, weight=lambda degree: 1 / degree),
    "Katz, best beta": katz,
    "eigsh, best rank": truncated,
    "normalised eigsh, best rank": normalised_eigen,
    "NetMF, best rank": netmf,
    "LinkPredictor": predictor,
    EARLIER: earlier_predictor,
    "control: without the ReLU": functools.partial(without_relu, smooth=False),
    "control: without the ReLU, smooth scores": functools.partial(without_relu, smooth=True),
    "control: n_negative=0": functools.partial(predictor, n_negative=0),
}
# They take minutes on PubMed, or would need n x n arrays of 3 GB.
SLOW_METHODS = (
    "Katz, best beta",
    "normalised eigsh, best rank",
    "NetMF, best rank",
    "control: n_negative=0",
)


def perform(name: str, method: str, seed: int) -> Iterator[Value]:
    drawn = splits(name)[seed]
    parts = (drawn.links, drawn.uniform, drawn.by_degree)
    scores = METHODS[method](drawn.train, *np.concatenate(parts, axis=1), seed)
    by_setting = scores if isinstance(scores, dict) else {"": scores}
    for setting, values in by_setting.items():
        # evaluate_scores asks for the three kinds of pairs in this order.
        answers = iter(np.split(values, len(parts)))
        metrics = evaluate_scores(lambda i, j, answers=answers: next(answers), drawn)
        for name_of_field, label in NAMES.items():
            yield Value(label, getattr(metrics, name_of_field), setting)


def applies(method: str, name: str, seed: int) -> bool:
    if method == EARLIER:
        return earlier.is_available()
    return name != "pubmed" or method not in SLOW_METHODS


DATA = (*GRAPHS, *DRAWN)
TABLES = {
    "links_auc": ("AUC", "AUC, uniform negatives"),
    "links_auc_by_degree": ("AUC, drawn by degree", "AUC, negatives drawn by degree"),
    "links_average_precision": ("average precision", "average precision, negatives drawn by degree"),
    "links_hits": ("Hits@50", "Hits@50, negatives drawn by degree"),
    "links_mrr": ("MRR", "MRR, negatives drawn by degree"),
}
links = Task(
    "links",
    DATA,
    tuple(METHODS),
    perform,
    applies,
    tuple(
        Table(name, f"Links: {title}", dict.fromkeys(DATA, measure))
        for name, (measure, title) in TABLES.items()
    ),
    hindsight="AUC",
    controls=(
        ("the ReLU", "LinkPredictor", "control: without the ReLU"),
        ("the ReLU, with the same smooth scores", "LinkPredictor", "control: without the ReLU, smooth scores"),
        ("the negative column", "LinkPredictor", "control: n_negative=0"),
        ("shrinkage and weights, without the ReLU", "control: without the ReLU", "normalised eigsh, best rank"),
        ("regularised degrees, of eigenvectors", "normalised eigsh, best rank", "eigsh, best rank"),
    ),
)
