"""Choose the columns of a table of edges: the two ends and the weights."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from symrelu.files.checks import WrongKind
from symrelu.graphs.cells import Facts
from symrelu.graphs.column_names import (
    clear_ends,
    ends_by_words,
    folded,
    is_index,
    is_no_weight,
    usual_ends,
    weight_columns,
)
from symrelu.graphs.edges import USUAL_WEIGHT
from symrelu.graphs.remarks import Doubt

AUTO = "auto"
_TYPE = "type"  # column of Gephi's tables
_SHOWN = 5  # columns in a remark
_LEAST_ROWS = 5  # of numbers that may be a count of the rows or the first ends of edges


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


def is_header(cells: Sequence[str], rest: Sequence[Facts], seen: set[str]) -> bool:
    """Return whether a line has names that columns of edges usually have.

    Parameters
    ----------
    cells : sequence of str
        The line.
    rest : sequence of Facts
        What the lines after it have in each column.
    seen : set of str
        All cells of the lines after it: if both names of the ends are among them, they are names of nodes.

    Returns
    -------
    found : bool
    """
    ends = clear_ends(cells)
    if ends is None:
        ends = ends_by_words(cells, alike=True)
    if ends is not None and not {cells[k] for k in ends} <= seen:
        return True
    if any(is_index(name) and facts.distinct for name, facts in zip(cells, rest, strict=True)):
        return True
    numeric = [facts.numeric for facts in rest]
    if not any(numeric):
        return not seen and USUAL_WEIGHT in folded(cells)  # nothing follows
    return any(numeric[k] for k in weight_columns(cells, numeric))


def choose_columns(
    path: object, choice: ColumnChoice, names: Sequence[str] | None, facts: Sequence[Facts]
) -> Columns:
    """Return the columns to read.

    Parameters
    ----------
    path : path-like
        File, for messages.
    choice : ColumnChoice
    names : sequence of str, or None
        The header; None if there is none.
    facts : sequence of Facts
        What the first lines have in each column.

    Returns
    -------
    columns : Columns
    """
    width = len(facts)
    if width < 2:
        raise WrongKind(
            f"{path} must have a column for each of the two ends of an edge, got {width} column. "
            "Pass delimiter= if the columns are separated by another character."
        )
    given = [_position(path, role, getattr(choice, role), names, width) for role in ("source", "target")]
    dates = {k for k in range(width) if facts[k].dates}
    usual = _usual_ends(path, choice, names, width)
    usual = (None, None) if dates.intersection(usual) else usual
    indexes = set() if usual != (None, None) else _index_columns(names, facts)
    weight = _weight_column(path, choice, names, facts, {usual[0], usual[1], *given}, indexes | dates)
    ends = _fill_ends(given, usual, {weight, *indexes, *dates}, width)
    _refuse_dates(path, given, ends, names, dates)
    if ends[0] == ends[1]:
        raise WrongKind(f"{path}: source and target must be different columns, got column {ends[0] + 1} twice.")
    if weight in ends:
        raise WrongKind(f"{path}: the weights must have their own column, got column {ends.index(weight) + 1}.")
    known = None not in given or (None not in usual and set(ends) == set(usual))
    remarks = _remarks(choice, names, facts, (*ends, weight), indexes, known)
    return Columns(ends[0], ends[1], weight, remarks)


def _refuse_dates(
    path: object,
    given: Sequence[int | None],
    ends: Sequence[int],
    names: Sequence[str] | None,
    dates: set[int],
) -> None:
    """Raise if a column of dates would be an end that nobody chose."""
    wrong = [end for end, chosen in zip(ends, given, strict=True) if chosen is None and end in dates]
    if wrong:
        raise WrongKind(
            f"{path} must have a column of names for each of the two ends of an edge, but "
            f"{_listed(names, wrong)} holds dates. If dates are nodes, pass source= and target=."
        )


def type_column(names: Sequence[str] | None, columns: Columns) -> int | None:
    """Return the column "Type" of Gephi's tables, which says whether an edge is directed."""
    small = folded(names or ())
    found = small.index(_TYPE) if _TYPE in small else None
    return None if found in columns[:3] else found


def declared_direction(types: set[str]) -> tuple[bool, tuple[str, ...]]:
    """Return whether all edges are declared directed, and a doubt if only some are."""
    declared = {name.strip().casefold() for name in types}
    if not {"directed", "undirected"} <= declared:
        return declared == {"directed"}, ()
    return False, (Doubt("some edges are declared directed, and all were read as undirected"),)


def _usual_ends(
    path: object, choice: ColumnChoice, names: Sequence[str] | None, width: int
) -> tuple[int | None, int | None]:
    """Return the columns with usual names of the ends. Names such as x and y count if nothing contradicts."""
    if names is None:
        return None, None
    ends = clear_ends(names)
    if ends is None and choice.source is None and choice.target is None:
        ends = usual_ends(names)
        chosen = None if choice.weight == AUTO else _position(path, "weight", choice.weight, names, width)
        ends = None if ends is not None and chosen in ends else ends
    return ends or (None, None)


def _index_columns(names: Sequence[str] | None, facts: Sequence[Facts]) -> set[int]:
    """Return the columns that number the rows, by their names or because they count beside two of text."""
    if len(facts) < 3:
        return set()
    text = [not one.numeric for one in facts[1:]]
    found = {0} if facts[0].counts and text[0] and text[1] else set()
    if names is not None:
        found |= {k for k, name in enumerate(names) if is_index(name) and facts[k].distinct}
    return found if len(facts) - len(found) >= 2 else set()


def _fill_ends(
    given: list[int | None], usual: tuple[int | None, int | None], taken: set[int | None], width: int
) -> list[int]:
    """Return both ends: those that were chosen, those with the usual names, or the first free columns."""
    ends = [chosen if chosen is not None else by_name for chosen, by_name in zip(given, usual, strict=True)]
    if given != [None, None] and None not in ends and ends[0] == ends[1]:
        # One end was chosen, and it has the usual name of the other.
        ends = given
    for k in range(2):
        if ends[k] is None:
            # Columns that are taken come last.
            free = sorted(range(width), key=lambda column: (column in taken, column))
            ends[k] = next(column for column in free if column not in ends)
    return [end for end in ends if end is not None]


def _weight_column(
    path: object,
    choice: ColumnChoice,
    names: Sequence[str] | None,
    facts: Sequence[Facts],
    taken: set[int | None],
    skipped: set[int],
) -> int | None:
    if choice.weight != AUTO:
        return _position(path, "weight", choice.weight, names, len(facts))
    if names is None:
        third = next(iter([k for k in range(len(facts)) if k not in skipped][2:]), None)
        read = third is not None and facts[third].numeric and not facts[third].times
        return third if read and third not in taken else None
    found = [k for k in weight_columns(names, [one.numeric for one in facts]) if k not in taken]
    if len(found) > 1:
        same = [names[k] for k in found]
        raise WrongKind(f"{path} has several columns of weights: {same}. Choose one: weight=...")
    return found[0] if found else None


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
    close = difflib.get_close_matches(column.casefold(), [name.casefold() for name in names or ()], 1)
    meant = next((name for name in names or () if [name.casefold()] == close), None)
    right = f"{role}={meant!r}, perhaps" if meant is not None else f"{role}=..."
    raise WrongKind(f"{path} must have a column {column!r}, got {there}. Pass the right one: {right}")


def _remarks(
    choice: ColumnChoice,
    names: Sequence[str] | None,
    facts: Sequence[Facts],
    used: tuple[int | None, ...],
    indexes: set[int],
    known: bool,
) -> tuple[str, ...]:
    """Return a remark on columns that were guessed or not read: a doubt if it may be a wrong guess."""
    small = folded(names or ())
    unread = [k for k in range(len(facts)) if k not in used and (names is None or small[k] != _TYPE)]
    other_ends = not known and (_has_other_ends(facts, used, unread) or bool(indexes.intersection(unread)))
    if other_ends or _has_other_weights(choice, names, facts, used[2], unread):
        return (Doubt(_sentence(names, used, unread, indexes)),)
    if choice.weight != AUTO or (names is not None and used[2] is not None):
        return ()
    if used[2] is not None:
        return (
            f"column {used[2] + 1} was read as weights: pass weight= to choose another column, or weight=None",
        )
    verb = "was" if len(unread) == 1 else "were"
    return (f"{_listed(names, unread)} {verb} not read, and every edge has weight 1",) if unread else ()


def _has_other_ends(facts: Sequence[Facts], used: tuple[int | None, ...], unread: list[int]) -> bool:
    """Return whether other columns may be the ends: other text, or the two after one that counts the rows."""
    if any(not facts[k].numeric and not facts[k].dates for k in unread):
        return True
    third = facts[2] if used == (0, 1, 2) else Facts()
    # 1,5,9 may be the edge 5-9 in line 1.
    counted = facts[0].counts and facts[1].whole and third.whole
    return counted and third.rows >= _LEAST_ROWS and third.different > 1


def _has_other_weights(
    choice: ColumnChoice,
    names: Sequence[str] | None,
    facts: Sequence[Facts],
    weight: int | None,
    unread: list[int],
) -> bool:
    """Return whether a column that was not read may hold the weights."""
    if choice.weight != AUTO or (weight is not None and names is not None):
        return False
    may_be = [k for k in unread if facts[k].numeric or (facts[k].like_numbers and not facts[k].dates)]
    if names is None:
        return bool(may_be)
    return any(not is_no_weight(names[k]) and not (is_index(names[k]) and facts[k].distinct) for k in may_be)


def _sentence(
    names: Sequence[str] | None, used: tuple[int | None, ...], unread: list[int], indexes: set[int]
) -> str:
    ends = _listed(names, [k for k in used[:2] if k is not None])
    weights = "every edge has weight 1" if used[2] is None else f"{_listed(names, [used[2]])} as the weights"
    left_out = f", and {_listed(names, unread)} not at all" if unread else ""
    numbers = sorted(indexes.intersection(unread))
    counts = f" ({_listed(names, numbers)} numbers the lines)" if numbers else ""
    return (
        f"{ends} were read as the two ends, {weights}{left_out}{counts}. Pass source= and target= for "
        "other ends, weight= for other weights, or weight=None for none"
    )


def _listed(names: Sequence[str] | None, columns: Sequence[int]) -> str:
    """Return columns by their names, or by numbers counted from 1."""
    called = [str(k + 1) if names is None else repr(names[k]) for k in columns]
    shown = ", ".join(called[:_SHOWN]) + (", ..." if len(called) > _SHOWN else "")
    return f"column{'s' if len(called) > 1 else ''} {shown}"


def refuse_index_column(
    path: object,
    choice: ColumnChoice,
    names: Sequence[str] | None,
    first_column: Sequence[str],
    facts: Sequence[Facts],
) -> None:
    """Raise if the first column names the rows of a matrix; one that numbers the rows of a list is none."""
    if names is None or len(names) < 3 or _ends_are_clear(choice, names):
        return
    inner = list(names[1:])
    of_matrix = len(names) > 3 and inner[: len(first_column)] == list(first_column[: len(inner)])
    # The rows of a matrix hold numbers, and it has no more rows than columns.
    may_be = len(first_column) <= len(inner) and all(one.numeric for one in facts[1:])
    if of_matrix or (may_be and not names[0].strip()):
        found = (
            "the header has the names of the first column" if of_matrix else "the header begins with no name"
        )
        raise _looks_like_a_matrix(path, found)


def refuse_square(
    path: object, choice: ColumnChoice, names: Sequence[str] | None, facts: Sequence[Facts], count: int
) -> None:
    """Raise if a table has as many rows as columns and holds numbers only, with or without a first column."""
    width, numeric = len(facts), [one.numeric for one in facts]
    if width <= 3 or _ends_are_clear(choice, names) or not all(numeric[1:]):
        return
    # A header of numbers looks like one more row.
    whole = (width,) if names is not None else (width, width + 1)
    if (numeric[0] and count in whole) or count == width - 1:
        raise _looks_like_a_matrix(path, f"it has {count} rows of {width} columns with numbers")


def _ends_are_clear(choice: ColumnChoice, names: Sequence[str] | None) -> bool:
    """Return whether the columns of the ends were chosen, or have names that only they have."""
    by_name = names is not None and clear_ends(names) is not None
    return by_name or (choice.source is not None and choice.target is not None)


def _looks_like_a_matrix(path: object, found: str) -> WrongKind:
    return WrongKind(
        f"{path} must be a list of edges, but it looks like a matrix: {found}. Save a matrix as .npy, .npz or "
        ".mtx. If this is a list of edges, pass source= and target=."
    )
