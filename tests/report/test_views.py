import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from solutions import with_model

from symrelu import NeighborEmbedding, SymReLU
from symrelu.report.views import View, check_same_nodes


def spectrum_of(X):
    values = np.linalg.eigvalsh((X + X.T) / 2)
    return values[np.argsort(-np.abs(values))]


def test_the_model_of_a_factor_is_max_0_X(models):
    solution = models["Solution"]
    view = View.of(solution)
    X = (solution.U * solution.signature) @ solution.U.T
    assert_allclose(view.predicted(np.arange(5)), np.maximum(X, 0)[:5])
    assert_allclose(view.spectrum(), spectrum_of(X)[:8], rtol=1e-8)
    assert view.fits_the_graph_itself
    assert (view.n, view.diagonal, view.labels) == (77, "ignore", None)


def test_a_model_of_the_divided_graph_is_multiplied_by_the_degrees(models):
    clustering = models["directions"]
    view = View.of(clustering)
    roots = clustering.root_degrees_
    X = (clustering.embedding_ * clustering.signature_) @ clustering.embedding_.T
    assert_allclose(view.predicted(np.array([3])), np.maximum(0, roots[3] * X[3] * roots)[None], rtol=1e-6)
    assert not view.fits_the_graph_itself
    assert_array_equal(view.labels, clustering.labels_)
    assert View.of(models["linkage"]).fits_the_graph_itself


def test_scores_of_a_predictor(models):
    predictor = models["LinkPredictor"]
    assert_allclose(View.of(predictor).predicted(np.array([0, 5])), predictor.reconstruct([0, 5]))


def test_vectors_find_pairs_above_the_threshold(models, miserables):
    view = View.of(models["NeighborEmbedding"])
    found = view.predicted(np.arange(77))
    np.fill_diagonal(found, 0)
    wrong = np.triu(found != (nx.to_numpy_array(miserables) > 0)).sum()
    assert wrong <= view.certificate.wrong_pairs  # which also counts those too close to the threshold
    assert list(view.names) == list(miserables.nodes)


def test_singular_values_of_a_model_that_is_not_symmetric(models):
    solution = with_model(models["Solution"], "TwoFactor")
    expected = np.linalg.svd(solution.U @ solution.V.T, compute_uv=False)[:8]
    assert_allclose(View.of(solution).spectrum(), expected)


def test_names_of_another_graph_are_refused(models, miserables):
    names = np.array(list(miserables), dtype=object)
    check_same_nodes(models["SymReLU"], names)
    check_same_nodes(models["SymReLU"], None)
    check_same_nodes(models["Solution"], names)
    with pytest.raises(ValueError, match="with the same nodes in the same order"):
        check_same_nodes(models["SymReLU"], names[::-1])


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match=r"a Solution or a fitted SymReLU, .* got dict"):
        View.of({})
    for model in (SymReLU(), NeighborEmbedding()):
        with pytest.raises(NotFittedError):
            View.of(model)
