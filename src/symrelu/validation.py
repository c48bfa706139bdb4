"""The only judge of what users pass in. Every message says what was required, what came, what to do."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.kernels.tiles import TILE
from symrelu.memory import available_memory

# Asymmetry up to this fraction of the largest entry is rounding (kernels and normalisations leave it).
_SYMMETRY_TOLERANCE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}

_WAYS_TO_AN_ARRAY = ("__array__", "__array_interface__", "__array_struct__", "__buffer__", "__dlpack__")

CheckShape = Callable[[tuple[int, ...], str], None]

# Matrices whose largest entry lies outside [4^-8, 4^9) are brought to order one before a fit.
_SAFE_EXPONENT = 8

_NOTHING_OBSERVED = "{} must have a positive entry that is observed, but mask and diagonal hide them all."
_NOTHING_TO_FIT = "{} must have a positive entry, but all are zero: there is nothing to fit."


class NothingObserved(ValueError):
    """All positive entries are unknown."""


def check_similarity(M: Any, name: str = "M") -> Any:
    """Return M as a canonical csr_array or a C-contiguous ndarray, in float32 or float64.

    Integers and booleans become float64. Asymmetry at the level of rounding is averaged away. Nothing
    that was passed in is changed; a dense array that is fine already is returned as it is.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n)
        Nonnegative, symmetric, finite, with at least one positive entry.
    name : str, default="M"
        What the messages call it.

    Returns
    -------
    M : csr_array or ndarray of shape (n, n)
    """
    return check_observed(M, name=name)[0]


def check_observed(
    M: Any, mask: Any | None = None, diagonal: str = "fit", *, name: str = "M"
) -> tuple[Any, Any | None]:
    """Return M as :func:`check_similarity` does, zero where it is unknown, and its checked mask.

    Unknown entries are taken out before anything looks at M: they may hold any value, NaN and infinity too,
    and no result depends on it.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n, n)
        Over the observed entries nonnegative, symmetric, finite, with at least one positive entry.
    mask : sparse or dense bool matrix of shape (n, n), optional
        True where the entry is unknown.
    diagonal : {"fit", "ignore"}, default="fit"
        "ignore" makes the diagonal unknown.
    name : str, default="M"
        What the messages call M.

    Returns
    -------
    M : csr_array or ndarray of shape (n, n)
    mask : csr_array or ndarray of bool of shape (n, n), or None
    """
    check_choice("diagonal", diagonal, ("fit", "ignore"))
    M = _to_floats(M, name, _check_square)
    mask = check_mask(mask, M.shape[0])
    observed = _without(M, mask, diagonal=diagonal == "ignore")
    _check_values(observed, name)
    observed = _check_symmetric(observed, name)
    if not _any(observed):
        if _any(M):
            raise NothingObserved(_NOTHING_OBSERVED.format(name))
        raise ValueError(_NOTHING_TO_FIT.format(name))
    return observed, mask


def check_hidden(M: Any, mask: Any) -> tuple[Any, Any]:
    """Return M as :func:`check_similarity` does, zero where it is not masked, and the checked mask.

    It is the opposite of :func:`check_observed`, for what judges a fit by the entries that were hidden from it.
    """
    M = _to_floats(M, "M", _check_square)
    M, mask = hidden_part(M, mask)
    _check_values(M, "M")
    return _check_symmetric(M, "M"), mask


def hidden_part(M: Any, mask: Any, unknown: Any | None = None) -> tuple[Any, Any]:
    """Return a checked M with zeros where it is not masked, and the checked mask.

    Parameters
    ----------
    M : csr_array or ndarray of shape (n, n)
    mask : sparse or dense bool matrix of shape (n, n)
        True where the entry was hidden.
    unknown : csr_array of bool of shape (n, n), optional
        Entries that M does not have either. They are taken out of the mask.

    Returns
    -------
    M : csr_array or ndarray of shape (n, n)
    mask : csr_array or ndarray of bool of shape (n, n)
    """
    if mask is None:
        raise TypeError("mask must be a boolean matrix, got None: without hidden entries there is no error.")
    mask = check_mask(mask, M.shape[0])
    if unknown is not None:
        mask = _without(sparse.csr_array(mask), unknown)
    if not _any(mask):
        known = " of those that M knows" if unknown is not None else ""
        raise ValueError(f"mask must hide at least one entry{known}, got none.")
    return _within(M, mask), mask


def check_rows(M: Any, n: int, mask: Any | None = None, name: str = "M_new") -> tuple[Any, Any | None]:
    """Return the similarities of new items to n fitted ones, zero where they are unknown, and their mask.

    Parameters
    ----------
    M : sparse matrix, sparse array or array-like of shape (n_new, n)
        Nonnegative and finite where it is known.
    n : int
        Number of fitted items.
    mask : sparse or dense bool matrix of shape (n_new, n), optional
        True where a similarity is unknown.
    name : str, default="M_new"
        What the messages call M.

    Returns
    -------
    M : csr_array or ndarray of shape (n_new, n)
        Of floats; a csr_array is canonical.
    mask : csr_array or ndarray of bool of shape (n_new, n), or None
    """

    def check_shape(shape: tuple[int, ...], name: str) -> None:
        if len(shape) != 2 or shape[1] != n:
            raise ValueError(
                f"{name} must have shape (n_new, {n}), the similarities of new items to the {n} fitted ones, "
                f"got shape {shape}."
            )

    M = _to_floats(M, name, check_shape)
    if mask is not None:
        mask = _to_boolean(mask)
        if mask.shape != M.shape:
            raise ValueError(f"mask must have the shape of {name}, {M.shape}, got {mask.shape}.")
    M = _without(M, mask)
    _check_values(M, name)
    return M, mask


def _to_floats(M: Any, name: str, check_shape: CheckShape) -> Any:
    """Return M as a canonical csr_array or a C-contiguous ndarray, in float32 or float64."""
    reject_foreign_objects(M, name)
    return _to_float_csr(M, name, check_shape) if sparse.issparse(M) else _to_float_array(M, name, check_shape)


def stored(M: Any) -> Any:
    """Return the entries that a matrix holds: those of a sparse one, and a dense one as it is."""
    return M.data if sparse.issparse(M) else M


def as_array(M: Any) -> Any:
    """Return a checked matrix as an ndarray."""
    return M.toarray() if sparse.issparse(M) else M


def _any(M: Any) -> bool:
    return bool(stored(M).any())


def _without(M: Any, mask: Any | None, *, diagonal: bool = False) -> Any:
    """Return M with zeros where the mask is true, and on the diagonal if that is asked; M if it has them."""
    if sparse.issparse(M):
        rows, cols = _places(M)
        unknown = rows == cols if diagonal else np.zeros(len(rows), bool)
        if mask is not None:
            unknown |= _entries(mask, rows, cols)
        return _kept(M, rows, ~unknown) if unknown.any() else M
    places = None if mask is None else _true_places(mask)
    if not (places is not None and M[places].any()) and not (diagonal and M.diagonal().any()):
        return M
    M = M.copy()
    if places is not None:
        M[places] = 0
    if diagonal:
        np.fill_diagonal(M, 0)
    return M


def hidden(M: Any, mask: Any) -> Any:
    """Return a checked M with zeros where a checked mask is true, or raise if nothing is left."""
    observed = _without(M, mask)
    if not _any(observed):
        raise NothingObserved(_NOTHING_OBSERVED.format("M"))
    return observed


def divided(M: Any, d: np.ndarray) -> Any:
    """Return M_ij / (d_i d_j) for a checked M and positive d: it has the properties of M, and needs no check.

    It is symmetric to the last bit, since a product of two numbers does not depend on their order.
    """
    if sparse.issparse(M):
        rows, cols = _places(M)
        values = M.data / (d[rows] * d[cols])
        quotient = sparse.csr_array((values.astype(M.dtype), M.indices, M.indptr), shape=M.shape)
        quotient = _without_stored_zeros(quotient)  # of what left the range
    else:
        quotient = (M / np.multiply.outer(d, d)).astype(M.dtype, copy=False)
    if not _any(quotient):
        raise ValueError(_NOTHING_TO_FIT.format("M"))
    return quotient


def _within(M: Any, mask: Any) -> Any:
    """Return M with zeros where the mask is false."""
    if sparse.issparse(M):
        rows, cols = _places(M)
        return _kept(M, rows, _entries(mask, rows, cols))
    places = _true_places(mask)
    masked = np.zeros_like(M)
    masked[places] = M[places]
    return masked


def _places(M: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the stored entries of a csr_array."""
    return np.repeat(np.arange(M.shape[0]), np.diff(M.indptr)), M.indices


def _kept(M: Any, rows: np.ndarray, kept: np.ndarray) -> Any:
    """Return a csr_array with some of its stored entries, whose rows are given, forgotten."""
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=M.shape[0]))])
    return sparse.csr_array((M.data[kept], M.indices[kept], indptr), shape=M.shape)


def _entries(mask: Any, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    if not len(rows):  # for which scipy has another kind of answer
        return np.zeros(0, bool)
    cols = np.array(cols)  # a view of bytes, as of a pickle, has flags that scipy fails to write
    return np.asarray(mask[rows, cols], dtype=bool).ravel()


def _true_places(mask: Any) -> Any:
    return mask.nonzero() if sparse.issparse(mask) else mask


def _to_boolean(mask: Any) -> Any:
    if sparse.issparse(mask):
        check_well_formed(mask, "mask")
        mask = sparse.csr_array(mask, copy=True)
        mask.sum_duplicates()
        mask.eliminate_zeros()
    else:
        mask = np.asarray(mask)
    if mask.dtype != bool:
        raise TypeError(
            f"mask must be boolean (True = unknown), got entries of type {mask.dtype}. "
            "Pass mask.astype(bool) if that is meant."
        )
    return mask


def reject_foreign_objects(M: Any, name: str = "M") -> None:
    """Raise for objects that NumPy would take apart in a way nobody means."""
    reject_text(M, name)
    if hasattr(M, "adjacency") and hasattr(M, "nodes") and hasattr(M, "edges"):
        raise TypeError(
            f"{name} must be a matrix, got a networkx {type(M).__name__}. "
            "Pass symrelu.graphs.from_networkx(graph).matrix."
        )
    if hasattr(M, "obsp") and hasattr(M, "obs_names"):
        raise TypeError(
            f"{name} must be a matrix, got an {type(M).__name__}. "
            "Pass symrelu.graphs.from_anndata(adata).matrix for its graph, or an array such as adata.X."
        )
    reject_masked_arrays(M, name)
    foreign = hasattr(M, "__getitem__") and not isinstance(M, Sequence) and not sparse.issparse(M)
    if foreign and not any(hasattr(M, way) for way in _WAYS_TO_AN_ARRAY):
        raise TypeError(  # NumPy would ask such an object for its items one by one, which may take for ever
            f"{name} must be an array, a scipy.sparse matrix, or data that symrelu.graphs.as_similarity reads, "
            f"got {type(M).__name__}."
        )


def reject_text(M: Any, name: str) -> None:
    """Raise for a file name or other text."""
    if isinstance(M, (bytes, str, os.PathLike)):
        text = os.fsdecode(M)
        tables = os.path.splitext(text)[1].lower() in (".csv", ".tsv", ".txt")
        read = f"pandas.read_csv({text!r}, index_col=0)" if tables else f"symrelu.files.read_matrix({text!r})"
        raise TypeError(
            f"{name} must be a matrix or a graph, got the {type(M).__name__} {text!r}. "
            f"If it names a file, read that first: {read}."
        )


def reject_what_is_no_matrix(M: Any, name: str = "M") -> None:
    """Raise for rows of different lengths, and for single objects."""
    if sparse.issparse(M) or hasattr(M, "shape"):
        return
    try:
        array = np.asarray(M)
    except ValueError as error:
        raise ValueError(f"{name} must be a matrix, got rows of different lengths.") from error
    if array.ndim == 0 and array.dtype.kind == "O":
        raise TypeError(f"{name} must be a matrix or a graph, got {type(M).__name__}.")


def reject_masked_arrays(M: Any, name: str = "M") -> None:
    """Raise for a masked array, whose mask NumPy would forget."""
    if isinstance(M, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must be a plain array, got a masked array. "
            f"Pass {name}.filled(0) and mask={name}.mask: masked entries are then unknown, not zero."
        )


def _check_dtype(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """Return the floating type to work in."""
    if dtype.kind == "c":
        raise TypeError(f"{name} must be real, got complex entries ({dtype}). Pass its modulus or real part.")
    if dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold numbers, got entries of type {dtype}. Convert them to float first; for a list "
            f"of edges with names, pass symrelu.graphs.from_edges({name}).matrix."
        )
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def _check_square(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise ValueError(f"{name} must be a square matrix, got {len(shape)} dimension(s), shape {shape}.")
    if shape[0] != shape[1]:
        raise ValueError(
            f"{name} must be square (similarities of n items with each other), got shape {shape}. "
            f"{_instead(shape, name)}."
        )
    if shape[0] == 0:
        raise ValueError(f"{name} must have at least one row, got an empty matrix of shape {shape}.")


def _instead(shape: tuple[int, ...], name: str) -> str:
    """Return what to pass in place of a matrix that is not square."""
    samples = f"For samples x features, build a graph first: symrelu.graphs.self_tuning_graph({name})"
    edges = f"; for a list of edges, pass symrelu.graphs.from_edges({name}).matrix"
    return samples + edges * (shape[1] in (2, 3))


def _to_float_csr(M: Any, name: str, check_shape: CheckShape) -> Any:
    check_shape(M.shape, name)
    dtype = _check_dtype(M.dtype, name)
    check_well_formed(M, name)
    if M.dtype != bool:  # duplicates are added as floats: small integers would wrap round
        M = M.astype(dtype, copy=False)
    csr = M.tocsr()
    # A new object over the same buffers: its format flags are computed, not inherited.
    csr = sparse.csr_array((csr.data, csr.indices, csr.indptr), shape=csr.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return _without_stored_zeros(csr.astype(dtype, copy=False))


def check_well_formed(M: Any, name: str) -> None:
    """Raise if a sparse matrix points outside of itself, where compiled code would follow it."""
    try:
        if M.format == "bsr" and 0 in M.blocksize:
            raise ValueError(f"its blocks have the size {M.blocksize}")
        if M.format in ("csr", "csc", "bsr"):
            # A new object over the same buffers, since the check may tidy the one it is called on.
            type(M)((M.data, M.indices, M.indptr), shape=M.shape).check_format(full_check=True)
            return
        if M.format == "lil" and list(map(len, M.rows)) != list(map(len, M.data)):
            raise ValueError("each row must have as many values as columns")
        M = M.tocoo(copy=False)
        for index, size in zip(M.coords, M.shape, strict=True):
            if len(index) != len(M.data) or (len(index) and not 0 <= index.min() <= index.max() < size):
                raise ValueError("coordinates must lie inside the shape, as many as there are values")
    except Exception as error:  # scipy meets damage with many kinds
        reason = str(error).rstrip(".") or type(error).__name__
        raise ValueError(f"{name} must be a well-formed sparse matrix: {reason}.") from error


def is_well_formed_sparse(M: Any, name: str) -> bool:
    """Return whether M is a sparse matrix, or raise if it is one that points outside of itself."""
    if not sparse.issparse(M):
        return False
    check_well_formed(M, name)
    return True


def _without_stored_zeros(csr: Any) -> Any:
    if csr.data.all():
        return csr
    csr = csr.copy()
    csr.eliminate_zeros()
    return csr


def _to_float_array(M: Any, name: str, check_shape: CheckShape) -> np.ndarray:
    try:
        array = np.asarray(M)
    except ValueError as error:
        raise ValueError(f"{name} must be a matrix, got rows of different lengths.") from error
    if array.dtype.kind == "O":
        raise TypeError(
            f"{name} must hold numbers, got an object array (of {type(M).__name__}). "
            f"Convert it with numpy.asarray({name}, dtype=float); for a list of edges with names, pass "
            f"symrelu.graphs.from_edges({name}).matrix."
        )
    dtype = _check_dtype(array.dtype, name)
    check_shape(array.shape, name)
    if check_shape is _check_square and array.flags.f_contiguous and not array.flags.c_contiguous:
        array = array.T  # the same matrix, since it is checked to be symmetric below
    if array.dtype != dtype or not array.flags.c_contiguous:
        check_memory(array.shape, dtype, name)
        array = np.ascontiguousarray(array, dtype=dtype)
    return array


def check_memory(shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> None:
    """Raise if a dense array of that shape does not fit into memory."""
    needed = math.prod(shape) * dtype.itemsize
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{name} as a dense {shape[0]} x {shape[1]} array needs {needed / 1e9:.1f} GB as {dtype}; "
            f"{available / 1e9:.1f} GB are available. Pass a scipy.sparse matrix and leave backend at 'auto': "
            "it is never made dense."
        )


def _check_values(M: Any, name: str) -> None:
    put = "Put a number there, or mark it as unknown with mask=."
    choose = "Negative values in data such as correlations: pass {0}, whichever is meant."
    for bad, requirement, advice, sparse_advice in (
        (
            np.isnan,
            "must not contain NaN",
            "Mark what is unknown: mask=numpy.isnan({0}).",
            "Mark what is unknown by a sparse mask= that is True there.",
        ),
        (np.isinf, "must be finite, without infinity", put, put),
        (
            np.signbit,
            "must be nonnegative",
            choose.format("numpy.maximum({0}, 0), abs({0}) or {0} ** 2"),
            choose.format("{0}.maximum(0), abs({0}) or {0}.power(2)"),
        ),
    ):
        place = _first(M, bad)
        if place is not None:
            i, j, value = place
            if sparse.issparse(M):
                advice = sparse_advice
            raise ValueError(f"{name} {requirement}: entry ({i}, {j}) is {value:g}. {advice.format(name)}")


def _first(M: Any, bad: Any) -> tuple[int, int, float] | None:
    """Return row, column and value of an entry for which ``bad`` holds and which is not -0.0."""
    if sparse.issparse(M):
        hits = np.flatnonzero(bad(M.data) & (M.data != 0))
        if hits.size == 0:
            return None
        row = int(np.searchsorted(M.indptr, hits[0], side="right")) - 1
        return row, int(M.indices[hits[0]]), float(M.data[hits[0]])
    for start in range(0, len(M), TILE):
        rows = M[start : start + TILE]
        places = np.argwhere(bad(rows) & (rows != 0))
        if places.size:
            i, j = (int(k) for k in places[0])
            return start + i, j, float(rows[i, j])
    return None


def _check_symmetric(M: Any, name: str) -> Any:
    worst, i, j, largest = _asymmetry(M)
    if worst == 0:
        return M
    if worst > _SYMMETRY_TOLERANCE[M.dtype] * largest:
        raise ValueError(
            f"{name} must be symmetric: |{name} - {name}.T| reaches {worst:g} at ({i}, {j}). "
            f"Pass ({name} + {name}.T) / 2 if that is meant; if these are samples x features, a graph of them: "
            f"symrelu.graphs.self_tuning_graph({name})."
        )
    half = M.dtype.type(0.5)
    average = half * M + half * M.T
    return _without_stored_zeros(sparse.csr_array(average)) if sparse.issparse(M) else average


def _asymmetry(M: Any) -> tuple[float, int, int, float]:
    """Return the largest |M - M.T|, where it is, and the largest entry."""
    if sparse.issparse(M):
        difference = abs(M - M.T).tocoo()
        if difference.nnz == 0:
            return 0.0, 0, 0, float(M.data.max(initial=0))
        k = int(difference.data.argmax())
        rows, cols = difference.coords
        return float(difference.data[k]), int(rows[k]), int(cols[k]), float(M.data.max(initial=0))
    worst, place, largest = 0.0, (0, 0), 0.0
    for i in range(0, len(M), TILE):
        largest = max(largest, float(M[i : i + TILE].max()))
        for j in range(i, len(M), TILE):
            gap = np.abs(M[i : i + TILE, j : j + TILE] - M[j : j + TILE, i : i + TILE].T)
            if gap.max() > worst:
                row, col = divmod(int(gap.argmax()), gap.shape[1])
                worst, place = float(gap[row, col]), (i + row, j + col)
    return worst, *place, largest


def check_mask(mask: Any | None, n: int) -> Any | None:
    """Return the mask of unknown entries as a csr_array or ndarray of bool, or None."""
    if mask is None:
        return None
    mask = _to_boolean(mask)
    if mask.shape != (n, n):
        raise ValueError(f"mask must have the shape of M, {(n, n)}, got {mask.shape}.")
    one_sided = sparse.coo_array(mask != mask.T)
    if one_sided.nnz:
        i, j = (int(index[0]) for index in one_sided.coords)
        raise ValueError(
            f"mask must be symmetric, but only one of ({i}, {j}) and ({j}, {i}) is unknown. "
            "Pass mask | mask.T (or mask + mask.T if sparse)."
        )
    return mask


def check_items(name: str, items: Any, n: int) -> np.ndarray:
    """Return numbers of items as an array, or raise with the one that does not exist."""
    array = np.atleast_1d(np.asarray(items))
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers (items are counted from 0), got {array.dtype} entries.")
    wrong = array[(array < 0) | (array >= n)]
    if wrong.size:
        raise IndexError(f"{name} must be from 0 to {n - 1}, the numbers of the items, got {wrong[0]}.")
    return array.astype(np.int64)


def check_integer(name: str, value: Any, low: int, high: int | None = None, note: str = "") -> int:
    """Return an integer parameter, or raise with its bounds."""
    bounds = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    message = f"{name} must be {bounds}{note}, got {value!r}."
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(message)
    number = int(value)
    if number < low or (high is not None and number > high):
        raise ValueError(message)
    return number


def check_number(
    name: str, value: Any, low: float = 0.0, high: float = math.inf, *, low_included: bool = True
) -> float:
    """Return a finite real parameter, or raise with its bounds."""
    if low == 0 and high == math.inf:
        bounds = "a finite number >= 0" if low_included else "a finite number > 0"
    else:
        bounds = f"a number in {'[' if low_included else '('}{low:g}, {high:g}]"
    message = f"{name} must be {bounds}, got {value!r}."
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(message)
    value = float(value)
    if not math.isfinite(value) or value > high or not (low <= value if low_included else low < value):
        raise ValueError(message)
    return value


def check_choice(name: str, value: Any, choices: tuple[str, ...], otherwise: str = "") -> str:
    """Return a parameter that is one of a few words; ``otherwise`` says what else it might have been."""
    if not isinstance(value, str) or value not in choices:
        words = "one of " * (len(choices) > 1) + ", ".join(map(repr, choices))
        other = f" or {otherwise}" if otherwise else ""
        raise ValueError(f"{name} must be {words}{other}, got {value!r}.")
    return value


def check_start(init: Any, n: int, rank: int, dtype: np.dtype[Any], largest: float = 0.0) -> np.ndarray:
    """Return a starting factor given as an array, for a matrix with that largest entry."""
    U0 = check_factor(init, dtype, "init")
    if U0.shape != (n, rank):
        raise ValueError(f"init must have shape (n, rank) = {(n, rank)}, got {U0.shape}.")
    if not np.isfinite(U0).all():
        raise ValueError("init must be finite, got NaN or infinity in the starting factor.")
    if not U0.any():
        raise ValueError("init must not be zero everywhere: U = 0 is a stationary point, no step leaves it.")
    size, of_M = float(np.abs(U0).max()), math.sqrt(largest)
    if size < math.sqrt(np.finfo(np.float64).eps) * of_M:  # sums of squares do not tell X from zero
        raise ValueError(
            f"init must not vanish next to M: its largest entry is {size:.2g}, and the root of that of M is "
            f"{of_M:.2g}. Scale it up, or use init='random', which has the right size."
        )
    return U0


def check_factor(U: Any, dtype: np.dtype[Any], name: str) -> np.ndarray:
    """Return a factor as an array of its own in ``dtype``."""
    try:
        array = np.asarray(U)
    except ValueError as error:
        raise ValueError(f"{name} must be a matrix, got rows of different lengths.") from error
    if array.dtype.kind not in "biuf":
        instead = " Pass solution.U, and signature=solution.signature." if hasattr(U, "signature") else ""
        raise TypeError(
            f"{name} must be an array of real numbers, got {type(U).__name__} of {array.dtype}.{instead}"
        )
    return np.array(array, dtype=dtype, order="C")


def random_generator(random_state: Any, stream: int | None = None) -> Any:
    """Return a generator from None, an integer, a Generator or a RandomState.

    An integer gives other numbers for each ``stream``: what is drawn from one seed for different ends must not
    be related.
    """
    if isinstance(random_state, (np.random.Generator, np.random.RandomState)):
        return random_state
    try:
        if stream is not None and isinstance(random_state, (int, np.integer)) and random_state >= 0:
            return np.random.default_rng(np.random.SeedSequence(int(random_state), spawn_key=(stream,)))
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state must be None, a nonnegative integer, or a NumPy generator, got {random_state!r}."
        ) from error


def check_verbose(verbose: Any) -> int:
    """Return how much a fit says: 0 nothing, 1 a line a second, 2 a line a step. True is 1."""
    return int(verbose) if isinstance(verbose, bool) else check_integer("verbose", verbose, 0)


def check_callback(callback: Any) -> Any:
    """Return a callback, which must be callable or None."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable or None, got {type(callback).__name__}.")
    return callback


def scale_exponent(M: Any) -> int:
    """Return k such that M / 4^k has entries of order one; 0 where M is fine as it is."""
    return exponent_of(float(stored(M).max(initial=0)))


def exponent_of(largest: float) -> int:
    """Return the same for a matrix with that largest entry."""
    k = math.floor((math.frexp(largest)[1] - 1) / 2)
    return k if abs(k) > _SAFE_EXPONENT else 0


def scaled(M: Any, k: int) -> Any:
    """Return M / 4^k, exactly; entries that would vanish keep the smallest positive value."""
    if k == 0:
        return M
    if sparse.issparse(M):
        return sparse.csr_array((_scaled_values(M.data, k), M.indices, M.indptr), shape=M.shape)
    return _scaled_values(M, k)


def _scaled_values(values: np.ndarray, k: int) -> np.ndarray:
    result = np.ldexp(values, -2 * k)
    vanished = (result == 0) & (values > 0)
    result[vanished] = np.finfo(values.dtype).smallest_subnormal
    return result
