"""Reading matrices: every format, and every way a file can be wrong."""

import gzip
import io as streams
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
from helpers import refusal
from numpy.testing import assert_array_equal
from scipy import io, sparse

from symrelu import decompose
from symrelu.files import check_output, read_matrix, write_atomically

M = np.array([[0.0, 2.0, 0.0], [2.0, 1.0, 0.5], [0.0, 0.5, 0.0]])


def write_npz_sparse(path):
    sparse.save_npz(path, sparse.csr_array(M))


def write_npz_plain_csr(path):
    csr = sparse.csr_array(M)
    np.savez(path, data=csr.data, indices=csr.indices, indptr=csr.indptr, shape=csr.shape)


def write_gzip(path):
    with gzip.open(path, "wb") as file:
        io.mmwrite(file, sparse.coo_array(M))


WRITERS = {
    "sparse.npz": write_npz_sparse,
    "old.npz": lambda path: sparse.save_npz(path, sparse.coo_matrix(M)),
    "stored.npz": lambda path: sparse.save_npz(path, sparse.csc_array(M), compressed=False),
    "diagonals.npz": lambda path: sparse.save_npz(path, sparse.dia_array(M)),
    "blocks.npz": lambda path: sparse.save_npz(path, sparse.bsr_array(M, blocksize=(3, 1))),
    "parts.npz": write_npz_plain_csr,
    "dense.npz": lambda path: np.savez(path, anything=M),
    "dense.npy": lambda path: np.save(path, M),
    "dense fortran.npy": lambda path: np.save(path, np.asfortranarray(M)),
    "sparse.mtx": lambda path: io.mmwrite(path, sparse.coo_array(M)),
    "symmetric.mtx": lambda path: io.mmwrite(path, sparse.coo_array(M), symmetry="symmetric"),
    "dense.mtx": lambda path: io.mmwrite(path, M),
    "sparse.mtx.gz": write_gzip,
}


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
    with pytest.raises(ValueError, match=rf"{name}.*damaged or cut short"):
        read_matrix(path)


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.mtx"])
@pytest.mark.parametrize("content", [b"", b"hello, this is a letter\n", bytes(1000)])
def test_garbage_is_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged or cut short"):
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


@pytest.mark.parametrize("name", ["sparse.mtx", "symmetric.mtx", "dense.mtx"])
def test_text_that_crashed_the_reader(tmp_path, name):
    """A last line that ends in a blank without a line feed brought the whole interpreter down."""
    path = tmp_path / name
    WRITERS[name](path)
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    matrix = read_matrix(path)
    assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, M)


def test_files_of_the_wrong_kind(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_matrix(tmp_path / "missing.npz")
    with pytest.raises(IsADirectoryError, match="is a folder, not a file"):
        read_matrix(tmp_path)
    (tmp_path / "table.csv").write_text("1,2")
    with pytest.raises(ValueError, match=r"must be one of .*; the ending '.csv' is not known"):
        read_matrix(tmp_path / "table.csv")
    np.savez(tmp_path / "two.npz", a=M, b=M)
    with pytest.raises(ValueError, match=r"must hold one dense array .*, got the arrays \['a', 'b'\]"):
        read_matrix(tmp_path / "two.npz")
    decompose(M, 1, max_iter=1, random_state=0).save(tmp_path / "solution.npz")
    with pytest.raises(ValueError, match=r"is a saved Solution, not a matrix"):
        read_matrix(tmp_path / "solution.npz")
    (tmp_path / "solution.npz").rename(tmp_path / "archive.npy")
    with pytest.raises(ValueError, match="npz archive with the ending"):
        read_matrix(tmp_path / "archive.npy")


def test_pickled_objects_are_not_loaded(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"objects.npy is not a readable npy file"):
        read_matrix(tmp_path / "objects.npy")


MTX = b"%%MatrixMarket matrix coordinate real general\n"
DENSE_MTX = b"%%MatrixMarket matrix array real general\n"


def npy(shape, content=b"", descr="<f8"):
    """An array that says it has this shape."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + content


def npz(compression=zipfile.ZIP_DEFLATED, **members):
    """An archive of arrays: real ones, or what stands for one."""
    file = streams.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, member in members.items():
            if not isinstance(member, bytes):
                array = streams.BytesIO()
                np.save(array, member)
                member = array.getvalue()
            archive.writestr(f"{name}.npy", member)
    return file.getvalue()


def swollen(text, size):
    """A text that goes on for ``size`` bytes more of what it ends in, compressed piece by piece."""
    piece = gzip.compress(text[-1:] * 2**22, mtime=0)
    return gzip.compress(text, mtime=0) + piece * (size // 2**22)


INTEGERS = np.arange(2)
HUGE = np.array([10**9, 10**9])

LIES = {
    # what a file says of itself, and how it is refused; issue 11.13
    "a header of many numbers.npy": (npy("(1000000, 1000000)", bytes(8)), "takes 8000000000000 bytes, got 8"),
    "negative sizes.npy": (npy("(-1, -1)", bytes(8)), r"shape \(-1, -1\) and type float64 cannot be loaded"),
    "no bytes.npy": (npy("(1000000, 1000000)", descr="<U0"), "cannot be loaded"),
    "one number.npy": (npy("()", bytes(8)), r"must hold a matrix, got an array of shape \(\)"),
    "a list.npy": (npy("(1,)", bytes(8)), r"must hold a matrix, got an array of shape \(1,\)"),
    "one number.npz": (npz(a=np.array(3.0)), r"must hold a matrix, got an array of shape \(\)"),
    "stored.npz": (npz(zipfile.ZIP_STORED, a=npy("(1000000, 1000000)", bytes(8))), "bytes, got 8"),
    "compressed.npz": (npz(a=npy("(1000000, 1000000)", bytes(8))), "takes 8000000000000 bytes, got 8"),
    "a text.npz": (npz(a=np.ones((2, 2)), b=b"a longer text"), "magic string is not correct"),
    "flat blocks.npz": (
        npz(format="bsr", shape=INTEGERS, data=np.ones((1, 2, 0)), indices=INTEGERS[:1], indptr=INTEGERS),
        r"blocks of a bsr matrix have rows and columns, got data of shape \(1, 2, 0\)",
    ),
    "indices that point outside.npz": (
        npz(format="csr", shape=INTEGERS + 1, data=np.ones(1), indices=INTEGERS[1:] * 2**40, indptr=INTEGERS),
        "indices must be < 2",
    ),
    "coordinates outside.npz": (
        npz(format="coo", shape=INTEGERS + 1, data=np.ones(1), row=INTEGERS[1:] * 2**40, col=INTEGERS[:1]),
        "exceeds matrix dimension",
    ),
    "negative coordinates.npz": (
        npz(format="coo", shape=INTEGERS + 1, data=np.ones(1), row=INTEGERS[1:] - 2, col=INTEGERS[:1]),
        "negative",
    ),
    "diagonals far away.npz": (
        npz(format="dia", shape=INTEGERS + 1, data=np.ones((1, 2)), offsets=INTEGERS[1:] * 2**40),
        "the offsets of its diagonals are too large",
    ),
    "fractions.npz": (
        npz(format="csr", shape=INTEGERS + 1, data=np.ones(1), indices=np.ones(1), indptr=INTEGERS),
        "indices that are integers",
    ),
    "a cube.npz": (
        npz(format="coo", shape=np.arange(3), data=np.ones(1), row=INTEGERS, col=INTEGERS),
        "shape of",
    ),
    "unknown.npz": (npz(format="xyz", shape=INTEGERS, data=np.ones(1)), "must be one of csr, .*, got 'xyz'"),
    "too many entries.mtx": (MTX + b"3 3 10\n1 1 1\n", "a 3 x 3 matrix cannot have 10 entries"),
    "too few lines.mtx": (MTX + b"3 3 2\n1 1 1\n", "the header tells of 2 entries, but there are 1"),
    "too many lines.mtx": (MTX + b"3 3 1\n1 1 1\n1 2 1\n", "tells of 1 entries, but there are more"),
    "negative.mtx": (MTX + b"-3 3 1\n1 1 1\n", r"line 2 must hold the sizes of the matrix, got '-3 3 1\\n'"),
    "no sizes.mtx": (MTX + b"% nothing\n", "line 3 must hold the sizes of the matrix"),
    "not numbers.mtx": (MTX + b"% why\n3 3 2\n1 1 1\n1 2 one\n", "line 5 holds something else than numbers"),
    "billions of digits.mtx": (MTX + b"3 3 " + b"9" * 5000, "must hold the sizes of the matrix"),
    "blanks.mtx": (MTX + b"3 3 1\n1 1 1\n" + b" " * 2**21, "2.1 MB of text are more than the 1 entries"),
    "blanks.mtx.gz": (swollen(MTX + b"3 3 1\n1 1 1 ", 3 * 10**9), "4.2 MB of text are more than the 1 entries"),
    "lines.mtx.gz": (swollen(MTX + b"3 3 1\n1 1 1\n", 3 * 10**9), "of text are more than the 1 entries"),
    "digits.mtx.gz": (swollen(MTX + b"3 3 1\n1 1 1", 3 * 10**9), "of text are more than the 1 entries"),
    "comments.mtx.gz": (swollen(MTX + b"%", 3 * 10**9), "do not come within the first 1.0 MB"),
    "banner.mtx.gz": (swollen(b"%", 3 * 10**9), "the first line is not that of a MatrixMarket file"),
    "its end says 3 GB.mtx.gz": (
        gzip.compress(MTX + b"3 3 1\n1 1 1\n")[:-4] + (3 * 10**9).to_bytes(4, "little"),
        "3.0 GB of text are more than the 1 entries",
    ),
}

TOO_LARGE = {
    # what is more than 16 GB, by its own word
    "rows.mtx": (MTX + b"1000000000 1000000000 1\n1 1 1\n", "1000000000 x 1000000000 matrix need 200.0 GB"),
    "entries.mtx": (
        MTX + b"1000000 1000000 999999000000\n1 1 1\n",
        "999999000000 entries of its header need 24000.0 GB",
    ),
    "entries.mtx.gz": (gzip.compress(MTX + b"1000000 1000000 999999000000\n1 1 1\n"), "header need 24000.0 GB"),
    "dense.mtx": (DENSE_MTX + b"1000000 1000000\n1\n", "1000000000000 entries of its header need 8000.0 GB"),
    "rows.npz": (
        npz(format="coo", shape=HUGE, data=np.ones(2), row=INTEGERS, col=INTEGERS),
        "1000000000 x 1000000000 matrix need 200.0 GB, and 16.0 GB are available",
    ),
    "diagonal rows.npz": (
        npz(format="dia", shape=HUGE, data=np.ones((1, 2)), offsets=INTEGERS[:1]),
        "200.0 GB",
    ),
}


def traced(path):
    """Return the error of reading a file, and how many bytes that took."""
    tracemalloc.start()
    try:
        with pytest.raises((ValueError, MemoryError)) as caught:
            read_matrix(path)
        return caught, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("available", [16 * 10**9, None], ids=["16 GB", "unknown memory"])
@pytest.mark.parametrize("name", LIES)
def test_a_header_is_not_believed(tmp_path, monkeypatch, name, available):
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: available)
    content, message = LIES[name]
    path = tmp_path / name
    path.write_bytes(content)
    error, peak = traced(path)
    error.match(f"{name} .*{message}")
    assert error.type is not MemoryError
    assert peak < 12 * 2**20  # a few chunks


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_matrix_that_does_not_fit_is_refused_with_its_size(tmp_path, monkeypatch, name):
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: 16 * 10**9)
    content, message = TOO_LARGE[name]
    path = tmp_path / name
    path.write_bytes(content)
    error, peak = traced(path)
    error.match(f"{name} must fit into memory, but .*{message}")
    assert error.type is MemoryError
    assert peak < 12 * 2**20


@pytest.mark.parametrize("name", ["swollen.npz", "pointers.npz", "large.npy"])
def test_a_real_size_is_refused_before_it_is_read(tmp_path, monkeypatch, name):
    """issue 11.13: 80 MB where 50 MB are available."""
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: 50 * 10**6)
    path = tmp_path / name
    pointers = np.zeros(10**7 + 1, np.int64)
    if name == "large.npy":
        with open(path, "wb") as file:
            file.write(npy("(10000, 1000)"))
            file.truncate(file.tell() + 8 * 10**7)  # a hole
    elif name == "swollen.npz":
        path.write_bytes(npz(a=pointers[:-1].reshape(1000, 10000)))
    else:
        nothing = np.zeros(0)
        shape = np.array([10**7, 10**7])
        path.write_bytes(
            npz(format="csr", shape=shape, data=nothing, indices=nothing.astype(int), indptr=pointers)
        )
    del pointers
    error, peak = traced(path)
    error.match(f"{name} must fit into memory, but its arrays need 80.0 MB, and 50.0 MB are available")
    assert peak < 12 * 2**20


def test_a_directory_that_lies_takes_no_memory(tmp_path, monkeypatch):
    """The directory of an archive and the header of its array agree on 3.2 GB; 8 bytes are there."""
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: None)
    header = npy("(100000000, 4)")
    content = bytearray(npz(a=header + bytes(8)))
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (len(header) + 32 * 10**8).to_bytes(4, "little")
    path = tmp_path / "lie.npz"
    path.write_bytes(content)
    error, peak = traced(path)
    error.match(r"lie.npz is not a readable npz file .*an array ends after 8 of 3200000000 bytes")
    assert peak < 12 * 2**20


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


def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.mtx")
    with pytest.raises(OSError, match=r"pipe.mtx is not an ordinary file"):
        read_matrix(tmp_path / "pipe.mtx")


def write_half(path):
    with write_atomically(path) as file:
        file.write(b"new")
        raise OSError("the disk is full")


def test_write_atomically_replaces_only_when_complete(tmp_path):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="the disk is full"):
        write_half(path)
    assert path.read_bytes() == b"old"
    with write_atomically(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_write_atomically_follows_a_symbolic_link(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with write_atomically(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_check_output(tmp_path, monkeypatch):
    assert check_output(tmp_path / "new.npz") == tmp_path / "new.npz"
    with pytest.raises(FileNotFoundError, match=r"The output folder .*nowhere does not exist"):
        check_output(tmp_path / "nowhere" / "x.npz")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(OSError, match="is longer than 255 bytes"):
        check_output(tmp_path / ("x" * 300))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is not an ordinary file"):
        check_output(tmp_path / "pipe")
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PermissionError, match="cannot be written to"):
        check_output(tmp_path / "x.npz")
