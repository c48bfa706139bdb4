"""The interface of an experiment, and the function that runs one and writes its tables, figures and page."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from symrelu.experiments.cells import Cell, CellResult, CellStore, Monitor, run_cells
from symrelu.experiments.page import render_page, require_jinja2
from symrelu.experiments.tables import Table
from symrelu.files import check_output, make_folder, write_atomically
from symrelu.plots import save_figure

Results = Mapping[Cell, CellResult]


class Figure(NamedTuple):
    """A drawing with its caption.

    Attributes
    ----------
    name : str
        Stem of the files.
    caption : str
    drawing : matplotlib Figure
    """

    name: str
    caption: str
    drawing: Any


class Experiment(ABC):
    """Cells to run, and the tables and figures of their results.

    Attributes
    ----------
    missing : tuple of str
        A message for each data set that was not found. The command line prints them before the first fit.
    """

    missing: tuple[str, ...] = ()

    @property
    @abstractmethod
    def title(self) -> str:
        """Title of the page."""

    @abstractmethod
    def introduction(self) -> Sequence[str]:
        """Return paragraphs for the top of the page."""

    @abstractmethod
    def cells(self) -> Sequence[Cell]:
        """Return the cells in the order in which to run them."""

    @abstractmethod
    def tables(self, results: Results) -> Sequence[Table]:
        """Return the tables, with None as the entry of cells that have no result."""

    def figures(self, results: Results) -> Sequence[Figure]:
        """Return the figures, none by default."""
        return []


def results_of(cells: Iterable[Cell], results: Results) -> list[CellResult]:
    """Return the results of the cells that have one."""
    return [results[cell] for cell in cells if cell in results]


def reproduce(
    experiment: Experiment,
    folder: str | PathLike[str],
    *,
    jobs: int = 1,
    monitor: Monitor | None = None,
    command: str = "",
) -> tuple[list[Table], list[Path]]:
    """Run the cells that are not stored yet, and write tables, figures and a page to a folder.

    Parameters
    ----------
    experiment : Experiment
    folder : path
        Created if it does not exist. Cells are stored in its subfolder ``cells``.
    jobs : int, default=1
        Number of cells to run in parallel.
    monitor : Monitor, optional
        Receives the progress.
    command : str
        The command that made the page, printed on it.

    Returns
    -------
    tables : list of Table
    written : list of Path
        The files that were written, the page first.
    """
    # A missing package or an unusable folder should raise an error before hours of fits, not after them.
    require_jinja2()
    cells = experiment.cells()
    folder = make_folder(folder)
    page = check_output(folder / "index.html")
    make_folder(folder / "cells")
    results = run_cells(cells, CellStore(folder / "cells"), jobs=jobs, monitor=monitor)
    tables, figures = list(experiment.tables(results)), list(experiment.figures(results))
    written = [
        _write_text(page, render_page(experiment, results, tables, figures, command)),
        _write_text(folder / "cells.csv", cells_to_csv(results)),
        _write_text(
            folder / "tables.md", f"# {experiment.title}\n\n" + "\n".join(t.to_markdown() for t in tables)
        ),
        _write_text(folder / "tables.tex", "\n".join(table.to_latex() for table in tables)),
    ]
    for table in tables:
        written.append(_write_text(folder / f"{table.name}.csv", table.to_csv()))
        written.append(_write_text(folder / f"{table.name}.rst", table.to_rst()))
    for figure in figures:
        for kind in ("png", "svg"):
            written.append(folder / f"{figure.name}.{kind}")
            save_figure(figure.drawing, written[-1], dpi=150)
    return tables, written


def cells_to_csv(results: Results) -> str:
    """Return a CSV table with one line per cell."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    numbers = ("status", "n_iter", "n_evaluations", "seconds", "relative_error", "half_squared_error")
    writer.writerow(["case", "rank", "method", "seed", "max_iter", *numbers, "threads", "settings"])
    for cell, result in results.items():
        values = (getattr(result, name) for name in numbers)
        settings = [cell.case.name, cell.rank, cell.method.name, cell.seed, cell.limits.max_iter]
        # The repr of the method identifies the fit; its name alone may leave out settings.
        writer.writerow([*settings, *values, result.environment.get("threads", ""), repr(cell.method)])
    return file.getvalue()


def _write_text(path: Path, text: str) -> Path:
    # A reader of the page never sees half of it, and an interruption leaves the old files.
    with write_atomically(path) as file:
        file.write(text.encode())
    return path
