"""The representation of the matrix that a fit uses, from its settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from symrelu.fit.loop import check_solver_supported
from symrelu.fit.settings import Model, Run, Start
from symrelu.fit.starts import check_start_supported
from symrelu.operators import chosen_backend, operator_class
from symrelu.problem import Problem, gpu_of


def backend_of(problem: Problem, model: Model, run: Run, dtype: np.dtype[Any] | None = None) -> str:
    """Return the backend of a fit; see ``symrelu.operators.chosen_backend``.

    An M that was on a GPU is fitted there, unless the backend is another one.

    Parameters
    ----------
    problem : Problem
    model : Model
    run : Run
    dtype : numpy.dtype, optional
        As if M had this type; by default its own.

    Returns
    -------
    backend : str
    """
    # "auto" is resolved when the fit has begun, and may lead to negative columns.
    n_negative = 1 if isinstance(model.n_negative, str) else model.n_negative
    backend = named_backend(problem, run.backend)
    return chosen_backend(backend, problem.M, signature(model.rank, n_negative), dtype)


def named_backend(problem: Problem, backend: str) -> str:
    """Return the backend that was asked for, which is "cuda" if M was on a GPU and no other one was named."""
    gpu = gpu_of(problem)
    if gpu is None or backend not in ("auto", "cuda"):
        return backend
    operator_class("cuda").check_device(gpu)
    return "cuda"


def check_settings_supported(backend: str, n: int, model: Model, start: Start, run: Run) -> None:
    """Raise unless a backend offers what a fit of n items with these settings requires."""
    if backend != "cuda" and run.precision != "auto":
        raise ValueError(
            f"precision={run.precision!r} is for backend='cuda', and this fit has backend={backend!r}. Leave "
            "precision= out, or pass backend='cuda'."
        )
    kind = operator_class(backend)
    kind.check_size(n, model.rank)
    check_solver_supported(kind, run.solver)
    check_start_supported(kind, start.init, model.n_negative)


# Backend that was chosen -> why, where the model has no part in it.
_REASONS = {"dense": "M is a dense array", "cuda": "M is on a GPU", "dask": "M is a block folder"}


def why_chosen(backend: str, n: int, signs: np.ndarray) -> str:
    """Return a line about the backend that was chosen for a fit.

    Parameters
    ----------
    backend : str
    n : int
        Number of items.
    signs : ndarray of shape (rank,)
        Signs of the columns.

    Returns
    -------
    line : str
    """
    if backend in _REASONS:
        return f"backend={backend!r} was chosen: {_REASONS[backend]}."
    signed = (signs < 0).any()
    if backend == "active" and signed:
        why = (
            "negative columns: a pass visits only pairs that matter. Pass backend='sparse' to visit all pairs."
        )
    elif backend == "active":  # n_negative="auto" is resolved after the choice
        why = "n_negative='auto', which found no negative columns: most pairs matter, and a pass visits all."
    elif signed:
        why = (
            "negative columns: at this size, to visit all pairs takes less time than to find those that matter."
        )
    else:
        why = "no negative columns: most pairs matter, and a pass visits all."
    return f"backend={backend!r} was chosen for {n} items, rank {len(signs)} and {why}"


def signature(rank: int, n_negative: int) -> np.ndarray:
    """Return the signs of the columns, the negative ones last."""
    return np.where(np.arange(rank) < rank - n_negative, 1.0, -1.0)
