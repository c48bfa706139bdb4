"""Input of functions that need a fully observed M, or only its held-out part, and where the input was."""

from __future__ import annotations

from typing import Any

from symrelu.graphs.adapters import aligned_mask, as_similarity
from symrelu.graphs.tensors import is_tensor
from symrelu.problem.problem import Problem
from symrelu.validation import check_hidden, hidden_part


def remember_gpu(problem: Problem, M: Any) -> None:
    """Note in a Problem whether the M that it was read from is a tensor on a GPU."""
    if is_tensor(M) and M.device.type == "cuda":
        vars(problem)["_gpu"] = M.device.index or 0  # past the frozen dataclass


def gpu_of(problem: Problem) -> int | None:
    """Return the number of the GPU on which the input of a Problem was, or None."""
    return vars(problem).get("_gpu")


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
