"""plot() picks the picture of an object."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from symrelu import LinkPredictor, SymReLU, SymReLUClustering, decompose
from symrelu.plots import choice, planar_map

BLOCKS = np.kron(np.eye(3), np.ones((5, 5))) - np.eye(15)


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (SymReLU(4, random_state=0), ""),
        (SymReLUClustering(3, random_state=0), ""),
        (LinkPredictor(3, n_init=1, random_state=0), "score"),
    ],
)
def test_estimators(model, label):
    assert model.fit(BLOCKS).plot().get_xlabel() == label
    for what in model._pictures:
        assert model.plot(what) is not None
    (cloud,) = model.plot("map").collections
    assert_allclose(cloud.get_offsets(), planar_map(model))


def test_a_solution_is_drawn_by_its_convergence():
    solution = decompose(BLOCKS, 3, random_state=0, max_iter=5)
    for ax in (solution.plot(), solution.history.plot()):
        assert_allclose(ax.lines[0].get_ydata(), solution.history.relative_error)


def test_an_unknown_picture():
    solution = decompose(BLOCKS, 3, random_state=0, max_iter=2)
    with pytest.raises(ValueError, match=r"what must be one of 'convergence', 'map', .*, got 'clusters'"):
        solution.plot("clusters")


def test_every_picture_can_be_asked_for():
    classes = (SymReLU, SymReLUClustering, LinkPredictor, choice.PlotMixin)
    assert {name for one in classes[:3] for name in one._pictures} | {"attempts"} == set(choice.PICTURES)


def test_pictures_have_the_names_of_their_functions():
    assert [function.__name__ for function in choice.PICTURES.values()] == [
        f"plot_{n}" for n in choice.PICTURES
    ]
