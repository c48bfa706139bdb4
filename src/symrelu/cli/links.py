"""``symrelu links``: predict missing links of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from symrelu import LinkPredictor, Status
from symrelu.cli.advice import advice_of, for_command_line, stopped_early
from symrelu.cli.dry_run import DryRun, report_costs_of_estimator
from symrelu.cli.embed import fit_estimator
from symrelu.cli.inputs import GraphArgument, graph_options, read_input
from symrelu.cli.local_workers import fitted_on_workers
from symrelu.cli.options import Own, estimator_options, estimator_settings, refuse_unused, with_options
from symrelu.cli.outputs import check_archive_output, check_files, naming_output, table_option
from symrelu.cli.queries import NodeFinder, asking_by_index, has_entry, preview, read_pairs, records
from symrelu.cli.screen import INTERRUPTED_CODE, report
from symrelu.cli.tables import check_table_output, write_table
from symrelu.graphs import Labelled

EXAMPLES = (
    "symrelu links graph.csv -o links.csv",
    "symrelu links graph.csv --of n1 --of n2 --top 5 --seed 0 --json",
    "symrelu links graph.csv --pairs pairs.csv -o scores.csv --model links.npz",
    "symrelu links graph.csv --dry-run",
)

OWN = {
    "n_components": Own("--components", int, "Number of columns of a fit."),
    "shrinkage": Own("--shrinkage", float | str, "Strength of the penalty, from 0 to 1, or 'auto'."),
    "degree_regularization": Own(
        "--degree-regularization", float, "Multiple of the mean degree that is added to each degree."
    ),
    "n_init": Own("--n-init", int, "Number of fits from different seeds, whose mean predicts."),
    "n_jobs": Own("--jobs", int, "Number of fits that run in parallel."),
}


_OPTIONS = [*estimator_options(LinkPredictor, OWN), *graph_options()]


@with_options(_OPTIONS, fits=True)
def links(
    file: GraphArgument,
    output: Annotated[
        Path | None,
        table_option("Table with the columns source, target and score"),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of links, for each node of --of.")] = 100,
    of: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only links of this node. May be given again.")
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="File with two columns of names: score these pairs instead.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="npz file for the model. It can be FILE of a later call, without a fit.")
    ] = None,
    dry_run: DryRun = False,
    **options: Any,
) -> None:
    """Predict missing links of the graph in FILE.

    The pairs without a link that are most likely linked, the best first: of the whole graph, or of the nodes
    that --of names. Ctrl-C gives the links of the fits so far.
    """
    if of and pairs is not None:
        raise ValueError("--of and --pairs ask for different things. Pass one of them.")
    check_files((file, pairs), (output, model))
    check_archive_output(model, "the model")
    if output is not None:
        check_table_output(output)
    predictor, graph = _predictor(file, options)
    if dry_run:
        if graph is None:
            raise ValueError(
                f"--dry-run must be left out, because {file} is a saved model, which is not fitted."
            )
        report_costs_of_estimator("links", file, predictor, graph, options["workers"])
        return
    finder = NodeFinder.of(predictor, graph)
    # Before the fit, so that a misspelt name costs no time.
    nodes = finder.indices(of or ())
    given = None if pairs is None else tuple(finder.indices(names) for names in read_pairs(pairs))
    if graph is not None:
        with fitted_on_workers(options["workers"], predictor):
            fit_estimator(predictor, graph, file.name, search=False)
    if model is not None:
        with naming_output(model):
            predictor.save(model)
    with asking_by_index():
        i, j, scores = (
            _best(predictor, nodes, top) if given is None else (*given, predictor.score_pairs(*given))
        )
    columns = {"source": finder.named(i), "target": finder.named(j), "score": scores.tolist()}
    if output is not None:
        write_table(output, columns)
    result = {
        "command": "links",
        "file": file,
        "nodes": len(predictor.embedding_),
        "known_links": predictor.known_.nnz // 2,
        "fits": len(predictor.fits_),
        **_end(predictor, loaded=graph is None),
        "count": len(scores),
        "links": records(columns) if output is None else None,
        "output": output,
        "model": model,
    }
    rows = [*_early_end(result), ("table", output), ("model", model)]
    shown = [(label, value) for label, value in rows if value is not None]
    report(result, *preview(columns, by="source" if len(nodes) else None), *([shown] if shown else []))
    if predictor.solution_.status is Status.INTERRUPTED:
        raise typer.Exit(INTERRUPTED_CODE)


def _end(predictor: LinkPredictor, *, loaded: bool) -> dict[str, Any]:
    """Return how the fits ended, with advice if that was early."""
    status = predictor.solution_.status
    usual = LinkPredictor().max_iter
    early = stopped_early(status, predictor.max_iter, usual)
    unfinished = [fit for fit in predictor.fits_ if stopped_early(fit.status, predictor.max_iter, usual)]
    several = len(unfinished) > 1
    further = "" if loaded else f" {_of_several(advice_of(status)) if several else advice_of(status)}"
    return {
        "status": status,
        "relative_error": predictor.relative_error_,
        "stopped_because": for_command_line(predictor.stop_reason_),
        "advice": f"These are the links of {'unfinished fits' if several else 'an unfinished fit'}.{further}"
        if early
        else None,
    }


def _of_several(advice: str) -> str:
    """Return advice on a fit as advice on several ones."""
    return advice.replace("The fit used all its", "The fits used all their")


def _early_end(result: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the rows on the end of the fits: none if they ended as usual."""
    if result["advice"] is None:
        return []
    return [
        ("relative error", f"{result['relative_error']:.6g}, of the graph divided by its degrees"),
        ("stopped because", result["stopped_because"]),
        ("advice", result["advice"]),
    ]


def _predictor(file: Path, options: dict[str, Any]) -> tuple[LinkPredictor, Labelled | None]:
    """Return the predictor that is saved in a file, or a new one and the graph in the file."""
    if has_entry(file, "links.fits"):
        refuse_unused(file, options, _OPTIONS)
        return LinkPredictor.load(file), None
    if has_entry(file, "solution"):
        raise ValueError(
            f"{file} must be a graph, or a model that 'symrelu links GRAPH --model links.npz' saved, but it is "
            "one of 'symrelu embed' or 'symrelu fit', which does not predict links. Pass the file of the graph."
        )
    return LinkPredictor(**estimator_settings(LinkPredictor, options)), read_input(file, options)


def _best(predictor: LinkPredictor, nodes: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the two ends and the scores of the best links: of some nodes, or of the whole graph."""
    if not len(nodes):
        found, scores = predictor.top_links(top)
        return found[:, 0], found[:, 1], scores
    items, scores = predictor.top_k(nodes, min(top, len(predictor.embedding_)))
    exist = items >= 0  # a node may have fewer than k candidates
    return np.repeat(nodes, exist.sum(axis=1)), items[exist], scores[exist]
