"""``symrelu neighbors``: short vectors whose inner products give back the neighbors in a graph."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from symrelu import NeighborEmbedding, Status
from symrelu.cli.advice import for_command_line
from symrelu.cli.embed import fit_estimator
from symrelu.cli.inputs import GraphArgument, graph_options, read_input
from symrelu.cli.options import Own, estimator_options, estimator_settings, refuse_unused, with_options
from symrelu.cli.outputs import check_archive_output, check_files, naming_output, table_option
from symrelu.cli.queries import NodeFinder, has_entry, preview, records
from symrelu.cli.screen import INTERRUPTED_CODE, report, show_warning
from symrelu.cli.tables import check_table_output, embedding_columns, write_table
from symrelu.estimators.neighbors import ON_ONE_MACHINE
from symrelu.graphs import Labelled

GOAL_MISSED_CODE = 3

EXAMPLES = (
    "symrelu neighbors graph.csv -o vectors.csv --queries queries.csv",
    "symrelu neighbors graph.csv --recall 0.9 --seed 0 --model neighbors.npz --json",
    "symrelu neighbors neighbors.npz --of n1 --of n2 -o neighbors.csv",
)

OWN = {
    "n_components": Own(
        "--components", int | str, "Number of columns, or 'auto' for the fewest that are found.", "auto"
    ),
    "recall": Own(
        "--recall", float, "Least share of the edges to be found, and of the pairs found to be edges."
    ),
    "dtype": Own("--dtype", str, "Type of the vectors: 'float32' or 'float16'."),
    "n_negative": Own("--n-negative", int, "Number of columns that enter the scores with a minus sign."),
    "backend": Own("--backend", str, f"How the graph is stored: {', '.join(map(repr, ON_ONE_MACHINE))}."),
    "max_iter": Own("--max-iter", int, "Largest number of steps for one number of columns."),
    "max_time": Own(
        "--max-time",
        float,
        "Time limit for the search in seconds. The last count of wrong pairs comes after it.",
    ),
}


# Why a search ended early -> who ended it, and what to do about that.
_ENDED_BY = {
    Status.MAX_TIME.value: ("--max-time", "Pass a larger --max-time,"),
    Status.INTERRUPTED.value: ("Ctrl-C", "Give it more time,"),
}

_OPTIONS = [*estimator_options(NeighborEmbedding, OWN), *graph_options()]


@with_options(_OPTIONS, fits=True)
def neighbors(
    file: GraphArgument,
    output: Annotated[
        Path | None,
        table_option("Table of names and vectors, or of neighbors with --of"),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(help="Table of the vectors to search for. They differ from the others in signs."),
    ] = None,
    of: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Find the neighbors of this node. May be given again."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="npz file for the model. It can be FILE of a later call, without a search."),
    ] = None,
    **options: Any,
) -> None:
    """Find vectors whose nearest neighbors are those of the graph in FILE.

    Two nodes are neighbors if the inner product of the query vector of one and the vector of the other is above
    the threshold. All pairs are checked, and the certificate says how many are wrong. The exit code is 3 if
    --recall or --components could not be met; the best vectors are still written. Ctrl-C keeps the best so far.
    """
    check_files((file,), (output, queries, model))
    check_archive_output(model, "the model")
    for table in (output, queries):
        check_table_output(table)
    estimator, graph = _estimator(file, options)
    finder = NodeFinder.of(estimator, graph)
    nodes = finder.indices(of or ())  # before the search, so that a misspelt name costs no time
    if graph is not None:
        fit_estimator(estimator, graph, file.name, search=True)
    found = _neighbors_of(estimator, finder, nodes) if of else None
    if model is not None:
        with naming_output(model):
            estimator.save(model)
    if output is not None:
        vectors = embedding_columns(finder.names, estimator.item_vectors_)
        write_table(output, vectors if found is None else found)
    if queries is not None:
        write_table(queries, embedding_columns(finder.names, estimator.query_vectors_))
    interrupted = getattr(estimator, "stop_reason_", "") == Status.INTERRUPTED.value
    missed = _missed(estimator, options)
    if missed:
        show_warning(missed)
    files = {"output": output, "queries": queries, "model": model}
    result = {
        "command": "neighbors",
        "file": file,
        **_results(estimator),
        "goal_met": not missed,
        "neighbors": records(found) if found is not None and output is None else None,
        **files,
    }
    report(result, *([] if found is None else preview(found, by="node")), _summary(estimator, files))
    if interrupted or missed:
        raise typer.Exit(INTERRUPTED_CODE if interrupted else GOAL_MISSED_CODE)


def _estimator(file: Path, options: dict[str, Any]) -> tuple[NeighborEmbedding, Labelled | None]:
    """Return the vectors that are saved in a file, or a new estimator and the graph in the file."""
    if has_entry(file, "neighbor_vectors"):
        refuse_unused(file, options, _OPTIONS)
        return NeighborEmbedding.load(file), None
    settings = estimator_settings(NeighborEmbedding, options)
    if settings["n_components"] == "auto":
        settings["n_components"] = None
    return NeighborEmbedding(**settings), read_input(file, options)


def _neighbors_of(estimator: NeighborEmbedding, finder: NodeFinder, nodes: np.ndarray) -> dict[str, list[Any]]:
    """Return a table of the neighbors of some nodes, those with the largest scores first."""
    found = [estimator.vectors_.neighbors(int(node)) for node in nodes]
    sources = np.repeat(nodes, [len(others) for others in found])
    targets = np.concatenate(found)
    scores = [
        float(estimator.query_vectors_[i].astype(np.float32) @ estimator.item_vectors_[j].astype(np.float32))
        for i, j in zip(sources, targets, strict=True)
    ]
    return {"node": finder.named(sources), "neighbor": finder.named(targets), "score": scores}


def _missed(estimator: NeighborEmbedding, options: dict[str, Any]) -> str:
    """Return what was asked for and not found, or an empty text."""
    if not hasattr(estimator, "attempts_"):  # loaded: nothing was asked for but what is in the file
        return ""
    certificate, wanted = estimator.certificate_, options["n_components"]
    columns = "" if wanted in ("auto", estimator.n_components_) else f" and {_counted(wanted)}"
    if min(certificate.recall, certificate.precision) >= options["recall"] and not columns:
        return ""
    return (
        f"No vectors with recall >= {options['recall']:g}{columns} were found: the best have "
        f"{certificate.wrong_pairs} wrong pairs with {_counted(estimator.n_components_)}. "
        f"{_advice(estimator, wanted)} or a lower --recall."
    )


def _advice(estimator: NeighborEmbedding, wanted: int | str) -> str:
    """Return what to do about a goal that was missed, up to the last possibility."""
    enough = [attempt.rank for attempt in estimator.attempts_ if attempt.succeeded]
    known = f"--components {min(enough)}, which were enough," if enough else ""
    cause, remedy = _ENDED_BY.get(estimator.stop_reason_, ("", ""))
    if not cause:
        return f"Pass {known or 'a larger --max-iter or --max-time, more --components,'}"
    tried = wanted == "auto" or wanted in [attempt.rank for attempt in estimator.attempts_]
    what = "" if tried else f" before {_counted(wanted)} {'was' if wanted == 1 else 'were'} tried"
    return f"{cause} ended the search{what}. {remedy} {known}".rstrip()


def _counted(columns: int | str) -> str:
    return f"{columns} column{'' if columns == 1 else 's'}"


def _results(estimator: NeighborEmbedding) -> dict[str, Any]:
    certificate = estimator.certificate_
    reason = getattr(estimator, "stop_reason_", None)  # loaded ones have none
    return {
        "nodes": len(estimator.item_vectors_),
        "columns": estimator.n_components_,
        "dtype": estimator.item_vectors_.dtype.name,
        "signature": estimator.signature_,
        "exact": certificate.exact,
        "recall": certificate.recall,
        "precision": certificate.precision,
        "certificate": asdict(certificate),
        "status": next((status for status in Status if status.value == reason), None),  # of an early end
        "stopped_because": None if reason is None else for_command_line(reason),
        "attempts": [asdict(attempt) for attempt in getattr(estimator, "attempts_", ())],
    }


def _summary(estimator: NeighborEmbedding, files: dict[str, Path | None]) -> list[tuple[str, Any]]:
    certificate, reason = estimator.certificate_, getattr(estimator, "stop_reason_", None)
    negative = [f"x{k + 1}" for k in np.flatnonzero(estimator.signature_ < 0)]
    signs = f"the vectors with the sign of {', '.join(negative)} changed" if negative else "the vectors"
    rows = [
        ("nodes", len(estimator.item_vectors_)),
        ("columns", estimator.n_components_),
        ("wrong pairs", f"{certificate.wrong_pairs} of {certificate.n_pairs}, all checked"),
        ("recall", f"{certificate.recall:.6g}"),
        ("precision", f"{certificate.precision:.6g}"),
        ("threshold", f"{certificate.threshold!r} (margin {certificate.margin:.3g})"),
        ("query vectors", signs),
        ("stopped because", None if reason is None else for_command_line(reason)),
        *files.items(),
    ]
    return [(label, value) for label, value in rows if value is not None]
