"""Does a matrix hold distances, where similarities were meant?

Two properties together tell. Distances, or at least their square roots (of cosine, correlation and squared
Euclidean distances), obey the triangle inequality; but so does every matrix of nearly equal entries. And where
D(i, j) is small, i and j are near to the same others, while a similarity is large there. So with the effects of
single items taken out, R(i, j) = M(i, j) - a(i) - a(j), the sum of R(i, j) R(j, k) R(k, i) over all triples is
negative for distances and positive for similarities, whatever the width of the kernel; for random and for equal
weights it is near zero.

What cannot be told apart: weights that are larger between groups than within, and otherwise nearly equal.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_SAMPLE = 64  # items whose triples are looked at
_FEWEST = 5  # items: among fewer, a triple says little
_ROUNDING = 1e-6
_CERTAIN = -4.0  # standard deviations of the sum of triples for independent numbers; among these, -2.6 was seen
_LIKELY = -1.2  # enough where the triangle inequality holds for entries that differ
_SPREAD = 4.0  # largest over smallest entry: from 2 on, the inequality may fail
_DUPLICATES = 0.05  # part of the pairs that may be zero: equal items. A complete bipartite graph has half


def advice_on_distances(diagonal: np.ndarray, problem: Any, name: str = "M") -> str | None:
    """Return how to make similarities of M if it looks like distances, else None.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        That of M as it was given, since an ignored one is taken out.
    problem : Problem
    name : str, default="M"
        What the advice calls M.

    Returns
    -------
    advice : str or None
    """
    if problem.mask is not None:
        diagonal = diagonal[~np.asarray(problem.mask.diagonal(), dtype=bool)]
    if not diagonal.max(initial=0.0) <= _ROUNDING * problem.largest or not looks_like_distances(problem):
        return None
    D = f"{name}.toarray()" if problem.is_sparse else name
    return (
        f"{name} looks like a matrix of distances: its diagonal is zero, nearly all else positive, and items "
        "with a small entry are near to the same others. Similarities are needed, large for items that are "
        f"near: pass numpy.exp(-({D} / numpy.median({D})) ** 2), or a graph of the samples, "
        "symrelu.graphs.self_tuning_graph(X). If these are similarities, ignore this warning."
    )


def looks_like_distances(problem: Any) -> bool:
    """Return whether the known entries off the diagonal of M behave as distances do.

    Few of them may be zero, none if M is sparse: then one look at the number of entries is enough for most.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    distances : bool
    """
    n = problem.n
    if n < _FEWEST or (problem.is_sparse and problem.observed_zeros > 0):
        return False
    items = np.random.default_rng(0).permutation(n)[:_SAMPLE]
    D, known = problem.block(items)
    D, known = D.astype(np.float64), known & ~np.eye(len(items), dtype=bool)
    if not D[known].any() or _too_many(int(np.count_nonzero(D[known] == 0)), len(items)):
        return False
    D /= D[known].max()
    triples = _sum_over_triples(D, known)
    if triples > _LIKELY:
        return False
    differing = D[known].min() * _SPREAD <= 1
    certain = triples <= _CERTAIN and _obeys_triangles(np.sqrt(D), known)
    likely = differing and _obeys_triangles(D, known)
    return (certain or likely) and not _too_many(problem.observed_zeros, n)


def _too_many(zeros: int, n: int) -> bool:
    return zeros > _DUPLICATES * n * (n - 1)


def _obeys_triangles(D: np.ndarray, known: np.ndarray) -> bool:
    """Whether D(i, j) <= D(i, k) + D(k, j) wherever all three are known."""
    D = np.where(known, D, np.nan)  # compares as false
    return not any(((row[:, None] + row) * (1 + _ROUNDING) < D).any() for row in D)


def _sum_over_triples(D: np.ndarray, known: np.ndarray) -> float:
    """Return the sum over triples of the module's docstring, in standard deviations."""
    counts = known.sum(axis=1)
    D = np.where(known, D, 0.0)
    mean = D.sum() / counts.sum()
    effects = (D.sum(axis=1) - counts * mean) / np.maximum(counts - 1, 1)
    R = np.where(known, D - effects[:, None] - effects - mean, 0.0)
    square = float(np.sum(R**2)) / counts.sum()
    triples = float(np.sum((known.astype(float) @ known) * known))
    if math.sqrt(square) <= _ROUNDING or triples == 0:
        return 0.0
    return float(np.sum((R @ R) * R)) / (square**1.5 * math.sqrt(6 * triples))
