"""The command ``resume``, run as a user runs it."""

import json
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu import Checkpoint, Solution, Status, cli, decompose, metrics
from symrelu.fit.checkpoint import read_origin

FIT = ["--rank", 3, "--seed", 1, "--tol", 0, "--gtol", 0, "--ftol", 0]
SETTINGS = {"random_state": 1, "tol": 0, "gtol": 0, "ftol": 0}


@pytest.fixture
def begun(tmp_path, matrix_file, call):
    """The checkpoint of a fit that made five steps."""
    checkpoint = tmp_path / "fit.ckpt"
    options = ["--checkpoint", checkpoint, "-o", tmp_path / "fit.npz", "--max-iter", 5]
    assert call("fit", matrix_file, *FIT, *options)[0] == 0
    return checkpoint


def whole(matrix_file, steps, **settings):
    return decompose(sparse.load_npz(matrix_file), 3, max_iter=steps, **SETTINGS, **settings)


def test_two_parts_are_a_whole(begun, matrix_file, tmp_path, call):
    (tmp_path / "fit.npz").unlink()
    code, out, _ = call("resume", begun, "--max-iter", 20, "--json")
    assert code == 0
    expected = whole(matrix_file, 20)
    assert_array_equal(Solution.load(tmp_path / "fit.npz").U, expected.U)
    result = json.loads(out)
    assert (result["command"], result["iterations"]) == ("resume", 20)
    assert result["relative_error"] == expected.relative_error
    assert result["next"] == ["symrelu", "resume", str(begun), "--max-iter", "40", "--json"]


def test_notes_on_reading_are_not_repeated(tmp_path, call):
    """They propose options of fit, which resume does not have."""
    (tmp_path / "graph.csv").write_text("a,b,1\nb,c,2\nc,a,1\nc,d,1\n")
    limits = ["-r", 2, "--seed", 0, "--max-iter", 2]
    _, _, err = call("fit", "graph.csv", *limits, "--checkpoint", "f.ckpt", "-o", "f.npz")
    assert "column 3 was read as weights: pass --weight" in " ".join(err.split())
    code, _, err = call("resume", "f.ckpt", "--max-iter", 4)
    assert code == 0
    assert "weight" not in err


def test_a_fit_that_was_killed(matrix_file, tmp_path, call):
    """The only test here with a process of its own, because kill -9 ends the process."""
    checkpoint = tmp_path / "fit.ckpt"
    files = ["--checkpoint", checkpoint, "-o", tmp_path / "fit.npz"]
    arguments = [str(part) for part in ("symrelu", "fit", matrix_file, *FIT, "--max-iter", 25, *files)]
    program = f"""
import os, signal, sys
from symrelu import cli
from symrelu.fit.checkpoint import CheckpointFile
CheckpointFile.is_due = lambda self: True
write, written = CheckpointFile.write, []
def write_and_die(self, snapshot):
    write(self, snapshot)
    written.append(snapshot)
    if len(written) == 8:
        os.kill(os.getpid(), signal.SIGKILL)
CheckpointFile.write = write_and_die
sys.argv = {arguments!r}
cli.main()
"""
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "fit.npz").exists()
    with np.load(checkpoint) as content:
        assert len(content["history_iteration"]) < 25
    assert call("resume", checkpoint)[0] == 0
    assert_array_equal(Solution.load(tmp_path / "fit.npz").U, whole(matrix_file, 25).U)


def test_all_options_are_those_of_the_first_part(matrix_file, tmp_path, call):
    mask, checkpoint = tmp_path / "mask.npz", tmp_path / "fit.ckpt"
    unknown = metrics.random_mask(60, 0.1, random_state=5)
    sparse.save_npz(mask, unknown)
    outputs = {"-o": tmp_path / "u.csv", "--plot": tmp_path / "curve.png"}
    options = ["--solver", "palm", "--n-negative", 1, "--mask", mask, "--held-out", 0.1, "--diagonal", "ignore"]
    files = [part for pair in outputs.items() for part in pair]
    first = ["fit", matrix_file, *FIT, *options, *files, "--checkpoint", checkpoint, "--max-iter", 4]
    assert call(*first)[0] == 0
    for path in outputs.values():
        path.unlink()
    code, out, _ = call("resume", checkpoint, "--max-iter", 9, "--json")
    assert code == 0
    assert all(path.exists() for path in outputs.values())
    expected = whole(matrix_file, 9, solver="palm", n_negative=1, mask=unknown, diagonal="ignore")
    result = json.loads(out)
    assert result["relative_error"] == expected.relative_error
    assert result["held_out_error"] > 0
    U = np.loadtxt(outputs["-o"], delimiter=",", skiprows=1)[:, 1:]
    assert_array_equal(U, expected.U)


def test_a_fit_that_has_ended_is_written_again(begun, tmp_path, call):
    before = Solution.load(tmp_path / "fit.npz").U
    (tmp_path / "fit.npz").unlink()
    assert call("resume", begun, "-o", tmp_path / "other.npz")[0] == 0
    assert_array_equal(Solution.load(tmp_path / "other.npz").U, before)
    assert not (tmp_path / "fit.npz").exists()


def test_limits_hold_for_one_run(begun, tmp_path, call):
    before = read_origin(begun)
    assert call("resume", begun, "--max-iter", 30, "--max-time", 1e-9, "--tol", 1e-3)[0] == 0
    assert Solution.load(tmp_path / "fit.npz").status is Status.MAX_TIME
    assert read_origin(begun) == before
    code, out, _ = call("resume", begun, "--max-iter", 8, "--json")
    assert (code, json.loads(out)["status"]) == (0, "max_iter")
    assert call("resume", begun)[0] == 0
    assert Solution.load(tmp_path / "fit.npz").n_iter == 8  # more than the five of the first part


def test_a_limit_of_the_first_part_can_be_removed(matrix_file, tmp_path, call):
    files = ["--checkpoint", tmp_path / "fit.ckpt", "-o", tmp_path / "fit.npz"]
    assert call("fit", matrix_file, *FIT, *files, "--max-iter", 9, "--max-time", 1e-9)[0] == 0
    code, out, _ = call("resume", tmp_path / "fit.ckpt", "--max-time", "inf", "--json")
    assert (code, json.loads(out)["status"]) == (0, "max_iter")
    code, out, _ = call("resume", tmp_path / "fit.ckpt", "--json")
    assert (code, json.loads(out)["status"]) == (0, "max_iter")  # this test is made before that of the time


@pytest.mark.parametrize("flag", ["--tol", "--gtol"])
@pytest.mark.parametrize("value", ["inf", "nan"])
def test_other_limits_must_be_finite(flag, value, begun, matrix_file, tmp_path, call):
    first = ["fit", matrix_file, "-r", 3, "--checkpoint", tmp_path / "new.ckpt", "-o", tmp_path / "new.npz"]
    for command in (["resume", begun], first):
        code, _, err = call(*command, flag, value)
        assert code == 2
        assert f"{flag} must be a finite number >= 0, got {value}" in " ".join(err.split())


def test_a_folder_that_was_moved(begun, matrix_file, tmp_path, call):
    new = tmp_path / "new"
    new.mkdir()
    for path in (begun, matrix_file):
        shutil.move(path, new)
    code, _, err = call("resume", new / "fit.ckpt", "--max-iter", 6)
    assert code == 0
    assert f"resuming the fit of {new / 'matrix.npz'} from {new / 'fit.ckpt'}, at step 5" in " ".join(
        err.split()
    )
    assert read_origin(new / "fit.ckpt")["arguments"]["file"]["absolute"] == str(new / "matrix.npz")


def test_data_that_are_missing(begun, matrix_file, tmp_path, call):
    other = matrix_file.rename(tmp_path / "moved.npz")
    code, _, err = call("resume", begun)
    assert code == 2
    assert "fit.ckpt must find the data of its fit, but there is no file" in err
    assert "matrix.npz. Move it back, or pass --data FILE." in err
    assert call("resume", begun, "--data", other, "--max-iter", 6)[0] == 0
    assert call("resume", begun, "--max-iter", 7)[0] == 0  # the checkpoint has the new place


def test_data_that_have_changed(begun, matrix_file, tmp_path, call):
    before = begun.read_bytes()
    M = sparse.load_npz(matrix_file)
    sparse.save_npz(matrix_file, sparse.csr_array(M + sparse.eye_array(60)))
    code, _, err = call("resume", begun)
    assert code == 2
    assert "matrix.npz must be the file that the fit in" in err
    assert "began with, but its content has changed. Restore the file, or start again" in err
    assert begun.read_bytes() == before


def test_a_mask_that_has_changed(matrix_file, tmp_path, call):
    mask = tmp_path / "mask.npz"
    sparse.save_npz(mask, metrics.random_mask(60, 0.1, random_state=5))
    options = ["--mask", mask, "--checkpoint", tmp_path / "a.ckpt", "-o", tmp_path / "a.npz", "--max-iter", 2]
    assert call("fit", matrix_file, *FIT, *options)[0] == 0
    sparse.save_npz(mask, metrics.random_mask(60, 0.1, random_state=6))
    code, _, err = call("resume", tmp_path / "a.ckpt")
    assert code == 2
    assert "mask.npz must be the file that the fit in" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "The file none.ckpt does not exist"),
        (b"", "none.ckpt"),
        (b"PK\x03\x04 damaged", "none.ckpt"),
        ("npz", "it is not a checkpoint"),
        ("python", "none.ckpt must name its data"),
    ],
)
def test_files_that_cannot_be_resumed(content, message, tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "none.ckpt"
    if content == "npz":
        with open(path, "wb") as file:
            np.savez(file, a=1)
    elif content == "python":
        decompose(np.eye(4) + 0.5, 2, max_iter=1, random_state=0, checkpoint=path)
    elif content is not None:
        path.write_bytes(content)
    code, _, err = call("resume", "none.ckpt")
    assert code == 2
    assert message in " ".join(err.split())


def with_argument(checkpoint, matrix_file, **changes):
    """Write the checkpoint of a fit that says other things about its command."""
    origin = read_origin(checkpoint)
    origin["arguments"].update(changes)
    decompose(
        sparse.load_npz(matrix_file),
        3,
        max_iter=6,
        checkpoint=Checkpoint(checkpoint, origin=origin),
        **SETTINGS,
    )


MINE = {
    "config": b"mine",
    "mine.npz": b"mine",
    "mine.csv": b"node,name\n1,ann\n",
    "mine.csv.gz": b"node,x1\n1,2\n",
    "mine.tsv": b"x1\tnode\n1\tann\n",
    "mine.json": b'[\n{"node": 1, "x2": 3}\n]\n',
    "mine.parquet": b"mine",
    "mine.png": b"\x89PNG\r\n\x1a\n a photograph",
    "mine.svg": b"<?xml version='1.0'?><svg></svg>",
    "folder/mine.npz": b"mine",
}


@pytest.mark.parametrize("place", ["below", "elsewhere"])
@pytest.mark.parametrize("victim", MINE)
def test_a_hostile_checkpoint_overwrites_nothing(victim, place, begun, matrix_file, tmp_path, call):
    """Files in the folder of the checkpoint are not its own either: it may lie in the home folder."""
    folder = tmp_path / "untrusted"
    folder.mkdir()
    checkpoint = shutil.copy(begun, folder)
    path = (folder if place == "below" else tmp_path) / victim
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(MINE[victim])
    name = "plot" if victim.endswith(("png", "svg", "config")) else "output"
    with_argument(checkpoint, matrix_file, **{name: {"absolute": str(path)}})
    code, _, err = call("resume", checkpoint)
    assert code == 2
    assert f"{victim}, which exists and is not such a result. Pass --{name} FILE, or move that one." in err
    assert path.read_bytes() == MINE[victim]


def test_an_output_with_another_extension_is_refused(begun, matrix_file, tmp_path, call):
    (tmp_path / "config").write_text("mine")
    with_argument(begun, matrix_file, output={"absolute": str(tmp_path / "config")})
    code, _, err = call("resume", begun)
    assert code == 2
    assert "config must end in .npz" in err
    assert (tmp_path / "config").read_text() == "mine"


@pytest.mark.parametrize(
    ("table", "figure"),
    [
        ("u.npz", "curve.png"),
        ("u.csv", "curve.svg"),
        *((f"u.{extension}", None) for extension in ("csv.gz", "tsv", "tsv.gz", "json", "parquet")),
    ],
)
def test_earlier_results_are_replaced_wherever_they_are(table, figure, matrix_file, tmp_path, call):
    if table.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    results, folder = tmp_path / "results", tmp_path / "checkpoints"
    results.mkdir()
    folder.mkdir()
    files = ["-o", results / table, "--checkpoint", folder / "fit.ckpt"]
    files += ["--plot", results / figure] if figure else []
    assert call("fit", matrix_file, *FIT, *files, "--max-iter", 2)[0] == 0
    before = {path: path.read_bytes() for path in results.iterdir()}
    assert call("resume", folder / "fit.ckpt", "--max-iter", 4)[0] == 0
    assert len(before) == (2 if figure else 1)
    assert all(path.read_bytes() != content for path, content in before.items())


def test_files_of_the_user_are_replaced_if_they_are_given(begun, tmp_path, call):
    outputs = {"--output": tmp_path / "mine.npz", "--plot": tmp_path / "mine.png"}
    for path in outputs.values():
        path.write_text("mine")
    files = [part for pair in outputs.items() for part in pair]
    assert call("resume", begun, "--max-iter", 6, *files)[0] == 0
    assert Solution.load(outputs["--output"]).n_iter == 6
    assert outputs["--plot"].read_bytes().startswith(b"\x89PNG")


def test_a_copied_folder_is_resumed_in_the_copy(begun, matrix_file, tmp_path, call):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in (begun, matrix_file, tmp_path / "fit.npz"):
        shutil.copy(path, copy)
    code, out, _ = call("resume", copy / "fit.ckpt", "--max-iter", 7, "--json")
    assert code == 0
    assert json.loads(out)["file"] == str(copy / "matrix.npz")
    assert Solution.load(copy / "fit.npz").n_iter == 7
    assert Solution.load(tmp_path / "fit.npz").n_iter == 5


def test_a_checkpoint_that_was_copied_alone_finds_its_data(begun, tmp_path, call):
    folder = tmp_path / "scratch"
    folder.mkdir()
    assert call("resume", shutil.copy(begun, folder), "--max-iter", 7)[0] == 0
    assert Solution.load(folder / "fit.npz").n_iter == 7
    assert Solution.load(tmp_path / "fit.npz").n_iter == 5


def test_an_interrupted_fit_can_be_resumed_again(begun, matrix_file, tmp_path, monkeypatch, call):
    def interrupted(*arguments, callback, **settings):
        def stop(progress):
            if progress.record.iteration == 8:
                raise KeyboardInterrupt
            return callback(progress)

        return decompose(*arguments, callback=stop, **settings)

    with monkeypatch.context() as patched:
        patched.setattr(cli.fit, "decompose", interrupted)
        assert call("resume", begun, "--max-iter", 20)[0] == 130
    assert Solution.load(tmp_path / "fit.npz").status is Status.INTERRUPTED
    assert call("resume", begun, "--max-iter", 20)[0] == 0
    assert_array_equal(Solution.load(tmp_path / "fit.npz").U, whole(matrix_file, 20).U)
