"""``symrelu cluster``: clusters of the nodes of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from symrelu import Status, SymReLUClustering
from symrelu.cli.advice import advice_of, current_flags, following, for_command_line, stopped_early
from symrelu.cli.dry_run import DryRun, report_costs_of_estimator
from symrelu.cli.embed import fit_estimator
from symrelu.cli.inputs import GraphArgument, graph_options, read_input
from symrelu.cli.local_workers import fitted_on_workers
from symrelu.cli.options import Own, estimator_options, estimator_settings, with_options
from symrelu.cli.origins import repeatable
from symrelu.cli.outputs import check_files, table_option
from symrelu.cli.screen import INTERRUPTED_CODE, next_command, report
from symrelu.cli.tables import check_table_output, node_names, write_table
from symrelu.fit.cluster_methods import METHODS

EXAMPLES = (
    "symrelu cluster graph.csv --clusters 5 -o clusters.csv",
    "symrelu cluster graph.csv --seed 0 -o clusters.tsv --memberships shares.csv",
    "symrelu cluster matrix.mtx --clusters 3 --json",
    "symrelu cluster graph.csv --clusters 5 --dry-run",
)

_AUTO = "auto"
_SHOWN_SIZES = 20  # --json has all of them

OWN = {
    "n_clusters": Own(
        "--clusters",
        int | str,
        "Number of clusters, or 'auto' to choose it by held-out pairs, for networks; this takes many fits.",
        _AUTO,
    ),
    "method": Own(
        "--method",
        str,
        "'linkage' suits graphs of nearest neighbors, 'directions' suits networks; 'auto' compares the two by "
        "their modularity.",
    ),
    "n_components": Own(
        "--components",
        int,
        "Number of columns of a factor. Default: the number of clusters, but from 10 to 100.",
    ),
    "shrinkage": Own(
        "--shrinkage",
        float,
        "Penalty that lowers the eigenvalues of the model by this fraction of the largest one of the matrix.",
    ),
    "zero_weight": Own(
        "--zero-weight", float, "Weight in (0, 1] of the zeros. Default: 1 (linkage), 0.1 (directions)."
    ),
    "init": Own("--init", str, "Starting factor. Default: 'spectral' (linkage), 'random' (directions)."),
    "max_iter": Own(
        "--max-iter", int, "Maximum number of steps of a fit. Default: 120 (linkage), 20 (directions)."
    ),
    "n_init": Own("--n-init", int, "Number of fits whose mean is taken. Default: 1 (linkage), 5 (directions)."),
    "n_jobs": Own("--jobs", int, "Number of fits that run in parallel."),
}


@with_options([*estimator_options(SymReLUClustering, OWN), *graph_options()], fits=True)
def cluster(
    file: GraphArgument,
    output: Annotated[
        Path | None,
        table_option("Table of nodes, clusters and memberships"),
    ] = None,
    memberships: Annotated[
        Path | None, typer.Option(help="Table of the share of each cluster in each node.")
    ] = None,
    dry_run: DryRun = False,
    **options: Any,
) -> None:
    """Cluster the nodes of the graph in FILE.

    The table has the columns node, cluster (from 0) and membership, the share of that cluster in the node.
    """
    check_files((file,), (output, memberships, options["checkpoint"]))
    for table in (output, memberships):
        check_table_output(table)
    settings = estimator_settings(SymReLUClustering, options)
    if settings["n_clusters"] == _AUTO:
        settings["n_clusters"] = None
    # By default a matrix that is not square would be taken as samples, which no file of a graph holds.
    estimator = SymReLUClustering(**settings, affinity="precomputed")
    estimator.checkpoint = repeatable("cluster", options["checkpoint"])
    labelled = read_input(file, options)
    if dry_run:
        report_costs_of_estimator("cluster", file, estimator, labelled, options["workers"])
        return
    with fitted_on_workers(options["workers"], estimator):
        fit_estimator(estimator, labelled, file.name, search=estimator.n_clusters is None)
    names = node_names(labelled.labels, len(estimator.labels_))
    if memberships is not None:
        shares = {f"cluster_{k}": share for k, share in enumerate(estimator.memberships_.T)}
        write_table(memberships, {"node": names, **shares})
    if output is not None:
        write_table(output, _assigned(names, estimator))
    found = _found(estimator) | _early_end(estimator) | {"output": output, "memberships": memberships}
    report({"command": "cluster", "file": file, **found}, _rows(found), *next_command(found["next"]))
    if estimator.solution_.status is Status.INTERRUPTED:
        raise typer.Exit(INTERRUPTED_CODE)


def _assigned(names: list[Any], estimator: SymReLUClustering) -> dict[str, Any]:
    labels = estimator.labels_
    own = estimator.memberships_[np.arange(len(labels)), labels]
    return {"node": names, "cluster": labels, "membership": own}


def _found(estimator: SymReLUClustering) -> dict[str, Any]:
    return {
        "nodes": len(estimator.labels_),
        "clusters": estimator.n_clusters_,
        # Of the fits that chose this number.
        "fits_out_of_time": 0 if estimator.n_clusters is not None else estimator.selection_.n_out_of_time,
        "sizes": np.bincount(estimator.labels_),
        "method": estimator.method_,
        "modularity": estimator.modularity_[estimator.method_],
        "modularity_of_methods": estimator.modularity_,
        "relative_error": estimator.relative_error_,
        "status": estimator.solution_.status,
        "stopped_because": for_command_line(estimator.stop_reason_),
    }


def _early_end(estimator: SymReLUClustering) -> dict[str, Any]:
    """Return which methods were stopped before the end of their fits, and how to resume them."""
    early = {
        name: status
        for name, status in estimator.statuses_.items()
        if stopped_early(status, estimator.max_iter, METHODS[name].max_iter)
    }
    if not early:
        return {"stopped_early": {}, "advice": None, "next": None}
    # Only the fit of linkage has a checkpoint, and goes first.
    status, resumes = next(iter(early.values())), "linkage" in early
    checkpoint = None if estimator.checkpoint is None else estimator.checkpoint.path
    flags = set(current_flags().values()) - (set() if resumes else {"--checkpoint"})
    used = (estimator.max_iter if status is Status.MAX_ITER else estimator.max_time) or 1
    advice = advice_of(status, flags, resumes=resumes and checkpoint is not None, used=used)
    return {
        "stopped_early": early,
        "advice": f"These are the clusters of an unfinished fit. {advice}",
        "next": following(status, checkpoint, used),
    }


def _rows(found: dict[str, Any]) -> list[tuple[str, Any]]:
    sizes = ", ".join(map(str, found["sizes"][:_SHOWN_SIZES]))
    early = found["stopped_early"]  # these fits end by their number of steps; only an early end is news
    rows = [
        ("nodes", found["nodes"]),
        ("clusters", f"{found['clusters']}{_doubt(found['fits_out_of_time'])}"),
        ("sizes", sizes + (", ..." if len(found["sizes"]) > _SHOWN_SIZES else "")),
        ("method", found["method"]),
        ("modularity", f"{found['modularity']:.4g}"),
        ("relative error", f"{found['relative_error']:.6g}" if early else None),
        ("stopped because", _reasons(early) or None),
        ("advice", found["advice"]),
        ("table", found["output"] or "not saved: pass -o clusters.csv"),
        ("memberships", found["memberships"]),
    ]
    return [(label, value) for label, value in rows if value is not None]


def _doubt(out_of_time: int) -> str:
    """Return what to say of a number of clusters that unfinished fits chose."""
    if not out_of_time:
        return ""
    fits = "a fit that --max-time ended" if out_of_time == 1 else f"{out_of_time} fits that --max-time ended"
    return f", chosen with the help of {fits}: with more time, it may be another"


def _reasons(early: dict[str, Status]) -> str:
    """Return why fits were stopped, each reason with the methods that it is that of."""
    methods: dict[Status, list[str]] = {}
    for name, status in early.items():
        methods.setdefault(status, []).append(name)
    return ", ".join(
        f"{for_command_line(status.value)} ({', '.join(names)})" for status, names in methods.items()
    )
