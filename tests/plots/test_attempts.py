"""Attempts of a search for neighbours."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from symrelu import NeighborEmbedding
from symrelu.fit.neighbor_goal import Attempt
from symrelu.fitted import Certificate
from symrelu.plots import new_figure, plot_attempts

RING = np.eye(12, k=1) + np.eye(12, k=-1) + np.eye(12, k=11) + np.eye(12, k=-11)


def test_wrong_pairs_by_number_of_columns():
    attempts = (Attempt(8, 10, 0, True, 0.1), Attempt(4, 20, 0, True, 0.2), Attempt(3, 100, 7, False, 0.5))
    certificate = Certificate(0, 0, 0, 66, 12, 0.1, 0.5)
    model = SimpleNamespace(attempts_=attempts, n_components_=4, certificate_=certificate)
    ax = new_figure().add_subplot()
    assert plot_attempts(model, ax) is ax
    reached, failed, taken = ax.lines
    assert reached.get_xydata().tolist() == [[8, 0], [4, 0]]
    assert failed.get_xydata().tolist() == [[3, 7]]
    assert set(taken.get_xdata()) == {4}
    assert ax.get_title() == "recall 1 of 12 edges"


def test_a_loaded_embedding_has_no_attempts(tmp_path):
    model = NeighborEmbedding(6, random_state=0, max_iter=300).fit(RING)
    assert model.plot().get_xlabel() == "columns"
    model.save(tmp_path / "vectors.npz")
    loaded = NeighborEmbedding.load(tmp_path / "vectors.npz")
    with pytest.raises(ValueError, match="a loaded one has not"):
        loaded.plot()
    assert len(loaded.plot("map").collections) == 1


def test_before_a_fit():
    with pytest.raises(NotFittedError):
        plot_attempts(NeighborEmbedding())
