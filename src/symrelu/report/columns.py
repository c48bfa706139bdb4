"""The columns of the table of nodes: what kind each is, and its values for JSON."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from symrelu.report.encoding import base64_text, varints, zigzag

# Up to so many different values, text is a category by which nodes can be coloured.
MOST_CATEGORIES = 256
_FEW_INTEGERS = 12  # different ones, which are rather classes than amounts
_LARGEST_INTEGER = 2**52 - 1  # by zigzag and plus 1, it is the largest that JavaScript has exactly
_SHOWN_DIGITS = 7  # of numbers that are not whole, as float32 has
_MISSING_TYPES = {"NAType", "NaTType"}  # of pandas, which need not be installed


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Attributes
    ----------
    name : str
    kind : {"category", "integer", "number", "text"}
    values : list
        Texts of categories, integers, floats or texts; None where a value is missing.
    """

    name: str
    kind: str
    values: list[Any]

    @classmethod
    def of(cls, name: str, values: Iterable[Any], *, category: bool = False) -> Column:
        """Return a column of the kind that suits its values.

        Parameters
        ----------
        name : str
        values : iterable
            Numbers, texts or anything with a text. None, NaN, infinity, empty texts, and NA and NaT of pandas
            are missing. Integers stay exact: those above 2^52 are texts.
        category : bool, default=False
            Whether numbers are names of groups.

        Returns
        -------
        column : Column
        """
        plain = [_plain(value) for value in values]
        known = {value for value in plain if value is not None}
        if known and not category and all(isinstance(value, (int, float)) for value in known):
            kind = _kind_of_numbers(known)
            if kind is not None:
                to = int if kind == "integer" else float
                return cls(name, kind, [None if value is None else to(value) for value in plain])
        texts = [None if value is None else str(value) for value in plain]
        return cls(name, "category" if len(known) <= MOST_CATEGORIES else "text", texts)

    @property
    def known(self) -> list[bool]:
        """Whether each value is there."""
        return [value is not None for value in self.values]

    @property
    def categories(self) -> list[str]:
        """The different texts of a category, in the order in which a page lists them."""
        return sorted({value for value in self.values if value is not None}, key=natural)

    def codes(self) -> np.ndarray:
        """Return the number of the category of each value.

        Returns
        -------
        codes : ndarray of int
            From 0, in the order of :attr:`categories`; -1 is missing.
        """
        code = {value: k for k, value in enumerate(self.categories)}
        return np.array([code.get(value, -1) for value in self.values], dtype=np.int64)

    def encoded(self) -> dict[str, Any]:
        """Return the column for JSON.

        Returns
        -------
        coded : dict
            "name" and "kind". "data" has varints: the numbers of categories from 1, or integers by zigzag plus
            1, where 0 is missing; of numbers it has float32 with NaN for missing; of texts it is a list.
        """
        head = {"name": self.name, "kind": self.kind}
        if self.kind == "category":
            return head | {"categories": self.categories, "data": base64_text(varints(self.codes() + 1))}
        if self.kind == "integer":
            filled = np.array([value or 0 for value in self.values], dtype=np.int64)
            return head | {"data": base64_text(varints(np.where(self.known, zigzag(filled) + 1, 0)))}
        if self.kind == "number":
            filled = np.array([math.nan if value is None else value for value in self.values])
            limit = float(np.finfo(np.float32).max)
            return head | {"data": base64_text(np.clip(filled, -limit, limit).astype(np.float32))}
        return head | {"data": self.values}


def given_columns(n: int, taken: Iterable[str], given: Mapping[str, Any] | None) -> list[Column]:
    """Return the columns that the user gave.

    Parameters
    ----------
    n : int
        Number of nodes.
    taken : iterable of str
        Names of other columns; a column with such a name gets " (given)" added.
    given : mapping of str to sequence, DataFrame, or None

    Returns
    -------
    columns : list of Column
    """
    columns: list[Column] = []
    names = {"node", *taken}
    for name, values in ({} if given is None else given).items():
        found = list(values)
        if len(found) != n:
            raise ValueError(
                f"columns must have one entry for each of the {n} nodes, got {len(found)} in {name!r}."
            )
        text = str(name)
        while text in names:
            text += " (given)"
        names.add(text)
        columns.append(Column.of(text, found))
    return columns


def first_colour(preferred: Iterable[Column]) -> str | None:
    """Return the column that colours the map at first: the first one with values that is no free text.

    Parameters
    ----------
    preferred : iterable of Column
        The best ones first.

    Returns
    -------
    name : str or None
    """
    return next((column.name for column in preferred if column.kind != "text" and any(column.known)), None)


def _kind_of_numbers(known: Collection[int | float]) -> str | None:
    """Return the kind of a column of numbers, or None if they are shown as texts."""
    largest = max(map(abs, known))
    if any(isinstance(value, int) and abs(value) > _LARGEST_INTEGER for value in known):
        return None
    if all(isinstance(value, int) for value in known):
        return "integer" if len(known) > _FEW_INTEGERS else None
    # Integers with a missing one among them are floats in pandas; they may be longer than float32 can hold.
    whole = largest <= _LARGEST_INTEGER and all(float(value).is_integer() for value in known)
    return "integer" if whole and largest >= 10**_SHOWN_DIGITS else "number"


def _plain(value: Any) -> Any:
    """Return a value as an int, a finite float or a text that is not empty, or None if it is missing."""
    if isinstance(value, np.datetime64 | np.timedelta64):  # item() of nanoseconds is an integer
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.generic) or getattr(value, "shape", None) == ():  # a scalar of NumPy or a tensor
        value = value.item()
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else None
    return str(value) or None


def natural(text: str) -> tuple[int, float, str]:
    """Return a key that orders texts: numbers by their values, and before all others.

    Parameters
    ----------
    text : str

    Returns
    -------
    key : tuple
    """
    try:
        number = float(text)
    except ValueError:
        return 1, 0.0, text
    return (0, number, text) if math.isfinite(number) else (1, 0.0, text)
