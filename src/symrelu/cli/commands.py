"""The commands by name, each imported when it is called, so that ``symrelu --help`` loads no numerical library.

A command is a module of this package with a function of the same name, or with a Typer ``app`` of subcommands.
Its ``EXAMPLES`` end its help text. The top-level help is made from the table here.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

_TASKS, _MODELS, _PAPER = "Tasks", "Models", "The paper"


class Entry(NamedTuple):
    """A line of the top-level help: the panel it is in, and the first paragraph of the command's docstring."""

    panel: str
    text: str


COMMANDS = {
    "embed": Entry(_TASKS, "Embed the nodes of the graph in FILE: one vector for each node."),
    "cluster": Entry(_TASKS, "Cluster the nodes of the graph in FILE."),
    "links": Entry(_TASKS, "Predict missing links of the graph in FILE."),
    "neighbors": Entry(_TASKS, "Find vectors whose nearest neighbors are those of the graph in FILE."),
    "report": Entry(
        _TASKS,
        "Show the graph in FILE on one HTML page: a map, clusters, neighbors, and how well it is fitted.",
    ),
    "rank": Entry(_MODELS, "Choose the rank of the matrix in FILE by held-out pairs."),
    "transform": Entry(_MODELS, "Embed new items with a model that was saved before."),
    "evaluate": Entry(_MODELS, "Measure how well held-out links of the graph in FILE are predicted."),
    "fit": Entry(_MODELS, "Decompose the matrix in FILE and save the Solution."),
    "resume": Entry(_MODELS, "Resume the fit in a checkpoint."),
    "blocks": Entry(_MODELS, "Convert FILE to a folder of blocks, for fits on a cluster."),
    "reproduce": Entry(_PAPER, "Run the paper's experiments: tables, figures and a page."),
    "demo": Entry(_PAPER, "Fit and cluster the graph of scikit-learn's digits, and draw a figure."),
}


# Options that other programs have by another name. Of each line, the names that a command has are suggested.
_SYNONYMS = (
    ("--init", "--start", "--initial"),
    ("--max-iter", "--iterations", "--max-iterations", "--steps", "--max-steps", "--epochs", "--n-iter"),
    ("--max-time", "--time", "--time-limit", "--timeout", "--seconds"),
    ("--rank", "--components", "--n-components", "--columns", "--dim", "--dimensions"),
    ("--clusters", "--n-clusters", "--communities", "--groups"),
    ("--seed", "--random-state", "--random-seed"),
    ("--jobs", "--n-jobs", "--processes"),
    ("--n-init", "--fits", "--restarts", "--runs"),
    ("--output", "--out", "--save"),
    ("--alpha", "--shrinkage", "--penalty", "--regularization"),
)

# Options that only some commands have, which the others name.
_ELSEWHERE = {"--dry-run": ("fit", "embed", "links", "cluster")}


class _PlainFlags:
    """Help that names no type for flags, which take no value: Typer 0.29 shows ``--json <bool>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class PlainCommand(_PlainFlags, TyperCommand):
    """A command whose flags name no type, and whose error on an unknown option knows its other names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # from click, or from the copy of it that is part of Typer
            unknown: Any = error
            if hasattr(unknown, "possibilities"):
                own = {flag for parameter in self.get_params(ctx) for flag in parameter.opts}
                unknown.possibilities = _meant(unknown.option_name, own) or unknown.possibilities
                if unknown.option_name in _ELSEWHERE:
                    unknown.possibilities = []
                    unknown.message += _owners(_ELSEWHERE[unknown.option_name])
            raise


def _meant(name: str, flags: Collection[str]) -> list[str]:
    """Return the options of a command that stand for one that it does not have."""
    return [flag for names in _SYNONYMS if name in names for flag in names if flag in flags]


def _owners(commands: Sequence[str]) -> str:
    """Return what to say of an option that only these commands have."""
    return f". It is an option of {', '.join(commands[:-1])} and {commands[-1]}."


class PlainGroup(_PlainFlags, TyperGroup):
    """A group whose flags name no type."""


class LazyGroup(PlainGroup):
    """A group whose commands are stand-ins with a help text, replaced by the real ones when they are called.

    Help and completion of names read the stand-ins. Both a call and the completion of a command's own options
    go through ``resolve_command``.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        # The base class also makes suggestions for misspelt names.
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and load_command(found.name or ""), rest


def load_command(name: str) -> Any:
    """Import a command and return it with its options."""
    module = import_module(f"symrelu.cli.{name}")
    if hasattr(module, "app"):
        return typer.main.get_command(module.app)
    # A Typer of one command becomes that command, not a group.
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    command = getattr(module, name)
    text = unwrapped(inspect.getdoc(command) or "")
    app.command(name, cls=PlainCommand, help=text, epilog=examples_text(module.EXAMPLES))(command)
    return typer.main.get_command(app)


def unwrapped(text: str) -> str:
    """Return a docstring with each paragraph on one line: some releases of Typer keep the breaks."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def examples_text(examples: tuple[str, ...]) -> str:
    """Return examples as the end of a help text."""
    # Separate paragraphs, because some releases of Typer join the lines of one.
    return "\n\n".join(["Examples:", *examples])


def add_stand_ins(app: typer.Typer) -> None:
    """Add a command without options for each line of the table."""
    for name, (panel, text) in COMMANDS.items():
        app.command(name, help=text, rich_help_panel=panel)(_stand_in)


def _stand_in() -> None:
    """Take the place of a command until it is called."""
