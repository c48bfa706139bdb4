"""Pairs that are hidden, and all pairs that are observed."""

from scipy import sparse

from symrelu.datasets import make_relu_gram
from symrelu.fit import holdout
from symrelu.problem import Problem

M, _ = make_relu_gram(40, 3, shift=0.1, random_state=0)


def split_of(M, unknown=None, fraction=0.1, zeros_per_positive=5.0, seed=0):
    unknown = None if unknown is None else sparse.csr_array(unknown)
    return holdout.random_split(
        holdout.observed_pairs(Problem.of(M, unknown)), fraction, zeros_per_positive, seed
    )


def observed_pairs(M, unknown):
    """Return the pairs i < j that are observed, positive ones and zeros, as sets."""
    pairs = [(i, j) for i in range(len(M)) for j in range(i + 1, len(M)) if not unknown[i, j]]
    positive = {(i, j) for i, j in pairs if M[i, j] > 0}
    return positive, set(pairs) - positive


def neighbors_by_hand(X, i, j, truth):
    """Return how often a hidden neighbour of a node scores above a hidden zero of it: one mean for each."""
    shares = []
    for a, b, x, value in zip(i, j, X, truth, strict=True):
        for node in (a, b) if value > 0 else ():
            zeros = X[(truth == 0) & ((i == node) | (j == node))]
            if len(zeros):
                shares.append(sum((x > z) + (x == z) / 2 for z in zeros) / len(zeros))
    return sum(shares) / len(shares)
