"""``decompose``: check, operator, start, loop, Solution. The function behind everything."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from symrelu.checkpoint import CheckpointFile, as_checkpoint, fingerprint
from symrelu.kernels.threads import single_threaded_blas
from symrelu.loop import Callback, Limits, run
from symrelu.operators import BACKENDS, as_operator, operator_class
from symrelu.problem import read_observed
from symrelu.progress import check_verbose, narrated
from symrelu.solution import Solution
from symrelu.solvers import get_solver
from symrelu.start import check_init, count_negative, start
from symrelu.validation import (
    check_callback,
    check_choice,
    check_integer,
    check_memory,
    check_number,
    random_generator,
    scale_exponent,
    scaled,
)


def decompose(
    M: Any,
    rank: int,
    *,
    solver: Any = "lbfgs",
    n_negative: int | str = 0,
    diagonal: str = "fit",
    mask: Any | None = None,
    zero_weight: float = 1.0,
    alpha: float = 0.0,
    init: Any = "imputed",
    tol: float = 1e-4,
    gtol: float = 1e-7,
    ftol: float = 1e-8,
    max_iter: int = 1000,
    max_time: float | None = None,
    random_state: Any = None,
    backend: str = "auto",
    callback: Callback | None = None,
    checkpoint: Any | None = None,
    verbose: int = 0,
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
    rank : int
        Number of columns of U, from 1 to n.
    solver : {"aapb", "eigen", "lbfgs", "palm"} or Solver, default="lbfgs"
        A name, or an instance such as ``AAPB(step_size=10)``.
    n_negative : int or "auto", default=0
        How many columns enter X with a minus sign. 0 is the paper's model. "auto" counts the negative ones
        among the leading eigenvalues of M with a negative number in place of its zeros.
    diagonal : {"fit", "ignore"}, default="fit"
        "ignore" takes the diagonal of M as unknown: no U U^T can fit the zero diagonal of a graph.
    mask : sparse or dense bool matrix of shape (n, n), optional
        True where the entry of M is unknown. A zero says X <= 0, an unknown entry says nothing. A DataFrame is
        brought into the order of M by its names.
    zero_weight : float, default=1.0
        Weight in (0, 1] of the zeros of M.
    alpha : float, default=0.0
        Tikhonov weight (the paper's lambda).
    init : {"imputed", "random", "spectral", "uniform"} or array of shape (n, rank), default="imputed"
        Starting factor. "imputed" takes the leading eigenvectors of M with a negative number in place of its
        zeros, "spectral" those of M (at a rank of n / 2 or more, where U is as large as M, by a dense
        eigendecomposition); "random" is normal and scaled to M, "uniform" the same from numbers in [0, 1).
    tol : float, default=1e-4
        Stop when relative_error <= tol. 0 switches this test off, as for the next two.
    gtol : float, default=1e-7
        Stop when the norm of the gradient is at most gtol (2 ||M|| + alpha) ||U||.
    ftol : float, default=1e-8
        Stop when the objective changed by at most ftol times itself over the last 20 iterations.
    max_iter : int, default=1000
        Largest number of steps.
    max_time : float, optional
        Seconds the steps may take. Compiling is not counted.
    random_state : None, int, Generator or RandomState, optional
        Seed of the start. The same seed gives the same factor.
    backend : {"auto", "dense", "sparse", "reference"}, default="auto"
        How M is held. "auto" keeps it as it came.
    callback : callable, optional
        Called after each step with a :class:`~symrelu.loop.Progress`; returning True stops the fit.
    checkpoint : str, path-like or Checkpoint, optional
        A file to which the state of the fit is written every minute (see :class:`~symrelu.Checkpoint`) and at
        the end. If it exists, the fit goes on from it.
    verbose : int, default=0
        1 tells the logger ``symrelu`` of the fit once a second, 2 at each step. Where logging is not set up the
        lines go to stderr.

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
    solver = get_solver(solver)
    limits = Limits(tol=tol, gtol=gtol, ftol=ftol, max_iter=max_iter, max_time=max_time)
    check_choice("backend", backend, BACKENDS)
    if backend != "auto":
        operator_class(backend)  # which names what is missing for it
    check_number("zero_weight", zero_weight, 0, 1, low_included=False)
    alpha = check_number("alpha", alpha)
    check_callback(callback)
    checkpoint = as_checkpoint(checkpoint)
    if checkpoint is not None and " object at 0x" in repr(solver):
        raise ValueError(
            f"A checkpoint needs a solver whose repr tells its settings, got {solver!r}. Make it a dataclass."
        )
    verbose = check_verbose(verbose)
    M, mask = read_observed(M, mask, diagonal, fitted=True)
    n = M.shape[0]
    rank = check_integer("rank", rank, 1, n, note=" (the size of M)")
    n_negative = _check_n_negative(n_negative, rank)
    init = check_init(init, n, rank, M.dtype, largest=float(M.max()))
    random_generator(random_state)

    if backend in ("dense", "reference") and issparse(M):
        check_memory(M.shape, M.dtype, "M")
    exponent = scale_exponent(M)
    scaled_alpha = _scaled_alpha(alpha, exponent)
    with single_threaded_blas():  # the passes have threads of their own
        op = as_operator(
            scaled(M, exponent),
            _signature(rank, 0 if isinstance(n_negative, str) else n_negative),
            alpha=scaled_alpha,
            zero_weight=zero_weight,
            diagonal=diagonal,
            mask=mask,
            backend=backend,
        )
        file = snapshot = None
        if checkpoint is not None:
            identity = _identity(
                M,
                mask,
                init,
                random_state,
                rank=rank,
                solver=repr(solver),
                n_negative=n_negative,
                diagonal=diagonal,
                zero_weight=float(zero_weight),
                alpha=alpha,
                operator=type(op).__name__,
            )
            file = CheckpointFile(checkpoint, identity)
            snapshot = file.read()
        if snapshot is not None:
            op = op.with_signature(snapshot.signature)
            U0 = None
        else:
            if isinstance(n_negative, str):
                op = op.with_signature(_signature(rank, count_negative(op, random_state)))
            U0 = start(op, init if isinstance(init, str) else np.ldexp(init, -exponent), random_state)
        with narrated(verbose) as narrator:
            solution = run(
                op,
                solver,
                U0,
                limits,
                callback=callback,
                exponent=exponent,
                checkpoint=file,
                snapshot=snapshot,
                tell=narrator.step,
            )
            narrator.end(solution)
    return replace(solution, diagonal=diagonal, zero_weight=float(zero_weight))


def _check_n_negative(n_negative: Any, rank: int) -> Any:
    if isinstance(n_negative, str):
        return check_choice("n_negative", n_negative, ("auto",), "an integer")
    note = " (rank - 1, since one column at least must be positive) or 'auto'"
    return check_integer("n_negative", n_negative, 0, rank - 1, note)


def _signature(rank: int, n_negative: int) -> np.ndarray:
    """Return the signs of the columns, the negative ones last."""
    return np.where(np.arange(rank) < rank - n_negative, 1.0, -1.0)


def _identity(M: Any, mask: Any | None, init: Any, random_state: Any, **settings: Any) -> dict[str, Any]:
    """Return by what a checkpoint knows the fit that it is of."""
    seeded = isinstance(random_state, (int, np.integer))
    named = isinstance(init, str)
    return {
        **settings,
        "random_state": int(random_state) if seeded else (None if random_state is None else "a generator"),
        "init": init if named else "an array",
        "starting factor": None if named else fingerprint(init),
        "mask": fingerprint(mask),
        "matrix": fingerprint(M),  # as far as it is observed
    }


def _scaled_alpha(alpha: float, exponent: int) -> float:
    try:
        return math.ldexp(alpha, -2 * exponent)
    except OverflowError:
        raise ValueError(f"alpha={alpha:g} is out of all proportion to M; use a smaller one.") from None
