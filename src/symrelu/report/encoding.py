"""Numbers as short texts for a page, and JSON that cannot end the element it stands in.

Arrays are little-endian bytes in base64. Small integers are varints: seven bits in a byte, the lowest first,
and the highest bit says that another byte follows.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import numpy as np

_FINEST = 65535  # steps of a coordinate
# Characters that could end a script element, begin a comment or end a line of JavaScript; and surrogates, by
# which Python keeps bytes that are not UTF-8.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def json_text(value: Any) -> str:
    """Return a value as JSON that may stand in a script element of an HTML page.

    Parameters
    ----------
    value : object
        Dictionaries, lists, texts, finite numbers, booleans and None.

    Returns
    -------
    text : str
        Without the characters that HTML gives a meaning; JSON has an escape for each.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def base64_text(array: np.ndarray) -> str:
    """Return the bytes of an array in base64.

    Parameters
    ----------
    array : ndarray
        Stored with the lowest byte first, as browsers read it.

    Returns
    -------
    text : str
    """
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode("ascii")


def varints(values: np.ndarray) -> np.ndarray:
    """Return nonnegative integers as varints, one after the other.

    Parameters
    ----------
    values : ndarray of int
        From 0 to 2^63 - 1; a browser reads those below 2^53 exactly.

    Returns
    -------
    bytes : ndarray of uint8
    """
    numbers = np.asarray(values, dtype=np.uint64)
    longest = max(1, -(-int(numbers.max(initial=0)).bit_length() // 7))
    shifts = np.arange(longest, dtype=np.uint64) * np.uint64(7)
    groups = numbers[:, None] >> shifts
    needed = groups > 0
    needed[:, 0] = True  # zero has one byte too
    more = np.zeros_like(needed)
    more[:, :-1] = needed[:, 1:]
    coded = (groups & np.uint64(127)).astype(np.uint8) | (more * np.uint8(128))
    return coded[needed]


def zigzag(values: np.ndarray) -> np.ndarray:
    """Return integers as nonnegative ones: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...

    Parameters
    ----------
    values : ndarray of int

    Returns
    -------
    numbers : ndarray of int64
    """
    numbers = np.asarray(values, dtype=np.int64)
    return np.where(numbers < 0, -2 * numbers - 1, 2 * numbers)


def quantised(positions: np.ndarray) -> np.ndarray:
    """Return positions in the plane as integers from 0 to 65535, with the same unit on both axes.

    Parameters
    ----------
    positions : ndarray of shape (n, 2)
        Finite.

    Returns
    -------
    coordinates : ndarray of uint16 of shape (n, 2)
        Centred in the square.
    """
    # Halved first, because the difference of two large numbers may overflow.
    halves = np.asarray(positions, dtype=np.float64) / 2
    low, high = halves.min(axis=0), halves.max(axis=0)
    extent = float((high - low).max())
    if extent == 0:
        return np.full(halves.shape, _FINEST // 2 + 1, dtype=np.uint16)
    return np.rint(((halves - (low + high) / 2) / extent + 0.5) * _FINEST).astype(np.uint16)


def levels(values: np.ndarray, decades: float | None = None) -> np.ndarray:
    """Return nonnegative values on a logarithmic scale from 1 to 255; 0 stays 0.

    Parameters
    ----------
    values : ndarray
        Nonnegative.
    decades : float, optional
        Width of the scale, which ends at the largest value; smaller ones are at 1. By default it begins at the
        smallest positive value.

    Returns
    -------
    levels : ndarray of uint8
    """
    found = np.zeros(values.shape, dtype=np.uint8)
    positive = values > 0
    if positive.any():
        logs = np.log10(values[positive].astype(np.float64))
        width = float(np.ptp(logs)) if decades is None else decades
        shares = (logs - logs.max()) / width + 1 if width else np.ones(len(logs))
        found[positive] = 1 + np.rint(254 * np.clip(shares, 0, 1)).astype(np.uint8)
    return found
