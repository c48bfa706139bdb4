"""Solution and History: what they say, and their files."""

import dataclasses
import json
import os

import numpy as np
import pytest
from helpers import refusal
from numpy.testing import assert_array_equal

from symrelu import AAPB, Solution, Status, decompose
from symrelu.datasets import make_relu_gram
from symrelu.solution import History


@pytest.fixture
def solution():
    M, _ = make_relu_gram(30, 3, shift=0.05, random_state=0)
    return decompose(M, 4, n_negative=1, alpha=0.1, solver=AAPB(step_size=2), max_iter=10, random_state=0)


def test_properties(solution):
    assert solution.rank == 4
    assert solution.n_negative == 1
    assert solution.half_squared_error == solution.relative_error**2 / 2
    assert solution.status is Status.MAX_ITER
    assert not solution.converged
    assert repr(solution) == (
        f"Solution(n=30, rank=4, n_negative=1, relative_error={solution.relative_error:.4g}, "
        "n_iter=10, status=MAX_ITER)"
    )
    assert (solution.diagonal, solution.zero_weight) == ("fit", 1.0)
    assert solution.solver == "AAPB(step_size=2.0, momentum=1.0, safeguard=False)"


def test_history_is_data(solution):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(solution.history.as_dict())
    assert list(frame.columns) == [
        "iteration",
        "evaluations",
        "seconds",
        "relative_error",
        "latent_loss",
        "objective",
        "gradient_norm",
    ]
    assert len(frame) == len(solution.history) == 11
    assert "11 records" in repr(solution.history)
    assert repr(History.from_records([])) == "History(empty)"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_save_and_load(tmp_path, dtype):
    M, _ = make_relu_gram(20, 2, random_state=0)
    solution = decompose(M.astype(dtype), 2, random_state=0, max_iter=20)
    path = tmp_path / "fit.npz"
    solution.save(path)
    loaded = Solution.load(path)
    assert loaded.U.dtype == dtype
    assert_array_equal(loaded.U, solution.U)
    assert_array_equal(loaded.signature, solution.signature)
    for name, column in solution.history.as_dict().items():
        assert_array_equal(getattr(loaded.history, name), column)
    for name in (
        "diagonal",
        "zero_weight",
        "alpha",
        "status",
        "n_iter",
        "n_evaluations",
        "relative_error",
        "norm",
        "objective",
        "solver",
    ):
        assert getattr(loaded, name) == getattr(solution, name), name
    assert [file.name for file in tmp_path.iterdir()] == ["fit.npz"]


def test_right_factor_is_saved_where_there_is_one(tmp_path, solution):
    path = tmp_path / "fit.npz"
    solution.save(path)
    with np.load(path) as content:
        assert "V" not in content.files  # as in the files of models without one
    assert Solution.load(path).V is None
    V = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    pair = dataclasses.replace(solution, V=V)
    assert repr(pair) == repr(solution)
    pair.save(path)
    loaded = Solution.load(path)
    assert loaded.V.dtype == np.float32
    assert_array_equal(loaded.V, V)
    assert_array_equal(loaded.U, solution.U)


def test_infinite_objective_survives_a_file(tmp_path):
    M, _ = make_relu_gram(20, 2, random_state=0)
    solution = decompose(M * 1e200, 2, random_state=0, max_iter=20)
    assert solution.objective == np.inf
    solution.save(tmp_path / "huge.npz")
    assert Solution.load(tmp_path / "huge.npz").objective == np.inf


def test_failed_write_keeps_the_old_file(tmp_path, solution, monkeypatch):
    path = tmp_path / "fit.npz"
    path.write_bytes(b"precious")

    def full_disk(file, **arrays):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="No space left"):
        solution.save(path)
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]


def test_saved_file_has_ordinary_permissions(tmp_path, solution):
    path = tmp_path / "fit.npz"
    old = os.umask(0o022)
    try:
        solution.save(path)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o644


def test_save_into_a_missing_folder(tmp_path, solution):
    with pytest.raises(FileNotFoundError, match=r"output folder .*nowhere does not exist"):
        solution.save(tmp_path / "nowhere" / "fit.npz")


def changed(solution, path, **changes):
    """Write a solution whose JSON or arrays were changed."""
    solution.save(path)
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    numbers = json.loads(str(arrays["solution"]))
    for name, value in changes.items():
        if value is None:
            arrays.pop(name, None)
            numbers.pop(name, None)
        elif isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            numbers[name] = value
    arrays["solution"] = np.array(json.dumps(numbers))
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "its format is not symrelu.Solution"),
        ({"version": 99}, "its version is 99"),
        ({"status": "HAPPY"}, "HAPPY"),
        ({"status": None}, "status"),
        ({"U": None}, "U"),
        ({"history_seconds": None}, "history_seconds"),
        ({"U": np.zeros(3)}, "does not go with a signature"),
        ({"V": np.zeros((29, 4))}, r"V of shape \(29, 4\) does not go with U of shape \(30, 4\)"),
        ({"V": np.zeros(3)}, "does not go with U"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_foreign_or_damaged_solution_is_refused(tmp_path, solution, changes, message):
    path = tmp_path / "fit.npz"
    changed(solution, path, **changes)
    with pytest.raises(ValueError, match=f"not a Solution this version can read: .*{message}"):
        Solution.load(path)


def test_every_damaged_byte_is_noticed_or_harmless(tmp_path, solution):
    """Whatever byte is flipped, loading gives a Solution or a ValueError that names the file."""
    path = tmp_path / "fit.npz"
    solution.save(path)
    whole = path.read_bytes()
    refused = 0
    for place in np.random.default_rng(0).integers(0, len(whole), 150):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        message = refusal(Solution.load, path)
        assert message is None or "fit.npz" in message
        refused += message is not None
    assert refused > 100


def test_other_files_are_refused(tmp_path, solution):
    path = tmp_path / "fit.npz"
    solution.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="not a readable npz file"):
        Solution.load(path)
    np.savez(path, M=np.eye(2))
    with pytest.raises(ValueError, match="not a saved Solution"):
        Solution.load(path)
    np.save(tmp_path / "array.npy", np.eye(2))
    with pytest.raises(ValueError, match="single npy array"):
        Solution.load(tmp_path / "array.npy")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        Solution.load(tmp_path / "missing.npz")


def test_nothing_is_unpickled(tmp_path, solution):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    path = tmp_path / "fit.npz"
    solution.save(path)
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    arrays["U"] = np.array([Bomb()], dtype=object)
    np.savez(path, allow_pickle=True, **arrays)
    with pytest.raises(ValueError, match="not a readable Solution file"):
        Solution.load(path)
    assert not (tmp_path / "exploded").exists()
