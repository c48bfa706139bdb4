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
    exponent = np.frexp(np.abs(U).max(initial=0.0))[1]  # a power of two, so that no square leaves the range
    Q, R = np.linalg.qr(np.ldexp(U.astype(np.float64), -exponent))
    values, vectors = np.linalg.eigh((R * signature) @ R.T)
    canonical = np.zeros(U.shape)
    for sign in (1.0, -1.0):
        columns = np.flatnonzero(signature == sign)
        chosen = np.argsort(-sign * values)[: len(columns)]  # fewer, where U has more columns than rows
        sizes = np.sqrt(np.maximum(sign * values[chosen], 0))
        canonical[:, columns[: len(chosen)]] = Q @ vectors[:, chosen] * sizes
    largest = np.take_along_axis(canonical, np.abs(canonical).argmax(axis=0)[None], axis=0)
    return np.ldexp(np.where(largest < 0, -canonical, canonical), exponent).astype(U.dtype)
