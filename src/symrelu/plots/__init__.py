"""Plots of fits and their results. matplotlib is imported when one is drawn."""

from symrelu.plots.attempts import plot_attempts
from symrelu.plots.convergence import plot_convergence
from symrelu.plots.figures import new_figure, plain_ticks, save_figure, shown_axes
from symrelu.plots.link_plots import plot_link_metrics, plot_link_scores
from symrelu.plots.maps import plot_clusters, plot_map
from symrelu.plots.matrices import binned, binned_gram, plot_fit, plot_matrices
from symrelu.plots.planar_map import planar_map
from symrelu.plots.rank_curve import plot_rank_curve
from symrelu.plots.spectrum import plot_spectrum, spectrum

__all__ = [
    "binned",
    "binned_gram",
    "new_figure",
    "plain_ticks",
    "planar_map",
    "plot_attempts",
    "plot_clusters",
    "plot_convergence",
    "plot_fit",
    "plot_link_metrics",
    "plot_link_scores",
    "plot_map",
    "plot_matrices",
    "plot_rank_curve",
    "plot_spectrum",
    "save_figure",
    "shown_axes",
    "spectrum",
]
