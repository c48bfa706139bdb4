"""The matrix behind its contract. :func:`as_operator` is the single place that chooses one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, issparse

from symrelu.operators.base import Evaluation, Operator
from symrelu.operators.dense import DenseOperator
from symrelu.operators.reference import ReferenceOperator
from symrelu.operators.sparse import SparseOperator

__all__ = [
    "BACKENDS",
    "DenseOperator",
    "Evaluation",
    "Operator",
    "ReferenceOperator",
    "SparseOperator",
    "as_operator",
]

BACKENDS = ("auto", "dense", "sparse", "reference")


def as_operator(
    M: Any,
    signature: Any,
    *,
    alpha: float = 0.0,
    zero_weight: float = 1.0,
    diagonal: str = "fit",
    mask: Any | None = None,
    backend: str = "auto",
) -> Operator:
    """Wrap a checked similarity matrix as the operator that suits it.

    Parameters
    ----------
    M : csr_array or ndarray of shape (n, n)
        As returned by :func:`symrelu.validation.check_similarity`.
    signature : array-like of shape (rank,)
        Signs of the columns of a factor.
    alpha, zero_weight : float
        See :class:`~symrelu.operators.base.Operator`.
    diagonal : {"fit", "ignore"}
        Whether the diagonal of M is data or unknown.
    mask : csr_array of bool, ndarray of bool, or None
        True where the entry is unknown.
    backend : {"auto", "dense", "sparse", "reference"}
        "auto" keeps M as it came.

    Returns
    -------
    operator : Operator
    """
    settings = {"signature": signature, "alpha": alpha, "zero_weight": zero_weight}
    if backend == "auto":
        backend = "sparse" if issparse(M) else "dense"
    if backend == "sparse":
        M = csr_array(M)
        return SparseOperator(M, _unknown(M.shape[0], diagonal, mask), **settings)
    M = M.toarray() if issparse(M) else M
    unknown = _unknown(M.shape[0], diagonal, mask)
    if backend == "dense":
        return DenseOperator(M, unknown, **settings)
    observed = np.ones(M.shape, dtype=bool) if unknown is None else ~unknown.toarray()
    return ReferenceOperator(M, observed, **settings)


def _unknown(n: int, diagonal: str, mask: Any | None) -> Any | None:
    """Return the unknown entries as a csr_array of bool, or None where everything is observed."""
    ignored = eye_array(n, dtype=bool, format="csr") if diagonal == "ignore" else None
    if mask is None:
        return ignored
    unknown = csr_array(mask, dtype=bool)
    return unknown if ignored is None else csr_array(unknown + ignored, dtype=bool)
