"""What the cells of a column look like: numbers, with a decimal comma or not, times, or a count of the rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

POINT, COMMA, UNCLEAR = ".", ",", "?"
_WITH_COMMA = re.compile(r"\s*[+-]?(\d+(,\d*)?|,\d+)(e[+-]?\d+)?\s*", re.IGNORECASE)
# 1,234 may be a number with three decimals, or above a thousand.
_MAY_BE_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")
_AROUND = r"[\s\d.,+\-'_%€$£\u2019\u2212]*"  # with the minus and the apostrophe of word processors
_LIKE_A_NUMBER = re.compile(rf"{_AROUND}\d{_AROUND}(e[+-]?\d+)?", re.IGNORECASE)
_CLOCK = r"([01]?\d|2[0-4]):[0-5]\d(:[0-5]\d([.,]\d+)?)?\s?([ap]m)?(\s?(Z|UTC|[+-]\d\d:?\d\d))?"
_DAY = (
    # 2024-05-01 and 2024-05; then 1.5.2024, 5/1/2024 and 5/1/24
    r"((1[5-9]|20)\d\d(?P<mark>[-/.])(0?[1-9]|1[0-2])((?P=mark)(0?[1-9]|[12]\d|3[01]))?"
    r"|\d{1,2}(?P<point>[-/.])\d{1,2}(?P=point)(1[5-9]|20)\d\d|\d{1,2}/\d{1,2}/\d\d)"
)
_DATE = re.compile(rf"\s*({_DAY}([T\s]\s*{_CLOCK})?|{_CLOCK})\s*", re.IGNORECASE)
_LEAST_COUNT = 3  # rows that may be numbered by chance
_FIRST_TIME = 500_000_000  # seconds since 1970: November 1985


class Facts(NamedTuple):
    """What the first cells of a column look like. Empty cells do not count.

    Attributes
    ----------
    numeric : bool
        All are numbers.
    decimal : str
        The decimal mark of the numbers: "." or ",", or "?" if a comma may also separate thousands or cells.
    like_numbers : bool
        All look like numbers to a person, such as "1.234,5", "5 %" and "1_000".
    whole : bool
        All are integers.
    different : int
        How many different ones there are, if they are integers.
    rows : int
        How many cells were looked at.
    counts : bool
        The integers count from 0 or 1.
    times : bool
        All look like times in seconds since 1970.
    dates : bool
        All are dates such as 2024-05-01 and 1.5.2024, with or without a time, or times of a day.
    """

    numeric: bool = False
    decimal: str = POINT
    like_numbers: bool = False
    whole: bool = False
    different: int = 0
    rows: int = 0
    counts: bool = False
    times: bool = False
    dates: bool = False

    @property
    def distinct(self) -> bool:
        """Whether all are different integers."""
        return self.whole and self.different == self.rows


def facts_of(column: Sequence[str], decimal: str | None = None, delimiter: str = "") -> Facts:
    """Return what cells look like.

    Parameters
    ----------
    column : sequence of str
    decimal : str, optional
        The decimal mark that the user chose.
    delimiter : str, default=""
        Character between the cells.

    Returns
    -------
    facts : Facts
    """
    cells = [cell for cell in column if cell.strip()]
    if not cells:
        return Facts()
    like = all(map(looks_like_a_number, cells))
    if decimal != COMMA and all(map(is_number, cells)):
        integers = [int(cell) for cell in cells if re.fullmatch(r"\s*\d{1,18}\s*", cell)]
        whole = len(integers) == len(cells)
        counts = whole and len(cells) >= _LEAST_COUNT and integers[0] in (0, 1)
        counts = counts and integers == list(range(integers[0], integers[0] + len(integers)))
        times = whole and min(integers) >= _FIRST_TIME
        return Facts(True, POINT, like, whole, len(set(integers)), len(cells), counts, times)
    if decimal != POINT and all(map(_WITH_COMMA.fullmatch, cells)):
        return Facts(True, COMMA if decimal == COMMA or _clear(cells, delimiter) else UNCLEAR, like)
    return Facts(like_numbers=like, dates=all(map(is_date, cells)))


def _clear(cells: Sequence[str], delimiter: str) -> bool:
    """Return whether the commas of numbers can only be decimal ones."""
    with_comma = [cell for cell in cells if COMMA in cell]
    return delimiter != COMMA and not all(map(_MAY_BE_THOUSANDS.fullmatch, with_comma))


def is_number(cell: str) -> bool:
    """Return whether a cell is a number with a decimal point."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_0 as 10


def is_date(cell: str) -> bool:
    """Return whether a cell is a date or a time, and no number."""
    return not is_number(cell) and _DATE.fullmatch(cell) is not None


def looks_like_a_number(cell: str) -> bool:
    """Return whether a person would take a cell for a number, whatever its notation."""
    return is_number(cell) or _LIKE_A_NUMBER.fullmatch(cell) is not None


def number_with_comma(cell: str) -> float:
    """Return a number with a decimal comma; raise ValueError for a point, which may separate thousands."""
    if POINT in cell:
        raise ValueError
    return float(cell.replace(COMMA, POINT))
