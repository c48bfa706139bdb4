"""``symrelu report``: a graph as one HTML page with a map, clusters and a table of its nodes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from symrelu import LinkPredictor, NeighborEmbedding, Solution, Status, SymReLU, SymReLUClustering
from symrelu import report as pages
from symrelu.cli import screen
from symrelu.cli.advice import advice_of, for_command_line, stopped_early
from symrelu.cli.embed import fit_estimator
from symrelu.cli.inputs import GraphArgument, graph_options, read_input
from symrelu.cli.node_tables import read_node_table
from symrelu.cli.options import Own, estimator_options, estimator_settings, option, refuse_unused, with_options
from symrelu.cli.outputs import check_files, naming_output
from symrelu.cli.queries import has_entry
from symrelu.cli.tables import node_names
from symrelu.fit.cluster_methods import METHODS
from symrelu.graphs import Labelled
from symrelu.report.cluster_choice import best_clusters
from symrelu.report.hidden import was_interrupted
from symrelu.report.views import check_same_nodes

EXAMPLES = (
    "symrelu report graph.csv -o report.html",
    "symrelu report graph.csv --clusters 3 --labels nodes.csv -o report.html",
    "symrelu report matrix.mtx --clusters none --no-hidden --json -o report.html",
)

_AUTO, _NONE = "auto", "none"
_FIRST_NUMBER = 16  # of clusters, before another is chosen: it decides only on the columns of the factor
_FEWEST_NODES = 6  # that are worth a clustering
_OPTIONS = ("n_components", "random_state", "max_iter", "max_time")

OWN = {
    "n_components": Own(
        "--components",
        int,
        "Number of columns of the embedding. Default: 16, or the number of nodes if that is smaller.",
    ),
    "random_state": Own("--seed", int, "Seed of the fits, the map and the hidden pairs.", 0),
    "max_iter": Own("--max-iter", int, "Maximum number of steps of the embedding.", 300),
    "max_time": Own("--max-time", float, "Time limit for each fit in seconds."),
}

_FITTING = [found for found in estimator_options(SymReLU, OWN) if found.name in _OPTIONS]
_CLUSTERS = option(
    "clusters",
    int | str,
    _AUTO,
    "Number of clusters; 'auto' takes the one with the largest modularity, from 2 to 30, and 'none' makes no "
    "clusters.",
)

# Entry of a saved model -> its class. The first one that is found decides.
_MODELS: dict[str, Any] = {
    "links.fits": LinkPredictor,
    "neighbor_vectors": NeighborEmbedding,
    "model": SymReLU,
    "solution": Solution,
}


@with_options([_CLUSTERS, *_FITTING, *graph_options()], fits=True)
def report(
    file: GraphArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page: .html.")],
    labels: Annotated[
        Path | None,
        typer.Option(help="Table with more columns for the nodes, to colour the map by: .csv or .tsv."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="npz file of a model of this graph that was saved before, in place of a new fit."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page. Default: the name of FILE.")] = None,
    hidden: Annotated[
        bool,
        typer.Option("--hidden/--no-hidden", help="Fit a second time, to see how hidden pairs are predicted."),
    ] = True,
    **options: Any,
) -> None:
    """Show the graph in FILE on one HTML page: a map, clusters, neighbors, and how well it is fitted.

    The page is one file that works without a network: send it to whom you like. Ctrl-C during the embedding or
    the clustering writes the page of what is known so far; later, it writes nothing.
    """
    check_files((file, labels, model), (output,))
    if output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"The page {output} must end in .html, got {output.suffix or 'no extension'!r}.")
    clusters = _checked_clusters(options["clusters"])
    loaded = None if model is None else _load(model, options)
    graph = read_input(file, options)
    n = graph.matrix.shape[0]
    _check_number_of_clusters(clusters, n)
    columns = None if labels is None else read_node_table(labels, node_names(graph.labels, n))
    fitted = _embedding(file, graph, options) if loaded is None else loaded
    check_same_nodes(fitted, graph.labels)
    interrupted, found = loaded is None and was_interrupted(fitted), None
    if not interrupted:
        found, interrupted = _clusters(file, graph, clusters, options)
    with _stages(output) as begin:
        pages.write(
            output,
            graph,
            fitted,
            found,
            columns=columns,
            title=file.name if title is None else title,
            hidden=0.1 if hidden and not interrupted else None,
            random_state=options["random_state"],
            progress=begin,
        )
    result = _result(fitted, found) | {"output": output, "bytes": output.stat().st_size}
    screen.report({"command": "report", "file": file, **result}, _rows(result))
    if interrupted:
        screen.show_warning("Interrupted: the page shows what was known by then, and leaves out the rest.")
        raise typer.Exit(screen.INTERRUPTED_CODE)


def _checked_clusters(clusters: int | str) -> int | str:
    if isinstance(clusters, str) and clusters not in (_AUTO, _NONE):
        raise ValueError(f"--clusters must be a number, 'auto' or 'none', got {clusters!r}.")
    return clusters


def _check_number_of_clusters(clusters: int | str, n: int) -> None:
    if not isinstance(clusters, str) and not 1 <= clusters <= n:
        raise ValueError(f"--clusters must be from 1 to {n}, the number of nodes, got {clusters}.")


def _load(path: Path, options: dict[str, Any]) -> Any:
    kind = next((kind for entry, kind in _MODELS.items() if has_entry(path, entry)), None)
    if kind is None:
        raise ValueError(f"{path} must be a model that symrelu saved (.npz), but it has no such entry.")
    unused = [one for one in _FITTING if one.name != "random_state"]
    refuse_unused(path, options, unused)
    return kind.load(path)


def _embedding(file: Path, graph: Labelled, options: dict[str, Any]) -> SymReLU:
    estimator = SymReLU(**estimator_settings(SymReLU, {name: options[name] for name in _OPTIONS}))
    fit_estimator(estimator, graph, f"{file.name}: embedding", search=False)
    _warn_if_stopped("The embedding", estimator.solution_.status, estimator.max_iter, OWN["max_iter"].default)
    return estimator


def _warn_if_stopped(what: str, status: Status, max_iter: int | None, usual: int) -> None:
    """Warn if a fit ended early, unless that was by Ctrl-C, of which the command itself warns."""
    if status is not Status.INTERRUPTED and stopped_early(status, max_iter, usual):
        reason, advice = for_command_line(status.value), advice_of(status)
        screen.show_warning(f"{what} is that of an unfinished fit: {reason}. {advice}")


def _clusters(
    file: Path, graph: Labelled, clusters: int | str, options: dict[str, Any]
) -> tuple[np.ndarray | None, bool]:
    """Return the cluster of each node, or None if there shall be none, and whether Ctrl-C ended the fit."""
    n = graph.matrix.shape[0]
    if clusters == _NONE or (clusters == _AUTO and n < _FEWEST_NODES):
        return None, False
    number = min(_FIRST_NUMBER, n // 3) if isinstance(clusters, str) else clusters
    seed = options["random_state"]
    limited = {"random_state": seed, "max_time": options["max_time"]}
    estimator = SymReLUClustering(
        number, affinity="precomputed", **estimator_settings(SymReLUClustering, limited)
    )
    with warnings.catch_warnings():
        if clusters == _AUTO:
            warnings.simplefilter("ignore", UserWarning)  # on clusters of a number that nobody asked for
        fit_estimator(estimator, graph, f"{file.name}: clusters", search=False)
    if was_interrupted(estimator):  # clusters of a factor that was cut short would mislead
        return None, True
    for name, status in estimator.statuses_.items():
        _warn_if_stopped(f"The clustering by {name}", status, None, METHODS[name].max_iter)
    return (best_clusters(estimator, graph, seed or 0) if clusters == _AUTO else estimator.labels_), False


@contextmanager
def _stages(output: Path) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows on stderr which stage begins; exit if Ctrl-C comes meanwhile.

    A terminal shows how long the stage has taken so far.
    """
    errors = screen.errors
    begin: Callable[[str], None] = _say
    with ExitStack() as stack:
        if not screen.is_quiet() and errors.is_terminal and not errors.is_dumb_terminal:
            begin = stack.enter_context(_elapsed())
        try:
            with naming_output(output):
                yield begin
        except KeyboardInterrupt:
            errors.print("Interrupted: nothing was written.")
            raise typer.Exit(screen.INTERRUPTED_CODE) from None


def _say(stage: str) -> None:
    if not screen.is_quiet():
        screen.errors.print(f"{stage[0].upper()}{stage[1:]} ...")


@contextmanager
def _elapsed() -> Iterator[Callable[[str], None]]:
    """Yield a function that begins a line with the name of a stage and the time it takes."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=screen.errors, transient=True) as progress:
        task = progress.add_task("", total=None)

        def begin(stage: str) -> None:
            progress.reset(task, description=stage, total=None)

        yield begin


def _result(fitted: Any, clusters: np.ndarray | None) -> dict[str, Any]:
    solution = fitted if isinstance(fitted, Solution) else getattr(fitted, "solution_", None)
    factor = fitted.item_vectors_ if solution is None else solution.U
    return {
        "model": type(fitted).__name__,
        "nodes": factor.shape[0],
        "columns": factor.shape[1],
        "relative_error": None if solution is None else solution.relative_error,
        "clusters": None if clusters is None else int(clusters.max()) + 1,
        "sizes": None if clusters is None else np.bincount(clusters),
    }


def _rows(result: dict[str, Any]) -> list[tuple[str, Any]]:
    rows = [
        ("model", result["model"]),
        ("nodes", result["nodes"]),
        ("columns", result["columns"]),
        ("clusters", result["clusters"]),
        ("page", f"{result['output']} ({result['bytes'] / 1000:.0f} kB): open it in a browser"),
    ]
    return [(label, value) for label, value in rows if value is not None]
