"""``symrelu transform``: embed new items with a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from symrelu import NeighborEmbedding, SymReLU
from symrelu.cli.inputs import graph_options, reading_options
from symrelu.cli.options import with_options
from symrelu.cli.outputs import check_files, table_option
from symrelu.cli.queries import has_entry
from symrelu.cli.screen import note, report
from symrelu.cli.tables import check_table_output, embedding_columns, node_names, write_table
from symrelu.graphs import read_new_items_file

EXAMPLES = (
    "symrelu embed graph.csv --model model.npz -o embedding.csv",
    "symrelu transform model.npz new.csv -o new_vectors.csv",
    "symrelu transform model.npz new.csv --duplicates max -o vectors.json --json",
)

# Directions and loops have no meaning between new and known items.
_OPTIONS = [option for option in graph_options() if option.name not in ("directed", "self_loops")]
for _option in _OPTIONS:
    get_args(_option.annotation)[1].rich_help_panel = "How NEW is read"


@with_options(_OPTIONS)
def transform(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="npz file of 'symrelu embed --model' or 'neighbors --model'."),
    ],
    new: Annotated[
        Path,
        typer.Argument(
            metavar="NEW",
            help="Similarities of new items to those of the model: edges from new to known names, or a matrix "
            "with a row for each new item.",
        ),
    ],
    output: Annotated[Path, table_option("Table of names and vectors")],
    **options: Any,
) -> None:
    """Embed new items with a model that was saved before.

    Each vector is the best one for the item's similarities to the items of the model, whose vectors do not
    change. Similarities that are not in NEW are zero.
    """
    check_files((model, new), (output,))
    check_table_output(output)
    estimator = _load(model)
    known = estimator.n_features_in_
    names = node_names(getattr(estimator, "node_names_", None), known)
    rows, notes = read_new_items_file(new, names, **reading_options(options))
    for text in notes:
        note(text)
    vectors = estimator.transform(rows.matrix)
    write_table(output, embedding_columns(rows.labels, vectors))
    result = {
        "command": "transform",
        "model": model,
        "file": new,
        "items": len(vectors),
        "known": known,
        "columns": vectors.shape[1],
        "output": output,
    }
    shown = [("new items", len(vectors)), ("columns", vectors.shape[1]), ("table", output)]
    report(result, shown)


def _load(path: Path) -> Any:
    if has_entry(path, "neighbor_vectors"):
        return NeighborEmbedding.load(path)
    if has_entry(path, "links.fits"):
        raise ValueError(
            f"{path} must be a model of 'symrelu embed' or 'symrelu neighbors', but it is one of "
            "'symrelu links', which cannot embed new items. Save another one with "
            "'symrelu embed GRAPH --model model.npz'."
        )
    estimator = SymReLU.load(path)
    if hasattr(estimator, "affinity_matrix_"):
        raise ValueError(
            f"{path} must be a model of similarities, but it was fitted to samples, which only Python "
            "can read. Call SymReLU.load(path).transform(samples)."
        )
    return estimator
