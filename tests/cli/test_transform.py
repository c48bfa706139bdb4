"""The command ``transform``, run as a user runs it."""

import csv
import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu import LinkPredictor, NeighborEmbedding, SymReLU, decompose
from symrelu.graphs import Labelled

NAMES = ["ann", "bob", 'c "d", e', "Ørsted", "=1+1", "007"]
RING = sparse.csr_array(np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0))
NEW = np.array([[2.0, 1, 0, 0, 0, 0], [0, 0, 0, 0.5, 0, 1]])

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def model(tmp_path):
    """A saved embedding with names, and new items in several forms."""
    estimator = SymReLU(3, n_negative=1, diagonal="ignore", random_state=0, max_iter=50)
    estimator.fit(Labelled(RING, np.array(NAMES, object))).save(tmp_path / "model.npz")
    with open(tmp_path / "new.csv", "w", encoding="utf-8", newline="") as file:
        rows = [[f"new {i}", NAMES[j], NEW[i, j]] for i, j in np.argwhere(NEW)]
        csv.writer(file).writerows([["item", "known", "weight"], *rows])
    np.save(tmp_path / "new.npy", NEW)
    sparse.save_npz(tmp_path / "new.npz", sparse.csr_array(NEW))
    return estimator


def table(path):
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return header, [row[0] for row in rows], np.array([row[1:] for row in rows], dtype=float)


@pytest.mark.parametrize(
    ("file", "names"), [("new.csv", ["new 0", "new 1"]), ("new.npy", ["0", "1"]), ("new.npz", ["0", "1"])]
)
def test_vectors_are_those_of_the_estimator(file, names, model, call):
    code, out, _ = call("transform", "model.npz", file, "-o", "v.csv", "--json")
    assert code == 0
    header, found, vectors = table("v.csv")
    assert (header, found) == (["node", "x1", "x2", "x3"], names)
    assert_array_equal(vectors, model.transform(NEW))
    result = json.loads(out)
    assert (result["items"], result["known"], result["columns"]) == (2, 6, 3)


def test_the_device_of_the_fit_is_asked(model, call, monkeypatch):
    pytest.importorskip("torch")
    on_device = pytest.importorskip("symrelu.fitted.on_device")
    np.save("ring.npy", RING.toarray())
    assert call("embed", "ring.npy", "--components", 3, "--backend", "torch", "--model", "torch.npz")[0] == 0
    rows, asked = on_device.transform_rows, []
    monkeypatch.setattr(
        on_device, "transform_rows", lambda *data, device, **settings: asked.append(str(device)) or rows(
            *data, device=device, **settings
        )
    )  # fmt: skip
    assert call("transform", "torch.npz", "new.npy", "-o", "v.csv")[0] == 0
    assert asked == ["cpu"]
    assert table("v.csv")[2].shape == (2, 3)


def test_notes_on_new_items_are_printed(model, call, tmp_path):
    (tmp_path / "n.csv").write_text("# by hand\nx,ann,1\nx,ann,2\n")
    code, out, err = call("transform", "model.npz", "n.csv", "-o", "v.csv", "--duplicates", "sum", "--json")
    assert code == 0
    notes = json.loads(out)["notes"]
    assert ["column 3 was read" in notes[0], "skipped: 1" in notes[1], notes[2]] == [
        True,
        True,
        "1 repeated edge was added",
    ]
    assert err == "".join(f"Note: {text}\n" for text in notes)


def test_a_fitted_row_gets_its_vector(model, call, tmp_path):
    np.save(tmp_path / "rows.npy", RING.toarray()[:2])
    assert call("transform", "model.npz", "rows.npy", "-o", "v.csv", "--quiet") == (0, "", "")
    assert_array_equal(table("v.csv")[2], model.embedding_[:2])


def test_a_model_of_neighbors(model, call, tmp_path):
    estimator = NeighborEmbedding(random_state=0).fit(Labelled(RING, np.array(NAMES, object)))
    estimator.save(tmp_path / "neighbors.npz")
    assert call("transform", "neighbors.npz", "new.csv", "-o", "v.csv")[0] == 0
    assert_array_equal(table("v.csv")[2].astype(np.float32), estimator.transform(NEW))


def test_a_solution_has_row_numbers(model, call, tmp_path):
    solution = decompose(RING + sparse.eye_array(6), 3, random_state=0, max_iter=20)
    solution.save(tmp_path / "solution.npz")
    (tmp_path / "numbers.csv").write_text("x,0,2\nx,1,1\ny,3,0.5\ny,5,1\n")
    assert call("transform", "solution.npz", "numbers.csv", "-o", "v.csv")[0] == 0
    _, names, vectors = table("v.csv")
    assert names == ["x", "y"]
    assert_array_equal(vectors, solution.transform(NEW))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.npz", "unknown.csv", "-o", "v.csv"], "'nobody'"),
        (["model.npz", "twice.csv", "-o", "v.csv"], "Pass --duplicates sum"),
        (["model.npz", "wide.npy", "-o", "v.csv"], "wide.npy"),
        (["model.npz", "missing.csv", "-o", "v.csv"], "missing.csv does not exist"),
        (["missing.npz", "new.csv", "-o", "v.csv"], "missing.npz does not exist"),
        (["new.csv", "new.npy", "-o", "v.csv"], "new.csv is not a readable npz file"),
        (["new.npz", "new.csv", "-o", "v.csv"], "new.npz"),
        (
            ["links.npz", "new.csv", "-o", "v.csv"],
            "links.npz must be a model of 'symrelu embed' or 'symrelu neighbors', but it is one of",
        ),
        (["samples.npz", "new.csv", "-o", "v.csv"], "it was fitted to samples, which only Python can read"),
        (["model.npz", "new.csv", "-o", "model.npz"], "must be different files"),
        (["model.npz", "new.csv", "-o", "v.txt"], "must end in .csv"),
    ],
)
def test_errors(arguments, message, model, call, tmp_path):
    (tmp_path / "unknown.csv").write_text("x,nobody,1\n")
    (tmp_path / "twice.csv").write_text("x,ann,1\nx,ann,2\n")
    np.save(tmp_path / "wide.npy", np.ones((2, 7)))
    LinkPredictor(2, n_init=1, max_iter=2).fit(RING).save(tmp_path / "links.npz")
    if "samples.npz" in arguments:
        samples = np.random.default_rng(0).standard_normal((12, 2))
        SymReLU(2, affinity="self_tuning", n_negative=0, diagonal="fit", max_iter=3).fit(samples).save(
            tmp_path / "samples.npz"
        )
    code, out, err = call("transform", *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
    assert "Traceback" not in err
