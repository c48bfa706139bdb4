"""The methods, one a file. :func:`get_solver` turns what a user passes into a solver."""

from __future__ import annotations

from typing import Any

from symrelu.solvers.aapb import AAPB
from symrelu.solvers.base import Solver, State
from symrelu.solvers.eigen import Eigen
from symrelu.solvers.lbfgs import LBFGS
from symrelu.solvers.palm import PALM

__all__ = ["AAPB", "LBFGS", "PALM", "SOLVERS", "Eigen", "Solver", "State", "get_solver"]

SOLVERS: dict[str, type[Any]] = {"aapb": AAPB, "eigen": Eigen, "lbfgs": LBFGS, "palm": PALM}


def get_solver(solver: Any) -> Solver:
    """Return the solver of that name, or the given instance itself.

    Parameters
    ----------
    solver : str or Solver
        A name among ``SOLVERS`` (the method with its default settings), or an instance.
    """
    known = ", ".join(repr(name) for name in SOLVERS)
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"solver must be one of {known} or a solver instance, got {solver!r}.")
        instance: Solver = SOLVERS[solver]()
        return instance
    if isinstance(solver, type):
        raise TypeError(
            f"solver must be an instance, got the class {solver.__name__}. Pass {solver.__name__}()."
        )
    if not isinstance(solver, Solver):
        raise TypeError(
            f"solver must be one of {known} or an object with init and step, got {type(solver).__name__}."
        )
    return solver
