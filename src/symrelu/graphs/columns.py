"""Choose the columns of a table of edges: the two ends and the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from symrelu.files.checks import WrongKind
from symrelu.graphs.edges import USUAL_WEIGHT

AUTO = "auto"
_SHOWN = 5  # columns in a note
# Names of the two ends in the tables of common tools, the first match is taken. Compared without case.
_ENDS = (
    ("source", "target"),
    ("from", "to"),
    ("src", "dst"),
    ("node1", "node2"),
    ("node_1", "node_2"),
    ("first", "second"),
    ("follower", "followee"),
    ("citing", "cited"),
)


@dataclass(frozen=True)
class ColumnChoice:
    """The columns that the user chose, by name or by number counted from 1; None if there was no choice."""

    source: str | int | None = None
    target: str | int | None = None
    weight: str | int | None = AUTO

    def __post_init__(self) -> None:
        for role in ("source", "target", "weight"):
            column = getattr(self, role)
            if column is not None and (isinstance(column, bool) or not isinstance(column, (str, int))):
                raise TypeError(
                    f"{role} must be the name of a column or its number, counted from 1, got {column!r}."
                )

    @property
    def names(self) -> list[str]:
        """The columns chosen by a name that is not a number. Only a file with a header can have them."""
        chosen = (self.source, self.target, None if self.weight == AUTO else self.weight)
        return [column for column in chosen if isinstance(column, str) and not column.isdecimal()]


class Columns(NamedTuple):
    """The positions of the columns, counted from 0."""

    source: int
    target: int
    weight: int | None
    notes: tuple[str, ...]


def is_header(cells: Sequence[str]) -> bool:
    """Return whether a line has names that columns of edges usually have."""
    names = set(_folded(cells))
    return USUAL_WEIGHT in names or any(set(pair) <= names for pair in _ENDS)


def _folded(names: Sequence[str]) -> list[str]:
    """Return names in the form in which they are compared. The first may begin with the # of a comment."""
    return [name.strip().lstrip("#%").casefold() for name in names]


def choose_columns(
    path: object, choice: ColumnChoice, names: Sequence[str] | None, width: int, numeric: Sequence[bool]
) -> Columns:
    """Return the columns to read.

    Parameters
    ----------
    path : path-like
        File, for messages.
    choice : ColumnChoice
    names : sequence of str, or None
        The header; None if there is none.
    width : int
        Number of columns.
    numeric : sequence of bool
        For each column, whether the first lines have numbers there.

    Returns
    -------
    columns : Columns
    """
    if width < 2:
        raise WrongKind(
            f"{path} must have a column for each of the two ends of an edge, got {width} column. "
            "Pass delimiter= if the columns are separated by another character."
        )
    usual = _usual_ends(names)
    given = [_position(path, role, getattr(choice, role), names, width) for role in ("source", "target")]
    weight = _weight_column(path, choice, names, width, numeric, {usual[0], usual[1], *given})
    ends = _fill_ends(given, usual, weight, width)
    if ends[0] == ends[1]:
        raise WrongKind(f"{path}: source and target must be different columns, got column {ends[0] + 1} twice.")
    if weight in ends:
        raise WrongKind(f"{path}: the weights must have their own column, got column {ends.index(weight) + 1}.")
    return Columns(ends[0], ends[1], weight, _note_unused(choice, names, width, {*ends, weight}))


def type_column(names: Sequence[str] | None, columns: Columns) -> int | None:
    """Return the column "Type" of Gephi's tables, which says whether an edge is directed."""
    folded = _folded(names or ())
    found = folded.index("type") if "type" in folded else None
    return None if found in columns[:3] else found


def declared_direction(types: set[str]) -> tuple[bool, tuple[str, ...]]:
    """Return whether all edges are declared directed, and a note if only some are."""
    folded = {name.strip().casefold() for name in types}
    if not {"directed", "undirected"} <= folded:
        return folded == {"directed"}, ()
    return False, ("some edges are declared directed, and all were read as undirected",)


def _usual_ends(names: Sequence[str] | None) -> tuple[int | None, int | None]:
    folded = _folded(names or ())
    for pair in _ENDS:
        if set(pair) <= set(folded):
            return folded.index(pair[0]), folded.index(pair[1])
    return None, None


def _fill_ends(
    given: list[int | None], usual: tuple[int | None, int | None], weight: int | None, width: int
) -> list[int]:
    """Return both ends: those that were chosen, those with the usual names, or the first free columns."""
    ends = [chosen if chosen is not None else by_name for chosen, by_name in zip(given, usual, strict=True)]
    if given != [None, None] and None not in ends and ends[0] == ends[1]:
        # One end was chosen, and it has the usual name of the other.
        ends = given
    for k in range(2):
        if ends[k] is None:
            ends[k] = next(column for column in range(width + 1) if column not in (*ends, weight))
    return [end for end in ends if end is not None]


def _weight_column(
    path: object,
    choice: ColumnChoice,
    names: Sequence[str] | None,
    width: int,
    numeric: Sequence[bool],
    taken: set[int | None],
) -> int | None:
    if choice.weight != AUTO:
        return _position(path, "weight", choice.weight, names, width)
    if names is not None:
        folded = _folded(names)
        if folded.count(USUAL_WEIGHT) > 1:
            same = [name for name, as_usual in zip(names, folded, strict=True) if as_usual == USUAL_WEIGHT]
            raise WrongKind(f"{path} has several columns of weights: {same}. Choose one: weight=...")
        return folded.index(USUAL_WEIGHT) if USUAL_WEIGHT in folded else None
    return 2 if width > 2 and numeric[2] and 2 not in taken else None


def _position(
    path: object, role: str, column: str | int | None, names: Sequence[str] | None, width: int
) -> int | None:
    """Return the position of a column given by its name or its number, counted from 1."""
    if column is None:
        return None
    if names is not None and column in names:
        if list(names).count(str(column)) > 1:
            raise WrongKind(f"{path} has several columns {column!r}. Pass the number of the column: {role}=...")
        return list(names).index(str(column))
    if isinstance(column, int) or column.isdecimal():
        if 1 <= int(column) <= width:
            return int(column) - 1
        raise WrongKind(f"{path} has {width} columns, counted from 1, but {role} is {column}.")
    there = f"the columns {list(names)}" if names is not None else f"{width} columns without a header"
    raise WrongKind(f"{path} must have a column {column!r}, got {there}. Pass the right one: {role}=...")


def _note_unused(
    choice: ColumnChoice, names: Sequence[str] | None, width: int, used: set[int | None]
) -> tuple[str, ...]:
    """Return notes if the weights were guessed, or if there may be a column of them."""
    if choice.weight != AUTO or (None not in used and names is not None):
        return ()
    unused = [str(column + 1) if names is None else repr(names[column]) for column in range(width)]
    unused = [name for column, name in enumerate(unused) if column not in used]
    shown = ", ".join(unused[:_SHOWN]) + (", ..." if len(unused) > _SHOWN else "")
    which = f"column{'s' if len(unused) > 1 else ''} {shown} {'were' if len(unused) > 1 else 'was'}"
    if None not in used:
        guessed = ("column 3 was read as weights: pass weight= to choose another column, or weight=None",)
        return (*guessed, f"{which} not read") if unused else guessed
    return (
        (f"{which} not read, and every edge has weight 1: pass weight= to choose a column",) if unused else ()
    )


def refuse_index_column(
    path: object, choice: ColumnChoice, names: Sequence[str] | None, first_column: Sequence[str]
) -> None:
    """Raise if the first column names the rows of a matrix, or numbers the rows of a table."""
    if names is None or len(names) < 3 or _ends_are_clear(choice, names):
        return
    inner = list(names[1:])
    of_matrix = len(names) > 3 and inner[: len(first_column)] == list(first_column[: len(inner)])
    if of_matrix or not names[0].strip():
        found = (
            "the header has the names of the first column" if of_matrix else "the header begins with no name"
        )
        raise _looks_like_a_matrix(path, found)


def refuse_square(
    path: object, choice: ColumnChoice, names: Sequence[str] | None, numeric: Sequence[bool], count: int
) -> None:
    """Raise if a table has as many rows as columns and holds numbers only, with or without a first column."""
    width = len(numeric)
    if width <= 3 or _ends_are_clear(choice, names) or not all(numeric[1:]):
        return
    # A header of numbers looks like one more row.
    whole = (width,) if names is not None else (width, width + 1)
    if (numeric[0] and count in whole) or count == width - 1:
        raise _looks_like_a_matrix(path, f"it has {count} rows of {width} columns with numbers")


def _ends_are_clear(choice: ColumnChoice, names: Sequence[str] | None) -> bool:
    """Return whether the columns of the ends were chosen, or have the usual names."""
    return None not in _usual_ends(names) or (choice.source is not None and choice.target is not None)


def _looks_like_a_matrix(path: object, found: str) -> WrongKind:
    return WrongKind(
        f"{path} must be a list of edges, but it looks like a matrix: {found}. Save a matrix as .npy, .npz or "
        ".mtx. If this is a list of edges, pass source= and target=."
    )
