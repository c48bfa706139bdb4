"""Files of published data as arrays, in both formats."""

import hashlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import io, sparse

from symrelu.datasets.readers import read
from symrelu.datasets.sources import Source

DATA = np.arange(24.0).reshape(6, 4)
LABELS = np.array([3, 3, 1, 1, 2, 2])


def write_npz(path, **arrays):
    np.savez(path, **arrays)


def csr_parts(kind=np.uint8):
    csr = sparse.csr_array(DATA)
    return {"data": csr.data.astype(kind), "indices": csr.indices, "indptr": csr.indptr, "shape": csr.shape}


WRITERS = {
    "dense.mat": lambda path: io.savemat(path, {"fea": DATA, "gnd": LABELS}),
    "columns.mat": lambda path: io.savemat(path, {"fea": DATA, "gnd": LABELS[:, None].astype(np.uint8)}),
    "more.mat": lambda path: io.savemat(path, {"fea": DATA.astype(np.uint8), "gnd": LABELS, "trainIdx": [1]}),
    "compressed.mat": lambda path: io.savemat(path, {"fea": DATA, "gnd": LABELS}, do_compression=True),
    "sparse.mat": lambda path: io.savemat(path, {"fea": sparse.csc_array(DATA), "gnd": LABELS}),
    "dense.npz": lambda path: write_npz(path, fea=DATA.astype(np.uint8), gnd=LABELS),
    "scaled.npz": lambda path: write_npz(path, fea=(4 * DATA).astype(np.uint8), scale=4.0, gnd=LABELS),
    "sparse.npz": lambda path: write_npz(path, gnd=LABELS.astype(np.int16), **csr_parts()),
    "floats, sparse.npz": lambda path: write_npz(path, gnd=LABELS, **csr_parts(np.float32)),
}


def source_of(path, shape=(6, 4), classes=3):
    return Source("set", path.name, hashlib.sha256(path.read_bytes()).hexdigest(), shape, classes)


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_numbers(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    data, labels = read(path, source_of(path))
    assert sparse.issparse(data) == ("sparse" in name)
    assert isinstance(data, sparse.csr_array if "sparse" in name else np.ndarray)
    assert_array_equal(data.toarray() if sparse.issparse(data) else data, DATA)
    assert_array_equal(labels, LABELS)
    assert (data.dtype, labels.dtype) == (np.float64, np.int64)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("wrong", [{"shape": (6, 5)}, {"shape": (5, 4)}, {"classes": 2}])
def test_another_set_is_refused(tmp_path, name, wrong):
    path = tmp_path / name
    WRITERS[name](path)
    with pytest.raises(ValueError, match=r"is not set: expected .* got 6 x 4 with 3"):
        read(path, source_of(path, **wrong))


def test_items_without_a_class_are_not_counted_as_one(tmp_path):
    path = tmp_path / "graph.npz"
    write_npz(path, fea=DATA, gnd=[0, 1, 1, 2, 0, 2])
    assert_array_equal(read(path, source_of(path, classes=2))[1], [0, 1, 1, 2, 0, 2])


@pytest.mark.parametrize("name", [name for name in WRITERS if name.endswith(".npz")])
def test_an_npz_file_is_compared_with_its_digest_before_it_is_read(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    source = source_of(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="SHA-256"):
        read(path, source)


@pytest.mark.parametrize("content", [b"", b"letters", bytes(200)])
def test_what_is_no_matlab_file_is_named(tmp_path, content):
    path = tmp_path / "set.mat"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"set.mat cannot be read as a MATLAB file"):
        read(path, source_of(path))


@pytest.mark.parametrize("left_out", ["fea", "gnd"])
def test_a_matlab_file_needs_both_arrays(tmp_path, left_out):
    path = tmp_path / "set.mat"
    io.savemat(path, {name: array for name, array in (("fea", DATA), ("gnd", LABELS)) if name != left_out})
    with pytest.raises(ValueError, match=f"cannot be read .*'{left_out}'"):
        read(path, source_of(path))
