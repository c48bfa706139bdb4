"""Write the report of a fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import symrelu
from symrelu.files import check_output, write_atomically
from symrelu.graphs import Labelled, as_similarity
from symrelu.plots import planar_map
from symrelu.plots.planar_map import checked_positions
from symrelu.problem import Problem
from symrelu.report.columns import Column, first_colour, given_columns
from symrelu.report.contents import Contents, course_of
from symrelu.report.hidden import HiddenPairs, measure_hidden, why_not_hidden
from symrelu.report.matrices import BINS, binned_pair, matrix_order
from symrelu.report.neighbors import Links
from symrelu.report.rendering import render
from symrelu.report.summary import summarise
from symrelu.report.views import View, check_same_nodes
from symrelu.validation import check_number, random_generator

_STREAM = 11  # random stream: hidden pairs must be independent of the fits with the same seed


def write(
    path: str | PathLike[str],
    M: Any,
    model: Any,
    labels: Any | None = None,
    *,
    columns: Mapping[str, Sequence[Any]] | None = None,
    names: Sequence[Any] | None = None,
    title: str | None = None,
    positions: Any | None = None,
    hidden: float | None = 0.1,
    random_state: Any = 0,
    progress: Callable[[str], Any] | None = None,
) -> Path:
    """Write a fit as one HTML page with a summary, an interactive map and a table of the nodes.

    The page is a single file that works without a network and makes no request. Its limit is 1 MB for up to
    20,000 nodes, and 50 bytes for each node of larger graphs. Where that is not enough, it has only the
    strongest links, or none, and says so. With 20,000 nodes, 100,000 links and clusters, all links fit beside
    names of about 20 bytes, but if the links have weights, of about 7 only. Names and columns are never cut:
    names of more than about 30 bytes, or many columns, exceed the limit, and the page says so.

    Parameters
    ----------
    path : str or path-like
        The file, written atomically.
    M : matrix, graph, table, tensor or Problem
        What was fitted; anything that :func:`symrelu.graphs.as_similarity` reads.
    model : Solution, SymReLU, SymReLUClustering, LinkPredictor or NeighborEmbedding
        The fit.
    labels : array-like of shape (n,), optional
        Cluster of each node, which orders the matrices and colours the map; None or NaN for nodes without one.
        Defaults to ``model.labels_`` if there is one.
    columns : mapping of str to sequence of length n, or DataFrame, optional
        More columns for the table, in the order of the nodes; numbers and categories can colour the map.
        Integers stay exact, other numbers are shown with 7 digits.
    names : sequence of length n, optional
        Names of the nodes. By default those of the model or of M, or row numbers.
    title : str, optional
        Title of the page.
    positions : array-like of shape (n, 2), optional
        Places of the nodes on the map, by default those of :func:`symrelu.plots.planar_map`.
    hidden : float or None, default=0.1
        Share of the links to hide from a second fit, which then has to predict them. It has the settings of an
        estimator; of a Solution it has the rank, weights and number of steps, but the default solver. It takes
        about as long as the first fit. None leaves it out.
    random_state : None, int, Generator or RandomState, default=0
        Seed of the map and of the hidden pairs.
    progress : callable, optional
        Called with the name of each stage when it begins, such as "drawing the map" and "fitting again without
        some pairs", which take longest.

    Returns
    -------
    path : Path
        The file.

    See Also
    --------
    symrelu.plots : Single figures.

    Examples
    --------
    >>> import networkx
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from symrelu import SymReLUClustering, report
    >>> graph = networkx.les_miserables_graph()
    >>> clustering = SymReLUClustering(6, random_state=0).fit(graph)
    >>> with TemporaryDirectory() as folder:
    ...     path = report.write(Path(folder, "report.html"), graph, clustering, title="Les Misérables")
    ...     path.stat().st_size < 100_000
    True
    """
    target = check_output(path)
    view = View.of(model)
    if hidden is not None:
        check_number("hidden", hidden, 0, 0.99, low_included=False)
    problem = _problem(M, view)
    check_same_nodes(model, problem.labels)
    begin = progress or _ignore
    # Whatever the user gave is checked before the work on the map.
    nodes = _Nodes.of(view, model, problem, labels=labels, columns=columns, names=names)
    seed = int(random_generator(random_state, _STREAM).random() * 2**31)
    if positions is None:
        begin("drawing the map")
    places = planar_map(model, random_state=random_state) if positions is None else positions
    places = checked_positions(places, problem.n)
    scores, why_not = _hidden_pairs(model, problem, hidden, seed, begin)
    begin("writing the page")
    contents = Contents(
        title=f"Report on a graph of {problem.n:,} nodes" if title is None else str(title),
        version=symrelu.__version__,
        summary=summarise(view, problem, nodes.links, nodes.codes, scores, why_not),
        names=nodes.names,
        has_names=nodes.has_names,
        positions=places,
        links=nodes.links,
        columns=nodes.columns,
        colour=nodes.colour,
        curve=course_of(model, None if view.solution is None else view.solution.history),
        spectrum=view.spectrum(),
        matrices=_matrices(view, problem, matrix_order(places, nodes.codes)),
        matrix_titles=_matrix_titles(view),
        ordered_by_cluster=nodes.codes is not None,
    )
    page = render(contents).encode()
    with write_atomically(target) as file:
        file.write(page)
    return target


def _ignore(stage: str) -> None:
    """Take the name of a stage, for nobody."""


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The graph and what is known of its nodes without any work.

    Attributes
    ----------
    links : Links
    names : list of str
    has_names : bool
        Whether they are more than row numbers.
    columns : list of Column
        Clusters, what was measured, and what the user gave.
    codes : ndarray of int of shape (n,), or None
        Cluster of each node from 0, -1 where it has none; None if no node has one.
    colour : str or None
        The column that colours the map at first: the clusters, the first one given, or the degrees.
    """

    links: Links
    names: list[str]
    has_names: bool
    columns: list[Column]
    codes: np.ndarray | None
    colour: str | None

    @classmethod
    def of(cls, view: View, model: Any, problem: Problem, *, labels: Any, columns: Any, names: Any) -> _Nodes:
        n, links = problem.n, Links.of(problem)
        groups = view.labels if labels is None else _one_for_each("labels", labels, n)
        clusters = [] if groups is None else [Column.of("cluster", groups, category=True)]
        measured = [Column.of(name, values) for name, values in _measured(view, model, links).items()]
        own = clusters + measured
        given = given_columns(n, [column.name for column in own], columns)
        codes = clusters[0].codes() if clusters else None
        found = next((one for one in (names, view.names, problem.labels) if one is not None), None)
        return cls(
            links,
            list(map(str, range(n) if found is None else _one_for_each("names", found, n))),
            found is not None,
            own + given,
            None if codes is None or codes.max() < 0 else codes,
            first_colour(clusters + given + measured),
        )


def _hidden_pairs(
    model: Any, problem: Problem, share: float | None, seed: int, begin: Callable[[str], Any]
) -> tuple[HiddenPairs | None, str]:
    """Return what a second fit predicts for hidden pairs, or why there is none."""
    if share is None:
        return None, "It was not measured how well hidden pairs are predicted."
    why_not = why_not_hidden(model, problem)
    if why_not:
        return None, why_not
    begin("fitting again without some pairs")
    return measure_hidden(model, problem, share, seed), ""


def _matrices(view: View, problem: Problem, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    compared = (problem.M > 0).astype(np.float64) if view.certificate else problem.M
    return binned_pair(compared, view.predicted, order, min(problem.n, BINS), view.diagonal)


def _problem(M: Any, view: View) -> Problem:
    """Return M as a Problem with the diagonal that the model has fitted, or raise if M is not its matrix."""
    if isinstance(M, Problem):
        problem = M
    else:
        matrix, names = as_similarity(M)
        problem = Problem.of(Labelled(matrix, names), None, view.diagonal)
    if problem.n != view.n:
        raise ValueError(
            f"M must be the matrix that the model was fitted to, of {view.n} nodes, got {problem.n} nodes."
        )
    return problem


def _measured(view: View, model: Any, links: Links) -> dict[str, Any]:
    """Return the columns that every report has."""
    measured: dict[str, Any] = {"degree": links.degrees().tolist()}
    if links.are_weighted:
        measured["strength"] = links.strengths()
    memberships = getattr(model, "memberships_", None)
    if memberships is not None and view.labels is not None:
        measured["membership"] = memberships[np.arange(len(memberships)), view.labels]
    return measured


def _matrix_titles(view: View) -> tuple[str, str]:
    if view.certificate is not None:
        return "Links of the graph", "Pairs that the vectors find"
    return "M", "max(0, X), the model of M" if view.fits_the_graph_itself else "The scores of the model"


def _one_for_each(name: str, values: Any, n: int) -> list[Any]:
    """Return a list of n values, or raise if there are not so many."""
    listed = list(np.asarray(values) if hasattr(values, "__array__") else values)
    if len(listed) != n:
        raise ValueError(f"{name} must have one entry for each of the {n} nodes, got {len(listed)}.")
    return listed
