"""The methods of the experiments.

A method is a frozen value whose repr contains all of its settings, because stored results are looked up by it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Protocol

from symrelu.baselines import SymANLS, SymHALS, symmetric_nmf, truncated_eigen
from symrelu.fit.decompose import decompose
from symrelu.fit.holdout import fit_without
from symrelu.fit.loop import Callback
from symrelu.fit.settings import Limits
from symrelu.fitted.solution import Solution
from symrelu.metrics import random_mask
from symrelu.problem import Problem
from symrelu.solvers import AAPB, LBFGS, Eigen, Solver


class Method(Hashable, Protocol):
    """A way to decompose a matrix."""

    @property
    def name(self) -> str:
        """Name to print."""

    def fit(self, M: Any, rank: int, seed: int, limits: Limits, callback: Callback | None) -> Solution:
        """Fit a matrix from the start with that seed."""

    def cost(self, n: int, rank: int) -> float:
        """Return the rough cost of an iteration, from which the remaining time is estimated."""


@dataclass(frozen=True)
class ReluFit:
    """A fit by :func:`symrelu.decompose`.

    Parameters
    ----------
    name : str
        Name to print. As for all methods, it does not identify the fit.
    solver : Solver
        Its repr must contain its hyperparameters, as that of a dataclass does.
    init : str
    alpha : float
    """

    name: str = field(repr=False, compare=False)
    solver: Solver
    init: str = "random"
    alpha: float = 0.0

    def fit(self, M: Any, rank: int, seed: int, limits: Limits, callback: Callback | None) -> Solution:
        """Fit M ~ max(0, U U^T)."""
        return decompose(
            M,
            rank,
            solver=self.solver,
            init=self.init,
            alpha=self.alpha,
            random_state=seed,
            callback=callback,
            **asdict(limits),
        )

    def cost(self, n: int, rank: int) -> float:
        """Return the size of a pass, which the safeguard doubles."""
        double = isinstance(self.solver, AAPB) and self.solver.safeguard
        # The 20 stands for the work that does not depend on the rank, such as the ReLU and the norms.
        return float(n) * n * (rank + 20) * (2 if double else 1)


@dataclass(frozen=True)
class ModelFit:
    """A fit by the default solver and start, for comparing models.

    Parameters
    ----------
    name : str
    n_negative : int or "auto"
    diagonal : {"fit", "ignore"}
    held_out : float
        Fraction of the pairs that is held out. If it is not 0, the relative error of the solution is that on
        the held-out pairs.
    """

    name: str = field(repr=False, compare=False)
    n_negative: int | str = 0
    diagonal: str = "fit"
    held_out: float = 0.0

    def fit(self, M: Any, rank: int, seed: int, limits: Limits, callback: Callback | None) -> Solution:
        """Fit M ~ max(0, X)."""
        problem = Problem.of(M, diagonal=self.diagonal)

        def fit(problem: Problem) -> Solution:
            return decompose(
                problem,
                rank,
                n_negative=self.n_negative,
                random_state=seed,
                callback=callback,
                **asdict(limits),
            )

        if not self.held_out:
            return fit(problem)
        # The mask depends on the seed alone, so that all models are evaluated on the same pairs.
        mask = random_mask(problem.n, self.held_out, random_state=seed)
        solution, error = fit_without(problem, mask, fit)
        # Tables read the error of a cell from its solution.
        return replace(solution, relative_error=error)

    def cost(self, n: int, rank: int) -> float:
        """Return the size of a pass."""
        return float(n) * n * (rank + 20)


@dataclass(frozen=True)
class SymmetricNMFFit:
    """A fit by :func:`symrelu.baselines.symmetric_nmf`.

    Parameters
    ----------
    name : str
    solver : SymANLS or SymHALS
    """

    name: str = field(repr=False, compare=False)
    solver: SymANLS | SymHALS

    def fit(self, M: Any, rank: int, seed: int, limits: Limits, callback: Callback | None) -> Solution:
        """Fit M ~ U U^T with U >= 0."""
        return symmetric_nmf(M, rank, self.solver, random_state=seed, callback=callback, **asdict(limits))

    def cost(self, n: int, rank: int) -> float:
        """Return the cost of the sweeps over columns (SymHALS), or of a small system for each row (SymANLS)."""
        sweep = 20.0 * n * rank * rank
        return sweep * (1 + rank / 5) if isinstance(self.solver, SymANLS) else sweep


@dataclass(frozen=True)
class EigenvalueBound:
    """The best positive semidefinite approximation of that rank, which bounds the error of any U U^T."""

    name: ClassVar[str] = "eigenvalue bound"

    def fit(self, M: Any, rank: int, seed: int, limits: Limits, callback: Callback | None) -> Solution:
        """Keep the largest eigenvalues, those that are positive."""
        return truncated_eigen(M, rank, positive=True, random_state=seed)

    def cost(self, n: int, rank: int) -> float:
        """Return the approximate cost of orthogonalising the Lanczos vectors."""
        return 5.0 * n * rank * rank


SYMANLS = SymmetricNMFFit("SymANLS", SymANLS())
SYMHALS = SymmetricNMFFit("SymHALS", SymHALS())
# Methods that are not in the paper. The last one is the default of decompose.
ADAPTIVE = ReluFit("AAPB, adaptive", AAPB(step_size="adaptive"))
EIGEN_IMPUTED = ReluFit("Eigen", Eigen(), init="imputed")
LBFGS_IMPUTED = ReluFit("LBFGS", LBFGS(), init="imputed")
OURS = (ADAPTIVE, EIGEN_IMPUTED, LBFGS_IMPUTED)


def aapb(step_size: float, momentum: float = 1.0, init: str = "random") -> ReluFit:
    """Return AAPB, or APB if the momentum is zero, with the name that the tables print."""
    name = "AAPB" if momentum else "APB"
    # APB and AAPB are the paper's names for momentum 0 and 1.
    name += f" {momentum:g}" if 0 < momentum < 1 else ""
    start = "" if init == "random" else f", {init} start"
    solver = AAPB(step_size=step_size, momentum=momentum)
    return ReluFit(f"{name}, step {step_size:g}{start}", solver, init=init)
