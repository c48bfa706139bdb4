"""Bad settings of decompose: each with its own message, before any work starts."""

import numpy as np
import pytest
from scipy import sparse

from symrelu import AAPB, decompose

GOOD = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 2.0]])

BAD_SETTINGS = {
    "rank 0": (
        {"rank": 0},
        ValueError,
        r"rank must be an integer of at least 1 \(and at most the size of M\), got 0",
    ),
    "rank negative": ({"rank": -1}, ValueError, "rank must be an integer of at least 1"),
    "rank above n": ({"rank": 4}, ValueError, r"rank must be an integer from 1 to 3 .* got 4"),
    "rank not an integer": ({"rank": 1.0}, TypeError, "rank must be an integer .* got 1.0"),
    "rank a bool": ({"rank": True}, TypeError, "rank must be an integer .* got True"),
    "rank a string": ({"rank": "2"}, TypeError, "rank must be an integer .* got '2'"),
    "unknown solver": (
        {"solver": "best"},
        ValueError,
        "solver must be one of 'aapb', 'eigen', 'lbfgs', 'newton', 'palm' or a solver instance, got 'best'",
    ),
    "solver class": (
        {"solver": AAPB},
        TypeError,
        r"solver must be an instance, got the class AAPB. Pass AAPB\(\)",
    ),
    "no solver": ({"solver": 3}, TypeError, "an object with init and step, got int"),
    "start shape": ({"init": np.ones((3, 1))}, ValueError, r"init must have shape .* \(3, 2\), got \(3, 1\)"),
    "start NaN": ({"init": np.full((3, 2), np.nan)}, ValueError, "init must be finite"),
    "start zero": ({"init": np.zeros((3, 2))}, ValueError, "init must have a nonzero entry, got all zeros"),
    "start that vanishes": (
        {"init": np.full((3, 2), 1e-163)},
        ValueError,
        "init must not be negligible compared with M: its largest entry is 1e-163, .* of M is 1.4. Scale it up",
    ),
    "start text": (
        {"init": "svd"},
        ValueError,
        "init must be one of 'random', 'uniform', 'spectral', 'imputed', 'multilevel', got 'svd'",
    ),
    "start kind": ({"init": {"a": 1}}, TypeError, "init must be an array of real numbers, got dict of object"),
    "start complex": ({"init": np.ones((3, 2)) * 1j}, TypeError, "init must be .* real numbers, .* complex128"),
    "start strings": ({"init": [["1", "2"]] * 3}, TypeError, "init must be .* real numbers, got list of <U1"),
    "start ragged": ({"init": [[1, 2], [1]]}, ValueError, "init must be a matrix, got rows of different"),
    "alpha negative": ({"alpha": -1e-3}, ValueError, "alpha must be a finite number >= 0, got -0.001"),
    "alpha NaN": ({"alpha": np.nan}, ValueError, "alpha must be a finite number >= 0, got nan"),
    "alpha text": ({"alpha": "0"}, TypeError, "alpha must be a finite number >= 0, got '0'"),
    "zero_weight 0": ({"zero_weight": 0}, ValueError, r"zero_weight must be a number in \(0, 1\], got 0"),
    "zero_weight 2": ({"zero_weight": 2.0}, ValueError, r"zero_weight must be a number in \(0, 1\], got 2.0"),
    "max_iter 0": ({"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1, got 0"),
    "max_time": ({"max_time": -1.0}, ValueError, "max_time must be a finite number > 0"),
    "tol": ({"tol": -1.0}, ValueError, "tol must be a finite number >= 0"),
    "diagonal": (
        {"diagonal": "keep"},
        ValueError,
        "diagonal must be one of 'fit', 'ignore', 'auto', got 'keep'",
    ),
    "support": ({"support": "most"}, ValueError, "support must be one of 'equal', 'at_least', got 'most'"),
    "backend": ({"backend": "gpu"}, ValueError, "backend must be one of 'auto', .* got 'gpu'"),
    "callback": ({"callback": 3}, TypeError, "callback must be callable or None, got int"),
    "random_state": ({"random_state": "x"}, TypeError, "random_state must be None"),
    "n_negative": (
        {"n_negative": 2},
        ValueError,
        r"n_negative must be an integer from 0 to 1 \(rank - 1, since .* positive\) or 'auto', got 2",
    ),
    "n_negative word": (
        {"n_negative": "some"},
        ValueError,
        "n_negative must be 'auto' or an integer, got 'some'",
    ),
    "n_negative kind": ({"n_negative": 1.0}, TypeError, "n_negative must be an integer .* or 'auto', got 1.0"),
    "mask shape": (
        {"mask": np.zeros((2, 2), bool)},
        ValueError,
        r"mask must have the shape of M, \(3, 3\), got \(2, 2\)",
    ),
    "mask kind": ({"mask": np.zeros((3, 3))}, TypeError, r"mask must be boolean \(True = unobserved\)"),
    "mask one-sided": (
        {"mask": np.triu(np.ones((3, 3), bool), 1)},
        ValueError,
        r"mask must be symmetric, but only one of \(0, 1\) and \(1, 0\) is masked",
    ),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings(case, no_work):
    settings, error, message = BAD_SETTINGS[case]
    with pytest.raises(error, match=message):
        decompose(GOOD, **{"rank": 2, **settings})


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_mask_of_a_matrix_without_entries(kind):  # issue 11, found by the fuzzer
    mask = np.array([[False, True], [True, False]])
    with pytest.raises(ValueError, match="must have a positive entry, but all are zero"):
        decompose(sparse.csr_array((2, 2)), 1, mask=kind(mask))


def test_mask_that_hides_everything():
    with pytest.raises(ValueError, match="must have a positive entry that is observed"):
        decompose(GOOD, 2, mask=np.ones((3, 3), bool))


def test_ignored_diagonal_of_a_diagonal_matrix():
    with pytest.raises(ValueError, match="mask and diagonal hide them all"):
        decompose(np.eye(3), 2, diagonal="ignore")


def test_alpha_out_of_proportion(no_work):
    with pytest.raises(ValueError, match=r"alpha=1e.300 is too large for the scale of M"):
        decompose(GOOD * 1e-200, 2, alpha=1e300)


@pytest.mark.parametrize("backend", ["dense", "reference"])
def test_dense_backend_of_a_large_sparse_matrix_is_refused(backend, no_work):
    M = sparse.csr_array(sparse.eye_array(10**6))
    with pytest.raises(
        MemoryError, match=r"A fit of 1000000 items with rank 2 needs \d+ TB .* backend='sparse'"
    ):
        decompose(M, 2, backend=backend)
