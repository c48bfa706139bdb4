"""``symrelu``: the command line, a thin face of the library."""

from __future__ import annotations

import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Table
    from rich.text import Text
except ImportError as missing:  # pragma: no cover
    raise SystemExit("The command line needs typer and rich: pip install 'symrelu[cli]'.") from missing

import numpy as np
from scipy import sparse

from symrelu import Problem, Solution, Status, decompose, metrics
from symrelu.experiments import (
    Ablation,
    Cell,
    CellResult,
    Experiment,
    Monitor,
    Real,
    Signed,
    Synthetic,
    find_data_sets,
    find_signed_data,
    reproduce,
)
from symrelu.experiments.ablation import SETS as ABLATION_SETS
from symrelu.experiments.cells import Failure, Refused
from symrelu.experiments.paper import REAL_RANK
from symrelu.experiments.real import QUICK_SETS
from symrelu.experiments.signed import GRAPHS as SIGNED_GRAPHS
from symrelu.experiments.signed import QUICK_SETS as SIGNED_QUICK
from symrelu.experiments.tables import Table as ResultTable
from symrelu.files import check_output, read_matrix
from symrelu.loop import Progress as FitProgress
from symrelu.options import chosen_settings, fit_options, with_options
from symrelu.validation import check_choice

app = typer.Typer(
    help="ReLU-based symmetric matrix decomposition: M ~ max(0, U Uᵀ).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
reproduction = typer.Typer(
    help="Run the paper's experiments: tables, figures and one page. A stopped run goes on where it was.",
    no_args_is_help=True,
)
app.add_typer(reproduction, name="reproduce")
console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)

_INTERRUPTED_CODE = 130


def main() -> None:
    """Run the command line; errors of the user end it with a sentence, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a letter that the terminal does not know must not end a run
            stream.reconfigure(errors="replace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]  # of which it needs no more
            app()
    except (ValueError, TypeError, OSError, MemoryError, ImportError, Warning) as error:
        errors.print(_sentence("Error:", str(error), style="bold red"), soft_wrap=True)
        sys.exit(2)


def _show_warning(message: Warning | str, *_: Any) -> None:
    """Say a warning as a sentence; the line of code that it comes from is no news to a user."""
    errors.print(_sentence("Warning:", str(message), style="yellow"), soft_wrap=True)


def _printable(text: str) -> str:
    """Return a text, such as the name of a file, without anything that a terminal would obey."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _sentence(head: str, text: str, style: str = "") -> Text:
    """Return a styled beginning and a text that is shown as it is: no markup, no emoji, no control codes."""
    return Text.assemble((head, style), " ", _printable(text))


@contextmanager
def _progress(description: str, total: int) -> Iterator[Any]:
    """Yield a callback that moves a progress bar through ``total`` iterations of one or more fits."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("relative error {task.fields[error]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(_printable(description), total=total, error="-")

        def callback(progress: FitProgress) -> None:
            bar.update(task, advance=1, error=f"{progress.record.relative_error:.4g}")

        yield callback


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the picture goes.")] = Path("demo.png"),
) -> None:
    """Fit the graph of scikit-learn's digits, compare with eigenvectors, draw a picture."""
    from symrelu import demo as demonstration

    check_output(output)
    _check_plots()
    console.print(
        "M is the nearest-neighbour graph of 1797 handwritten digits: which factor U of rank "
        f"{demonstration.RANK} gives M ~ max(0, X)?"
    )
    with _progress("fitting", demonstration.fits() * demonstration.ITERATIONS) as callback:
        result = demonstration.run_demo(callback)
    table = Table(title=f"{result.M.shape[0]} nodes, {result.M.nnz // 2} pairs, rank {demonstration.RANK}")
    table.add_column("model of M")
    table.add_column("relative error", justify="right")
    table.add_column("of the pairs held out", justify="right")
    for row in result.rows:
        table.add_row(row.name, f"{row.relative_error:.2g}", f"{row.held_out_error:.2g}")
    console.print(table)
    ratio = metrics.parameters_per_pair(result.M, demonstration.RANK)
    console.print(
        f"U holds {ratio:.1f} numbers for each positive pair, so a close fit alone proves little: "
        "the last column is the error on a tenth of the pairs, hidden from a second fit (zeros to the "
        "eigendecomposition, which knows no unknown entries). All are judged by max(0, X). The negative column "
        "lets the fit go through every pair, which is interpolation; shrunk by alpha it predicts better."
    )
    demonstration.draw_demo(result, output)
    console.print(_sentence("Picture:", str(output)))


@app.command()
@with_options(fit_options())
def fit(
    file: Annotated[Path, typer.Argument(help="Similarity matrix: .npz (sparse or dense), .npy or .mtx.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="npz file for the Solution.")],
    plot: Annotated[Path | None, typer.Option(help="PNG file for the convergence curve.")] = None,
    mask: Annotated[Path | None, typer.Option(help="Boolean matrix file: true = unknown.")] = None,
    held_out: Annotated[
        float | None,
        typer.Option(help="Fit once more with this part of the pairs hidden, and judge it by them."),
    ] = None,
    **options: Any,
) -> None:
    """Decompose the matrix in FILE and write the Solution. Ctrl-C keeps the best factor so far."""
    _check_paths(file, mask, output, plot, options["checkpoint"])
    settings = chosen_settings(options)
    checkpoint, max_iter = settings.pop("checkpoint"), settings["max_iter"]
    unknown = None if mask is None else _as_mask(read_matrix(mask))
    problem = Problem.of(read_matrix(file), unknown, settings["diagonal"])
    hidden = None if held_out is None else _hidden_pairs(problem, held_out, settings["random_state"])
    try:
        with _progress(file.name, max_iter) as callback:
            solution = decompose(problem, **settings, callback=callback, checkpoint=checkpoint)
    except KeyboardInterrupt:
        errors.print("Interrupted before the first evaluation: nothing was written.")
        raise typer.Exit(_INTERRUPTED_CODE) from None
    solution.save(output)
    if plot is not None:
        _draw_convergence(solution, file.name, plot)
    interrupted, judgement = solution.status is Status.INTERRUPTED, _NOT_JUDGED
    if hidden is not None and not interrupted:
        with _progress(f"{file.name}, pairs hidden", max_iter) as callback:
            judgement, interrupted = _judge(problem, hidden, settings, callback)
    numbers_per_pair = problem.parameters_per_pair(solution.rank)
    console.print(_summary(solution, numbers_per_pair, judgement, output, plot))
    if interrupted:
        raise typer.Exit(_INTERRUPTED_CODE)


_NOT_JUDGED = "not measured: add --held-out 0.1 before you trust a close fit"


def _hidden_pairs(problem: Problem, fraction: float, seed: int | None) -> Any:
    """Return pairs to hide, none of them unknown anyway; raise before any work if there are none."""
    hidden = metrics.random_mask(problem.n, fraction, random_state=seed)
    if problem.mask is not None:
        hidden = sparse.csr_array(hidden > sparse.csr_array(problem.mask))
    if hidden.nnz == 0:
        raise ValueError(
            f"--held-out must hide at least one pair, but {fraction:g} of {problem.n} items hides none."
        )
    return hidden


def _judge(problem: Problem, hidden: Any, settings: dict[str, Any], callback: Any) -> tuple[str, bool]:
    """Fit without the hidden pairs; return what the fit makes of them, and whether it was interrupted."""
    try:
        judged = decompose(problem.hide(hidden), **settings, callback=callback)
    except KeyboardInterrupt:
        return "not measured: interrupted", True
    if judged.status is Status.INTERRUPTED:
        return "not measured: interrupted", True
    error = metrics.held_out_error(problem, judged.U, judged.signature, mask=hidden)
    return f"{error:.6g} (of a second fit; predicting zero gives 1)", False


def _check_paths(
    file: Path, mask: Path | None, output: Path, plot: Path | None, checkpoint: Path | None
) -> None:
    """Raise before any work if an output cannot be written, or would replace another file of the command."""
    check_output(output)
    if plot is not None:
        check_output(plot)
        _check_plots()
    if checkpoint is not None:
        check_output(checkpoint)
    named = [path.resolve() for path in (file, mask, output, plot, checkpoint) if path is not None]
    if len(set(named)) < len(named):
        raise ValueError(
            "The matrix, the mask, the output, the plot and the checkpoint must be different files."
        )


def _check_plots() -> None:
    """Raise if there is no matplotlib."""
    from symrelu.plots import new_figure

    new_figure()


def _as_mask(matrix: Any) -> Any:
    """Return a mask that was stored as 0 and 1 (MatrixMarket has no booleans) as booleans."""
    values = getattr(matrix, "data", matrix) if not isinstance(matrix, np.ndarray) else matrix
    return matrix.astype(bool) if np.isin(values, (0, 1)).all() else matrix


def _draw_convergence(solution: Solution, name: str, path: Path) -> None:
    from symrelu.plots import new_figure, plot_convergence, save_figure

    figure = new_figure(figsize=(6.4, 4.2))
    ax = plot_convergence({name: solution.history}, figure.add_subplot())
    title = _printable(f"{name}, rank {solution.rank}: {solution.solver}")
    ax.set_title(title, fontsize=10, parse_math=False)  # $ is a letter in a name
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a letter that the font has not is a box
        save_figure(figure, path)


def _summary(
    solution: Solution, numbers_per_pair: float, judgement: str, output: Path, plot: Path | None
) -> Table:
    table = Table(show_header=False, box=None)
    table.add_column()
    table.add_column(overflow="fold")
    n_negative = solution.n_negative
    negative = f"{n_negative or 'no'} negative column{'s' if n_negative != 1 else ''}"
    table.add_row("factor", f"{solution.U.shape[0]} x {solution.rank}, {negative}")
    table.add_row("numbers per pair", f"{numbers_per_pair:.3g}")
    table.add_row("relative error", f"{solution.relative_error:.6g}")
    table.add_row("half squared error", f"{solution.half_squared_error:.6g}")
    if n_negative or judgement != _NOT_JUDGED:
        table.add_row("error on hidden pairs", judgement)
    table.add_row("iterations", f"{solution.n_iter} ({solution.n_evaluations} evaluations)")
    table.add_row("seconds", f"{solution.history.seconds[-1]:.2f}")
    table.add_row("stopped because", solution.status.value)
    table.add_row("what to do", solution.status.advice)
    table.add_row("solution", Text(_printable(str(output))))
    if plot is not None:
        table.add_row("picture", Text(_printable(str(plot))))
    return table


Seeds = Annotated[int | None, typer.Option(help="Number of seeds, from 0 on.", min=1)]
Quick = Annotated[bool, typer.Option("--quick", help="A small version, in under two minutes.")]
Jobs = Annotated[int, typer.Option(help="Fits that run at a time, each in a process of its own.", min=1)]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Folder for cells, tables, figures and the page.")
]
DataHome = Annotated[Path | None, typer.Option("--data", help="Folder with the data (else $SYMRELU_DATA).")]


@reproduction.command("synthetic")
def reproduce_synthetic(
    seeds: Seeds = None,
    beside: Annotated[int | None, typer.Option(help="The same for the settings beside it.", min=1)] = None,
    quick: Quick = False,
    jobs: Jobs = 1,
    output: Output = None,
) -> None:
    """Seven momenta on the paper's eight synthetic problems, and its first figure (5 seeds, 2 beside)."""
    _refuse_with_quick(quick, seeds=seeds, beside=beside)
    experiment = Synthetic(seeds=seeds or 5, beside=beside or 2, quick=quick)
    _reproduce(experiment, _folder(output, "synthetic", quick), jobs)


@reproduction.command("real")
def reproduce_real(
    only: Annotated[list[str] | None, typer.Option(help="A data set (repeatable; all if none).")] = None,
    data: DataHome = None,
    seeds: Seeds = None,
    quick: Quick = False,
    jobs: Jobs = 1,
    output: Output = None,
) -> None:
    """Nine methods on the paper's six data sets and the digits, and its second figure (1 seed)."""
    _refuse_with_quick(quick, only=only, seeds=seeds)
    names = tuple(only) if only else QUICK_SETS if quick else tuple(REAL_RANK)
    cases, missing = _find(find_data_sets, data, names)
    _reproduce(Real(cases, missing, seeds=seeds or 1), _folder(output, "real", quick), jobs)


@reproduction.command("ablation")
def reproduce_ablation(
    data: DataHome = None,
    seeds: Seeds = None,
    quick: Quick = False,
    jobs: Jobs = 1,
    output: Output = None,
) -> None:
    """Step, start, alpha and safeguard changed one at a time from the paper's setting (3 seeds)."""
    _refuse_with_quick(quick, seeds=seeds)
    cases, missing = _find(find_data_sets, data, ABLATION_SETS)
    experiment = Ablation(cases, missing, seeds=1 if quick else seeds or 3, quick=quick)
    _reproduce(experiment, _folder(output, "ablation", quick), jobs)


@reproduction.command("signed")
def reproduce_signed(
    only: Annotated[list[str] | None, typer.Option(help="A set or graph (repeatable; all if none).")] = None,
    data: DataHome = None,
    seeds: Seeds = None,
    quick: Quick = False,
    jobs: Jobs = 1,
    output: Output = None,
) -> None:
    """The signed model beside the paper's, with errors on pairs that the fit has not seen (5 seeds)."""
    _refuse_with_quick(quick, only=only, seeds=seeds)
    names = tuple(only) if only else SIGNED_QUICK if quick else (*REAL_RANK, *SIGNED_GRAPHS)
    cases, missing = _find(find_signed_data, data, names, (*REAL_RANK, *SIGNED_GRAPHS))
    experiment = Signed(cases, missing, seeds=seeds or 5, quick=quick)
    _reproduce(experiment, _folder(output, "signed", quick), jobs)


def _refuse_with_quick(quick: bool, **options: Any) -> None:
    given = [f"--{name}" for name, value in options.items() if value]
    if quick and given:
        raise ValueError(f"--quick has its own choice of {', '.join(given)}: give one or the other.")


def _folder(output: Path | None, name: str, quick: bool) -> Path:
    """Return where the results go; a quick version does not replace a full one."""
    return output or Path("reproduction", name + ("-quick" if quick else ""))


def _find(
    find: Callable[..., tuple[Any, tuple[str, ...]]],
    data: Path | None,
    names: tuple[str, ...],
    known: tuple[str, ...] = tuple(REAL_RANK),
) -> tuple[Any, tuple[str, ...]]:
    """Return the data that were found, and say what was not."""
    for name in names:
        check_choice("--only", name, known)
    if data is not None and not data.is_dir():
        raise FileNotFoundError(f"The data directory {data} does not exist.")
    cases, missing = find(None if data is None else str(data), names)
    for sentence in missing:
        errors.print(_sentence("Not run.", sentence, style="yellow"), soft_wrap=True)
    return cases, missing


def _reproduce(experiment: Experiment, output: Path, jobs: int) -> None:
    """Run an experiment with a progress display, print its first table and say where the rest is."""
    _check_plots()
    command = shlex.join(["symrelu", *sys.argv[1:]])
    with _CellProgress() as monitor:
        try:
            tables, written = reproduce(experiment, output, jobs=jobs, monitor=monitor, command=command)
        except KeyboardInterrupt:
            errors.print("Interrupted. What had ended is stored: the same command goes on from there.")
            raise typer.Exit(_INTERRUPTED_CODE) from None
    _print_table(tables[0])
    console.print(_sentence(f"{monitor.summary()} Page:", str(written[0])), soft_wrap=True)
    if monitor.failures:
        raise typer.Exit(1)


class _CellProgress(Monitor):
    """A bar over the cells with the time left by their cost; without a terminal, a line now and then."""

    SECONDS_BETWEEN_LINES = 60.0
    SECONDS_BETWEEN_UPDATES = 0.5

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.fields[cells]}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left {task.fields[left]}"),
            TextColumn("{task.description}", markup=False),
        )
        # On stderr, as all that is said on the way: stdout has the results.
        self.bar = Progress(*columns, console=errors, transient=True)
        self.failures: list[str] = []
        self.done = self.total = 0
        self.cost = self.spent = 0.0
        self.last = ""

    def __enter__(self) -> _CellProgress:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def begin(self, cells: int, stored: int, cost: float) -> None:
        self.done, self.total, self.cost = stored, cells, cost
        self.began = self.shown = time.monotonic()
        self.task = self.bar.add_task("", total=cost, cells=self._count(), left="-")
        if stored:
            errors.print(f"{stored} of {cells} fits were stored by an earlier run.")

    def refused(self, refused: Refused) -> None:
        what = f"{refused.path}: {refused.reason}."
        errors.print(_sentence("Computed anew:", what, style="yellow"), soft_wrap=True)

    def advance(self, cost: float) -> None:
        self.spent += cost
        now = time.monotonic()
        terminal = errors.is_terminal
        if now - self.shown < (self.SECONDS_BETWEEN_UPDATES if terminal else self.SECONDS_BETWEEN_LINES):
            return
        self.shown = now
        left = timedelta(seconds=round((now - self.began) * (self.cost / self.spent - 1)))
        if terminal:
            self.bar.update(
                self.task, completed=self.spent, cells=self._count(), left=str(left), description=self.last
            )
        else:
            errors.print(f"{self._count()}, {self.spent / self.cost:.0%} of the work, left {left}")

    def ended(self, cell: Cell, result: CellResult | Failure) -> None:
        what = f"{cell.case.name}, rank {cell.rank}, {cell.method.name}, seed {cell.seed}"
        self.last = _printable(what)
        if isinstance(result, Failure):
            self.failures.append(what)
            errors.print(_sentence("Failed:", f"{what}: {result.message}", style="bold red"), soft_wrap=True)
        else:
            self.done += 1

    def _count(self) -> str:
        return f"{self.done}/{self.total} fits"

    def summary(self) -> str:
        """Say how far it came."""
        failed = f" {len(self.failures)} failed, see above." if self.failures else ""
        return f"{self.done} of {self.total} fits are stored.{failed}"


def _print_table(table: ResultTable) -> None:
    """Print a table in a frame if it fits, else in lines that the terminal may wrap: no digit is cut off."""
    shown = Table(title=table.title)
    shown.add_column(table.corner)
    for column in table.columns:
        shown.add_column(Text(column), justify="right")
    for label, row in table.rows:
        shown.add_row(Text(label), *(Text(table.text(entry)) for entry in row))
    unlimited = console.options.update(max_width=10_000)
    if console.measure(shown, options=unlimited).minimum <= console.width:
        console.print(shown)
        console.print(Text(table.legend), soft_wrap=True)
    else:
        console.print(Text(table.to_markdown()), soft_wrap=True)
