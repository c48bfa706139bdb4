"""Matrix Market files."""

import gzip

import numpy as np
import pytest
from matrix_files import WRITERS, M
from numpy.testing import assert_array_equal
from scipy import io, sparse

from symrelu.files import read_matrix


@pytest.mark.parametrize("name", ["sparse.mtx", "symmetric.mtx", "dense.mtx"])
def test_text_that_crashed_the_reader(tmp_path, name):
    """A last line that ends in a blank without a line feed brought the whole interpreter down."""
    path = tmp_path / name
    WRITERS[name](path)
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    matrix = read_matrix(path)
    assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, M)


MTX = b"%%MatrixMarket matrix coordinate real general\n"


def test_long_mtx_files_are_read(tmp_path):
    """Over the borders of what is read at a time, with blank lines and lines of any width."""
    rng = np.random.default_rng(0)
    dense = np.round(rng.random((400, 400)), 3)
    rows, columns = (index + 1 for index in np.nonzero(dense))
    lines = [f"{i}  {j}\t{dense[i - 1, j - 1]:.3f}" for i, j in zip(rows, columns, strict=True)]
    text = MTX + b"% a comment\n\n" + f"400 400 {len(lines)}\n".encode() + "\n\n".join(lines).encode()
    assert len(text) > 2 * 2**20
    for name, content in (("long.mtx", text), ("long.mtx.gz", gzip.compress(text))):
        (tmp_path / name).write_bytes(content)
        assert_array_equal(read_matrix(tmp_path / name).toarray(), dense)


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric", "hermitian", "general"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.coo_array], ids=["dense", "sparse"])
def test_every_symmetry_is_read(tmp_path, symmetry, kind):
    matrix = {"skew-symmetric": np.triu(M, 1) - np.triu(M, 1).T, "hermitian": M + 1j * np.triu(M, 1)}.get(
        symmetry, M
    )
    matrix = (matrix + matrix.conj().T) / 2 if symmetry == "hermitian" else matrix
    io.mmwrite(tmp_path / "m.mtx", kind(matrix), symmetry=symmetry)
    read = read_matrix(tmp_path / "m.mtx")
    assert_array_equal(read.toarray() if sparse.issparse(read) else read, matrix)
