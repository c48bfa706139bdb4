"""Check single values: numbers, choices, indices of items, random states, callbacks."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np


def check_items(name: str, items: Any, n: int) -> np.ndarray:
    """Return indices of items as an array, or raise an error that names one that is out of range."""
    array = np.atleast_1d(np.asarray(items))
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers (indices of items, from 0), got {array.dtype} entries.")
    wrong = array[(array < 0) | (array >= n)]
    if wrong.size:
        raise IndexError(f"{name} must be from 0 to {n - 1}, the indices of the items, got {wrong[0]}.")
    return array.astype(np.int64)


def check_integer(name: str, value: Any, low: int, high: int | None = None, note: str = "") -> int:
    """Return an integer parameter, or raise an error that states its bounds."""
    bounds = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    message = f"{name} must be {bounds}{note}, got {value!r}."
    # bool is a subclass of int, but rank=True is a mistake.
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(message)
    number = int(value)
    if number < low or (high is not None and number > high):
        raise ValueError(message)
    return number


def check_number(
    name: str, value: Any, low: float = 0.0, high: float = math.inf, *, low_included: bool = True
) -> float:
    """Return a finite real parameter, or raise an error that states its bounds."""
    if low == 0 and high == math.inf:
        bounds = "a finite number >= 0" if low_included else "a finite number > 0"
    else:
        bounds = f"a number in {'[' if low_included else '('}{low:g}, {high:g}]"
    message = f"{name} must be {bounds}, got {value!r}."
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(message)
    value = float(value)
    if not math.isfinite(value) or value > high or not (low <= value if low_included else low < value):
        raise ValueError(message)
    return value


def check_choice(name: str, value: Any, choices: tuple[str, ...], otherwise: str = "") -> str:
    """Return a parameter that is one of a few strings; ``otherwise`` describes other accepted values."""
    if not isinstance(value, str) or value not in choices:
        words = "one of " * (len(choices) > 1) + ", ".join(map(repr, choices))
        other = f" or {otherwise}" if otherwise else ""
        raise ValueError(f"{name} must be {words}{other}, got {value!r}.")
    return value


def check_verbose(verbose: Any) -> int:
    """Return the verbosity: 0 is silent, 1 prints a line per second, 2 a line per step. True is 1."""
    return int(verbose) if isinstance(verbose, bool) else check_integer("verbose", verbose, 0)


def check_callback(callback: Any) -> Any:
    """Return a callback, or raise a TypeError unless it is callable or None."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable or None, got {type(callback).__name__}.")
    return callback


def random_generator(random_state: Any, stream: int | None = None) -> Any:
    """Return a generator from None, an integer, a Generator or a RandomState.

    An integer gives an independent generator for each ``stream``, so that what is drawn from one seed for
    different purposes is not correlated.
    """
    if isinstance(random_state, (np.random.Generator, np.random.RandomState)):
        return random_state
    try:
        # A spawn key gives independent streams; adding the stream to the seed would not.
        if stream is not None and isinstance(random_state, (int, np.integer)) and random_state >= 0:
            return np.random.default_rng(np.random.SeedSequence(int(random_state), spawn_key=(stream,)))
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        # The type that NumPy chose: TypeError for a wrong type, ValueError for a negative seed.
        raise type(error)(
            f"random_state must be None, a nonnegative integer, or a NumPy generator, got {random_state!r}."
        ) from error
