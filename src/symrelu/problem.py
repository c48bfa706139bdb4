"""What is asked of a fit: the data of any library, read and checked once, zero where they are unknown."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu.distances import advice_on_distances
from symrelu.graphs.adapters import aligned_mask, as_similarity
from symrelu.validation import check_choice, check_hidden, check_observed, hidden


class Observed(NamedTuple):
    """A similarity matrix that has been checked, and what of it is unknown.

    Attributes
    ----------
    M : csr_array or ndarray of shape (n, n)
        Zero where it is unknown.
    mask : csr_array or ndarray of bool of shape (n, n), or None
        True where M is unknown.
    """

    M: Any
    mask: Any | None

    def hide(self, mask: Any) -> Observed:
        """Return the same with another mask, a checked one that hides more."""
        return Observed(hidden(self.M, mask), mask)


def read_observed(
    M: Any, mask: Any | None = None, diagonal: str = "fit", *, fitted: bool = False, name: str = "M"
) -> Observed:
    """Return the similarity matrix that an object of any library holds, checked, and its mask.

    Names of rows serve to align M and mask and are dropped then; the estimators keep them.

    Parameters
    ----------
    M : matrix, graph, table, tensor or Observed
        Anything that :func:`symrelu.graphs.as_similarity` reads. What is observed already is returned as it is.
    mask : sparse or dense bool matrix of shape (n, n), or DataFrame, optional
        True where the entry is unknown.
    diagonal : {"fit", "ignore"}, default="fit"
        "ignore" makes the diagonal unknown.
    fitted : bool, default=False
        Whether M is going to be fitted, so that distances are worth a warning.
    name : str, default="M"
        What the messages call M.

    Returns
    -------
    observed : Observed
    """
    check_choice("diagonal", diagonal, ("fit", "ignore"))
    if isinstance(M, Observed):
        if mask is not None:
            raise TypeError(f"mask must be None where {name} is Observed: it has its own. Use Observed.hide.")
        return M
    matrix, labels = as_similarity(M)
    mask = aligned_mask(mask, labels)
    observed = Observed(*check_observed(matrix, mask, diagonal, name=name))
    advice = advice_on_distances(given_diagonal(matrix), *observed, name) if fitted else None
    if advice is not None:
        warnings.warn(advice, UserWarning, stacklevel=3)
    return observed


def read_hidden(M: Any, mask: Any) -> tuple[Any, Any]:
    """Return M zero where it is not masked, and its mask, both checked.

    Parameters
    ----------
    M, mask
        As for :func:`read_observed`.

    Returns
    -------
    M : csr_array or ndarray of shape (n, n)
    mask : csr_array or ndarray of bool of shape (n, n)
    """
    matrix, labels = as_similarity(M)
    return check_hidden(matrix, aligned_mask(mask, labels))


def given_diagonal(matrix: Any) -> np.ndarray:
    """Return the diagonal of a square matrix as it was given.

    Parameters
    ----------
    matrix : sparse matrix or array-like of shape (n, n)

    Returns
    -------
    diagonal : ndarray of shape (n,)
    """
    return np.asarray(matrix.diagonal() if sparse.issparse(matrix) else np.asarray(matrix).diagonal())
