"""``symrelu blocks``: convert a file to a block folder, for fits on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from symrelu.cli.inputs import graph_options, reading_options
from symrelu.cli.options import with_options
from symrelu.cli.screen import note, report
from symrelu.graphs.blocks import DEFAULT_ROWS, convert_to_blocks

EXAMPLES = (
    "symrelu blocks graph.csv -o graph.blocks",
    "symrelu blocks matrix.npz -o matrix.blocks --rows 20000 --dtype float32",
    "symrelu blocks matrix.mtx -o exact.blocks --duplicates sum --json",
)


@with_options(graph_options())
def blocks(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="List of edges (.csv, .tsv, .txt), or sparse matrix (.mtx, .npz)."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write; it must not exist.")],
    rows: Annotated[
        int, typer.Option(help="Rows of a block. A block is the unit of work of a cluster.")
    ] = DEFAULT_ROWS,
    dtype: Annotated[str, typer.Option(help="Type of the entries: 'float64' or 'float32'.")] = "float64",
    **options: Any,
) -> None:
    """Convert FILE to a folder of blocks, for fits on a cluster.

    The file is read in parts, so that it may be larger than the memory.
    """
    folder, notes = convert_to_blocks(file, output, rows=rows, dtype=dtype, **reading_options(options))
    for text in notes:
        note(text)
    manifest, grid = folder.manifest, folder.grid
    entries = manifest.off_diagonal.entries + manifest.diagonal.entries
    result = {
        "command": "blocks",
        "file": file,
        "nodes": grid.n,
        "entries": entries,
        "rows": grid.rows,
        "blocks": len(grid.blocks()),
        "norm": manifest.norm,
        "output": output,
    }
    report(
        result,
        [
            ("matrix", f"{grid.n} x {grid.n}, {entries} entries, {manifest.dtype}"),
            ("blocks", f"{len(grid.blocks())}, of {grid.rows} rows and columns"),
            ("folder", output),
        ],
    )
