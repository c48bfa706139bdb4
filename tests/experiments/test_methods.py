"""Methods of the experiments: each cell is the fit it names."""

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from small_cells import FEW, METHODS, SMALL

from symrelu import decompose, metrics
from symrelu.datasets import make_relu_gram
from symrelu.experiments import Cell
from symrelu.experiments.methods import SYMANLS, SYMHALS, EigenvalueBound, ModelFit, ReluFit


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_cell_is_the_fit_it_names(method):
    solution = Cell(SMALL, 4, method, 1, FEW).fit()
    M, _ = make_relu_gram(30, 3, shift=0.1, random_state=1)
    gram = (solution.U * solution.signature) @ solution.U.T
    model = np.maximum(0, gram) if isinstance(method, ReluFit) else gram
    assert solution.relative_error == pytest.approx(np.linalg.norm(M - model) / np.linalg.norm(M), rel=1e-10)
    assert solution.n_iter == (0 if isinstance(method, EigenvalueBound) else 5)


def test_no_symmetric_nmf_is_below_the_eigenvalue_bound():
    M = SMALL.load(0)
    values = np.linalg.eigvalsh(M)
    kept = np.maximum(values[-4:], 0)
    expected = math.sqrt(np.sum(values**2) - np.sum(kept**2)) / np.linalg.norm(M)
    bound = Cell(SMALL, 4, EigenvalueBound(), 0, FEW).fit().relative_error
    assert bound == pytest.approx(expected, rel=1e-10)
    many = replace(FEW, max_iter=300)
    for method in (SYMANLS, SYMHALS):
        assert Cell(SMALL, 4, method, 0, many).fit().relative_error >= bound


@pytest.mark.parametrize("n_negative", [1, "auto"])
def test_a_fit_judged_by_hidden_pairs(n_negative):
    model = ModelFit("signed", n_negative=n_negative, diagonal="ignore", held_out=0.2)
    solution = Cell(SMALL, 4, model, 1, FEW).fit()
    M, mask = SMALL.load(1), metrics.random_mask(30, 0.2, random_state=1)
    same = decompose(M, 4, n_negative=n_negative, diagonal="ignore", mask=mask, random_state=1, **asdict(FEW))
    np.testing.assert_array_equal(solution.U, same.U)
    hidden = mask.toarray()
    X = (same.U * same.signature) @ same.U.T
    expected = np.linalg.norm((M - np.maximum(0, X))[hidden]) / np.linalg.norm(M[hidden])
    assert solution.relative_error == pytest.approx(expected, rel=1e-10)
