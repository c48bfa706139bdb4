"""The checks of fuzz.py: what must hold for each fit, and the reference in extended precision."""

from __future__ import annotations

import math
import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_cases import DEGENERATE, DENSE, INTEGERS, UNSCALED, Case
from scipy import sparse

from symrelu import AAPB, LBFGS, PALM, Eigen, Solution, Status, decompose
from symrelu.fit.stopping import PLATEAU_WINDOW
from symrelu.validation import NothingObserved

Outcome = Solution | Exception
NO_TESTS = {"tol": 0.0, "gtol": 0.0, "ftol": 0.0}


@dataclass(frozen=True)
class Judgement:
    """The true values at a factor in extended precision, and bounds on the rounding error of reported ones."""

    norm: Any
    relative_error: Any
    objective: Any
    gradient_norm: Any
    gradient_limit: Any  # (2 ||M|| + alpha) ||U||
    error_slack: Any
    objective_slack: Any
    gradient_slack: Any
    gradient_floor: Any  # below it, the squares that a norm adds up underflow


def judge(case: Case, U: np.ndarray, signature: np.ndarray) -> Judgement:
    """Evaluate the formulas of the model in 80-bit floats (up to 1e4932), without the code of the library.

    A sum of r products, each rounded with precision eps, has an error of at most r eps times the sum of their
    absolute values. The error of X as the library forms it, and therefore of the residual R, is at most

        delta = (r + 4) eps (|| |U| |U|^T || + ||M||),

    that of the relative error delta / ||M||, of the objective ||R|| delta + delta^2, and of the gradient 2 R U
    2 ||U|| (delta + (n + 3r) eps ||R||). Sums of n^2 squares in float64 add a relative error of n^2 1e-15.
    """
    n, rank = U.shape
    floats, L = np.finfo(case.dtype), np.longdouble
    eps, U, s = float(floats.eps), U.astype(L), signature.astype(L)
    alpha, w = L(case.settings["alpha"]), L(case.settings["zero_weight"])
    M, observed = case.matrix.astype(L), ~case.unknown
    X = (U * s) @ U.T
    excess = np.where(observed & (M == 0), np.maximum(0, X), 0)
    fit = np.where(M > 0, M - X, 0)
    miss = np.where(observed, M - np.maximum(0, X), 0)
    R, norm, size = fit - w * excess, _norm(M), _norm(U)
    delta = (rank + 4) * eps * (_norm((np.abs(U) @ np.abs(U).T)[observed]) + norm)
    objective = (np.sum(fit**2) + w * np.sum(excess**2) + alpha * size**2) / 2
    return Judgement(
        norm=norm,
        relative_error=_norm(miss) / norm,
        objective=objective,
        gradient_norm=_norm(alpha * U - 2 * (R @ (U * s))),
        gradient_limit=(2 * norm + alpha) * size,
        error_slack=delta / norm + n * n * 1e-15 * _norm(miss) / norm,
        objective_slack=(_norm(R) + delta) * delta + (n * n * 1e-15 + 4 * eps) * objective,
        gradient_slack=2 * size * (delta + ((n + 3 * rank) * _norm(R) + alpha) * eps),
        # M is scaled only if its largest entry is outside [4^-8, 4^9), and the gradient scales as M^1.5.
        gradient_floor=2**24 * n * np.sqrt(L(floats.smallest_subnormal)) * norm**1.5,
    )


def _norm(A: np.ndarray) -> Any:
    return np.sqrt(np.sum(A * A))


def off(reported: float, true: Any, slack: Any) -> bool:
    """Return whether a number differs by more than its slack; out of range, infinity and zero are right."""
    if reported == math.inf:
        return bool(true + slack < np.finfo(float).max)
    return not abs(np.longdouble(reported) - true) <= slack + np.finfo(float).smallest_subnormal


def attempt(arguments: dict[str, Any]) -> tuple[Outcome, list[np.ndarray]]:
    """Fit with warnings as errors; return the outcome and the factor after each step."""
    iterates: list[np.ndarray] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return decompose(**arguments, callback=lambda progress: iterates.append(progress.U)), iterates
        except Exception as error:
            return error, iterates


class Trial:
    """A case and its fits: as drawn, and with zeros under the mask, which most checks use."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.given = case.arguments()
        self.before = fingerprint(self.given)
        self.drawn, self.iterates = self.first = attempt(self.given)
        if case.unknown.any():
            self.outcome, self.iterates = attempt(case.arguments(clean=True))
        else:
            self.outcome = self.drawn

    @property
    def solution(self) -> Solution | None:
        return self.outcome if isinstance(self.outcome, Solution) else None

    @cached_property
    def truth(self) -> Judgement:
        assert self.solution is not None
        return judge(self.case, self.solution.U, self.solution.signature)

    @cached_property
    def way_down(self) -> str:
        """Whether the same solver in float64 descends from U: not at all, by rounding only, or really."""
        assert self.solution is not None
        case, here = self.case, self.truth
        limits: dict[str, Any] = {**NO_TESTS, "max_iter": PLATEAU_WINDOW, "init": self.solution.U}
        dtype = "float64" if case.dtype == np.float32 else ""
        further, _ = attempt(case.arguments(clean=True, dtype=dtype, **limits))
        if isinstance(further, Exception):
            return "none"
        there = judge(case, further.U, further.signature).objective
        if there >= 0.99 * here.objective:  # a plateau need not be quite flat
            return "none"
        return "rounding" if there >= here.objective - 10 * here.objective_slack else "real"

    @property
    def ending(self) -> str:
        """The status, or the error message."""
        if isinstance(self.drawn, Exception):
            return f"{type(self.drawn).__name__}: {self.drawn}"
        status = self.drawn.status
        of_rounding = status is Status.PLATEAU and self.solution and self.way_down == "rounding"
        return f"{status.name}, of rounding" if of_rounding else status.name

    @cached_property
    def rows(self) -> np.ndarray:
        """The rows of the history that may belong to U."""
        assert self.solution is not None
        solution, history = self.solution, self.solution.history
        same = (history.objective == solution.objective) & (history.relative_error == solution.relative_error)
        return np.flatnonzero(same)


def fingerprint(arguments: dict[str, Any]) -> list[Any]:
    arrays = [arguments[name] for name in ("M", "mask", "init")]
    arrays = [a.toarray() if sparse.issparse(a) else a for a in arrays]
    return [a.tobytes() if isinstance(a, np.ndarray) else a for a in arrays]


Verdict = list[str] | None  # complaints; None if the check does not apply


def check_exception(trial: Trial) -> Verdict:
    """Only a ValueError, TypeError or MemoryError with a full message is raised, and before any work."""
    error, iterates = trial.first
    if isinstance(error, Solution):
        error, iterates = trial.outcome, trial.iterates
    if isinstance(error, Solution):
        return []
    if isinstance(error, FloatingPointError) and "not finite at the starting factor" in str(error):
        return [] if trial.case.traits["start"] == "vast" else [f"{error!r} from a start of sensible size"]
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "symrelu" in frame.filename][-1]
    where = f"{type(error).__name__} in {Path(ours.filename).name}:{ours.lineno}"
    if type(error) not in (
        ValueError,
        TypeError,
        MemoryError,
        NothingObserved,
    ):  # LinAlgError is a ValueError too
        return [f"{where}: {error}"]
    complaints = {
        "work was done before the refusal": bool(iterates),
        f"not raised on purpose, {where}: {error}": not (frames[-1].line or "").startswith("raise"),
        f"not a full sentence: {error}": not re.fullmatch(r"\w\S* .{10,}[.]", str(error)),
    }
    return [text for text, wrong in complaints.items() if wrong]


def check_accepted(trial: Trial) -> Verdict:
    """M is fitted regardless of the values under the mask, and refused if no positive entry is observed."""
    refused = isinstance(trial.drawn, (ValueError, TypeError))
    if str(trial.drawn).startswith("init must not vanish"):
        return None
    if refused != bool(trial.case.matrix.any()):
        return []
    return [f"refused: {trial.drawn}" if refused else "fitted, though no positive entry is observed"]


def check_inputs(trial: Trial) -> Verdict:
    """The arguments are not modified."""
    return [] if fingerprint(trial.given) == trial.before else ["an input was changed"]


def check_factor(trial: Trial) -> Verdict:
    """U is finite and has the right shape and dtype; signature, alpha and norm are as requested."""
    solution, case = trial.solution, trial.case
    if solution is None:
        return None
    U, signature, norm = solution.U, solution.signature, trial.truth.norm
    asked = case.settings["n_negative"]
    n_negative = solution.n_negative if asked == "auto" else asked
    signs = np.where(np.arange(U.shape[1]) < U.shape[1] - n_negative, 1, -1)
    complaints = {
        "U is not finite": not np.isfinite(U).all(),
        f"U has shape {U.shape}": U.shape != (len(case.matrix), case.settings["rank"]),
        f"U is {U.dtype}, not {case.dtype}": U.dtype != case.dtype,
        f"the signature is {signature}": not np.array_equal(signature, signs) or n_negative >= len(signs),
        f"alpha is {solution.alpha}": off(solution.alpha, case.settings["alpha"], 0),
        f"norm is {solution.norm}, not {norm}": off(solution.norm, norm, 1e-13 * norm),
    }
    return [text for text, wrong in complaints.items() if wrong]


def check_numbers(trial: Trial) -> Verdict:
    """relative_error, objective and gradient_norm agree with extended precision, at U and in the history."""
    solution = trial.solution
    if solution is None:
        return None
    history, truth = solution.history, trial.truth
    complaints = compare("", truth, solution.relative_error, solution.objective)
    for row in {1, len(history) - 1} - {0}:
        if row <= len(trial.iterates):
            there = judge(trial.case, trial.iterates[row - 1], solution.signature)
            complaints += compare("of the history ", there, history.relative_error[row], history.objective[row])
    # With momentum, AAPB and PALM take the gradient at the extrapolated point and not at U.
    at_U = "momentum=0.0" in solution.solver or solution.solver[:5] in ("LBFGS", "Eigen")
    at_U = at_U and trial.case.traits["start"] != "vast"  # squares in the norm may overflow
    slack, norms = truth.gradient_slack + truth.gradient_floor, history.gradient_norm[trial.rows]
    if at_U and all(off(norm, truth.gradient_norm, slack) for norm in norms):
        complaints.append(f"gradient_norm {norms}, not {truth.gradient_norm:g}")
    return complaints


def compare(where: str, truth: Judgement, relative_error: float, objective: float) -> list[str]:
    complaints = []
    if off(relative_error, truth.relative_error, truth.error_slack):
        complaints.append(f"{where}relative_error {relative_error:g}, not {truth.relative_error:g}")
    if off(objective, truth.objective, truth.objective_slack):
        complaints.append(f"{where}objective {objective:g}, not {truth.objective:g}")
    return complaints


def check_status(trial: Trial) -> Verdict:
    """The status is true."""
    solution = trial.solution
    if solution is None:
        return None
    settings, truth, start = trial.case.settings, trial.truth, trial.case.traits["start"]
    # A factor that a large alpha drives to zero counts as stationary, a small start does not.
    floor = truth.gradient_floor if solution.n_iter else 0
    limit = settings["gtol"] * truth.gradient_limit + truth.gradient_slack + floor
    spread, lowest = plateau(solution.history.objective)
    honest = {
        "TOLERANCE": solution.relative_error <= settings["tol"],
        "GRADIENT": settings["gtol"] > 0 and truth.gradient_norm <= limit,
        "PLATEAU": spread <= settings["ftol"] * lowest * (1 + 1e-12) + 1e-300,
        "ROUNDING": settings["ftol"] > 0 and spread <= truth.objective_slack + 1e-300,
        "VANISHED": vanished(solution, truth),
        "MAX_ITER": solution.n_iter == settings["max_iter"],
        "NON_FINITE": not promises_descent(settings["solver"]) or start == "vast",
    }
    complaints = {
        f"{solution.status.name}, which is not so": not honest.get(solution.status.name, False),
        "converged at U = 0": solution.converged and not solution.U.any(),
        "more than max_iter steps": solution.n_iter > settings["max_iter"],
    }
    if solution.status is Status.PLATEAU and start != "small" and settings["ftol"] <= 1e-8:
        complaints["PLATEAU, but the same solver goes on in float64"] = trial.way_down == "real"
    return [text for text, wrong in complaints.items() if wrong]


def vanished(solution: Solution, truth: Any) -> bool:
    """Return whether U is small relative to M, and no better than zero."""
    small = np.sum(solution.U.astype(np.longdouble) ** 2) <= 1.01e-3 * truth.norm
    return bool(small and truth.objective >= (1 - 2e-5) * truth.norm**2 / 2)


def plateau(objectives: np.ndarray) -> tuple[float, float]:
    """Return the spread and the minimum of the last rows, or zeros if these are not finite."""
    tail = objectives[-PLATEAU_WINDOW - 1 :]
    if len(tail) <= PLATEAU_WINDOW:
        return math.inf, 0.0
    return (float(np.ptp(tail)), float(tail.min())) if np.isfinite(tail).all() else (0.0, 0.0)


def promises_descent(solver: Any) -> bool:
    if isinstance(solver, AAPB):
        return solver.momentum == 0 and (solver.step_size == "adaptive" or float(solver.step_size) <= 1)
    return not isinstance(solver, PALM) or solver.momentum == 0


def check_descent(trial: Trial) -> Verdict:
    """LBFGS and Eigen never increase the objective; PALM and AAPB, within their theory, only by rounding."""
    solution, solver = trial.solution, trial.case.settings["solver"]
    if solution is None or not promises_descent(solver) or len(solution.history) < 2:
        return None
    objectives = solution.history.objective
    if not np.isfinite(objectives).all():
        return None
    slack = 0.0
    if not isinstance(solver, (LBFGS, Eigen)):
        judged = [judge(trial.case, U, solution.signature) for U in trial.iterates]
        # The products of a gradient step have n terms, so that it moves X by n times the rounding error of X.
        slack = len(solution.U) * float(max(j.objective_slack for j in judged))
    rises = np.diff(objectives)
    worst = int(rises.argmax())
    if rises[worst] <= slack:
        return []
    return [f"step {worst + 1} raised the objective {objectives[worst]:g} by {rises[worst]:g}"]


def difference(a: Outcome, b: Outcome, exponent: int = 0) -> list[str]:
    """Return how b differs, bit for bit, from a times 2^exponent."""
    if isinstance(a, Exception) or isinstance(b, Exception):
        return [] if type(a) is type(b) else [f"{a!r} became {b!r}"]
    if a.status is not b.status or a.n_iter != b.n_iter:
        return [f"{a.status.name} after {a.n_iter} steps became {b.status.name} after {b.n_iter}"]
    names = ("relative_error",) if exponent else ("evaluations", "relative_error", "objective", "gradient_norm")
    columns = [(name, getattr(a.history, name), getattr(b.history, name)) for name in names]
    changed = [name for name, old, new in columns if not np.array_equal(old, new, equal_nan=True)]
    changed += [] if np.ldexp(a.U, exponent).tobytes() == b.U.tobytes() else ["U"]
    gap = np.max(np.abs(a.history.relative_error - b.history.relative_error))
    return [f"other {' and '.join(changed)}, relative_error by {gap:.1g}"] if changed else []


def check_seed(trial: Trial) -> Verdict:
    """The same call gives the same bits."""
    return difference(trial.drawn, attempt(trial.case.arguments())[0])


def check_unknown(trial: Trial) -> Verdict:
    """The values under the mask and the format of the mask change no bit."""
    case = trial.case
    if not case.unknown.any() or isinstance(trial.drawn, Exception):
        return None
    other = "dense" if case.traits["mask as"] != "dense" else "csr_array"
    again, _ = attempt(case.arguments(clean=True, mask=other))
    return difference(trial.drawn, trial.outcome) + difference(trial.outcome, again)


def check_container(trial: Trial) -> Verdict:
    """The same numbers in another container and dtype change no bit."""
    case = trial.case
    container = "csr_array" if case.traits["container"] in DENSE else "C order"
    change: dict[str, Any] = {"container": container, "dtype": str(case.dtype), "backend": case.backend}
    return difference(trial.outcome, attempt(case.arguments(clean=True, **change))[0])


def diverged(outcome: Outcome) -> bool:
    """Return whether a factor diverged or vanished so far that numbers are out of range at some scales."""
    if isinstance(outcome, Exception):
        return False
    size = float(np.abs(outcome.U).max()) / math.sqrt(outcome.norm)
    lost = outcome.status in (Status.NON_FINITE, Status.VANISHED)
    return lost or outcome.history.relative_error.max() > 1e4 or size < 1e-10


def check_scale(trial: Trial) -> Verdict:
    """M times 4^k with alpha times 4^k, and init times 2^k, gives U times 2^k, bit for bit."""
    case, positive = trial.case, trial.case.matrix[trial.case.matrix > 0]
    starts = ("small", "vast", "eigenvectors", "split eigenvectors")  # their products may underflow
    if case.traits["dtype"] in INTEGERS or not positive.size or case.traits["start"] in starts:
        return None
    floats = np.finfo(case.dtype)
    low = (math.log2(positive.min()) - floats.minexp) / 2
    high = (floats.maxexp - math.log2(positive.max())) / 2
    options = [k for k in (-200, -60, -20, -5, -1, 2, 6, 25, 70, 180) if 2 - low < k < high - 8]
    if not options:
        return None
    k = options[case.number % len(options)]
    init, alpha = case.settings["init"], math.ldexp(case.settings["alpha"], 2 * k)
    init = init if isinstance(init, str) else np.ldexp(init, k)
    scaled, _ = attempt(case.arguments(clean=True, exponent=k, init=init, alpha=alpha))
    if diverged(trial.outcome) or diverged(scaled) or subnormal(trial.outcome) or subnormal(scaled):
        return None
    return [f"times 4^{k}: {text}" for text in difference(trial.outcome, scaled, k)]


def subnormal(outcome: Any) -> bool:
    """Return whether a factor has lost digits because a large alpha made it subnormal."""
    U = np.abs(outcome.U) if isinstance(outcome, Solution) else np.ones(1)
    return bool(U[U > 0].min(initial=1) < np.finfo(U.dtype).tiny)


STEP_SLACK = {8: 1e-6, 4: 1e-2}  # bytes per number -> slack of the relative error after a step


def check_backends(trial: Trial) -> Verdict:
    """Dense, sparse and reference agree up to rounding at the start, and closely after a step."""
    solution, case = trial.solution, trial.case
    if solution is None or case.traits["start"] in ("spectral", "imputed", "small", "vast"):
        return None  # eigenvectors of repeated eigenvalues are arbitrary
    changes: dict[str, Any] = {**NO_TESTS, "max_iter": 1, "n_negative": solution.n_negative}
    backends = ("reference", "dense", "sparse")
    fits = {name: attempt(case.arguments(clean=True, backend=name, **changes))[0] for name in backends}
    errors = {name: fit.history.relative_error for name, fit in fits.items() if isinstance(fit, Solution)}
    if len(errors) < len(fits) or len({len(e) for e in errors.values()}) > 1:
        return [f"{name}: {fit!r}" for name, fit in fits.items()]
    complaints = []
    for name in backends[1:]:
        gaps = np.abs(errors[name] - errors["reference"])
        if gaps[0] > start_slack(case, solution.signature):
            complaints.append(f"{name} differs from reference at the start by {gaps[0]:.1g}")
        elif is_plain(case) and gaps[-1] > STEP_SLACK[case.dtype.itemsize]:
            complaints.append(f"{name} differs from reference after a step by {gaps[-1]:.1g}")
    return complaints


def start_slack(case: Case, signature: np.ndarray) -> float:
    """Return a bound on the rounding error of the difference of two relative errors at the start."""
    if not isinstance(case.settings["init"], str):
        return float(2 * judge(case, case.settings["init"], signature).error_slack)
    # The random starts have ||U U^T|| = ||M||, and || |U| |U|^T || is at most sqrt(r) times as large.
    rank = len(signature)
    delta = (rank + 4) * float(np.finfo(case.dtype).eps) * (math.sqrt(rank) + 1)
    return 2 * delta + len(case.matrix) ** 2 * 1e-15


def is_plain(case: Case) -> bool:
    """Return whether a step depends continuously on the start: no ties or singular systems, one scale."""
    regular = case.traits["matrix"] not in (*UNSCALED, *DEGENERATE)
    return regular and case.traits["start"] in ("random", "uniform", "normal")


def check_history(trial: Trial) -> Verdict:
    """Rows are numbered, counts are integers that never decrease, and the row of U agrees with the solution."""
    solution = trial.solution
    if solution is None:
        return None
    history = solution.history
    met = solution.status in (Status.TOLERANCE, Status.GRADIENT)
    complaints = {
        f"iteration is {history.iteration.dtype}": history.iteration.dtype.kind != "i",
        f"evaluations is {history.evaluations.dtype}": history.evaluations.dtype.kind != "i",
        "the rows are not numbered": not np.array_equal(history.iteration, np.arange(solution.n_iter + 1)),
        "evaluations fall": bool((np.diff(history.evaluations) < 0).any()),
        "seconds fall": bool((np.diff(history.seconds) < 0).any()),
        "n_evaluations is below the last row": solution.n_evaluations < history.evaluations[-1],
        "relative_error is not finite": not np.isfinite(history.relative_error).all(),
        "no row is that of U": not trial.rows.size,
        "a test was met, but not by the last row": met and len(history) - 1 not in trial.rows,
        "a lower objective was reached": not met and solution.objective > history.objective.min(),
        "a callback was left out": len(trial.iterates) != solution.n_iter,
    }
    return [text for text, wrong in complaints.items() if wrong]


CHECKS: dict[str, Callable[[Trial], Verdict]] = {
    "exception": check_exception,
    "accepted": check_accepted,
    "inputs": check_inputs,
    "factor": check_factor,
    "numbers": check_numbers,
    "status": check_status,
    "descent": check_descent,
    "seed": check_seed,
    "unknown": check_unknown,
    "container": check_container,
    "scale": check_scale,
    "backends": check_backends,
    "history": check_history,
}
