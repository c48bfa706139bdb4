"""What a file is by its first bytes, whatever its name says."""

from __future__ import annotations

import gzip
import re
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from symrelu.files.checks import WrongKind

_LENGTH = 600  # bytes: the signature of HDF5 may come after 512 bytes


class Kind(NamedTuple):
    """What a file is, what to do with it, and the extensions under which it is expected."""

    what: str
    advice: str
    extensions: tuple[str, ...] = ()


_RENAME = "Rename it so that it ends in {}."
_SAVE = "Open it in the program that wrote it, and save the list of edges as CSV (UTF-8)."
_UNPACK = "Unpack it first."

_ZIP = Kind("a zip archive", _UNPACK)
_NPZ = Kind("a NumPy archive", _RENAME.format(".npz"), (".npz",))
_OFFICE = {
    "xl/": Kind("an Excel workbook", _SAVE),
    "word/": Kind("a Word document", _SAVE),
    "content.xml": Kind("an OpenDocument file", _SAVE),
}
_HDF5 = Kind("an HDF5 file", "Rename it to .h5ad if an AnnData wrote it, or export the graph.", (".h5ad",))
_MATLAB = Kind("a MATLAB file", _RENAME.format(".mat"), (".mat",))
_COMPRESSED = Kind("compressed in another way than by gzip", _UNPACK)

# Bytes that no text has. Names such as PAR1, a gene, are only signatures if one of them follows.
_BINARY = rb".{,15}[\x00-\x08\x0e-\x1f]"

# Patterns of the first bytes, in the order in which they are tried.
_SIGNATURES = (
    (rb"PAR1" + _BINARY, Kind("a Parquet table", _RENAME.format(".parquet"), (".parquet", ".pq"))),
    (rb"PK\x03\x04|PK\x05\x06", _ZIP),
    (rb"\x1f\x8b", Kind("compressed by gzip", _RENAME.format(".gz after its extension, as in edges.csv.gz"))),
    (rb"MATLAB [57]\.", _MATLAB),
    (rb"(.{512})?\x89HDF\r\n\x1a\n", _HDF5),
    (rb"\x93NUMPY", Kind("a NumPy array", _RENAME.format(".npy"), (".npy",))),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Kind("a workbook or document of old Office versions", _SAVE)),
    (rb"BZh\d1AY|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07", _COMPRESSED),
    (rb"(ARROW1|FEA1)" + _BINARY, Kind("an Arrow or Feather table", "Save the table as .parquet or .csv.")),
    (rb"SQLite format 3\0", Kind("an SQLite database", "Export the table of edges as CSV.")),
    (
        rb"RDX[23]\n|RDA[23]\n",
        Kind("a file of R", "Write the table of edges in R: write.csv(edges, row.names = F)."),
    ),
    (rb"%PDF-", Kind("a PDF document", "Save the list of edges as text.")),
    (rb"\x80[\x02-\x05].{,40}[\x8c}(cX\]]", Kind("a pickle of Python", "Save the graph in another format.")),
    (rb"%%MatrixMarket", Kind("a MatrixMarket file", _RENAME.format(".mtx"), (".mtx",))),
    (
        # A comment must not reach beyond its end: comments that may overlap take exponential time.
        rb"\s*(<\?xml[^>]*>\s*)?(<!--((?!-->).)*-->\s*)*<graphml",
        Kind("GraphML", _RENAME.format(".graphml"), (".graphml",)),
    ),
    (rb"(?i)\s*(<!DOCTYPE html|<html[\s>])", Kind("an HTML page", "Download the file itself.", (".graphml",))),
    (rb"(?i)\*vertices\s", Kind("a Pajek network", "Convert it, for example by networkx.read_pajek.")),
    (
        rb"(?i)(creator[^\n]*\n\s*)?graph\s*\[\s*(\n|[a-z]+[ \t\[]+[^\s,;])",
        Kind("GML", _RENAME.format(".gml"), (".gml",)),
    ),
)


def kind_of(path: Path) -> Kind | None:
    """Return what the first bytes of a file say that it is, or None if they say nothing.

    Parameters
    ----------
    path : Path
        If it ends in .gz, the content is looked at.

    Returns
    -------
    kind : Kind or None
    """
    begin = _first_bytes(path).removeprefix(b"\xef\xbb\xbf")
    for pattern, kind in _SIGNATURES:
        if re.match(pattern, begin, re.DOTALL):
            return _kind_of_archive(path) if kind is _ZIP else kind
    return None


def refuse_other_kinds(path: Path, extension: str) -> None:
    """Raise if a file is clearly of another kind than its extension says.

    Parameters
    ----------
    path : Path
    extension : str
        In small letters, without .gz.
    """
    kind = kind_of(path)
    if kind is not None and extension not in kind.extensions:
        inside = "its content is " if path.suffix.lower() == ".gz" else "it is "
        raise WrongKind(f"{path} must be a {extension} file, but {inside}{kind.what}. {kind.advice}")


def _first_bytes(path: Path) -> bytes:
    with open(path, "rb") as raw:
        if path.suffix.lower() != ".gz":
            return raw.read(_LENGTH)
        with suppress(OSError, EOFError, ValueError), gzip.GzipFile(fileobj=raw) as file:
            return file.read(_LENGTH)
    return b""  # the reader reports the damage


def _kind_of_archive(path: Path) -> Kind:
    """Return what a zip archive holds, by the names in it."""
    names: list[str] = []
    with (
        suppress(OSError, ValueError, zipfile.BadZipFile, NotImplementedError),
        zipfile.ZipFile(path) as archive,
    ):
        names = archive.namelist()
    if names and all(name.endswith(".npy") for name in names):
        return _NPZ
    for begin, kind in _OFFICE.items():
        if any(name.startswith(begin) for name in names):
            return kind
    return _ZIP._replace(extensions=() if names else (".npz",))  # a damaged one is reported by its reader
