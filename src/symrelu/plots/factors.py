"""The factor of whatever a user wants to see drawn: a result of a fit, a fitted estimator, or an array."""

from __future__ import annotations

from typing import Any

import numpy as np

# Where results and fitted estimators keep their factor and its signs.
_HOLDERS = (
    ("U", "signature"),  # Solution and the fitted models
    ("embedding_", "signature_"),  # estimators with a Solution
    ("item_vectors_", "signature_"),  # NeighborEmbedding
    ("item_vectors", "signature"),  # NeighborVectors
)


def factor_of(model: Any, signature: Any | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the factor U and the signs of its columns, in float64.

    Parameters
    ----------
    model : Solution, fitted model or estimator, or array-like of shape (n, rank)
        Anything with a factor, or the factor itself.
    signature : array-like of shape (rank,), optional
        Signs of the columns, if ``model`` is an array. All are positive by default.

    Returns
    -------
    U : ndarray of float64 of shape (n, rank)
    signature : ndarray of float64 of shape (rank,)
    """
    for factor, signs in _HOLDERS:
        if hasattr(model, factor) and hasattr(model, signs):
            if signature is not None:
                raise ValueError(
                    f"signature belongs to an array, but {type(model).__name__} has its own signs. Leave it "
                    "out."
                )
            return _checked(getattr(model, factor), getattr(model, signs))
    check_fitted(model)
    return _checked(model, signature)


def check_fitted(model: Any) -> None:
    """Raise scikit-learn's ``NotFittedError`` if an object is an estimator, which then has no results yet.

    Parameters
    ----------
    model : object
        One without the attributes that were looked for.
    """
    if hasattr(model, "fit"):
        from sklearn.exceptions import NotFittedError  # scikit-learn is slow to import

        raise NotFittedError(f"This {type(model).__name__} has nothing to draw yet: call fit first.")


def _checked(U: Any, signature: Any | None) -> tuple[np.ndarray, np.ndarray]:
    try:
        U = np.asarray(U, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "The model must be a Solution, a fitted estimator or an array of numbers (a factor U), got "
            f"{type(U).__name__}."
        ) from error
    if U.ndim != 2 or 0 in U.shape:
        raise ValueError(f"The factor must be a matrix with rows and columns, got shape {U.shape}.")
    if not np.isfinite(U).all():
        raise ValueError("The factor must be finite, got NaN or infinity. Fit again, or leave out these rows.")
    signs = np.ones(U.shape[1]) if signature is None else np.asarray(signature, dtype=np.float64)
    if signs.shape != U.shape[1:] or not np.isin(signs, (-1, 1)).all():
        raise ValueError(
            f"signature must be +1 or -1 for each of the {U.shape[1]} columns of the factor, got {signature!r}."
        )
    return U, signs
