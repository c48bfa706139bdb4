"""Input of the commands: options that say how a graph file is to be read, and reading it."""

from __future__ import annotations

import inspect
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from symrelu.cli.options import flag_of, option
from symrelu.cli.screen import has_read, note
from symrelu.files import read_matrix
from symrelu.files.block_folder import BlockFolder, is_block_folder
from symrelu.files.checks import WrongKind
from symrelu.graphs import GraphFileWarning, Labelled, read_graph_file

_PANEL = "How FILE is read"
# Matrices that are not looked at here if a mask goes with them.
_CHECKED_BY_THE_FIT = (".npz", ".npy", ".mtx", ".mtx.gz")

GraphArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Graph or similarity matrix: edges as .csv, .tsv or .parquet; .mtx, .npz, .npy, .graphml, .gml, "
        ".h5ad or .mat. Text files may be compressed (.gz).",
    ),
]


MaskFile = Annotated[
    Path | None, typer.Option("--mask", help="Boolean matrix file, true where M is unobserved.")
]

# Entry of a saved model -> what it is, and the command that takes it. The first one that is found decides.
_MODELS = {
    "links.fits": ("a model of links", "symrelu links {file}"),
    "neighbor_vectors": ("a model of neighbors", "symrelu neighbors {file}"),
    "solution": ("a saved fit", "symrelu transform {file} NEW"),
}


class _Reading(NamedTuple):
    """An option for reading: its type, default, help text, and the words it accepts, if only some."""

    kind: Any
    default: Any
    text: str
    words: Mapping[str, Any] | None = None


def _words(*words: str) -> dict[str, Any]:
    return {word: word for word in words}


_OPTIONS = {
    "source": _Reading(
        int | str,
        None,
        "Column of the first end of each edge, by name or by number from 1. Default: a usual name such as "
        "'source' or 'from', or the first column that does not number the lines.",
    ),
    "target": _Reading(
        int | str, None, "Column of the second end of each edge. Default: 'target', 'to', or the second column."
    ),
    "weight": _Reading(
        int | str,
        "auto",
        "Column or edge attribute of the weights; 'auto' takes 'weight' or another usual name such as 'score', "
        "or column 3 if there is no header, and 'none' gives all edges the weight 1.",
    ),
    "delimiter": _Reading(
        str, None, "Character between the columns of a text file. Default: found in the file."
    ),
    "header": _Reading(
        str,
        "auto",
        "Whether the first line of a text file has the names of the columns: 'yes', 'no' or 'auto'.",
        {"auto": "auto", "yes": True, "no": False},
    ),
    "decimal": _Reading(
        str,
        "auto",
        "Decimal mark of the weights in a text file: '.', ',' or 'auto', which finds a comma if it is clear.",
        _words("auto", ".", ","),
    ),
    "duplicates": _Reading(
        str,
        "error",
        "If an edge is given several times: 'error', 'sum' or 'max'.",
        _words("error", "sum", "max"),
    ),
    "self_loops": _Reading(
        str, "keep", "What to do with self loops: 'keep', 'drop' or 'error'.", _words("keep", "drop", "error")
    ),
    "directed": _Reading(
        str,
        "error",
        "If the two directions of a pair differ: 'error', 'max', 'sum' or 'mean'.",
        _words("error", "max", "sum", "mean"),
    ),
    "key": _Reading(str, None, "Entry of obsp in an .h5ad file, or variable in a .mat file."),
}


def graph_options() -> list[inspect.Parameter]:
    """Return the options that say how a graph file is read."""
    return [
        option(
            name,
            one.kind,
            one.default,
            one.text,
            rich_help_panel=_PANEL,
            autocompletion=None if one.words is None else _completion(one.words),
        )
        for name, one in _OPTIONS.items()
    ]


def _completion(words: Iterable[str]) -> Callable[[], list[str]]:
    def complete() -> list[str]:
        return list(words)

    return complete


def reading_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert those options of a command that :func:`graph_options` made to keywords of ``read_graph``."""
    keywords = {}
    for name, one in _OPTIONS.items():
        value = given.get(name, one.default)
        if one.words is not None:
            if value not in one.words:
                raise ValueError(f"{flag_of(name)} must be one of {', '.join(one.words)}, got {value!r}.")
            value = one.words[value]
        keywords[name] = value
    # Not among the words above, because the name of a column is allowed too.
    if keywords["weight"] == "none":
        keywords["weight"] = None
    return keywords


def read_input(
    file: Path,
    options: Mapping[str, Any],
    *,
    masked: bool = False,
    again: bool = False,
    folders: bool = False,
) -> Labelled:
    """Read a graph file as the options of a command say, and print what should be known about it.

    Parameters
    ----------
    file : Path
    options : mapping
        The options of the command; others than those of :func:`graph_options` are ignored.
    masked : bool, default=False
        Whether a mask goes with the matrix. Entries that it hides may hold anything, so that reading must not
        refuse them; the fit checks the others.
    again : bool, default=False
        Whether an earlier command has read the same file in the same way. Nothing is printed then: notes and
        warnings propose options, and this command has none for reading.
    folders : bool, default=False
        Whether the command can fit a block folder.

    Returns
    -------
    labelled : Labelled
        The matrix, and the names of its rows if there are any.
    """
    keywords = reading_options(options)
    has_read(file)
    if is_block_folder(file):
        return _read_folder(file, options, folders)
    with _naming_models(file), warnings.catch_warnings():
        if again:
            warnings.simplefilter("ignore", GraphFileWarning)
        # With other options the user asks for a change of the matrix, which only read_graph_file makes.
        if masked and keywords == reading_options({}) and file.name.lower().endswith(_CHECKED_BY_THE_FIT):
            return Labelled(read_matrix(file), None)
        found = read_graph_file(file, **keywords)
    for text in () if again else found.notes:
        note(text)
    return found.labelled


def _read_folder(file: Path, options: Mapping[str, Any], folders: bool) -> Labelled:
    folder = BlockFolder.open(file)
    if not folders:
        raise ValueError(
            f"{file} must be a file, got a block folder, which only 'symrelu fit' and 'symrelu embed' can fit. "
            "Pass the file of the graph."
        )
    if reading_options(options) != reading_options({}):
        raise ValueError(f"{file} is a block folder: options on how a file is read have no meaning for it.")
    if options["client"] is None and options["workers"] is None:
        raise ValueError(
            f"{file} is a block folder, which is fitted on a cluster. Pass --workers 4 to start 4 workers on "
            "this machine, or --scheduler ADDRESS."
        )
    return Labelled(folder, folder.names())


def read_mask(file: Path | None) -> Any | None:
    """Read the file of ``--mask``, if there is one; zeros and ones are converted to booleans.

    MatrixMarket has no booleans.
    """
    if file is None:
        return None
    with _naming_models(file):
        matrix = read_matrix(file)
    values = getattr(matrix, "data", matrix) if not isinstance(matrix, np.ndarray) else matrix
    return matrix.astype(bool) if np.isin(values, (0, 1)).all() else matrix


@contextmanager
def _naming_models(file: Path) -> Iterator[None]:
    """If a file that is no matrix is a saved model, name the command that takes it in the error."""
    try:
        yield
    except WrongKind as error:
        from symrelu.cli.queries import has_entry  # it loads the estimators

        for entry, (what, command) in _MODELS.items():
            if has_entry(file, entry):
                raise ValueError(
                    f"{file} must be a graph or a matrix, but it is {what}. Pass it to "
                    f"'{command.format(file=shlex.quote(str(file)))}'."
                ) from error
        raise
