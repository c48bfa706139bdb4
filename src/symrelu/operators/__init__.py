"""Representations of M behind one interface. :func:`as_operator` is the only place that chooses one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, issparse

from symrelu.files.block_folder import BlockFolder
from symrelu.operators.active import ActiveOperator
from symrelu.operators.base import Evaluation, EvaluationFailed, Operator
from symrelu.operators.dense import DenseOperator
from symrelu.operators.pass_costs import list_pays
from symrelu.operators.reference import ReferenceOperator
from symrelu.operators.sparse import SparseOperator

__all__ = [
    "BACKENDS",
    "PRECISIONS",
    "ActiveOperator",
    "DenseOperator",
    "Evaluation",
    "EvaluationFailed",
    "Operator",
    "ReferenceOperator",
    "SparseOperator",
    "as_operator",
    "chosen_backend",
    "operator_class",
    "unknown_entries",
]

# Name -> module and class, imported on first use: some need a library that may not be installed.
_CLASSES = {
    "dense": ("symrelu.operators.dense", "DenseOperator"),
    "sparse": ("symrelu.operators.sparse", "SparseOperator"),
    "active": ("symrelu.operators.active", "ActiveOperator"),
    "reference": ("symrelu.operators.reference", "ReferenceOperator"),
    "torch": ("symrelu.operators.torch", "TorchOperator"),
    "cuda": ("symrelu.operators.cuda", "CudaOperator"),
    "dask": ("symrelu.operators.dask", "DaskOperator"),
}
BACKENDS = ("auto", *_CLASSES)

# Of passes on a GPU; see Run.precision.
PRECISIONS = ("auto", "high", "fast")


def operator_class(backend: str) -> Any:
    """Return the operator class of a backend; raise an ImportError that names the extra if one is missing.

    Parameters
    ----------
    backend : str
        A name among ``BACKENDS``, except "auto", which stands for no single class.

    Returns
    -------
    operator_class : type
        A subclass of :class:`Operator` with the constructor ``of(M, unknown, **settings)``.
    """
    module, name = _CLASSES[backend]
    return getattr(import_module(module), name)


def chosen_backend(backend: str, M: Any, signature: Any, dtype: Any | None = None) -> str:
    """Return the backend that will hold a checked M.

    "auto" keeps a dense M dense. Of a sparse M it lists the pairs that matter ("active") if the model has
    negative columns and M is so large that this is faster; in the model of the paper most pairs matter.

    Parameters
    ----------
    backend : str
    M : csr_array, ndarray or BlockFolder of shape (n, n)
    signature : array-like of shape (rank,)
        Signs of the columns of a factor.
    dtype : numpy.dtype, optional
        As if M had this type; by default its own.

    Returns
    -------
    backend : str
    """
    if isinstance(M, BlockFolder):
        if backend not in ("auto", "dask"):
            raise ValueError(
                f"M is a block folder, which is fitted on a cluster: backend must be 'dask', got {backend!r}."
            )
        return "dask"
    if backend != "auto":
        return backend
    if not issparse(M):
        return "dense"
    signs = np.asarray(signature)
    lists = (signs < 0).any() and list_pays(M.shape[0], len(signs), dtype or M.dtype, positive=0.0)
    return "active" if lists else "sparse"


def as_operator(
    M: Any,
    signature: Any,
    *,
    alpha: float = 0.0,
    zero_weight: float = 1.0,
    at_least: bool = False,
    diagonal: str = "fit",
    mask: Any | None = None,
    backend: str = "auto",
    client: Any | None = None,
) -> Operator:
    """Wrap a checked similarity matrix as the operator that suits it.

    Parameters
    ----------
    M : csr_array or ndarray of shape (n, n)
        As returned by :func:`symrelu.validation.check_similarity`.
    signature : array-like of shape (rank,)
        Signs of the columns of a factor.
    alpha, zero_weight : float
    at_least : bool
        See :class:`~symrelu.operators.base.Operator`.
    diagonal : {"fit", "ignore"}
        Whether the diagonal of M is fitted or treated as unobserved.
    mask : csr_array of bool, ndarray of bool, or None
        True where the entry is unobserved.
    backend : str, default="auto"
        A name among ``BACKENDS``; for "auto" see ``chosen_backend``.
    client : Client, str or None
        The cluster of the backend "dask": a client, the address of a scheduler, or None for the current client.

    Returns
    -------
    operator : Operator
    """
    backend = chosen_backend(backend, M, signature)
    unknown = unknown_entries(M.shape[0], diagonal, mask)
    model = {"signature": signature, "alpha": alpha, "zero_weight": zero_weight, "at_least": at_least}
    cluster = {} if client is None else {"client": client}
    made: Operator = operator_class(backend).of(M, unknown, **model, **cluster)
    return made


def unknown_entries(n: int, diagonal: str, mask: Any | None) -> Any | None:
    """Return the unobserved entries as a csr_array of bool, or None if everything is observed.

    Parameters
    ----------
    n : int
    diagonal : {"fit", "ignore"}
    mask : csr_array of bool, ndarray of bool, or None

    Returns
    -------
    unknown : csr_array of bool of shape (n, n), or None
    """
    ignored = eye_array(n, dtype=bool, format="csr") if diagonal == "ignore" else None
    if mask is None:
        return ignored
    unknown = csr_array(mask, dtype=bool)
    return unknown if ignored is None else csr_array(unknown + ignored, dtype=bool)
