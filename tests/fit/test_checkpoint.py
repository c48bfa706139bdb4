"""Files of checkpoints: when they are written, and files that are not those of this fit."""

import errno
import json
import logging
import os
import pickle
import shutil
import threading
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import damaged, refusal
from numpy.testing import assert_array_equal
from same_fits import assert_same

from symrelu import Checkpoint, SymReLU, decompose
from symrelu.datasets import make_relu_gram
from symrelu.files import write_atomically
from symrelu.fit.checkpoint import CheckpointFile, CheckpointWarning, DifferentFit, read_origin, saved_step
from symrelu.problem import fingerprint

M, _ = make_relu_gram(60, 4, random_state=0)
FIT = {"random_state": 0, "tol": 0, "gtol": 0, "ftol": 0}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.ckpt"


@pytest.mark.parametrize("error", [MemoryError(), TypeError("not JSON"), OSError("gone")])
def test_no_failure_to_write_ends_the_fit(error, path, monkeypatch):
    def fail(*arguments, **named):
        raise error

    monkeypatch.setattr("symrelu.fit.checkpoint.np.savez", fail)
    with pytest.warns(CheckpointWarning, match="could not be written: "):
        assert decompose(M, 3, max_iter=5, checkpoint=path, **FIT).n_iter == 5


@pytest.mark.parametrize("every", [0, 60])
def test_warnings_that_are_errors_do_not_end_the_fit(every, path, monkeypatch, caplog):
    """issue 11.12: the fit is worth more than its checkpoint, so that ``-W error`` gives a line of the log."""

    def fail(*arguments, **named):
        raise OSError("the disk is full")

    monkeypatch.setattr("symrelu.fit.checkpoint.np.savez", fail)
    with warnings.catch_warnings(), caplog.at_level(logging.ERROR, "symrelu"):
        warnings.simplefilter("error")
        solution = decompose(M, 3, max_iter=5, checkpoint=Checkpoint(path, every), **FIT)
    assert_same(solution, decompose(M, 3, max_iter=5, **FIT))
    (record,) = caplog.records
    assert "could not be written: the disk is full. The fit continues" in record.getMessage()


def test_a_second_interruption_does_not_cost_the_result(path, monkeypatch):
    def interrupt(self, snapshot):
        raise KeyboardInterrupt

    monkeypatch.setattr("symrelu.fit.checkpoint.CheckpointFile.write", interrupt)
    assert decompose(M, 3, max_iter=5, checkpoint=path, **FIT).n_iter == 5


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_an_exception_of_a_callback_is_written(error, path):
    def fail(progress):
        if progress.record.iteration == 4:
            raise error

    with pytest.raises(error):
        decompose(M, 3, max_iter=12, checkpoint=path, callback=fail, **FIT)
    with np.load(path) as content:
        assert len(content["history_iteration"]) == 5
    assert_same(decompose(M, 3, max_iter=12, **FIT), decompose(M, 3, max_iter=12, checkpoint=path, **FIT))


def test_the_file_stays_where_it_was(path, tmp_path, monkeypatch):
    """A path is that of the beginning, whatever the working folder becomes; a link is followed once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(path)

    def move(progress):
        os.chdir(tmp_path / "elsewhere")

    decompose(M, 3, max_iter=5, checkpoint="link", callback=move, **FIT)
    assert path.is_file()
    assert (tmp_path / "link").is_symlink()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_what_is_not_finished_is_not_followed(path):
    """A link that waits under the name of an unfinished file must not be written through."""
    victim = path.with_name("victim")
    victim.write_text("mine")
    unfinished(path).symlink_to(victim)
    resume(path)
    assert victim.read_text() == "mine"
    assert {file.name for file in path.parent.iterdir()} == {path.name, "victim"}


def unfinished(path):
    """The name of what a killed fit with this checkpoint leaves."""
    return path.with_name(CheckpointFile(Checkpoint(path), {}).prefix + "-0123456789abcdef.part")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("fit.ckpt", "fit.ckpt-2"),
        ("fit", "fit-0123456789abcdef.part"),
        ("x" * 150, "x" * 150 + "y"),  # the first 100 letters were looked at
        ("*", "a"),
    ],
)
def test_only_its_own_unfinished_files_are_cleared_away(name, other, tmp_path):
    own, foreign = unfinished(tmp_path / name), unfinished(tmp_path / other)
    for file in (own, foreign):
        file.write_bytes(b"")
    resume(tmp_path / name)
    assert not own.exists()
    assert foreign.exists()


@pytest.mark.parametrize("name", ["symrelu", "symrelu-checkpoint", "fit.ckpt"])
def test_what_is_saved_meanwhile_is_not_cleared_away(name, tmp_path):
    """issue 11.12: a checkpoint called symrelu took the unfinished file of a save for its own."""
    solution = decompose(M, 3, max_iter=2, **FIT)
    with write_atomically(tmp_path / "saved.npz") as file:
        resume(tmp_path / name)
        solution.save(tmp_path / "other.npz")
        file.write(b"whole")
    assert (tmp_path / "saved.npz").read_bytes() == b"whole"


def test_a_name_of_the_longest_length(tmp_path):
    path = tmp_path / ("\N{GRINNING FACE}" * 63)  # 252 bytes of the 255 that a name may have
    resume(path)
    assert path.is_file()


def test_writers_at_the_same_time_leave_a_whole_file(path):
    """Whoever renames last wins; the file is complete at every moment."""
    threads = [
        threading.Thread(
            target=decompose, args=(M, 3), kwargs={"max_iter": 30, "checkpoint": Checkpoint(path, 0), **FIT}
        )
        for _ in range(3)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)  # one may clear away what another writes
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            if path.exists():
                with np.load(path) as content:
                    assert "checkpoint" in content
        for thread in threads:
            thread.join()
    assert resume(path).n_iter == 30


def test_a_full_disk_ends_neither_the_fit_nor_the_last_checkpoint(path, monkeypatch):
    decompose(M, 3, max_iter=5, checkpoint=path, **FIT)
    before = path.read_bytes()

    def full(*arguments, **named):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("symrelu.fit.checkpoint.np.savez", full)
        with pytest.warns(
            CheckpointWarning, match=r"could not be written: .*No space left.* The fit continues"
        ):
            solution = decompose(M, 3, max_iter=12, checkpoint=Checkpoint(path, every=0), **FIT)
    assert solution.n_iter == 12
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert_same(solution, decompose(M, 3, max_iter=12, checkpoint=path, **FIT))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
# NumPy 2.1 leaves the archive open, which fails once more when it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_device_that_is_full(path, monkeypatch):
    """The same with a real error in the middle of writing."""
    decompose(M, 3, max_iter=5, checkpoint=path, **FIT)
    before = path.read_bytes()
    real_open = open

    def full_disk(file, *arguments, **named):
        if str(file).endswith(".part"):
            return real_open("/dev/full", "wb")
        return real_open(file, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr("builtins.open", full_disk)
        with pytest.warns(CheckpointWarning, match="No space left"):
            decompose(M, 3, max_iter=9, checkpoint=Checkpoint(path, every=0), **FIT)
    assert path.read_bytes() == before


OTHERS = {
    "rank": ({"rank": 4}, "it was written with rank=3, this fit has rank=4"),
    "matrix": ({"M": M + np.eye(60)}, "it was written for another matrix"),
    "solver": ({"solver": "palm"}, "it was written with solver='LBFGS.*this fit has solver='PALM"),
    "alpha": ({"alpha": 0.5}, "it was written with alpha=0.0, this fit has alpha=0.5"),
    "diagonal": ({"diagonal": "ignore"}, "it was written with diagonal='fit'"),
    "mask": ({"mask": np.eye(60, dtype=bool)}, "it was written for another mask"),
    "init": ({"init": "random"}, "it was written with init='imputed', this fit has init='random'"),
    "start": ({"init": np.ones((60, 3))}, "it was written with init='imputed', this fit has init='an array'"),
    "generator": (
        {"random_state": np.random.default_rng(0)},
        "it was written with random_state=0, this fit has random_state='a generator'",
    ),
    "seed": ({"random_state": 1}, "it was written with random_state=0, this fit has random_state=1"),
    "signs": ({"n_negative": 1}, "it was written with n_negative=0, this fit has n_negative=1"),
    "weight": ({"zero_weight": 0.5}, "it was written with zero_weight=1.0"),
    "support": (
        {"support": "at_least"},
        "it was written with support='equal', this fit has support='at_least'",
    ),
    "dtype": ({"M": M.astype(np.float32)}, "it was written for another matrix"),
    "backend": ({"backend": "sparse"}, "it was written with backend='dense', this fit has backend='sparse'"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_fit_is_refused(name, path):
    decompose(M, 3, max_iter=3, checkpoint=path, **FIT)
    before = path.read_bytes()
    changes, message = OTHERS[name]
    arguments = {"M": M, "rank": 3, "checkpoint": path, **FIT, **changes}
    with pytest.raises(ValueError, match=r"cannot resume from the checkpoint .*: " + message) as caught:
        decompose(**arguments)
    assert "Delete the file to start again, or pass another file." in str(caught.value)
    assert path.read_bytes() == before


def resume(path):
    return decompose(M, 3, max_iter=9, checkpoint=path, **FIT)


def rewrite(path, **changes):
    """Replace arrays of a checkpoint; a function changes the numbers of its header."""
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    for name, value in changes.items():
        if value is None:
            del arrays[name]
        elif callable(value):
            header = json.loads(str(arrays[name]))
            value(header)
            arrays[name] = np.array(json.dumps(header))
        else:
            arrays[name] = value
    with open(path, "wb") as file:
        np.savez(file, **arrays)


DAMAGE = {
    "another format": ({"checkpoint": lambda h: h.update(format="other")}, "it is not a checkpoint"),
    "no header": ({"checkpoint": None}, "it is not a checkpoint"),
    "a later version": (
        {"checkpoint": lambda h: h.update(version=9)},
        "its version is 9, this release reads 1",
    ),
    # issue 11.18
    "the minor version before": (
        {"checkpoint": lambda h: h.update(symrelu="0.1.7")},
        r"it was written by symrelu 0.1.7, and this is symrelu .*: a fit can resume only with the minor",
    ),
    "no version": ({"checkpoint": lambda h: h.pop("symrelu")}, "it was written by symrelu 0.1, and this is"),
    "a version of another kind": (
        {"checkpoint": lambda h: h.update(symrelu=0.2)},
        "it was written by symrelu 0.2",
    ),
    # issue 11.11
    "a header that is a number": ({"checkpoint": np.array(3)}, "its entry 'checkpoint' is not a string"),
    "a header of a list": (
        {"checkpoint": np.array("[]")},
        "its entry 'checkpoint' must hold a JSON object, got the type list",
    ),
    "an unknown number": ({"checkpoint": lambda h: h.update(more=1)}, "its header has an unknown 'more'"),
    "an unknown array": ({"more": np.ones(2)}, "it has an unknown 'more'"),
    "numbers of text": ({"checkpoint": lambda h: h.update(best="x")}, "its best is 'x', not names and numbers"),
    "an objective that is NaN": (
        {"checkpoint": lambda h: h["best"].update(objective=float("nan"))},
        "its objective is nan, which is not finite",
    ),
    "objectives that are NaN": (
        {"recent_objectives": np.full(3, np.nan)},
        "its recent objectives are not a list",
    ),
    "a history that skips": ({"history_iteration": np.arange(10) * 2}, "its history does not have a row for"),
    "a history of fractions": (
        {"history_evaluations": np.arange(10) + 0.5},
        "history_evaluations must hold whole numbers >= 0, got 0.5",
    ),
    "a history of text": (
        {"history_seconds": np.full(10, "x")},
        "history_seconds must hold float32 or float64",
    ),
    "seconds of text": ({"checkpoint": lambda h: h.update(seconds="1")}, "its seconds are '1'"),
    "no identity": ({"checkpoint": lambda h: h.update(identity=3)}, "it does not say which fit wrote it"),
    "no factor": ({"state_U": None}, "its state has the fields"),
    "a wide factor": (
        {"state_U": np.ones((60, 9))},
        r"its U has shape \(60, 9\), and this fit needs \(60, 3\)",
    ),
    "a factor of text": ({"state_U": np.full((60, 3), "x")}, "its U is not an array of float64"),
    "a field too few": ({"state_gradient": None}, "its state has the fields"),
    "a field too many": ({"state_extra": np.ones(2)}, "its state has the fields"),
    "NaN": ({"state_gradient": np.full((60, 3), np.nan)}, "its gradient has entries that are not finite"),
    "wrong type": ({"state_gradient": np.ones((60, 3), int)}, "its gradient is not an array of float64"),
    "wrong steps": ({"state_steps": np.ones((2, 5, 5))}, r"its steps has shape \(2, 5, 5\)"),
    "a number of text": (
        {"checkpoint": lambda h: h["state"].update(damping="1.0")},
        "its damping is '1.0', not a number of type float",
    ),
    "no best": ({"best_U": None}, "its state has the fields"),
    "signature": ({"signature": np.zeros(3)}, "its signature is not a sign for each column"),
    "signs": (
        {"signature": np.array([1.0, 1, -1])},
        "its signature has a different number of negative columns",
    ),
    "history": ({"history_seconds": np.ones(2)}, "its history is not a table"),
    "no history": ({"history_seconds": None}, "it has no 'history_seconds'"),
    "objectives": ({"recent_objectives": np.ones((2, 2))}, "its recent objectives are not a list"),
    "a negative count": (
        {"checkpoint": lambda h: h.update(evaluations=-1)},
        "its evaluations is -1, not a count",
    ),
    "a count of text": ({"checkpoint": lambda h: h.update(next_confirmation="1")}, "its next_confirmation is"),
    "an origin of text": ({"checkpoint": lambda h: h.update(origin="x")}, "its origin must be a JSON object"),
    "endless seconds": ({"checkpoint": lambda h: h.update(seconds=float("inf"))}, "its seconds are inf"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named(name, path):
    resume(path)
    changes, message = DAMAGE[name]
    rewrite(path, **changes)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"cannot resume from the checkpoint .*: " + message):
        resume(path)
    assert path.read_bytes() == before


def test_a_later_release_of_the_same_minor_version_goes_on(path, monkeypatch):
    monkeypatch.setattr("symrelu.__version__", "0.2.0.dev0")
    whole = decompose(M, 3, max_iter=12, **FIT)
    decompose(M, 3, max_iter=5, checkpoint=path, **FIT)
    monkeypatch.setattr("symrelu.__version__", "0.2.13")
    assert_same(whole, decompose(M, 3, max_iter=12, checkpoint=path, **FIT))
    monkeypatch.setattr("symrelu.__version__", "0.20.0")
    with pytest.raises(ValueError, match=r"it was written by symrelu 0.2.13, and this is symrelu 0.20.0"):
        decompose(M, 3, max_iter=20, checkpoint=path, **FIT)


@pytest.mark.parametrize("rank", [2, "auto"])
def test_a_checkpoint_of_0_1_0_is_refused(path, rank):  # issue 11.18
    shutil.copy(Path(__file__).parents[1] / "data" / "fit-0.1.0.ckpt", path)
    before = path.read_bytes()
    matrix, _ = make_relu_gram(12, 2, shift=0.05, random_state=0)
    with pytest.raises(
        ValueError, match=r"fit.ckpt: it was written by symrelu 0.1, and this is symrelu 0\.[2-9]"
    ):
        SymReLU(rank, random_state=0, max_iter=5, checkpoint=path).fit(matrix)
    assert path.read_bytes() == before


def test_files_of_other_kinds(path):
    for content in (b"", b"text", pickle.dumps({"a": 1})):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a readable npz file"):
            resume(path)
    np.save(path.with_suffix(".npy"), np.eye(3))
    path.with_suffix(".npy").rename(path)
    with pytest.raises(ValueError, match="a single npy array, not an npz archive"):
        resume(path)


def test_results_are_not_to_be_deleted(path):
    solution = decompose(M, 3, max_iter=2, **FIT)
    model = SymReLU(3, max_iter=9, random_state=0, n_negative=0, tol=1e9).fit(M)
    for result, what in ((solution, "a saved Solution"), (model, "the model of an estimator")):
        result.save(path)
        with pytest.raises(ValueError, match=rf"not a checkpoint, but {what}\. Pass another file\.$"):
            resume(path)


def test_nothing_is_unpickled(path):
    class Hostile:
        def __reduce__(self):
            return (os.mkdir, (str(path.parent / "executed"),))

    resume(path)
    rewrite(path, state_U=np.array([Hostile()], dtype=object))
    with pytest.raises(ValueError, match="not a readable"):
        resume(path)
    assert not (path.parent / "executed").exists()


def test_archives_that_swell_are_refused(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("checkpoint.npy", b"0" * 10_000)
    with pytest.raises(
        ValueError, match=r"fit.ckpt must be a checkpoint file, which is never compressed, .*Pass another"
    ):
        resume(path)


def same_snapshot(one, other):
    """Whether two snapshots are equal, bit for bit."""

    def equal(a, b):
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(equal(a[name], b[name]) for name in a)
        if isinstance(a, np.ndarray):
            return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        return type(a) is type(b) and a == b

    fields_of = [{**vars(snapshot), "history": snapshot.history.as_dict()} for snapshot in (one, other)]
    return equal(*fields_of)


def test_files_of_earlier_versions_name_the_same_fit(path):
    """What identifies a fit is made of the settings, and stays as it was written before they were values."""
    matrix, _ = make_relu_gram(5, 1, random_state=0)
    decompose(matrix, np.int64(2), n_negative=np.int8(1), alpha=1, random_state=np.int64(3), checkpoint=path)
    with np.load(path) as archive:
        identity = json.loads(str(archive["checkpoint"]))["identity"]
    assert identity == {
        "rank": 2,
        "solver": "LBFGS(memory=10)",
        "n_negative": 1,
        "diagonal": "fit",
        "zero_weight": 1.0,
        "support": "equal",
        "alpha": 1.0,
        "backend": "dense",
        "random_state": 3,
        "init": "imputed",
        "starting factor": None,
        "mask": None,
        "matrix": fingerprint(matrix),
    }


def test_a_thousand_flipped_bits_and_a_thousand_cuts(path):
    """Each is refused by name, or changes nothing of what the fit resumes from."""
    matrix, _ = make_relu_gram(5, 1, random_state=0)

    def fit(steps, **checkpoint):
        return decompose(matrix, 1, max_iter=steps, **checkpoint, **FIT)

    fit(3, checkpoint=path)
    content = path.read_bytes()
    with np.load(path) as archive:
        identity = json.loads(str(archive["checkpoint"]))["identity"]
    file = CheckpointFile(Checkpoint(path), identity)
    whole, harmless = file.read(), []
    for other in damaged(content, flips=1000, cuts=1000):
        path.write_bytes(other)
        message = refusal(lambda _: file.read(), path)
        if message is None:
            assert same_snapshot(file.read(), whole)
            harmless.append(other)
        assert message is None or "fit.ckpt" in message
    assert 0 < len(harmless) < 500  # dates and permissions in the directory of the archive
    for other in harmless[::50]:
        path.write_bytes(other)
        assert_array_equal(fit(6, checkpoint=path).U, fit(6).U)


def test_an_archive_that_asks_for_an_unknown_compression(path):  # issue 11.11
    """One bit of the directory made zipfile raise NotImplementedError."""
    resume(path)
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    for offset, bit in ((10, 1), (8, 5), (8, 6), (8, 0), (6, 7)):  # method, flags, version that is needed
        other = content.copy()
        other[entry + offset] ^= 1 << bit
        path.write_bytes(other)
        with pytest.raises(ValueError, match=r"cannot resume from the checkpoint .*fit.ckpt"):
            resume(path)


@pytest.mark.parametrize(
    ("checkpoint", "error", "message"),
    [
        (3, TypeError, "checkpoint must be the name of a file, a symrelu.Checkpoint or None, got int"),
        ("no/such/folder/fit.ckpt", FileNotFoundError, "The output folder .* does not exist"),
        (".", IsADirectoryError, "is a folder"),
    ],
)
def test_bad_checkpoints(checkpoint, error, message):
    with pytest.raises(error, match=message):
        decompose(M, 3, checkpoint=checkpoint)


def test_bad_settings():
    with pytest.raises(TypeError, match=r"Checkpoint\(path=...\) must be the name of a file, got int"):
        Checkpoint(3)
    with pytest.raises(ValueError, match=r"Checkpoint\(every=...\) must be a finite number >= 0, got -1"):
        Checkpoint("a", every=-1)
    with pytest.raises(TypeError, match=r"Checkpoint\(origin=...\) must be a dict, got str"):
        Checkpoint("a", origin="graph.csv")


ORIGIN = {"file": "graph.csv", "settings": {"rank": 3, "tol": 0.5, "mask": None}}


def test_the_origin_of_a_fit_is_read_back(path):
    decompose(M, 3, max_iter=3, checkpoint=Checkpoint(path, origin=ORIGIN), **FIT)
    assert read_origin(path) == ORIGIN
    assert_same(decompose(M, 3, max_iter=9, **FIT), resume(path))
    assert read_origin(path) == ORIGIN  # a path alone has no origin to put in its place
    decompose(M, 3, max_iter=12, checkpoint=Checkpoint(path, origin={"file": "moved.csv"}), **FIT)
    assert read_origin(path) == {"file": "moved.csv"}


def test_files_without_an_origin(path):
    decompose(M, 3, max_iter=3, checkpoint=path, **FIT)
    assert read_origin(path) is None
    with np.load(path) as content:
        assert "origin" not in json.loads(str(content["checkpoint"]))


def test_an_origin_does_not_make_another_checkpoint(path):
    given = dict(ORIGIN)
    checkpoint = Checkpoint(path, origin=given)
    given.clear()
    assert checkpoint.origin == ORIGIN
    assert checkpoint == Checkpoint(path)
    assert hash(checkpoint) == hash(Checkpoint(path))
    assert repr(checkpoint) == repr(Checkpoint(path))


@pytest.mark.parametrize("value", [Path("graph.csv"), {1, 2}, float("nan"), np.int64(3)])
def test_an_origin_that_json_cannot_hold(value, path):
    with pytest.raises(
        TypeError, match=r"Checkpoint\(origin=...\) must hold JSON values only: .* Convert paths"
    ):
        Checkpoint(path, origin={"deep": [{"value": value}]})


def test_the_origin_of_no_checkpoint(path):
    with pytest.raises(FileNotFoundError, match=r"fit.ckpt does not exist"):
        read_origin(path)
    np.savez(path.with_suffix(".npz"), a=1)
    with pytest.raises(
        ValueError, match=r"cannot resume from the checkpoint .*fit.npz: it is not a checkpoint"
    ):
        read_origin(path.with_suffix(".npz"))


def test_how_far_a_saved_fit_has_come(path):
    assert saved_step(path) is None
    decompose(M, 3, max_iter=4, checkpoint=path, **FIT)
    assert saved_step(path) == (4, 0)


@pytest.mark.parametrize("name", OTHERS)
def test_what_differs_is_named(name, path):
    decompose(M, 3, max_iter=3, checkpoint=path, **FIT)
    changes, message = OTHERS[name]
    with pytest.raises(ValueError, match=message) as caught:
        decompose(**{"M": M, "rank": 3, "checkpoint": path, **FIT, **changes})
    assert isinstance(caught.value.__cause__, DifferentFit)
    assert caught.value.__cause__.part in message


@pytest.mark.parametrize(
    ("every", "due"), [(60.0, [2.5, 63.0, 124.0]), (1.0, [1.0, 2.5, 60.0, 62.0, 63.0, 124.0])]
)
def test_the_first_checkpoint_is_written_early(every, due, path, monkeypatch):
    """issue 17: a fit that was killed after twenty seconds had nothing to resume from."""
    now = 0.0
    monkeypatch.setattr("symrelu.fit.checkpoint.time.monotonic", lambda: now)
    file = CheckpointFile(Checkpoint(path, every), {})
    snapshot = SimpleNamespace(entries=lambda: ({}, {}))
    written = []
    for now in (0.0, 1.0, 1.9, 2.5, 60.0, 62.0, 63.0, 124.0):
        if file.is_due():
            written.append(now)
            file.write(snapshot)
    assert written == due
