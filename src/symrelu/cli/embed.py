"""``symrelu embed``: a vector for each node of a graph."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.exceptions import ConvergenceWarning

from symrelu import Status, SymReLU
from symrelu.cli.dry_run import DryRun, report_costs_of_estimator
from symrelu.cli.fit import fit_results
from symrelu.cli.inputs import GraphArgument, graph_options, read_input
from symrelu.cli.local_workers import fitted_on_workers
from symrelu.cli.options import Own, estimator_options, estimator_settings, with_options
from symrelu.cli.origins import note_resuming, repeatable
from symrelu.cli.outputs import check_archive_output, check_files, naming_output, table_option
from symrelu.cli.progress import estimator_progress
from symrelu.cli.screen import INTERRUPTED_CODE, next_command, print_interrupted, report
from symrelu.cli.tables import check_table_output, embedding_columns, write_table

EXAMPLES = (
    "symrelu embed graph.csv -o embedding.csv",
    "symrelu embed graph.csv --components 8 --duplicates sum -o - > embedding.csv",
    "symrelu embed matrix.mtx --components auto --model model.npz --json",
    "symrelu embed graph.csv --components 8 --dry-run",
)

_MODEL = ".npz"

OWN = {
    "n_components": Own(
        "--components",
        int | str,
        "Number of columns, or 'auto' to choose it by held-out pairs, which takes many fits. Default: 16, or "
        "the number of nodes if that is smaller.",
    ),
    "shrinkage": Own(
        "--shrinkage",
        float,
        "Penalty that lowers the eigenvalues of the model by this fraction of the largest one of the matrix.",
    ),
    "n_init": Own("--n-init", int, "Number of fits from different seeds; the best one is kept."),
    "n_jobs": Own("--jobs", int, "Number of fits that run in parallel."),
}


@with_options([*estimator_options(SymReLU, OWN), *graph_options()], fits=True)
def embed(
    file: GraphArgument,
    output: Annotated[
        Path | None,
        table_option("Table of names and vectors", more="; or .npz for the model"),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="npz file for the model, with which 'symrelu transform' embeds new items."),
    ] = None,
    dry_run: DryRun = False,
    **options: Any,
) -> None:
    """Embed the nodes of the graph in FILE: one vector for each node.

    Nodes with a high similarity have vectors with a large product. FILE may be a folder that 'symrelu blocks'
    wrote. Ctrl-C saves the best vectors so far.
    """
    if output is None and model is None and not dry_run:
        raise ValueError(
            "embed must write something: pass --output embedding.csv, --model model.npz, or both; or --dry-run "
            "to see what it costs."
        )
    check_files((file,), (output, model, options["checkpoint"]))
    check_archive_output(model, "the model")
    if output is not None and output.suffix.lower() != _MODEL:
        check_table_output(output)
    estimator = SymReLU(**estimator_settings(SymReLU, options))
    estimator.checkpoint = repeatable("embed", options["checkpoint"])
    labelled = read_input(file, options, folders=True)
    if dry_run:
        report_costs_of_estimator("embed", file, estimator, labelled, options["workers"])
        return
    with fitted_on_workers(options["workers"], estimator):
        fit_estimator(estimator, labelled, file.name, search=estimator.n_components == "auto")
    for path in (model, output):  # stdout may be closed
        if path is not None:
            _save(estimator, path, as_model=path is model or path.suffix.lower() == _MODEL)
    solution = estimator.solution_
    results = fit_results(solution, options["checkpoint"])
    found = {"command": "embed", "file": file, **results, "output": output, "model": model}
    rows = [
        ("nodes", found["nodes"]),
        ("columns", f"{solution.rank}, {solution.n_negative} of them negative"),
        ("relative error", f"{solution.relative_error:.6g}"),
        ("iterations", solution.n_iter),
        ("stopped because", found["stopped_because"]),
        ("advice", found["advice"]),
        ("table", output),
        ("model", model),
    ]
    report(found, [(label, value) for label, value in rows if value is not None], *next_command(found["next"]))
    if solution.status is Status.INTERRUPTED:
        raise typer.Exit(INTERRUPTED_CODE)


def _save(estimator: SymReLU, path: Path, *, as_model: bool) -> None:
    if as_model:
        with naming_output(path):
            estimator.save(path)
    else:
        write_table(path, embedding_columns(getattr(estimator, "node_names_", None), estimator.embedding_))


def fit_estimator(estimator: Any, labelled: Any, description: str, *, search: bool) -> None:
    """Fit an estimator and show its progress; exit if Ctrl-C came before there is a result."""
    checkpoint = getattr(estimator, "checkpoint", None)
    begun = note_resuming(description, None if checkpoint is None else checkpoint.path) or 0
    try:
        with estimator_progress(estimator, description, search=search, begun=begun), warnings.catch_warnings():
            # The report says why a fit stopped; and no defaults changed, since 0.1.0 had no such command.
            for category in (ConvergenceWarning, FutureWarning):
                warnings.simplefilter("ignore", category)
            estimator.fit(labelled)
    except KeyboardInterrupt:
        print_interrupted(None if checkpoint is None else checkpoint.path)
        raise typer.Exit(INTERRUPTED_CODE) from None
