"""Block folders given to estimators, as far as no cluster is needed; fits are in operators/test_dask.py."""

import numpy as np
import pytest
from block_folders import random_similarity

from symrelu import LinkPredictor, SymReLU, SymReLUClustering
from symrelu.estimators.folders import folder_problem, is_folder
from symrelu.graphs import Labelled, write_blocks


@pytest.fixture
def folder(tmp_path):
    names = np.array([f"n{k}" for k in range(12)], object)
    return write_blocks(Labelled(random_similarity(12, density=0.5), names), tmp_path / "blocks", rows=5)


def test_what_is_a_folder(folder):
    for given in (folder, folder.path, str(folder.path), Labelled(folder, None)):
        assert is_folder(given)
    for given in (np.eye(3), Labelled(np.eye(3), None), "nowhere"):
        assert not is_folder(given)


def test_the_estimator_knows_the_names_and_the_problem_its_client(folder):
    estimator = SymReLU(client="tcp://somewhere")
    for given in (folder.path, Labelled(folder, folder.names())):
        problem = folder_problem(estimator, given, None, "ignore")
        assert (problem.n, problem.diagonal, problem._clients) == (12, "ignore", ["tcp://somewhere"])
        assert problem.hide([0], [5])._clients is problem._clients
    assert estimator.n_features_in_ == 12
    assert list(estimator.node_names_) == list(folder.names())


@pytest.mark.parametrize("kind", [SymReLUClustering, LinkPredictor])
def test_others_need_the_matrix_in_memory(folder, kind):
    with pytest.raises(TypeError, match=f"{kind.__name__} needs X in the memory of one process"):
        kind().fit(folder.path)
