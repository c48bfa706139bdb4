"""The spectrum of X."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from symrelu import decompose
from symrelu.baselines import three_block_nmd
from symrelu.plots import new_figure, plot_spectrum, spectrum


@pytest.mark.parametrize(("n", "rank"), [(9, 4), (3, 5), (1, 1)])
def test_eigenvalues_are_those_of_the_whole_matrix(n, rank):
    rng = np.random.default_rng(0)
    U, signature = rng.standard_normal((n, rank)), np.where(np.arange(rank) % 2, -1.0, 1.0)
    whole = np.linalg.eigvalsh((U * signature) @ U.T)[::-1]
    found = spectrum(U, signature)
    assert_allclose(np.sort(np.append(found, np.zeros(n - len(found)))), np.sort(whole), atol=1e-12)
    assert (np.diff(found) <= 0).all()


def test_bars_are_eigenvalues_and_the_legend_has_their_shares():
    U = np.diag([2.0, 1.0, 3.0])
    ax = plot_spectrum(U, signature=[1, 1, -1])
    assert_allclose([bar.get_height() for bar in ax.patches], [4, 1, -9])
    assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in ax.patches], [2, 3, 1])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["2 positive (17% of ||X||²)", "1 negative (83% of ||X||²)"]


def test_a_solution_on_given_axes():
    solution = decompose(np.kron(np.eye(3), np.ones((3, 3))), 3, random_state=0)
    ax = new_figure().add_subplot()
    assert solution.plot("spectrum", ax) is ax
    X = (solution.U * solution.signature) @ solution.U.T
    largest = np.linalg.eigvalsh(X)[::-1][:3]
    assert_allclose([bar.get_height() for bar in ax.patches], largest, rtol=1e-8)


def test_a_factor_of_zeros_has_no_bars():
    ax = plot_spectrum(np.zeros((4, 2)))
    assert not ax.patches
    assert ax.get_legend() is None


def test_two_factors_have_no_symmetric_matrix():
    solution = three_block_nmd(np.eye(4), 2, random_state=0, max_iter=2)
    with pytest.raises(TypeError, match="symmetric X, got one with two factors"):
        plot_spectrum(solution)
