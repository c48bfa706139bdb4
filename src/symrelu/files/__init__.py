"""Files: matrices and archives validated on load, outputs written atomically."""

from symrelu.files.archives import check_names, open_npz, read_header, read_npz, without_objects
from symrelu.files.matrices import read_matrix
from symrelu.files.writing import check_output, make_folder, write_atomically

__all__ = [
    "check_names",
    "check_output",
    "make_folder",
    "open_npz",
    "read_header",
    "read_matrix",
    "read_npz",
    "without_objects",
    "write_atomically",
]
