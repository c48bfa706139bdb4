"""The canonical factor of X: one U for each X, chosen among all factors that give the same X."""

from __future__ import annotations

import numpy as np


def canonical_factor(U: np.ndarray, signature: np.ndarray) -> np.ndarray:
    """Return the eigenvectors of X = (U * signature) U^T, scaled by the roots of the absolute eigenvalues.

    Rotations among columns of equal sign do not change X, nor do Lorentz transformations, which mix columns of
    both signs. Of all factors of X, this one has the smallest norm.

    Parameters
    ----------
    U : ndarray of shape (n, rank)
    signature : ndarray of shape (rank,)

    Returns
    -------
    canonical : ndarray of shape (n, rank)
        For each sign, the columns are in descending order of their eigenvalues' magnitude. The entry of largest
        magnitude in each column is positive. A column is zero if X has too few eigenvalues of its sign.
    """
    exponent = np.frexp(np.abs(U).max(initial=0.0))[1]  # scaling by a power of two is exact
    # X = Q (R s R^T) Q^T: the eigenproblem of size rank gives that of size n. The scale keeps squares in range.
    Q, R = np.linalg.qr(np.ldexp(U.astype(np.float64), -exponent))
    values, vectors = np.linalg.eigh((R * signature) @ R.T)
    canonical = np.zeros(U.shape)
    for sign in (1.0, -1.0):
        columns = np.flatnonzero(signature == sign)
        chosen = np.argsort(-sign * values)[: len(columns)]  # fewer than columns if rank > n
        sizes = np.sqrt(np.maximum(sign * values[chosen], 0))
        canonical[:, columns[: len(chosen)]] = Q @ vectors[:, chosen] * sizes
    largest = np.take_along_axis(canonical, np.abs(canonical).argmax(axis=0)[None], axis=0)
    return np.ldexp(np.where(largest < 0, -canonical, canonical), exponent).astype(U.dtype)
