import numpy as np
import pytest
from numpy.testing import assert_array_equal

from symrelu.datasets import load_digits_graph, make_relu_gram


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.5])
def test_relu_gram_is_the_recipe_of_the_paper(shift):
    M, U = make_relu_gram(80, 4, shift=shift, random_state=3)
    gram = U @ U.T
    np.testing.assert_allclose(M, np.maximum(0, gram - shift * gram.max()), atol=1e-12)
    assert_array_equal(M, M.T)


def test_half_of_the_unshifted_entries_are_zero():
    M, _ = make_relu_gram(300, 10, random_state=0)
    assert 0.45 < np.mean(M == 0) < 0.55


def test_same_seed_same_matrix():
    assert_array_equal(make_relu_gram(20, 2, random_state=1)[0], make_relu_gram(20, 2, random_state=1)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((0, 2), "n must be"), ((5, 0), "rank must be"), ((5.0, 2), "n must be an integer")],
)
def test_bad_sizes(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make_relu_gram(*arguments)


@pytest.mark.parametrize("shift", [-0.1, 1.5, np.nan])
def test_bad_shift(shift):
    with pytest.raises(ValueError, match=r"shift must be a number in \[0, 1\]"):
        make_relu_gram(5, 2, shift=shift)


def test_digits_graph():
    M, labels = load_digits_graph()
    assert M.shape == (1797, 1797)
    assert len(labels) == 1797
    rows, cols = M.nonzero()
    assert np.mean(labels[rows] == labels[cols]) > 0.9  # neighbours mostly show the same digit
