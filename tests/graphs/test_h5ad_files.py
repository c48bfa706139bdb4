"""Graphs in h5ad files, which another process reads."""

import gzip
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import symrelu
from graph_sources import NAMES, A, anndata_graph
from numpy.testing import assert_array_equal
from scipy import sparse

import symrelu as symrelu_package
from symrelu.files import checks
from symrelu.graphs import h5ad_files, read_graph

SIGNATURE = b"\x89HDF\r\n\x1a\n"
DATA = Path(__file__).parents[1] / "data"


def write_h5ad(path, **changes):
    adata = anndata_graph(**changes)
    adata.obsp["distances"] = sparse.csr_matrix(np.eye(len(NAMES)))
    adata.write_h5ad(path)
    return path


def test_entries_of_an_h5ad_file(tmp_path):
    path = write_h5ad(tmp_path / "a.h5ad")
    assert_array_equal(read_graph(path, key="distances").matrix.toarray(), np.eye(len(NAMES)))
    path = write_h5ad(tmp_path / "b.h5ad", neighbors={"connectivities_key": "distances"})
    assert_array_equal(read_graph(path).matrix.toarray(), np.eye(len(NAMES)))
    with pytest.raises(
        ValueError, match=r"b\.h5ad: adata\.obsp must hold the graph 'x'; its entries are: 'conn"
    ):
        read_graph(path, key="x")


@pytest.mark.filterwarnings("ignore:Observation names are not unique")
def test_names_that_occur_twice(tmp_path):
    adata = anndata_graph()
    adata.obs_names = [*NAMES[:-1], NAMES[0]]
    adata.write_h5ad(tmp_path / "a.h5ad")
    with pytest.raises(
        ValueError, match=r"a\.h5ad must have a different name .* but 'd' occurs twice. Call adata"
    ):
        read_graph(tmp_path / "a.h5ad")


def test_h5ad_files_larger_than_memory(tmp_path, monkeypatch):
    """The matrix X is not read, and an entry that was never written takes no space in the file."""
    h5py = pytest.importorskip("h5py")
    path = write_h5ad(tmp_path / "a.h5ad")
    with h5py.File(path, "r+") as file:
        del file["obsp/distances"]
        file.create_dataset("obsp/distances", (10**6, 10**6), "f8", chunks=(100, 100))
    with pytest.raises(MemoryError, match=r"a\.h5ad must fit into memory, but its tables need 8000\.0 GB"):
        read_graph(path)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix])
def test_indices_outside_of_the_matrix(tmp_path, kind):
    h5py = pytest.importorskip("h5py")
    path = write_h5ad(tmp_path / "a.h5ad", graph=kind(A))
    with h5py.File(path, "r+") as file:
        file["obsp/connectivities/indices"][1] = 10**8
    with pytest.raises(ValueError, match=r"a\.h5ad is not a readable h5ad file .* indices"):
        read_graph(path)


@pytest.mark.parametrize("content", [b"", SIGNATURE + bytes(500), SIGNATURE[:4]])
def test_damaged_h5ad_files(tmp_path, content):
    pytest.importorskip("anndata")
    (tmp_path / "a.h5ad").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.h5ad is not a readable h5ad file"):
        read_graph(tmp_path / "a.h5ad")


def test_without_anndata(tmp_path, monkeypatch):
    (tmp_path / "a.h5ad").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ImportError, match=r"Reading a \.h5ad file needs anndata.* 'symrelu\[anndata\]'"):
        read_graph(tmp_path / "a.h5ad")


@pytest.fixture
def crashing(tmp_path):
    """A file with one changed byte, on which h5py 3.16 ends the process (a segmentation fault)."""
    pytest.importorskip("anndata", reason="h5ad files need anndata")
    path = tmp_path / "crashing.h5ad"
    path.write_bytes(gzip.decompress((DATA / "crashing.h5ad.gz").read_bytes()))
    return path


def test_a_file_on_which_the_library_crashes(crashing, monkeypatch, capsys):
    with pytest.raises(ValueError, match=r"crashing\.h5ad is not a readable h5ad file"):
        read_graph(crashing)
    code, out, err = symrelu(monkeypatch, capsys, "embed", crashing, "-o", crashing.with_name("v.csv"))
    assert (code, out) == (2, "")
    assert "crashing.h5ad is not a readable h5ad file (damaged or truncated?)" in err


@pytest.mark.skipif(sys.platform == "win32", reason="needs the signals of other systems")
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", r"library crashed \(SIGSEGV\) while"),
        ("import os; os.abort()", r"library crashed \(SIGABRT\) while"),
        ("import os; os._exit(3)", "library ended with code 3 while"),
        ("print('{\"sha', end='')", "library ended with code 0 while"),
        # It crashes while it sends the arrays.
        (
            'import sys; sys.stdin.read(); print(\'{"shape": [2, 2], "names": ["a", "b"], '
            "\"arrays\": [[\"<f8\", [2, 2]]]}'); print('x', end='', flush=True); import os; os.abort()",
            r"library crashed \(SIGABRT\) while",
        ),
    ],
)
def test_a_process_that_ends_early(tmp_path, monkeypatch, program, message):
    pytest.importorskip("anndata", reason="h5ad files need anndata")
    (tmp_path / "a.h5ad").write_bytes(SIGNATURE)
    monkeypatch.setattr(h5ad_files, "_PROGRAM", f"print('ready', flush=True); {program}")
    with pytest.raises(ValueError, match=rf"a\.h5ad is not a readable h5ad file .*{message}"):
        read_graph(tmp_path / "a.h5ad")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("raise SystemExit(4)", r"that one ended with code 4 before .*: it printed nothing\. Mend"),
        (
            "import no_such_library",
            r"ended with code 1 .*: ModuleNotFoundError: No module named 'no_such_library'\.",
        ),
        ("print('Hello')", "ended with code 0"),
    ],
)
def test_a_process_that_cannot_begin_is_not_the_fault_of_the_file(
    tmp_path, monkeypatch, capsys, program, message
):
    path = write_h5ad(tmp_path / "a.h5ad")
    monkeypatch.setattr(h5ad_files, "_PROGRAM", program)
    with pytest.raises(
        ChildProcessError, match=rf"a\.h5ad must be read by another Python process, .*{message}"
    ):
        read_graph(path)
    code, _, err = symrelu(monkeypatch, capsys, "embed", path, "-o", tmp_path / "v.csv")
    assert code == 2
    assert "damaged" not in err
    assert "another Python process" in " ".join(err.split())


def test_the_other_process_cannot_import_symrelu(tmp_path, monkeypatch):
    path = write_h5ad(tmp_path / "a.h5ad")
    source = str(Path(symrelu_package.__file__).parents[1])
    stripped = [one for one in sys.path if one != source and "site-packages" not in one]
    monkeypatch.setattr(sys, "path", stripped)
    # An editable installation may be found without the path, but NumPy is not.
    with pytest.raises(ChildProcessError, match=r"ModuleNotFoundError: No module named '(symrelu|numpy)'\."):
        h5ad_files.read_h5ad(path, None)


def test_paths_in_the_search_path(tmp_path, monkeypatch):
    path = write_h5ad(tmp_path / "a.h5ad")
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
    assert h5ad_files.read_h5ad(path, None).labels.tolist() == NAMES


def test_a_graph_must_fit_into_memory_twice(tmp_path, monkeypatch):
    """Both processes have it for a moment; only this one has little memory."""
    path = write_h5ad(tmp_path / "a.h5ad", graph=np.asarray(A, dtype=np.float64))
    monkeypatch.setattr(checks, "available_memory", lambda: A.size * 8 - 1)
    with pytest.raises(MemoryError, match=r"a\.h5ad must fit into memory, but the arrays of its graph need"):
        h5ad_files.read_h5ad(path, None)
    monkeypatch.setattr(checks, "available_memory", lambda: A.size * 8)
    assert_array_equal(h5ad_files.read_h5ad(path, None).matrix, A)


@pytest.mark.skipif(sys.platform == "win32", reason="needs the signals of other systems")
def test_an_interrupt_ends_the_other_process(tmp_path, monkeypatch):
    pytest.importorskip("anndata", reason="h5ad files need anndata")
    (tmp_path / "a.h5ad").write_bytes(SIGNATURE)
    started = []

    def interrupted(path, answer):
        started.append(int(answer.readline()))
        raise KeyboardInterrupt

    program = "import os, time; print('ready'); print(os.getpid(), flush=True); time.sleep(600)"
    monkeypatch.setattr(h5ad_files, "_PROGRAM", program)
    monkeypatch.setattr(h5ad_files, "_receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_graph(tmp_path / "a.h5ad")
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], signal.SIGTERM)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (np.asarray, np.float32),
        (sparse.csr_matrix, bool),
        (sparse.csc_matrix, np.float64),
        (np.asarray, np.int64),
    ],
)
def test_both_ways_of_reading_agree(tmp_path, monkeypatch, kind, dtype):
    path = write_h5ad(tmp_path / "a.h5ad", graph=kind(A.astype(dtype)))
    (tmp_path / "json.py").write_text("raise RuntimeError")  # must not be imported
    monkeypatch.chdir(tmp_path)
    here, there = h5ad_files._read(path, None), h5ad_files.read_h5ad(Path("a.h5ad"), None)
    assert type(there.matrix) is type(here.matrix)
    assert there.matrix.dtype == here.matrix.dtype == dtype
    assert_array_equal(*(m.toarray() if sparse.issparse(m) else m for m in (there.matrix, here.matrix)))
    assert there.labels.tolist() == here.labels.tolist() == NAMES
    monkeypatch.setattr(sys, "executable", "")  # inside another program
    assert h5ad_files.read_h5ad(path, None).labels.tolist() == NAMES
