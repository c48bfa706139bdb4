"""``symrelu reproduce``: one command for each registered experiment."""

from __future__ import annotations

import inspect
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from symrelu.cli.commands import PlainCommand, PlainGroup, examples_text, unwrapped
from symrelu.cli.monitor import CellProgress, shown_table
from symrelu.cli.options import flag_of, with_options
from symrelu.cli.screen import INTERRUPTED_CODE, check_plots, errors, message_text, report
from symrelu.experiments import EXPERIMENTS, Experiment, reproduce
from symrelu.experiments.registry import MakeExperiment, options_of

EXAMPLES = (
    "symrelu reproduce synthetic --quick",
    "symrelu reproduce real --seeds 1 --jobs 2 --output digits --json",
)

app = typer.Typer(
    cls=PlainGroup,
    help="Run the paper's experiments: tables, figures and a page.\n\nAn interrupted run can be resumed.",
    epilog=examples_text(EXAMPLES),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Jobs = Annotated[int, typer.Option(help="Number of fits that run in parallel, each in its own process.", min=1)]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Folder for cells, tables, figures and the page.")
]


def experiment_options(make: MakeExperiment) -> list[inspect.Parameter]:
    """Return the options for the parameters of an experiment."""
    parameters = inspect.signature(make).parameters
    options = []
    for name, (kind, declared) in options_of(make).items():
        option = typer.Option(*declared.flags, help=declared.help, min=declared.minimum)
        options.append(
            parameters[name].replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option])
        )
    return options


def examples_of(name: str) -> tuple[str, ...]:
    """Return the examples in the help text of an experiment."""
    return (f"symrelu reproduce {name}", f"symrelu reproduce {name} --jobs 4 --output {name}")


def add_command(app: typer.Typer, name: str, make: MakeExperiment) -> None:
    """Add the command that runs an experiment; its own options come before the common ones."""

    text = unwrapped(inspect.getdoc(make) or "")

    @app.command(name, cls=PlainCommand, help=text, epilog=examples_text(examples_of(name)))
    @with_options(experiment_options(make))
    def command(jobs: Jobs = 1, output: Output = None, **options: Any) -> None:
        quick = options.get("quick", False)
        if quick:
            _refuse_with_quick(make, options)
        experiment = make(**options)
        for reason in experiment.missing:
            errors.print(message_text("Not run.", reason, style="yellow"), soft_wrap=True)
        _reproduce(name, experiment, output or _folder(name, quick), jobs)


def _refuse_with_quick(make: MakeExperiment, options: dict[str, Any]) -> None:
    parameters = inspect.signature(make).parameters
    given = [
        flag_of(name)
        for name, (_, option) in options_of(make).items()
        if option.chosen_by_quick and options[name] and options[name] != parameters[name].default
    ]
    if given:
        raise ValueError(f"--quick sets {', '.join(given)} itself: pass one or the other.")


def _folder(name: str, quick: bool) -> Path:
    """Return the default output folder; a quick run does not overwrite a full one."""
    return Path("reproduction", name + ("-quick" if quick else ""))


def _reproduce(name: str, experiment: Experiment, output: Path, jobs: int) -> None:
    """Run an experiment with a progress bar, print its first table and the path of the page."""
    check_plots()
    # The page shows the command, so that the run can be repeated.
    command = shlex.join(["symrelu", *sys.argv[1:]])
    with CellProgress() as monitor:
        try:
            tables, written = reproduce(experiment, output, jobs=jobs, monitor=monitor, command=command)
        except KeyboardInterrupt:
            errors.print("Interrupted. Completed fits are stored: run the same command again to resume.")
            raise typer.Exit(INTERRUPTED_CODE) from None
    result = {
        "command": f"reproduce {name}",
        "status": "failed" if monitor.failures else "done",
        "fits": monitor.total,
        "stored": monitor.done,
        "failed": monitor.failures,
        "missing": list(experiment.missing),
        "page": written[0],
        "written": list(written),
    }
    page = message_text(f"{monitor.summary()} Page:", str(written[0]))
    report(result, *shown_table(tables[0]), page)
    if monitor.failures:
        raise typer.Exit(1)


for _name, _make in EXPERIMENTS.items():
    add_command(app, _name, _make)
