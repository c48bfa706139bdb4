"""The eigenvalues of X, positive and negative."""

from __future__ import annotations

from typing import Any

import numpy as np

from symrelu.plots.factors import factor_of
from symrelu.plots.figures import NEGATIVE, POSITIVE, shown_axes


def spectrum(model: Any, signature: Any | None = None) -> np.ndarray:
    """Return the eigenvalues of X = (U * signature) U^T that can differ from zero, in descending order.

    Parameters
    ----------
    model : Solution, fitted model or estimator, or array-like of shape (n, rank)
        Anything with a symmetric X, or the factor U itself.
    signature : array-like of shape (rank,), optional
        Signs of the columns, if ``model`` is an array. All are positive by default.

    Returns
    -------
    eigenvalues : ndarray of shape (min(n, rank),)
    """
    if hasattr(model, "V"):
        raise TypeError("The model must have a symmetric X, got one with two factors, X = U V^T.")
    U, signs = factor_of(model, signature)
    R = np.asarray(
        np.linalg.qr(U, mode="r")
    )  # X = Q (R * signs) R^T Q^T: the eigenvalues are those of the small matrix
    return np.linalg.eigvalsh((R * signs) @ R.T)[::-1]


def plot_spectrum(model: Any, ax: Any | None = None, *, signature: Any | None = None) -> Any:
    """Plot the eigenvalues of X in descending order of magnitude, positive and negative ones apart.

    The legend has the share of each sign in ||X||^2, the sum of the squares.

    Parameters
    ----------
    model : Solution, fitted model or estimator, or array-like of shape (n, rank)
        Anything with a symmetric X, or the factor U itself.
    ax : matplotlib Axes, optional
        Where to draw; a new pyplot figure by default.
    signature : array-like of shape (rank,), optional
        Signs of the columns, if ``model`` is an array. All are positive by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    values = spectrum(model, signature)
    values = values[np.argsort(-np.abs(values), kind="stable")]
    ax = shown_axes(figsize=(6, 4)) if ax is None else ax
    places = np.arange(1, len(values) + 1)
    total = max(float(np.sum(values**2)), np.finfo(np.float64).tiny)
    for sign, name, colour, hatch in ((1, "positive", POSITIVE, ""), (-1, "negative", NEGATIVE, "///")):
        chosen = sign * values > 0
        if chosen.any():
            share = float(np.sum(values[chosen] ** 2)) / total
            label = f"{int(chosen.sum())} {name} ({share:.0%} of ||X||²)"
            # Hatched as well as coloured, so that signs differ in black-and-white print.
            ax.bar(places[chosen], values[chosen], color=colour, hatch=hatch, edgecolor="white", label=label)
    ax.axhline(0, color="0.4", linewidth=0.8)
    ax.set_xlabel("number, in descending order of magnitude")
    ax.set_ylabel("eigenvalue of X")
    ax.xaxis.get_major_locator().set_params(integer=True)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)
    return ax
