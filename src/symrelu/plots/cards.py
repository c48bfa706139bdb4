"""Cards: what notebooks show of a result, as a small piece of HTML without scripts or requests."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

_WIDTH, _HEIGHT, _POINTS = 180, 48, 120

# Colours are those of the page, so that the card can be read in light and dark notebooks.
_BOX = (
    "display:inline-block;border:1px solid #8888;border-radius:6px;padding:.6em .9em;max-width:44em;"
    "font-family:sans-serif;font-size:.9em;line-height:1.4;color:inherit;background:transparent"
)
_TABLE = "border-collapse:collapse;margin:.3em 0;background:transparent;color:inherit"
_CELL = "text-align:left;padding:.05em 1.2em .05em 0;border:0;background:transparent;color:inherit;font-weight:"


def card(title: str, rows: Sequence[tuple[str, Any]], *, curve: str = "", note: str = "") -> str:
    """Return a card: a title, a table of names and values, a curve and a note.

    Parameters
    ----------
    title : str
    rows : sequence of tuples
        Names with their values. All texts are escaped.
    curve : str, default=""
        HTML of a picture, as :func:`curve` returns it.
    note : str, default=""
        A sentence below the table.

    Returns
    -------
    html : str
    """
    cells = "".join(
        f'<tr><th scope="row" style="{_CELL}normal;opacity:.7">{escape(str(name))}</th>'
        f'<td style="{_CELL}bold">{escape(str(value))}</td></tr>'
        for name, value in rows
    )
    below = f'<div style="opacity:.8">{escape(note)}</div>' if note else ""
    return (
        f'<div style="{_BOX}"><div style="font-weight:bold">{escape(title)}</div>'
        f'<table style="{_TABLE}"><tbody>{cells}</tbody></table>{curve}{below}</div>'
    )


def curve(x: Any, y: Any, description: str, *, logarithmic: bool = True) -> str:
    """Return a line as inline SVG, or nothing if there are fewer than two points to draw.

    Parameters
    ----------
    x, y : array-like of shape (count,)
    description : str
        What the line shows, for screen readers and as a tooltip.
    logarithmic : bool, default=True
        Whether y is drawn on a logarithmic scale, without values that are not positive.

    Returns
    -------
    html : str
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    good = np.isfinite(x) & np.isfinite(y) & ((y > 0) | (not logarithmic))
    x, y = x[good], np.log(y[good]) if logarithmic else y[good]
    if len(x) < 2:
        return ""
    kept = np.unique(np.linspace(0, len(x) - 1, _POINTS).astype(int))
    across, down = _scaled(x[kept]) * _WIDTH, (1 - _scaled(y[kept])) * _HEIGHT
    points = " ".join(f"{a + 2:.1f},{b + 2:.1f}" for a, b in zip(across, down, strict=True))
    text = escape(description)
    return (
        f'<svg role="img" aria-label="{text}" width="{_WIDTH + 4}" height="{_HEIGHT + 4}" '
        f'viewBox="0 0 {_WIDTH + 4} {_HEIGHT + 4}" style="display:block;margin:.2em 0"><title>{text}</title>'
        f'<polyline points="{points}" fill="none" stroke="#3b8ec2" stroke-width="1.8"></polyline></svg>'
    )


def _scaled(values: np.ndarray) -> np.ndarray:
    """Return values between 0 and 1."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
