"""The backend of a fit."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.fit.backends import backend_of, named_backend, signature, why_chosen
from symrelu.fit.settings import Model, Run
from symrelu.operators import operator_class
from symrelu.problem import Problem, gpu_of, reading, remember_gpu


@pytest.mark.parametrize(
    ("n", "n_negative", "backend", "expected"),
    [
        (20_000, 1, "auto", "active"),
        (20_000, "auto", "auto", "active"),
        (20_000, 0, "auto", "sparse"),
        (20_000, 1, "sparse", "sparse"),
        (200, 1, "auto", "sparse"),
    ],
)
def test_large_signed_fits_list_pairs(n, n_negative, backend, expected):
    problem = Problem.of(sparse.eye_array(n, format="csr"))
    model = Model(rank=16, n_negative=n_negative, diagonal="fit", zero_weight=1.0, support="equal", alpha=0.0)
    assert backend_of(problem, model, Run(backend=backend)) == expected


def test_a_dense_matrix_stays_dense():
    model = Model(rank=3, n_negative=1, diagonal="fit", zero_weight=1.0, support="equal", alpha=0.0)
    assert backend_of(Problem.of(np.eye(5)), model, Run()) == "dense"


@pytest.mark.parametrize(
    ("backend", "signs", "text"),
    [
        ("dense", [1, 1], "was chosen: M is a dense array."),
        ("cuda", [1, -1], "was chosen: M is on a GPU."),
        ("dask", [1, -1], "was chosen: M is a block folder."),
        ("active", [1, -1], "for 9 items, rank 2 and negative columns: a pass visits only pairs that matter."),
        (
            "active",
            [1, 1],
            "for 9 items, rank 2 and n_negative='auto', which found no negative columns: most pairs",
        ),
        (
            "sparse",
            [1, -1],
            "for 9 items, rank 2 and negative columns: at this size, to visit all pairs takes less",
        ),
        ("sparse", [1, 1], "for 9 items, rank 2 and no negative columns: most pairs matter"),
    ],
)
def test_the_reasons_of_a_choice(backend, signs, text):
    line = why_chosen(backend, 9, np.array(signs))
    assert line.startswith(f"backend={backend!r} was chosen")
    assert text in line


class TensorOnGPU:
    """What is read of a tensor."""

    class device:
        type, index = "cuda", 1


@pytest.mark.parametrize(("backend", "expected"), [("auto", "cuda"), ("sparse", "sparse")])
def test_what_is_on_a_gpu_is_fitted_there(backend, expected, monkeypatch):
    pytest.importorskip("torch")
    checked = []
    monkeypatch.setattr(reading, "is_tensor", lambda data: isinstance(data, TensorOnGPU))
    monkeypatch.setattr(operator_class("cuda"), "check_device", checked.append)
    problem = Problem.of(sparse.eye_array(9, format="csr"))
    remember_gpu(problem, problem.M)
    assert gpu_of(problem) is None
    remember_gpu(problem, TensorOnGPU())
    model = Model(rank=3, n_negative=1, diagonal="fit", zero_weight=1.0, support="equal", alpha=0.0)
    assert backend_of(problem, model, Run(backend=backend)) == expected
    assert checked == ([1] if expected == "cuda" else [])
    assert named_backend(problem, backend) == expected


def test_negative_columns_are_the_last():
    assert_array_equal(signature(4, 1), [1, 1, 1, -1])
    assert_array_equal(signature(2, 0), [1, 1])
