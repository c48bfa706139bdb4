"""Reading matrices: every format, and files of the wrong kind."""

import os

import numpy as np
import pytest
from helpers import refusal
from matrix_files import WRITERS, M
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu import decompose
from symrelu.files import read_matrix


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_is_read(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    matrix = read_matrix(path)
    assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, M)
    assert sparse.issparse(matrix) == ("dense" not in name)


@pytest.mark.parametrize("name", WRITERS)
def test_truncated_files_say_so(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - len(whole) // 3])
    with pytest.raises(ValueError, match=rf"{name}.*damaged or truncated"):
        read_matrix(path)


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.mtx"])
@pytest.mark.parametrize("content", [b"", b"hello, this is a letter\n", bytes(1000)])
def test_garbage_is_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged or truncated"):
        read_matrix(path)


@pytest.mark.parametrize("name", WRITERS)
def test_every_damaged_byte_is_noticed_or_harmless(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    whole = path.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(whole), 100):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        message = refusal(read_matrix, path)
        assert message is None or name in message


def test_files_of_the_wrong_kind(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"The file .* does not exist"):
        read_matrix(tmp_path / "missing.npz")
    with pytest.raises(IsADirectoryError, match="is a folder, not a file"):
        read_matrix(tmp_path)
    (tmp_path / "table.csv").write_text("1,2")
    with pytest.raises(ValueError, match=r"must be one of .*, got the extension '.csv'"):
        read_matrix(tmp_path / "table.csv")
    np.savez(tmp_path / "two.npz", a=M, b=M)
    with pytest.raises(ValueError, match=r"must hold one dense array .*, got the arrays \['a', 'b'\]"):
        read_matrix(tmp_path / "two.npz")
    decompose(M, 1, max_iter=1, random_state=0).save(tmp_path / "solution.npz")
    with pytest.raises(ValueError, match=r"is a saved Solution, not a matrix"):
        read_matrix(tmp_path / "solution.npz")
    (tmp_path / "solution.npz").rename(tmp_path / "archive.npy")
    with pytest.raises(ValueError, match="npz archive with the extension"):
        read_matrix(tmp_path / "archive.npy")


def test_pickled_objects_are_not_loaded(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"objects.npy is not a readable npy file"):
        read_matrix(tmp_path / "objects.npy")


def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.mtx")
    with pytest.raises(OSError, match=r"pipe.mtx is not a regular file"):
        read_matrix(tmp_path / "pipe.mtx")
