"""One factor for each X: what is left of U when everything that does not change X is taken away."""

from __future__ import annotations

import numpy as np


def canonical_factor(U: np.ndarray, signature: np.ndarray) -> np.ndarray:
    """Return the eigenvectors of X = (U * signature) U^T times the root of the size of their eigenvalues.

    Rotations of columns of equal sign leave X as it is, and so do the Lorentz transformations that mix columns
    of both signs. Of all factors of X this one has the lowest norm.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
    signature : ndarray of shape (rank,)

    Returns
    -------
    canonical : ndarray of shape (n, rank)
        The columns of each sign by falling size, the entry of largest magnitude of each positive. A column of
        zeros stands where X has too few eigenvalues of that sign.
    """
    Q, R = np.linalg.qr(U.astype(np.float64))
    values, vectors = np.linalg.eigh((R * signature) @ R.T)
    positive = signature > 0
    chosen = np.empty(len(signature), np.int64)
    chosen[positive] = np.argsort(-values)[: positive.sum()]
    chosen[~positive] = np.argsort(values)[: (~positive).sum()]
    columns = Q @ vectors[:, chosen]
    largest = np.argmax(np.abs(columns), axis=0)
    signs = np.where(columns[largest, np.arange(len(chosen))] < 0, -1.0, 1.0)
    return (columns * signs * np.sqrt(np.maximum(values[chosen] * signature, 0))).astype(U.dtype)
