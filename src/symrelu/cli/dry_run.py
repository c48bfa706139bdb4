"""``--dry-run``: what the fits of a command will cost, without making them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from symrelu import Cost, estimate_cost
from symrelu.cli.advice import refusal_in_options
from symrelu.cli.progress import working
from symrelu.cli.screen import report
from symrelu.estimators.planned_fits import CHOICE, planned_fits

_REFUSED_CODE = 2

_METHODS = {CHOICE: "at first, the choice of a number of clusters"}  # in place of the names of plans

DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print how much memory and time a fit will take, and do not fit."),
]


@dataclass(frozen=True)
class Estimate:
    """The cost of one of several equal fits.

    Attributes
    ----------
    cost : Cost
    count : int
        Number of fits.
    method : str
        The method they belong to, if a command has several.
    at_most : bool
        As in :class:`~symrelu.estimators.planned_fits.PlannedFits`.
    """

    cost: Cost
    count: int = 1
    method: str = ""
    at_most: bool = False

    def figures(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        figures = self.cost.as_dict()
        return {
            "nodes": figures.pop("n"),
            "number_of_fits": self.count,
            "at_most": self.at_most,
            **figures,
        }

    def rows(self) -> list[tuple[str, str]]:
        """Return the rows that are shown."""
        method = [("method", _METHODS.get(self.method, self.method))] if self.method else []
        several = [("number of fits", self._number())] if self.count > 1 or self.at_most else []
        return [*method, *several, *self.cost.rows()]

    def _number(self) -> str:
        if self.at_most:
            count = f"at most {self.count}" if self.method == CHOICE else str(self.count)
            return f"{count}, with at most {self.cost.rank} columns: the figures are those of the largest"
        return f"{self.count}; the figures are those of each"


def estimate(
    problem: Any,
    settings: Mapping[str, Any],
    workers: int | None = None,
    count: int = 1,
    method: str = "",
    *,
    at_most: bool = False,
) -> Estimate:
    """Return the cost of fits with these settings of ``decompose``, on workers if their number is given."""
    on_workers = {} if workers is None else {"backend": "dask"}
    with working("estimating"):
        cost = estimate_cost(problem, **{**settings, **on_workers})
    if cost.refusal is not None:
        cost = replace(cost, refusal=refusal_in_options(cost.refusal))
    return Estimate(cost, count, method, at_most)


def report_costs_of_estimator(
    command: str, file: Path, estimator: Any, labelled: Any, workers: int | None
) -> None:
    """Print what the fits of an estimator would cost; exit as they would if one does not fit into memory.

    Parameters
    ----------
    command : str
    file : Path
    estimator : SymReLU, SymReLUClustering or LinkPredictor
    labelled : Labelled or path
        What the command has read from the file.
    workers : int or None
        The number of workers of this machine, if it was given.
    """
    estimates = [
        estimate(
            plan.problem,
            {"rank": plan.rank, **plan.settings},
            workers,
            plan.count,
            plan.name,
            at_most=plan.at_most,
        )
        for plan in planned_fits(estimator, labelled)
    ]
    report_costs(command, file, estimates)


def report_costs(command: str, file: Path, estimates: Sequence[Estimate]) -> None:
    """Print estimates; exit as the command would if one of the fits does not fit into memory."""
    result = {"command": command, "dry_run": True, "file": file}
    fits = all(one.cost.fits for one in estimates)
    if any(one.method for one in estimates):
        result |= {"fits": fits, "methods": {one.method: one.figures() for one in estimates}}
    else:
        result |= estimates[0].figures()
    report(result, *(one.rows() for one in estimates))
    if not fits:
        raise typer.Exit(_REFUSED_CODE)
