"""Detect a matrix of distances that was passed in place of similarities.

Two properties are combined. First, distances, or at least their square roots (for cosine, correlation and
squared Euclidean distances), satisfy the triangle inequality; but so does any matrix of nearly equal entries.
Second, if D(i, j) is small, then i and j are close to the same other items, whereas a similarity is large
there. So with the effects of single items removed, R(i, j) = M(i, j) - a(i) - a(j), the sum of
R(i, j) R(j, k) R(k, i) over all triples is negative for distances and positive for similarities, for every
width of the kernel; for random and for equal weights it is near zero.

Weights that are larger between groups than within them, and otherwise nearly equal, are mistaken for distances.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

_SAMPLE = 64  # number of items whose triples are examined
_FEWEST = 5  # with fewer items, triples are too few to decide
_ROUNDING = 1e-6
_CERTAIN = -4.0  # standard deviations of the sum over triples; independent random numbers reached -2.6
_LIKELY = -1.2  # sufficient if the triangle inequality holds for entries of different size
_SPREAD = 4.0  # ratio of the largest to the smallest entry; below 2 the inequality always holds
_DUPLICATES = 0.05  # fraction of pairs that may be zero (equal items); in a complete bipartite graph it is half


def given_diagonal(matrix: Any) -> np.ndarray:
    """Return the diagonal of a square matrix as it was passed.

    Parameters
    ----------
    matrix : sparse matrix or array-like of shape (n, n)

    Returns
    -------
    diagonal : ndarray of shape (n,)
    """
    return np.asarray(matrix.diagonal() if sparse.issparse(matrix) else np.asarray(matrix).diagonal())


def advice_on_distances(diagonal: np.ndarray, problem: Any, name: str = "M") -> str | None:
    """Return how to convert M to similarities if it looks like distances, else None.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        The diagonal of M as it was passed, since an ignored diagonal has been removed from the problem.
    problem : Problem
    name : str, default="M"
        Name of M in the advice.

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
        f"{name} looks like a matrix of distances: its diagonal is zero, nearly all other entries are "
        "positive, and items with a small entry are close to the same other items. Similarities are required, "
        f"which are large for close items: pass numpy.exp(-({D} / numpy.median({D})) ** 2), or a graph of the "
        "samples, symrelu.graphs.self_tuning_graph(X). If these are similarities, ignore this warning."
    )


def looks_like_distances(problem: Any) -> bool:
    """Return whether the observed off-diagonal entries of M behave like distances.

    A sparse M with an observed zero is ruled out at once, a dense M if many entries are zero. So for most
    sparse matrices it is enough to count the entries.

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
    # A fixed seed, so that the same matrix always gets the same answer.
    items = np.random.default_rng(0).permutation(n)[:_SAMPLE]
    D, known = problem.block(items)
    D, known = D.astype(np.float64), known & ~np.eye(len(items), dtype=bool)
    if not D[known].any() or _too_many_zeros(int(np.count_nonzero(D[known] == 0)), len(items)):
        return False
    D /= D[known].max()
    triples = _sum_over_triples(D, known)
    if triples > _LIKELY:
        return False
    differing = D[known].min() * _SPREAD <= 1
    certain = triples <= _CERTAIN and _obeys_triangles(np.sqrt(D), known)
    likely = differing and _obeys_triangles(D, known)
    return (certain or likely) and not _too_many_zeros(problem.observed_zeros, n)


def _too_many_zeros(zeros: int, n: int) -> bool:
    return zeros > _DUPLICATES * n * (n - 1)


def _obeys_triangles(D: np.ndarray, known: np.ndarray) -> bool:
    """Return whether D(i, j) <= D(i, k) + D(k, j) wherever all three are observed."""
    D = np.where(known, D, np.nan)  # comparisons with NaN are false
    return not any(((row[:, None] + row) * (1 + _ROUNDING) < D).any() for row in D)


def _sum_over_triples(D: np.ndarray, known: np.ndarray) -> float:
    """Return the sum over triples from the module docstring, in standard deviations."""
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
