"""``plot`` of results and estimators: the picture that suits the object, or another one by name."""

from __future__ import annotations

from typing import Any, ClassVar

from symrelu.plots.attempts import plot_attempts
from symrelu.plots.convergence import plot_convergence
from symrelu.plots.link_plots import plot_link_scores
from symrelu.plots.maps import plot_clusters, plot_map
from symrelu.plots.spectrum import plot_spectrum
from symrelu.validation import check_choice

PICTURES = {
    "attempts": plot_attempts,
    "clusters": plot_clusters,
    "convergence": plot_convergence,
    "link_scores": plot_link_scores,
    "map": plot_map,
    "spectrum": plot_spectrum,
}


class PlotMixin:
    """Draw a fitted object."""

    _pictures: ClassVar[tuple[str, ...]]  # names in PICTURES, that of the default first

    def plot(self, what: str | None = None, ax: Any | None = None, **options: Any) -> Any:
        """Draw what suits the object best, or another picture of it.

        A Solution is drawn by its convergence, SymReLU by its map, SymReLUClustering by its clusters on the
        map, LinkPredictor by the scores of links and other pairs, and NeighborEmbedding by its attempts.

        Parameters
        ----------
        what : {"convergence", "map", "spectrum", "clusters", "link_scores", "attempts"}, optional
            Which picture: that of ``plot_`` and this name in :mod:`symrelu.plots`. An error lists those that
            the object has.
        ax : matplotlib Axes, optional
            Where to draw; a new pyplot figure by default.
        **options
            Passed on to the function of :mod:`symrelu.plots` that draws it, such as ``labels`` of
            :func:`symrelu.plots.plot_map`.

        Returns
        -------
        ax : matplotlib Axes
        """
        name = self._pictures[0] if what is None else check_choice("what", what, self._pictures)
        return PICTURES[name](self, ax, **options)
