"""Files of matrices in every format, honest ones and others."""

import gzip
import io as streams
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy import io, sparse

from symrelu.files import read_matrix

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


def traced(path):
    """Return the error of reading a file, and how many bytes that took."""
    tracemalloc.start()
    try:
        with pytest.raises((ValueError, MemoryError)) as caught:
            read_matrix(path)
        return caught, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
