"""Files whose names say something else than their contents."""

import gzip
import io
import pickle
import sqlite3
import zipfile

import numpy as np
import pytest
from scipy import sparse

from symrelu.files.signatures import kind_of, refuse_other_kinds
from symrelu.graphs import read_graph


def archive_of(*names):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, "x" * 50)
    return content.getvalue()


def saved(save, *arguments):
    content = io.BytesIO()
    save(content, *arguments)
    return content.getvalue()


def database(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("create table t (a int)")
    connection.close()
    return (tmp_path / "a.db").read_bytes()


OTHER_KINDS = {
    "zip": (archive_of("a.csv"), "a zip archive. Unpack it first"),
    "xlsx": (archive_of("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook. Open it in the program"),
    "ods": (archive_of("mimetype", "content.xml"), "an OpenDocument file. Open it in the program"),
    "npz": (saved(np.savez, np.eye(2)), r"a NumPy archive. Rename it so that it ends in \.npz"),
    "npy": (saved(np.save, np.eye(2)), r"a NumPy array. Rename it so that it ends in \.npy"),
    "gzip": (gzip.compress(b"a,b\n"), r"compressed by gzip. Rename it .* \.gz after .*edges\.csv\.gz"),
    "xz": (b"\xfd7zXZ\0\0", "compressed in another way than by gzip. Unpack it"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(90), r"an HDF5 file. Rename it to \.h5ad"),
    "hdf5 after a block": (bytes(512) + b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    "mat": (b"MATLAB 5.0 MAT-file".ljust(124), r"a MATLAB file. Rename it so that it ends in \.mat"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "a workbook or document of old Office"),
    "feather": (b"ARROW1\0\0", "an Arrow or Feather table"),
    "pdf": (b"%PDF-1.7\n", "a PDF document"),
    "pickle": (pickle.dumps({"a": 1}), "a pickle of Python"),
    "mtx": (b"%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 1\n", r"a MatrixMarket .*\.mtx"),
    "graphml": (b'<?xml version="1.0"?>\n<graphml></graphml>', r"GraphML. Rename it .*\.graphml"),
    "html": (b"\n<!doctype HTML>\n<p>Not found", "an HTML page. Download the file itself"),
    "rar": (b"Rar!\x1a\x07\x01\0", "compressed in another way than by gzip. Unpack it"),
    "one line of gml": (b"graph [ directed 0 node [ id 1 ] ]", "GML. Rename it"),
    "gml": (b'Creator "x"\ngraph\n[\n node [ id 1 ]', r"GML. Rename it so that it ends in \.gml"),
    "pajek": (b"*Vertices 3\n1 a\n", "a Pajek network"),
}  # fmt: skip


@pytest.mark.parametrize("extension", ["csv", "txt", "csv.gz"])
@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_other_kinds_are_named(tmp_path, kind, extension):
    content, message = OTHER_KINDS[kind]
    path = tmp_path / f"a.{extension}"
    path.write_bytes(gzip.compress(content) if extension == "csv.gz" else content)
    if extension == "csv.gz" and kind in ("zip", "xlsx", "ods", "npz"):
        message = "a zip archive"  # what is in it is not looked at
    verb = "its content is" if extension == "csv.gz" else "it is"
    plain = extension.removesuffix(".gz")
    with pytest.raises(ValueError, match=rf"a\.{extension} must be a \.{plain} file, but {verb} {message}"):
        read_graph(path)


def test_tables_and_databases(tmp_path):
    pandas = pytest.importorskip("pandas", reason="writes the table")
    pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    pandas.DataFrame({"a": ["x"], "b": ["y"]}).to_parquet(tmp_path / "a.parquet")
    path = (tmp_path / "a.parquet").rename(tmp_path / "a.csv")
    with pytest.raises(
        ValueError, match=r"a\.csv must be a \.csv file, but it is a Parquet table\. Rename .*\.parquet"
    ):
        read_graph(path)
    path.write_bytes(database(tmp_path))
    with pytest.raises(ValueError, match=r"it is an SQLite database\. Export the table of edges as CSV"):
        read_graph(path)


def test_a_matrix_under_the_name_of_another_format(tmp_path):
    sparse.save_npz(tmp_path / "a.npz", sparse.eye_array(3).tocsr())
    path = (tmp_path / "a.npz").rename(tmp_path / "a.mtx")
    with pytest.raises(ValueError, match=r"a\.mtx must be a \.mtx file, but it is a NumPy archive"):
        read_graph(path)


TEXTS = ["", "a,b\n", "PK,b\n", "graph,b\n", "%x,y\n", "Rar,x\n", "<html,b\n", "\ufeffa,b\n", "x" * 2000]
# Names that begin like a file of another kind: PAR1 is a gene.
TEXTS += [f"{name},b,0.5\n" for name in ("PAR1", "ARROW1", "FEA1", "Rar!", "graph [x]", "MATLAB")]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_nothing_else(tmp_path, text):
    (tmp_path / "a.csv").write_text(text, "utf-8")
    assert kind_of(tmp_path / "a.csv") is None


def test_many_comments_take_no_time(tmp_path):
    """Each comment once doubled the time."""
    (tmp_path / "a.csv").write_bytes(b"<!---->" * 80)
    assert kind_of(tmp_path / "a.csv") is None
    (tmp_path / "a.csv").write_bytes(b"<!-- a -->\n<!-- <b> -->" * 3 + b"<graphml>")
    assert kind_of(tmp_path / "a.csv").what == "GraphML"


def test_the_content_of_damaged_archives_is_left_to_their_readers(tmp_path):
    (tmp_path / "a.npz").write_bytes(archive_of("a")[:40])
    refuse_other_kinds(tmp_path / "a.npz", ".npz")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"PAR1" * 50)[:12])
    refuse_other_kinds(tmp_path / "a.csv.gz", ".csv")
