"""Plots of fits. matplotlib is imported when one is drawn."""

from symrelu.plots.convergence import plot_convergence
from symrelu.plots.figures import new_figure, plain_ticks, save_figure, shown_axes
from symrelu.plots.matrices import binned, binned_gram, plot_matrices
from symrelu.plots.rank_curve import plot_scores

__all__ = [
    "binned",
    "binned_gram",
    "new_figure",
    "plain_ticks",
    "plot_convergence",
    "plot_matrices",
    "plot_scores",
    "save_figure",
    "shown_axes",
]
