"""Estimators that are saved and loaded."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import damaged, refusal
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from symrelu import AAPB, LinkPredictor, Solution, SymReLU, decompose
from symrelu.datasets import make_relu_gram
from symrelu.estimators import saving
from symrelu.graphs import Labelled

DATA = Path(__file__).parent.parent / "data"
NAMES = np.array([f"node {k}" for k in range(28)] + [7, ("a", 1)], dtype=object)
M, _ = make_relu_gram(30, 3, random_state=0)
GRAPH = sparse.csr_array(M - np.diag(np.diag(M)))
SAMPLES = np.random.default_rng(0).standard_normal((30, 4))
QUICK = {"max_iter": 30, "random_state": 0}

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:The default .* changed:FutureWarning"
)


def frame(matrix):
    names = [f"node {k}" for k in range(30)]
    return pd.DataFrame(matrix.toarray(), index=names, columns=names)


# Name -> the estimator, what it is fitted to, and rows to transform.
FITS = {
    "diagonal fitted": (SymReLU(3, diagonal="fit", **QUICK), M, M[:4] + 0.1),
    "diagonal ignored": (SymReLU(3, **QUICK), GRAPH, GRAPH[:4]),
    "names": (SymReLU(3, **QUICK), Labelled(GRAPH, NAMES), GRAPH[:4]),
    "frame": (SymReLU(3, n_negative=1, **QUICK), frame(GRAPH), frame(GRAPH)[:4]),
    "float32": (SymReLU(3, solver="palm", **QUICK), GRAPH.astype(np.float32), GRAPH[:4].astype(np.float32)),
    "solver": (SymReLU(3, solver=AAPB(step_size=2.0), alpha=None, **QUICK), GRAPH, GRAPH[:4]),
    "samples": (SymReLU(3, affinity="self_tuning", **QUICK), SAMPLES, SAMPLES[:4] + 0.01),
    "sparse samples": (
        SymReLU(3, affinity="self_tuning", **QUICK),
        sparse.csr_array(SAMPLES),
        sparse.csr_array(SAMPLES[:4]),
    ),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@pytest.mark.parametrize("name", FITS)
def test_a_loaded_embedding_is_the_saved_one(name, path):
    model, X, new = FITS[name]
    model.fit(X)
    model.save(path)
    loaded = SymReLU.load(path)
    assert repr(loaded) == repr(model)
    assert loaded.get_params() == model.get_params()
    assert_array_equal(loaded.transform(new), model.transform(new))
    assert_array_equal(loaded.embedding_, model.embedding_)
    assert loaded.embedding_.dtype == model.embedding_.dtype
    for attribute in (
        "n_features_in_",
        "diagonal_",
        "stop_reason_",
        "relative_error_",
        "n_iter_",
        "converged_",
    ):
        assert getattr(loaded, attribute) == getattr(model, attribute), attribute
    for attribute in ("node_names_", "feature_names_in_"):
        assert hasattr(loaded, attribute) == hasattr(model, attribute)
        if hasattr(model, attribute):
            assert getattr(loaded, attribute).tolist() == getattr(model, attribute).tolist()
    assert set(vars(model)) - set(vars(loaded)) <= {"_sklearn_output_config", "_skl_callbacks"}
    assert loaded.score(new) == model.score(new)


def test_rows_of_the_fit_are_recognised(path):
    """The diagonal of these rows is unobserved, so that a model that forgot them would embed them elsewhere."""
    unknown = sparse.csr_array((np.ones(2, bool), ([1, 2], [2, 1])), shape=(30, 30))
    model = SymReLU(3, diagonal="ignore", **QUICK).fit(M, mask=unknown)
    model.save(path)
    assert_array_equal(SymReLU.load(path).transform(M, mask=unknown), model.embedding_)


def test_a_loaded_model_can_be_fitted_again(path):
    model = SymReLU(3, **QUICK).fit(GRAPH)
    model.save(path)
    assert_array_equal(SymReLU.load(path).fit(GRAPH).embedding_, model.embedding_)


@pytest.mark.parametrize("labels", [None, NAMES])
@pytest.mark.parametrize("seed", [0, None])
def test_a_loaded_predictor_is_the_saved_one(labels, seed, path):
    model = LinkPredictor(3, n_init=2, random_state=seed).fit(Labelled(GRAPH, labels))
    model.save(path)
    loaded = LinkPredictor.load(path)
    assert repr(loaded) == repr(model)
    assert loaded.fits_ == model.fits_
    for attribute in ("smoothing_", "shrinkage_", "stop_reason_", "n_features_in_"):
        assert getattr(loaded, attribute) == getattr(model, attribute)
    assert (loaded.known_ != model.known_).nnz == 0
    for mine, other in zip(loaded.top_links(9), model.top_links(9), strict=True):
        assert_array_equal(mine, other)
    if labels is not None:
        assert loaded.top_links(9).names.tolist() == model.top_links(9).names.tolist()
        assert loaded.score_pairs("node 1", "node 5") == model.score_pairs("node 1", "node 5")


def test_a_seed_that_is_a_generator_is_not_stored(path):
    model = LinkPredictor(2, n_init=1, random_state=np.random.default_rng(0)).fit(GRAPH)
    model.save(path)
    loaded = LinkPredictor.load(path)
    assert loaded.random_state is None
    assert loaded.fits_[0].seed is None
    assert_array_equal(loaded.embedding_, model.embedding_)


def test_arrays_and_checkpoints_are_left_at_their_defaults(path, tmp_path):
    model = SymReLU(3, init=np.ones((30, 3)), checkpoint=str(tmp_path / "a.ckpt"), max_iter=np.int64(3))
    model.fit(GRAPH)
    model.save(path)
    loaded = SymReLU.load(path)
    assert (loaded.init, loaded.checkpoint, loaded.max_iter) == (SymReLU().init, None, 3)


def test_a_solution_is_a_model_without_names(path):
    solution = decompose(M, 3, **QUICK)
    solution.save(path)
    loaded = SymReLU.load(path)
    assert_array_equal(loaded.transform(M[:4] + 0.1), solution.transform(M[:4] + 0.1))
    assert loaded.n_components == 3
    assert not hasattr(loaded, "node_names_")
    with pytest.raises(ValueError, match=r"cannot be read as a saved LinkPredictor: it has no 'links'"):
        LinkPredictor.load(path)


@pytest.mark.parametrize("file", sorted(DATA.glob("*-0.1.0.npz")), ids=lambda file: file.stem)
def test_solutions_of_earlier_releases(file):
    solution = Solution.load(file)
    if hasattr(solution, "transform"):
        assert_array_equal(SymReLU.load(file).embedding_, solution.U)
    else:
        with pytest.raises(ValueError, match=r"its model is (Linear|TwoFactor)"):
            SymReLU.load(file)


def test_an_unfitted_model_is_not_saved(path):
    with pytest.raises(NotFittedError):
        SymReLU().save(path)
    assert not path.exists()


def test_names_that_cannot_be_stored_are_refused_before_the_file_is_written(path):
    model = SymReLU(3, **QUICK).fit(Labelled(GRAPH, np.array([1.5] * 30, object) + np.arange(30)))
    with pytest.raises(TypeError, match=r"Names in a file must be strings, integers or tuples"):
        model.save(path)
    assert not path.exists()


def rewrite(path, **changes):
    """Replace arrays of a file, given with __ in place of a dot; a function changes the header."""
    with np.load(path) as archive:
        arrays = dict(archive)
    for name, value in changes.items():
        name = name.replace("__", ".")
        if callable(value):
            header = json.loads(str(arrays[name]))
            value(header)
            arrays[name] = np.array(json.dumps(header))
        elif value is None:
            del arrays[name]
        else:
            arrays[name] = value
    np.savez(path, **arrays)


HOSTILE = {
    "another format": (
        {"model": lambda h: h.update(format="symrelu.LinkPredictor")},
        "it holds a 'LinkPredictor'",
    ),
    "a later version": ({"model": lambda h: h.update(version=2)}, "its version is 2, this release reads 1"),
    "an unknown number": ({"model": lambda h: h.update(more=2)}, "its header has an unknown 'more'"),
    "no parameters": ({"model": lambda h: h.pop("parameters")}, "its header has no 'parameters'"),
    "parameters of text": (
        {"model": lambda h: h.update(parameters="x")},
        "its parameters must be a JSON object",
    ),
    "an unknown parameter": (
        {"model": lambda h: h["parameters"].update(__class__=1)},
        "its list of parameters has an unknown '__class__'",
    ),
    "a parameter of lists": (
        {"model": lambda h: h["parameters"].update(init=[[1]])},
        "its parameter init must be a number, a word or null",
    ),
    "an unknown solver": (
        {"model": lambda h: h["parameters"].update(solver={"solver": "os.system", "settings": {}})},
        "solver must be one of",
    ),
    "settings of another solver": (
        {"model": lambda h: h["parameters"].update(solver={"solver": "lbfgs", "settings": {"a": 1}})},
        "unexpected keyword",
    ),
    "samples that are not there": (
        {"model": lambda h: h["parameters"].update(affinity="self_tuning")},
        "the parts of a model with affinity='self_tuning'",
    ),
    "too few names": ({"model": lambda h: h["names"].pop()}, "a name for each of its 30 nodes"),
    "too few features": (
        {"model": lambda h: h.update(feature_names=["a"])},
        "a name for each of its 30 features",
    ),
    "another size": ({"model": lambda h: h.update(n_features_in=31)}, "its n_features_in is 31, but it has 30"),
    "no size": ({"model": lambda h: h.update(n_features_in="30")}, "n_features_in must be an integer"),
    "a header of a list": ({"model": np.array("[]")}, "must hold a JSON object"),
    "no solution": ({"solution": None}, "it has no entry 'solution'"),
    "no factor": ({"U": None}, "it has no 'U'"),
    "a factor of NaN": ({"U": np.full((30, 3), np.nan)}, "U must be finite"),
    "an unknown array": ({"more": np.ones(2)}, "it has an unknown 'more'"),
    "an unknown part": ({"more__x": np.ones(2)}, "it has an unknown 'more'"),
    "an unknown hash": ({"row_index__x": np.ones(2)}, "its row index has an unknown 'x'"),
    "hashes of other rows": (
        {"row_index__rows": np.ones((29, 16), np.uint8)},
        "16 bytes for each of its 30 rows",
    ),
    "hashes of text": ({"row_index__rows": np.full((30, 16), "x")}, "16 bytes for each of its 30 rows"),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.npz"
    SymReLU(3, **QUICK).fit(Labelled(GRAPH, NAMES)).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name, saved, path):
    path.write_bytes(saved)
    changes, message = HOSTILE[name]
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=rf"model.npz cannot be read as a saved SymReLU: .*{message}"):
        SymReLU.load(path)


HOSTILE_LINKS = {
    "no links": ({"links__indices": None}, "its part 'links' has no 'indices'"),
    "degrees of NaN": ({"links__root_degrees": np.full(30, np.nan)}, "root_degrees of it must be finite"),
    "negative degrees": ({"links__root_degrees": -np.ones(30)}, "its root_degrees must not be negative"),
    "no smoothing": ({"links__smoothing": np.array(0.0)}, "smoothing must be a finite number > 0"),
    "links elsewhere": ({"links__indices": np.array([99])}, "ind"),
    "no fits": ({"links__fits": lambda h: h.clear()}, "its fits must be a list"),
    "a fit of text": ({"links__fits": lambda h: h.update(fits=["abcd"])}, "a fit must have a seed"),
    "an unknown status": (
        {"links__fits": lambda h: h["fits"][0].__setitem__(2, "DONE")},
        "status must be one of",
    ),
}


@pytest.mark.parametrize("name", HOSTILE_LINKS)
def test_hostile_files_of_links_are_refused(name, path):
    LinkPredictor(3, n_init=1, random_state=0).fit(GRAPH).save(path)
    changes, message = HOSTILE_LINKS[name]
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=rf"model.npz cannot be read as a saved LinkPredictor: .*{message}"):
        LinkPredictor.load(path)


GRAPHS = {
    "another sample": ({"graph__samples": np.ones((29, 4))}, r"finite floats of shape \(30, 4\)"),
    "no neighbours": ({"graph__n_neighbors": np.array(0)}, "n_neighbors must be an integer from 1 to 29"),
    "no scales": ({"graph__scales": None}, "its graph has no 'scales'"),
    "no affinity": (
        {"model": lambda h: h["parameters"].update(affinity="precomputed")},
        "the parts of a model",
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_hostile_graphs_of_samples_are_refused(name, path):
    SymReLU(3, affinity="self_tuning", **QUICK).fit(SAMPLES).save(path)
    changes, message = GRAPHS[name]
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=message):
        SymReLU.load(path)


def test_nothing_is_unpickled(saved, path):
    path.write_bytes(saved)
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **arrays | {"more": np.array([pickle.dumps], dtype=object)})
    with pytest.raises(ValueError, match=r"model.npz"):
        SymReLU.load(path)


def test_damage_is_named_or_harmless(saved, path):
    path.write_bytes(saved)
    U = SymReLU.load(path).embedding_
    harmless = 0
    for other in damaged(saved, flips=150, cuts=100):
        path.write_bytes(other)
        message = refusal(SymReLU.load, path)
        if message is None:
            harmless += 1
            assert_array_equal(SymReLU.load(path).embedding_, U)
        assert message is None or "model.npz" in message
    assert harmless < 60  # dates and permissions in the directory of the archive


def test_every_part_has_an_estimator():
    used = {part for cls in (SymReLU, LinkPredictor) for part in cls._saved_parts}
    assert used == set(saving._PARTS)
