"""The attempts of a search for exact neighbours."""

from __future__ import annotations

from typing import Any

from symrelu.plots.factors import check_fitted
from symrelu.plots.figures import PALETTE, shown_axes


def plot_attempts(model: Any, ax: Any | None = None) -> Any:
    """Plot the wrong pairs of each attempt against its number of columns.

    Parameters
    ----------
    model : NeighborEmbedding
        Fitted, not loaded: a file does not hold the attempts.
    ax : matplotlib Axes, optional
        Where to draw; a new pyplot figure by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    attempts = getattr(model, "attempts_", None)
    if not attempts:
        if not hasattr(model, "certificate_"):
            check_fitted(model)
        raise ValueError(
            f"The {type(model).__name__} must have attempts_, which a loaded one has not. Call fit, or draw "
            'plot("map").'
        )
    ax = shown_axes(figsize=(6, 4)) if ax is None else ax
    for succeeded, label, marker, colour in (
        (True, "recall reached", "o", PALETTE[0]),
        (False, "not reached", "X", PALETTE[5]),
    ):
        chosen = [attempt for attempt in attempts if attempt.succeeded == succeeded]
        if chosen:
            x, y = [one.rank for one in chosen], [one.wrong_pairs for one in chosen]
            ax.plot(x, y, marker, color=colour, label=label, markersize=8, linestyle="none", clip_on=False)
    ax.axvline(model.n_components_, color="0.4", linestyle=":", label=f"taken: {model.n_components_} columns")
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("columns")
    ax.set_ylabel("wrong pairs")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(True, alpha=0.25)
    ax.set_title(f"recall {model.certificate_.recall:.6g} of {model.certificate_.n_edges} edges")
    ax.legend(frameon=False)
    return ax
