"""``decompose``: validate the input, build the operator and the start, run the loop, return a Solution."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from symrelu.fit.backends import backend_of, check_settings_supported, signature, why_chosen
from symrelu.fit.checkpoint import CheckpointFile
from symrelu.fit.levels import Beginning, Levels, fit_levels
from symrelu.fit.loop import Callback, Outcome
from symrelu.fit.memory_check import check_memory_of_fit
from symrelu.fit.narration import Narrator, narrated
from symrelu.fit.observers import HistoryKeeper, callers
from symrelu.fit.resuming import loop_state_of
from symrelu.fit.settings import Limits, Model, Run, Start, documented, values_of
from symrelu.fit.snapshots import Snapshot
from symrelu.fit.starts import count_negative, start
from symrelu.fitted.models import SymmetricReLU
from symrelu.fitted.solution import Solution
from symrelu.kernels.threads import kept_threads, single_threaded_blas
from symrelu.operators import EvaluationFailed
from symrelu.problem import Problem, remember_gpu
from symrelu.solvers import Solver


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
    support: str = Model.support,
    alpha: float = Model.alpha,
    init: Any = Start.init,
    tol: float = Limits.tol,
    gtol: float = Limits.gtol,
    ftol: float = Limits.ftol,
    max_iter: int = Limits.max_iter,
    max_time: float | None = Limits.max_time,
    random_state: Any = Start.random_state,
    backend: str = Run.backend,
    precision: str = Run.precision,
    client: Any | None = Run.client,
    callback: Callback | None = Run.callback,
    checkpoint: Any | None = Run.checkpoint,
    verbose: int = Run.verbose,
) -> Solution:
    r"""Find a thin factor U with M ~ max(0, X), X = (U * s) U^T, by default in the paper's model.

    .. math::

        \min_U \tfrac12 \sum_{M_{ij} > 0} (M_{ij} - X_{ij})^2
             + \tfrac{w}{2} \sum_{M_{ij} = 0} \max(0, X_{ij})^2
             + \tfrac{\alpha}{2} \|U\|_F^2

    A zero of M only requires X <= 0 there, so X can have a far lower rank than M. With the defaults
    (s = +1, w = 1, the diagonal fitted) this is the ReLU-NSMD model of the paper. To keep the neighbours in a
    graph, pass ``n_negative="auto", diagonal="auto"``, the defaults of :class:`~symrelu.SymReLU`.
    With ``support="at_least"``, the first sum is that of max(0, M - X)^2: see Notes.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n), or a graph
        Nonnegative and symmetric. Sparse input stays sparse (unless ``backend`` is "dense" or "reference"),
        and float32 stays float32. Also accepted: anything that :func:`symrelu.graphs.as_similarity` reads (a
        networkx or igraph graph, an AnnData, a square table or an edge table, a torch tensor), whose node
        names are dropped (the estimators keep them); a :class:`~symrelu.Problem`, which has its own mask and
        diagonal and is not checked again; and the path of a block folder
        (:func:`symrelu.graphs.write_blocks`), which is fitted on a cluster.
    mask : sparse or dense bool matrix of shape (n, n), optional
        True where the entry of M is unobserved. A zero means X <= 0; an unobserved entry is not fitted. The
        rows and columns of a DataFrame are matched to those of M by name.

    Returns
    -------
    solution : Solution
        ``U``, ``status``, ``relative_error``, ``history`` and more. Ctrl-C returns the best factor so far. If a
        cluster fails, the error has it as its attribute ``solution``.

    Notes
    -----
    With ``support="at_least"`` the objective is

    .. math::

        \tfrac12 \sum_{M_{ij} > 0} \max(0, M_{ij} - X_{ij})^2
             + \tfrac{w}{2} \sum_{M_{ij} = 0} \max(0, X_{ij})^2
             + \tfrac{\alpha}{2} \|U\|_F^2 .

    On the support, ``relative_error`` and the test against ``tol`` count only max(0, M - max(0, X)), what X
    lacks. If alpha is 0, the objective need not have a minimum: it may keep decreasing while U grows.

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
    model, start_settings, limits, run_settings = values_of(locals())  # these are the keywords so far
    problem = Problem.of(M, mask, diagonal, warn_if_distances=True)
    remember_gpu(problem, M)
    model = replace(model, diagonal=problem.diagonal).for_size(problem.n)
    start_settings = start_settings.for_factor(problem.n, model.rank, problem.dtype, largest=problem.largest)
    # The kernels run in threads themselves, and those of BLAS would compete with them.
    try:
        with single_threaded_blas(), kept_threads(), narrated(run_settings.verbose) as narrator:
            return _fit(problem, model, start_settings, limits, run_settings, narrator)
    finally:
        if problem is not M:  # nobody else uses it
            problem.release()


def _fit(
    problem: Problem,
    model: Model,
    start_settings: Start,
    limits: Limits,
    run_settings: Run,
    narrator: Narrator,
) -> Solution:
    """Fit a problem; all settings have been validated."""
    backend = backend_of(problem, model, run_settings)
    check_settings_supported(backend, problem.n, model, start_settings, run_settings)
    check_memory_of_fit(problem, model, start_settings, run_settings, limits)
    # "auto" is resolved later, by products with this operator, which do not depend on the signature.
    op = problem.operator(
        signature(model.rank, 0 if isinstance(model.n_negative, str) else model.n_negative),
        alpha=problem.scaled_alpha(model.alpha),
        zero_weight=model.zero_weight,
        support=model.support,
        backend=backend,
        client=run_settings.client,
    )
    solver, file = run_settings.solver, None
    if run_settings.checkpoint is not None:
        identity = _identity(problem, model, start_settings, run_settings, backend)
        file = CheckpointFile(run_settings.checkpoint, identity)
    snapshot = None if file is None else file.read()
    # "auto" is resolved when a fit begins, and for M itself: the model must not depend on the start.
    if snapshot is not None:
        op = op.with_signature(snapshot.signature)
    elif isinstance(model.n_negative, str):
        op = op.with_signature(signature(model.rank, count_negative(op, start_settings.random_state)))
    levels = Levels(problem, op, backend, start_settings.multilevel, run_settings.precision)
    if file is None or snapshot is None:
        beginning = _start(levels, start_settings)
    else:
        beginning = _resume(levels, snapshot, file, solver)
    for line in (*_announcements(levels, run_settings, limits), *_first_lines(beginning, levels, file)):
        narrator.say(line)
    observers = [narrator, *callers(run_settings.callback)]
    try:
        outcome, history = fit_levels(levels, beginning, solver, limits, observers, file)
    except EvaluationFailed as failure:
        if failure.outcome is not None:
            failure.solution = _solution(failure.outcome, model, failure.history, solver)
        raise
    return _solution(outcome, model, history, solver)


def _announcements(levels: Levels, run_settings: Run, limits: Limits) -> list[str]:
    """Return lines about what a fit decides for itself."""
    lines = []
    if levels.backend != run_settings.backend:
        lines.append(why_chosen(levels.backend, levels.problem.n, levels.op.signs))
    floor = levels.op.approximate().noise_floor
    if levels.precision == "fast" and limits.tol < floor:
        lines.append(
            f"Relative errors below {floor:g} are noise with precision='fast': the fit stops there, and its "
            "error is then computed exactly."
        )
    return lines


def _first_lines(beginning: Beginning, levels: Levels, file: CheckpointFile | None) -> list[str]:
    """Return lines about where a fit resumes, or about a multilevel start without smaller matrices."""
    if beginning.loop_state is not None and file is not None:
        record, level = beginning.loop_state.record, beginning.stage.level
        where = f"{f'level {level}, ' if level else ''}step {record.iteration}"
        return [
            f"resuming from the checkpoint {file.path} at {where}: relative error {record.relative_error:.4g}, "
            f"{record.seconds:.1f} s so far"
        ]
    if levels.multilevel and not levels.coarse:
        return [f"init='multilevel' is the same as 'imputed' here: {_why_not_smaller(levels)}"]
    return []


def _why_not_smaller(levels: Levels) -> str:
    if levels.op.n <= levels.fewest:
        return f"M has {levels.op.n} items, and only matrices of more than {levels.fewest} are made smaller."
    return (
        "no smaller matrix resembles M. Merged items would have few neighbours in common, or too many pairs "
        "would be positive."
    )


def _solution(outcome: Outcome, model: Model, history: HistoryKeeper, solver: Solver) -> Solution:
    fitted = SymmetricReLU(outcome.U, outcome.signature, outcome.alpha, model.zero_weight, model.support)
    return Solution.of(outcome, fitted, history=history.history(), solver=repr(solver), diagonal=model.diagonal)


def _start(levels: Levels, start_settings: Start) -> Beginning:
    """Return where a fit begins, with a starting factor in the units of that operator."""
    stage = levels.first_stage(start_settings.random_state)
    init = start_settings.init
    if not isinstance(init, str):
        # An array from the user is in the units of M, which the operator divides by 4^exponent.
        init = np.ldexp(init, -levels.exponent(stage.level))
    U0 = start(levels.operator(stage.level), init, start_settings.random_state)
    return Beginning(stage, U0, None, HistoryKeeper())


def _resume(levels: Levels, snapshot: Snapshot, file: CheckpointFile, solver: Solver) -> Beginning:
    """Return where a fit resumes."""
    with file.explaining_errors():
        stage = levels.saved_stage(**(snapshot.stage or {}))
        loop_state = loop_state_of(snapshot, levels.operator(stage.level), solver)
    return Beginning(stage, None, loop_state, HistoryKeeper(snapshot.history.records()))


def _identity(
    problem: Problem, model: Model, start_settings: Start, run_settings: Run, backend: str
) -> dict[str, Any]:
    """Return what a checkpoint is matched against before a fit resumes from it."""
    # Without limits and tolerances, which may change when a fit resumes.
    return {
        **asdict(model),
        **start_settings.identity,
        **problem.fingerprint(),
        "solver": repr(run_settings.solver),
        "backend": backend,
        **({"precision": run_settings.precision} if backend == "cuda" else {}),
    }
