"""What a checkpoint says about the command that wrote it."""

from pathlib import Path

import numpy as np
import pytest

from symrelu import Checkpoint, decompose
from symrelu.cli.origins import arguments_of, origin_of

M = np.eye(4) + 0.5


def command(*, file, output, plot=None, mask=None, rank=2, checkpoint=None, json=False, quiet=False):
    """Stand for a command with a checkpoint."""


@pytest.fixture
def checkpoint(tmp_path):
    return tmp_path / "a folder" / "fit.ckpt"


@pytest.fixture
def arguments(checkpoint, tmp_path):
    """The arguments of a command, with files that exist."""
    checkpoint.parent.mkdir()
    file = tmp_path / "graph.csv"
    file.write_text("a,b\n")
    return {"file": file, "output": tmp_path / "fit.npz", "plot": None, "mask": None, "rank": 3}


def write(checkpoint, origin):
    decompose(M, 2, max_iter=1, random_state=0, checkpoint=Checkpoint(checkpoint, origin=origin))


def test_arguments_are_read_back(arguments, checkpoint):
    write(checkpoint, origin_of("command", {**arguments, "checkpoint": checkpoint}, checkpoint))
    assert arguments_of(checkpoint, command) == {**arguments, "checkpoint": checkpoint}


def test_relative_paths_are_those_of_the_first_call(arguments, checkpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = arguments | {"file": Path("graph.csv"), "output": Path("fit.npz")}
    write(checkpoint, origin_of("command", here, Path("a folder/fit.ckpt")))
    monkeypatch.chdir("/")
    assert arguments_of(checkpoint, command) == {**arguments, "checkpoint": checkpoint}


def test_a_folder_that_was_moved(arguments, checkpoint, tmp_path):
    (tmp_path / "old").mkdir()
    for path in (checkpoint.parent, arguments["file"]):
        path.rename(tmp_path / "old" / path.name)
    before = {**arguments, "file": tmp_path / "old/graph.csv", "output": tmp_path / "old/fit.npz"}
    old = tmp_path / "old" / "a folder" / "fit.ckpt"
    write(old, origin_of("command", before, old))
    (tmp_path / "old").rename(tmp_path / "new")
    found = arguments_of(tmp_path / "new" / "a folder" / "fit.ckpt", command)
    assert found["file"].resolve() == tmp_path / "new" / "graph.csv"
    assert found["output"].resolve() == tmp_path / "new" / "fit.npz"


def test_data_that_are_missing(arguments, checkpoint, tmp_path):
    write(checkpoint, origin_of("command", arguments, checkpoint))
    arguments["file"].unlink()
    with pytest.raises(
        FileNotFoundError, match=r"must find the data .* no file .*graph.csv. .* pass --data FILE"
    ):
        arguments_of(checkpoint, command)
    elsewhere = tmp_path / "x.csv"
    assert arguments_of(checkpoint, command, data=elsewhere)["file"] == elsewhere


def test_a_checkpoint_from_python_names_no_data(arguments, checkpoint):
    write(checkpoint, None)
    with pytest.raises(ValueError, match=r"fit.ckpt must name its data, .* but it was written from Python"):
        arguments_of(checkpoint, command)


HOSTILE = {
    "another command": lambda o: o.update(command="rm"),
    "no arguments": lambda o: o.pop("arguments"),
    "arguments of text": lambda o: o.update(arguments="x"),
    "an unknown argument": lambda o: o["arguments"].update(more=1),
    "an argument too few": lambda o: o["arguments"].pop("rank"),
    "an argument of the screen": lambda o: o["arguments"].update(quiet=True),
    "a list": lambda o: o["arguments"].update(rank=[1]),
    "a path of numbers": lambda o: o["arguments"].update(file={"absolute": 3}),
    "an empty path": lambda o: o["arguments"].update(file={"absolute": ""}),
    "no path": lambda o: o["arguments"].update(file={}),
    "a path with a zero byte": lambda o: o["arguments"].update(file={"absolute": "a\0b"}),
    "a relative path of lists": lambda o: o["arguments"].update(file={"absolute": "a", "relative": []}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_records_are_refused(name, arguments, checkpoint):
    origin = origin_of("command", arguments, checkpoint)
    HOSTILE[name](origin)
    write(checkpoint, origin)
    with pytest.raises(
        ValueError, match=r"record of its command in the checkpoint .*fit.ckpt cannot be used: "
    ):
        arguments_of(checkpoint, command)
