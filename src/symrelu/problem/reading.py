"""Input of functions that need a fully observed M, or only its held-out part."""

from __future__ import annotations

from typing import Any

from symrelu.graphs.adapters import aligned_mask, as_similarity
from symrelu.problem.problem import Problem
from symrelu.validation import check_hidden, hidden_part


def complete(M: Any) -> Problem:
    """Return a Problem with all entries observed, for models that cannot handle unobserved ones.

    Parameters
    ----------
    M : matrix, graph, table, tensor or Problem

    Returns
    -------
    problem : Problem
    """
    problem = Problem.of(M)
    if problem.unknown is not None:
        raise ValueError(
            "M must be fully observed for this model, got a Problem with a mask or an ignored diagonal. "
            "Pass M.M to treat unobserved entries as zeros."
        )
    return problem


def read_hidden(M: Any, mask: Any) -> tuple[Any, Any]:
    """Return M with zeros outside the mask, and the mask, both checked.

    Parameters
    ----------
    M, mask
        As for :meth:`Problem.of`. Entries that a Problem does not observe are skipped, even if they are masked.

    Returns
    -------
    M : csr_array or ndarray of shape (n, n)
    mask : csr_array or ndarray of bool of shape (n, n)
    """
    if isinstance(M, Problem):
        return hidden_part(M.M, aligned_mask(mask, M.labels), M.unknown)
    matrix, labels = as_similarity(M)
    return check_hidden(matrix, aligned_mask(mask, labels))
