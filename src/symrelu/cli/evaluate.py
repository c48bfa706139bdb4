"""``symrelu evaluate``: measure how well held-out links of a graph are predicted."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from sklearn.exceptions import ConvergenceWarning

from symrelu import LinkPredictor, Problem
from symrelu.baselines.common_neighbors import degree_product, resource_allocation
from symrelu.cli.inputs import GraphArgument, graph_options, read_input
from symrelu.cli.layout import fitting_table
from symrelu.cli.links import OWN
from symrelu.cli.local_workers import fitted_on_workers
from symrelu.cli.options import estimator_options, estimator_settings, with_options
from symrelu.cli.outputs import check_files, table_option
from symrelu.cli.progress import search_progress
from symrelu.cli.screen import INTERRUPTED_CODE, errors, report
from symrelu.cli.tables import check_table_output, write_table
from symrelu.fit.link_evaluation import (
    METRICS,
    LinkEvaluation,
    evaluate_scores,
    link_splits,
    split_generator,
)
from symrelu.graphs import Labelled

EXAMPLES = (
    "symrelu evaluate graph.csv",
    "symrelu evaluate graph.csv --splits 2 --fraction 0.2 --seed 0 --json",
    "symrelu evaluate graph.csv --components 32 --split-seed 1 -o metrics.csv",
)

_MODEL = "symrelu"
# What needs no fit, on the same splits.
_BASELINES = {"degree product": degree_product, "resource allocation": resource_allocation}
_HITS = 50
_TITLES = {
    "auc_uniform": "AUC, uniform",
    "auc_degree": "AUC, by degree",
    "average_precision": "average precision",
    "hits_at_50": "Hits@50",
    "mrr": "MRR",
}


@with_options([*estimator_options(LinkPredictor, OWN), *graph_options()], fits=True)
def evaluate(
    file: GraphArgument,
    output: Annotated[
        Path | None,
        table_option("Table of the metrics of each split"),
    ] = None,
    splits: Annotated[int, typer.Option(min=1, help="Number of splits, each with its own fits.")] = 5,
    fraction: Annotated[float, typer.Option(help="Share of the links to hold out, in (0, 0.99].")] = 0.1,
    split_seed: Annotated[int, typer.Option(min=0, help="Seed of the splits; that of the fits is --seed.")] = 0,
    **options: Any,
) -> None:
    """Measure how well held-out links of the graph in FILE are predicted.

    The held-out links are compared with as many pairs without a link. The degree product and resource
    allocation (a sum over common neighbors) score the same pairs: a model is of use where it exceeds them.
    """
    check_files((file,), (output,))
    check_table_output(output)
    predictor = LinkPredictor(**estimator_settings(LinkPredictor, options))
    labelled = read_input(file, options)
    try:
        with (
            fitted_on_workers(options["workers"], predictor),
            search_progress() as verbose,
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings("ignore", ".*the fit was interrupted", ConvergenceWarning)
            predictor.set_params(verbose=verbose)
            found = _evaluations(predictor, labelled, fraction, splits, split_seed)
    except KeyboardInterrupt:
        errors.print("Interrupted: nothing was measured.")
        raise typer.Exit(INTERRUPTED_CODE) from None
    if output is not None:
        write_table(output, _columns(found))
    ours = found[_MODEL]
    missing = _missing(ours)
    result = {
        "command": "evaluate",
        "file": file,
        "links": ours.n_links,
        "hidden": ours.n_hidden,
        "splits": splits,
        "mean": {name: asdict(one.mean) for name, one in found.items()},
        "by_split": {name: one.records() for name, one in found.items()},
        "missing": missing,
        "output": output,
    }
    hidden = f"{ours.n_hidden} of {ours.n_links} links hidden, mean of {splits} splits"
    note = "Pairs without a link are drawn uniformly for the first AUC, and by degree for all other metrics."
    reasons = [f"{_TITLES[name]} is missing (-): {reason}" for name, reason in missing.items()]
    files = [[("table", output)]] if output is not None else []
    report(result, _table(found, hidden), note, *reasons, *files)


def _evaluations(
    predictor: LinkPredictor, labelled: Labelled, fraction: float, splits: int, seed: int
) -> dict[str, LinkEvaluation]:
    """Return the metrics of the model and of the baselines, on the same splits."""
    ours = predictor.evaluate(labelled, fraction=fraction, n_splits=splits, random_state=seed)
    problem = Problem.of(labelled.matrix, diagonal="ignore")
    drawn = list(link_splits(problem, fraction, splits, split_generator(seed)))
    found = {_MODEL: ours}
    for name, baseline in _BASELINES.items():
        metrics = tuple(evaluate_scores(baseline(split.train), split) for split in drawn)
        found[name] = LinkEvaluation(metrics, ours.n_hidden, ours.n_links)
    return found


def _columns(found: dict[str, LinkEvaluation]) -> dict[str, list[Any]]:
    rows = [{"method": name, **record} for name, one in found.items() for record in one.records()]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _table(found: dict[str, LinkEvaluation], title: str) -> Table | Text:
    rows = [[name, *map(_number, asdict(one.mean).values())] for name, one in found.items()]
    return fitting_table(["method", *(_TITLES[name] for name in METRICS)], rows, title=title)


def _number(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"


def _missing(ours: LinkEvaluation) -> dict[str, str]:
    """Return why a metric has no value, by its name. Hits@50 is the only one that may have none."""
    if not math.isnan(ours.mean.hits_at_50):
        return {}
    fraction = math.ceil(100 * _HITS / ours.n_links) / 100
    enough = f"Pass a --fraction of at least {fraction:g}." if fraction <= 0.99 else "The graph is too small."
    needed = f"it needs at least {_HITS} held-out links in each split, and there are {ours.n_hidden}"
    return {"hits_at_50": f"{needed}. {enough}"}
