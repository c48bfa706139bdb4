"""Read lists of edges from parquet files, through pyarrow."""

from __future__ import annotations

from array import array
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from symrelu.files.checks import WrongKind, check_room, naming_damaged_file, naming_missing_library
from symrelu.graphs.cells import Facts, facts_of
from symrelu.graphs.columns import ColumnChoice, choose_columns, declared_direction, refuse_square, type_column
from symrelu.graphs.edge_files import EdgeColumns, NoName, Numbering, blank_notes

_BATCH = 2**16  # rows
_SAMPLE = 50  # rows from which the kinds of columns are detected
_LOOKED_AT = 20  # columns
_BYTES_OF_EDGE = 100  # three numbers, and their copies while the matrix is made


def read_parquet(path: Path, choice: ColumnChoice, sources: Numbering, targets: Numbering) -> EdgeColumns:
    """Read the edges of a parquet file. New names are added to ``sources`` and ``targets``."""
    with naming_missing_library("pyarrow", "tables", ".parquet"):
        parquet = import_module("pyarrow.parquet")
    rows, cols, weights = array("q"), array("q"), array("d")
    types: set[str] = set()
    with naming_damaged_file(path, "parquet"), parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        count = file.metadata.num_rows
        facts = _facts(file, names)
        columns = choose_columns(path, choice, names, facts)
        at_type = type_column(names, columns)
        used = [column for column in (*columns[:3], at_type) if column is not None]
        # Values that repeat take next to no space in the file. The sizes of columns are not asked for, because
        # pyarrow (26.0) ends the process on some damaged ones.
        refuse_square(path, choice, names, facts, count)
        needed = _BYTES_OF_EDGE * count
        check_room(path, needed, f"its {count} edges")
        for batch in file.iter_batches(_BATCH, columns=[names[column] for column in used]):
            needed += batch.nbytes
            check_room(path, needed, "its columns")
            parts = {name: batch.column(name) for name in batch.schema.names}
            ends = (_texts(path, names[k], parts[names[k]], len(rows)) for k in columns[:2])
            _add(path, ends, rows, cols, sources, targets)
            if columns.weight is not None:
                name = names[columns.weight]
                weights.extend(_numbers(path, name, parts[name], len(weights)))
            if at_type is not None:
                types.update(map(str, parts[names[at_type]].unique().to_pylist()))
    if not rows:
        raise WrongKind(f"{path} must have at least one edge, but it has none.")
    directed, note = declared_direction(types)
    return EdgeColumns(
        np.frombuffer(rows, np.int64),
        np.frombuffer(cols, np.int64),
        None if columns.weight is None else np.frombuffer(weights, np.float64),
        columns.notes + note + blank_notes(sources),
        directed,
    )


def _facts(file: Any, names: list[str]) -> list[Facts]:
    """Return what the columns of a table hold, by their types and first values."""
    check = import_module("pyarrow").types
    first = next(file.iter_batches(_SAMPLE, columns=names[:_LOOKED_AT]), None)
    facts = []
    for k, kind in enumerate(file.schema_arrow.types):
        values = [] if first is None or k >= _LOOKED_AT else first.column(k).to_pylist()
        found = facts_of([str(value) for value in values if value is not None])
        facts.append(found._replace(numeric=check.is_integer(kind) or check.is_floating(kind)))
    return facts


def _add(
    path: Path, ends: Any, rows: array[int], cols: array[int], sources: Numbering, targets: Numbering
) -> None:
    try:
        for source, target in zip(*ends, strict=True):
            rows.append(sources[source])
            cols.append(targets[target])
    except NoName:
        raise WrongKind(
            f"{path}: row {len(cols) + 1} has an empty name. Fill the cell, or delete the row."
        ) from None


def _texts(path: Path, name: str, column: Any, before: int) -> list[str]:
    """Return the values of a column as text."""
    types = import_module("pyarrow").types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind)):
        raise WrongKind(
            f"{path}: column {name!r} must hold names or whole numbers, got the type {column.type}."
        )
    _check_full(path, name, column, before)
    return [str(value) for value in column.to_pylist()]


def _numbers(path: Path, name: str, column: Any, before: int) -> Any:
    arrow = import_module("pyarrow")
    types, kind = arrow.types, column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise WrongKind(f"{path}: the weights {name!r} must be numbers, got the type {kind}. Pass weight=...")
    _check_full(path, name, column, before)
    return column.to_numpy(zero_copy_only=False).astype(np.float64).tolist()


def _check_full(path: Path, name: str, column: Any, before: int) -> None:
    if column.null_count:
        row = before + column.is_null().to_pylist().index(True) + 1
        raise WrongKind(f"{path}: row {row} has no value in column {name!r}. Fill the cell, or delete the row.")
