"""``decompose``: check, operator, start, loop, Solution. The function behind everything."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from symrelu.checkpoint import CheckpointFile, fingerprint
from symrelu.kernels.threads import single_threaded_blas
from symrelu.loop import Callback, run
from symrelu.operators import Operator, as_operator
from symrelu.problem import read_observed
from symrelu.progress import narrated
from symrelu.settings import Limits, Model, Run, Start, documented
from symrelu.solution import Solution
from symrelu.start import count_negative, start
from symrelu.validation import check_memory, scale_exponent, scaled


@documented
def decompose(
    M: Any,
    rank: int,
    *,
    solver: Any = Run.solver,
    n_negative: int | str = Model.n_negative,
    diagonal: str = Model.diagonal,
    mask: Any | None = None,
    zero_weight: float = Model.zero_weight,
    alpha: float = Model.alpha,
    init: Any = Start.init,
    tol: float = Limits.tol,
    gtol: float = Limits.gtol,
    ftol: float = Limits.ftol,
    max_iter: int = Limits.max_iter,
    max_time: float | None = Limits.max_time,
    random_state: Any = Start.random_state,
    backend: str = Run.backend,
    callback: Callback | None = Run.callback,
    checkpoint: Any | None = Run.checkpoint,
    verbose: int = Run.verbose,
) -> Solution:
    r"""Find a thin factor U with M ~ max(0, X), X = (U * s) U^T.

    .. math::

        \min_U \tfrac12 \sum_{M_{ij} > 0} (M_{ij} - X_{ij})^2
             + \tfrac{w}{2} \sum_{M_{ij} = 0} \max(0, X_{ij})^2
             + \tfrac{\alpha}{2} \|U\|_F^2

    A zero of M only asks for X <= 0 there, so X can have a far lower rank than M. With the defaults
    (s = +1, w = 1) this is the ReLU-NSMD model of the paper.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n), or a graph
        Nonnegative and symmetric. Sparse input never becomes n x n. float32 stays float32. Or anything that
        :func:`symrelu.graphs.as_similarity` reads: a graph of networkx or igraph, an AnnData, a square table or
        one of edges, a torch tensor. Their names are dropped; the estimators keep them.
    mask : sparse or dense bool matrix of shape (n, n), optional
        True where the entry of M is unknown. A zero says X <= 0, an unknown entry says nothing. A DataFrame is
        brought into the order of M by its names.

    Returns
    -------
    solution : Solution
        ``U``, ``status``, ``relative_error``, ``history`` and more. Ctrl-C returns the best so far.

    Examples
    --------
    The 5 x 5 matrix of the paper has rank 5, but it is the ReLU of a matrix of rank 2:

    >>> import numpy as np
    >>> from symrelu import decompose
    >>> M = np.array([[10, 0, 1, 7, 0], [0, 5, 0, 0, 4], [1, 0, 1, 0, 0], [7, 0, 0, 13, 0], [0, 4, 0, 0, 4]])
    >>> solution = decompose(M, rank=2, random_state=0)
    >>> solution.converged, solution.relative_error <= 1e-4
    (True, True)
    >>> np.round(np.maximum(0, solution.U @ solution.U.T)).astype(int)[0].tolist()
    [10, 0, 1, 7, 0]
    """
    model = Model(rank=rank, n_negative=n_negative, diagonal=diagonal, zero_weight=zero_weight, alpha=alpha)
    begin = Start(init=init, random_state=random_state)
    limits = Limits(tol=tol, gtol=gtol, ftol=ftol, max_iter=max_iter, max_time=max_time)
    how = Run(solver=solver, backend=backend, callback=callback, checkpoint=checkpoint, verbose=verbose)
    M, mask = read_observed(M, mask, diagonal, fitted=True)
    model = model.for_size(M.shape[0])
    begin = begin.for_factor(M.shape[0], model.rank, M.dtype, largest=float(M.max()))

    if backend in ("dense", "reference") and issparse(M):
        check_memory(M.shape, M.dtype, "M")
    exponent = scale_exponent(M)
    scaled_alpha = _scaled_alpha(model.alpha, exponent)
    with single_threaded_blas():  # the passes have threads of their own
        op = as_operator(
            scaled(M, exponent),
            _signature(model.rank, 0 if isinstance(model.n_negative, str) else model.n_negative),
            alpha=scaled_alpha,
            zero_weight=model.zero_weight,
            diagonal=model.diagonal,
            mask=mask,
            backend=how.backend,
        )
        file = snapshot = None
        if how.checkpoint is not None:
            file = CheckpointFile(how.checkpoint, _identity(M, mask, model, begin, how, op))
            snapshot = file.read()
        if snapshot is not None:
            op = op.with_signature(snapshot.signature)
            U0 = None
        else:
            if isinstance(model.n_negative, str):
                op = op.with_signature(_signature(model.rank, count_negative(op, random_state)))
            U0 = begin.init if isinstance(begin.init, str) else np.ldexp(begin.init, -exponent)
            U0 = start(op, U0, random_state)
        with narrated(how.verbose) as narrator:
            solution = run(
                op,
                how.solver,
                U0,
                limits,
                callback=how.callback,
                exponent=exponent,
                checkpoint=file,
                snapshot=snapshot,
                tell=narrator.step,
            )
            narrator.end(solution)
    return replace(solution, diagonal=model.diagonal, zero_weight=model.zero_weight)


def _signature(rank: int, n_negative: int) -> np.ndarray:
    """Return the signs of the columns, the negative ones last."""
    return np.where(np.arange(rank) < rank - n_negative, 1.0, -1.0)


def _identity(M: Any, mask: Any | None, model: Model, begin: Start, how: Run, op: Operator) -> dict[str, Any]:
    """Return by what a checkpoint knows the fit that it is of."""
    return {
        **asdict(model),
        **begin.identity,
        "solver": repr(how.solver),
        "operator": type(op).__name__,
        "mask": fingerprint(mask),
        "matrix": fingerprint(M),  # as far as it is observed
    }


def _scaled_alpha(alpha: float, exponent: int) -> float:
    try:
        return math.ldexp(alpha, -2 * exponent)
    except OverflowError:
        raise ValueError(f"alpha={alpha:g} is out of all proportion to M; use a smaller one.") from None
