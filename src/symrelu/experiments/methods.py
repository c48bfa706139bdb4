"""What is run on the matrices. A method is a frozen value whose repr says all of its settings."""

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
from symrelu.solvers import AAPB, LBFGS, PALM, Eigen


class Method(Hashable, Protocol):
    """Something that decomposes a matrix."""

    @property
    def name(self) -> str:
        """What to print."""

    def fit(self, M: Any, rank: int, seed: int, limits: Limits, callback: Callback | None) -> Solution:
        """Fit one matrix from the start of that seed."""

    def cost(self, n: int, rank: int) -> float:
        """Return what an iteration costs, in the products of AAPB: only the time left is estimated by it."""


@dataclass(frozen=True)
class ReluFit:
    """A fit by :func:`symrelu.decompose`.

    Parameters
    ----------
    name : str
        What to print; not part of what the fit is, as for every method.
    solver : AAPB, Eigen, LBFGS or PALM
    init : str
    alpha : float
    """

    name: str = field(repr=False, compare=False)
    solver: AAPB | Eigen | LBFGS | PALM
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
        """Return the size of a pass; the safeguard makes one of double width."""
        double = isinstance(self.solver, AAPB) and self.solver.safeguard
        return float(n) * n * (rank + 20) * (2 if double else 1)


@dataclass(frozen=True)
class ModelFit:
    """A fit by the default solver and start: what changes is the model.

    Parameters
    ----------
    name : str
    n_negative : int or "auto"
    diagonal : {"fit", "ignore"}
    held_out : float
        Part of the pairs that is hidden from the fit. Where it is not 0, the relative error of the fit is that
        of these pairs.
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
        mask = random_mask(problem.n, self.held_out, random_state=seed)
        solution, error = fit_without(problem, mask, fit)
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
        """Return a rough figure: sweeps over columns, or a small system for each row."""
        sweep = 20.0 * n * rank * rank
        return sweep * (1 + rank / 5) if isinstance(self.solver, SymANLS) else sweep


@dataclass(frozen=True)
class EigenvalueBound:
    """The best positive semidefinite approximation of that rank: no U U^T comes closer to M."""

    name: ClassVar[str] = "eigenvalue bound"

    def fit(self, M: Any, rank: int, seed: int, limits: Limits, callback: Callback | None) -> Solution:
        """Keep the largest eigenvalues, as far as they are positive."""
        return truncated_eigen(M, rank, positive=True, random_state=seed)

    def cost(self, n: int, rank: int) -> float:
        """Return about what the Lanczos vectors cost."""
        return 5.0 * n * rank * rank


SYMANLS = SymmetricNMFFit("SymANLS", SymANLS())
SYMHALS = SymmetricNMFFit("SymHALS", SymHALS())
# Beyond the paper. The last one is the default of decompose.
ADAPTIVE = ReluFit("AAPB, adaptive", AAPB(step_size="adaptive"))
EIGEN_IMPUTED = ReluFit("Eigen", Eigen(), init="imputed")
LBFGS_IMPUTED = ReluFit("LBFGS", LBFGS(), init="imputed")
OURS = (ADAPTIVE, EIGEN_IMPUTED, LBFGS_IMPUTED)


def aapb(step_size: float, momentum: float = 1.0, init: str = "random") -> ReluFit:
    """Return AAPB, or APB where there is no momentum, under the name that tables print."""
    name = "AAPB" if momentum else "APB"
    name += f" {momentum:g}" if 0 < momentum < 1 else ""
    start = "" if init == "random" else f", {init} start"
    solver = AAPB(step_size=step_size, momentum=momentum)
    return ReluFit(f"{name}, step {step_size:g}{start}", solver, init=init)
