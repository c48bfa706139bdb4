"""Regularised degrees, by which the weights of a graph are normalised."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def root_degrees(B: Any, regularization: float = 1.0) -> np.ndarray:
    """Return the square roots of the degrees of a graph, with a multiple of the mean degree added to each.

    B_ij divided by the roots of i and j no longer depends on how many links i and j have. The added multiple
    keeps nodes with few or no links from dominating the result.

    Parameters
    ----------
    B : sparse matrix or ndarray of shape (n, n)
        Symmetric and nonnegative.
    regularization : float, default=1.0
        The multiple.

    Returns
    -------
    roots : ndarray of float64 of shape (n,)
    """
    degrees = np.asarray(B.sum(axis=1, dtype=np.float64)).ravel()
    return np.sqrt(degrees + regularization * degrees.mean())


def divide_new_rows(rows: Any, roots: np.ndarray) -> Any:
    """Divide the weights between new nodes and those of a graph by the roots of their degrees.

    Parameters
    ----------
    rows : sparse matrix or ndarray of shape (n_new, n)
        Nonnegative weights of the links of the new nodes.
    roots : ndarray of shape (n,)
        From :func:`root_degrees` of the graph, with ``regularization=1``.

    Returns
    -------
    rows : csr_array of shape (n_new, n)
    """
    rows = sparse.csr_array(rows)
    # A regularised degree is a degree plus the mean degree, so the mean of these is twice the mean degree.
    mean_degree = np.mean(roots.astype(np.float64) ** 2) / 2
    own = np.sqrt(rows.sum(axis=1, dtype=np.float64) + mean_degree)
    data = rows.data / (np.repeat(own, np.diff(rows.indptr)) * roots[rows.indices])
    return sparse.csr_array((data.astype(rows.dtype), rows.indices, rows.indptr), shape=rows.shape)
