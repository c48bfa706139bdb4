"""The installed script ``symrelu`` in a process of its own: every command, and all that can go wrong."""

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import zipfile
from functools import partial

import numpy as np
import pytest
from installed_script import HAS_FORK, SCRIPT, PlainProcesses
from scipy import sparse

from symrelu import Solution
from symrelu.cli import COMMANDS

GRAPH = "source,target,weight\na,b,2\nb,c,1\nc,d,2\nd,a,1\nd,e,3\ne,f,1\nf,d,2\n"
QUICK = {
    "embed": "FILE --components 2 --max-iter 2 -o out.csv",
    "cluster": "FILE --clusters 2 --max-iter 2 -o out.csv",
    "links": "FILE --components 2 --max-iter 2 -o out.csv",
    "neighbors": "FILE --seed 0 --max-iter 300 -o out.csv",
    "rank": "FILE --ranks 2 --repeats 2 --max-iter 2 -o out.csv",
    "evaluate": "FILE --components 2 --max-iter 2 --splits 2 -o out.csv",
    "fit": "FILE --rank 2 --max-iter 2 -o out.csv",
    "transform": "m.npz FILE -o out.csv",
    "resume": "f.ckpt --max-iter 3 -o out.csv",
    "report": "FILE --components 2 --clusters 2 --max-iter 2 --no-hidden -o out.html",
}
TABLES = [name for name, call in QUICK.items() if call.endswith(".csv")]
# The places of a file that is read: those above, and these.
READ = {name: f"{name} {call}" for name, call in QUICK.items() if "FILE" in call} | {
    "a model for transform": "transform FILE new.csv -o out.csv",
    "a checkpoint": "resume FILE",
    "pairs for links": "links g.csv --pairs FILE -o out.csv",
    "a mask for fit": "fit g.csv --rank 2 --mask FILE -o out.csv",
    "a model for report": "report g.csv --model FILE -o out.html",
    "labels for report": "report g.csv --labels FILE -o out.html",
    "blocks": "blocks FILE -o out",  # its output is a folder
}
needs_fork = pytest.mark.skipif(not HAS_FORK, reason="requires the fork server, which is for Linux")


@pytest.fixture(scope="session")
def prepared(server, tmp_path_factory):
    """A folder with a graph, new items, a model and a checkpoint."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "g.csv").write_text(GRAPH)
    (folder / "new.csv").write_text("new,a,1\n")
    half = np.triu(np.random.default_rng(0).random((600, 600)) < 0.02, 1).astype(float)
    sparse.save_npz(folder / "large.npz", sparse.csr_array(half + half.T))
    fit = ["--max-iter", 2, "--seed", 0, "--quiet"]
    assert server.run("embed", "g.csv", "--components", 2, *fit, "--model", "m.npz", folder=folder).code == 0
    files = ["--checkpoint", "f.ckpt", "-o", "f.npz"]
    assert server.run("fit", "g.csv", "-r", 2, *fit, *files, folder=folder).code == 0
    return folder


@pytest.fixture
def files(prepared, tmp_path):
    """The same files in the temporary folder; returns a function that names what was added since."""
    for path in prepared.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    before = set(tmp_path.iterdir())
    return lambda: sorted(path.name for path in set(tmp_path.iterdir()) - before)


def words(call, file):
    return [file if word == "FILE" else word for word in call.split()]


def output_of(command):
    return QUICK[command].split()[-1]


def test_no_command_is_forgotten():
    """The tests of the others have files of their own."""
    assert QUICK.keys() | {"demo", "reproduce", "blocks"} == set(COMMANDS)
    # transform and blocks are over at once
    assert LONG.keys() | {"demo", "reproduce", "transform", "blocks"} == set(COMMANDS)


def quick(command):
    return [command, *words(QUICK[command], "new.csv" if command == "transform" else "g.csv")]


@pytest.mark.parametrize("command", QUICK)
def test_every_command_writes_its_result(command, files, tmp_path, script):
    ended = script(*quick(command), "--json")
    assert ended.code == 0, ended.err
    assert ended.found["command"] == command
    assert ended.found["output"] == output_of(command)
    assert "Traceback" not in ended.err
    assert files() == [output_of(command)]
    assert len((tmp_path / output_of(command)).read_text().splitlines()) > 1


@pytest.mark.skipif(not SCRIPT.exists(), reason="requires the installed script")
@pytest.mark.parametrize(
    "arguments", [["--version"], ["embed", "no.csv", "-o", "x.csv"], quick("fit"), ["--no"]]
)
def test_a_fork_and_a_new_process_agree(arguments, files, tmp_path, script):
    """The other tests use the fork server, which is faster."""
    by_fork = script(*arguments, "--seed", 0) if "fit" in arguments else script(*arguments)
    plain = partial(PlainProcesses().run, folder=tmp_path)
    by_start = plain(*arguments, "--seed", 0) if "fit" in arguments else plain(*arguments)
    seconds = [line for line in by_fork.out.splitlines() if " seconds " in line]
    assert (by_start.code, by_start.err) == (by_fork.code, by_fork.err)
    assert len(by_start.out.splitlines()) == len(by_fork.out.splitlines())
    assert set(by_fork.out.splitlines()) - set(by_start.out.splitlines()) <= set(seconds)


@pytest.mark.parametrize("command", TABLES)
def test_a_table_on_stdout_is_alone_there(command, files, tmp_path, script):
    arguments = [word.replace("out.csv", "-") for word in quick(command)]
    ended = (
        script(*arguments, "--json", "--seed", 0)
        if command not in ("transform", "resume")
        else script(*arguments, "--json")
    )
    assert ended.code == 0, ended.err
    header, *rows = ended.out.splitlines()
    assert rows
    assert all(row.count(",") == header.count(",") for row in rows)
    found = json.loads(ended.err.splitlines()[-1])
    assert (found["command"], found["output"]) == (command, "-")
    assert files() == []


def write_pickled(path):
    np.save(path, np.array([{"a": 1}, open], dtype=object), allow_pickle=True)


def write_promise(path):
    """A matrix of 8 TB, in a file that takes no place on the disk."""
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
        )
        file.truncate(file.tell() + 8 * 10**12)


def write_packed_promise(path):
    """An archive of 100 kB that unpacks to 100 MB, and whose array promises 12.8 GB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("data.npy", "w") as entry:
        np.lib.format.write_array_header_1_0(
            entry, {"descr": "<f8", "fortran_order": False, "shape": (40_000, 40_000)}
        )
        for _ in range(100):
            entry.write(bytes(10**6))


def write_outside(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../evil.npy", b"x")


def write_bytes(content):
    return lambda path: path.write_bytes(content)


XML = (
    b'<?xml version="1.0"?><!DOCTYPE g [<!ENTITY a "&b;">]><graphml><graph edgedefault="undirected"/></graphml>'
)
# File -> how it is written, and what commands that read a graph say about it.
BAD = {
    "missing.csv": (None, "The file missing.csv does not exist"),
    "folder.csv": (lambda path: path.mkdir(), "is a folder"),
    "empty.csv": (write_bytes(b""), "must have at least one edge"),
    "empty.npz": (write_bytes(b""), "not a readable npz file"),
    "noise.csv": (write_bytes(bytes(range(256)) * 4), "must be text in UTF-8"),
    "noise.npz": (write_bytes(b"PK\x03\x04" + bytes(range(256))), "not a readable npz file"),
    "noise.parquet": (write_bytes(b"PAR1 no"), "parquet"),
    "wrong.docx": (write_bytes(b"text"), "Got the extension '.docx'"),
    "pickled.npy": (write_pickled, "type object cannot be loaded"),
    "promise.npy": (write_promise, "must fit into memory, but its arrays need 8000.0 GB"),
    "promise.npz": (write_packed_promise, "12800000000 bytes"),
    "outside.npz": (write_outside, "outside.npz"),
    "entities.graphml": (write_bytes(XML), "without a DOCTYPE"),
}
GRAPH_READERS = [name for name, call in QUICK.items() if call.startswith("FILE")]
# Files by what is wrong with them. Each place meets each kind once, and all files of a kind have their turn.
KINDS = [
    ["missing.csv", "folder.csv"],
    ["empty.csv", "empty.npz"],
    ["noise.csv", "noise.npz", "noise.parquet"],
    ["wrong.docx"],
    ["pickled.npy", "outside.npz", "entities.graphml"],
    ["promise.npy", "promise.npz"],
]
MET = [(place, files[k % len(files)]) for k, place in enumerate(READ) for files in KINDS]
MET += [("embed", bad) for bad in BAD if ("embed", bad) not in MET]


def test_every_bad_file_is_met():
    assert sorted(bad for files in KINDS for bad in files) == sorted(BAD)
    assert {bad for _, bad in MET} == set(BAD)


@pytest.mark.parametrize(("place", "bad"), MET)
def test_a_file_that_cannot_be_read(place, bad, files, tmp_path, script):
    write, expected = BAD[bad]
    if write is not None:
        write(tmp_path / bad)
    before = files()
    ended = script(*words(READ[place], bad))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("Error: ") == 1
    assert bad in ended.message
    assert place not in GRAPH_READERS or expected in ended.message
    assert "Traceback" not in ended.err
    assert files() == before
    assert not (tmp_path.parent / "evil.npy").exists()


@needs_fork
@pytest.mark.parametrize("place", READ)
def test_a_file_without_permission(place, files, tmp_path, script):
    (tmp_path / "mine.npz").write_bytes((tmp_path / "m.npz").read_bytes())
    (tmp_path / "mine.npz").chmod(0)
    ended = script(*words(READ[place], "mine.npz"), obeys_permissions=True)
    assert (ended.code, ended.out) == (2, "")
    assert "mine.npz" in ended.message
    assert "not readable" in ended.message or "permission" in ended.message.lower()


@needs_fork
@pytest.mark.parametrize("command", QUICK)
def test_a_folder_without_permission(command, files, tmp_path, script):
    (tmp_path / "closed").mkdir(mode=0o555)
    arguments = [word.replace("out.", "closed/out.") for word in quick(command)]
    ended = script(*arguments, obeys_permissions=True)
    assert (ended.code, ended.out) == (2, "")
    assert "cannot be written" in ended.message
    assert ".part" not in ended.err


@needs_fork
@pytest.mark.parametrize("command", QUICK)
def test_a_file_in_proc_is_named(command, files, script):
    ended = script(*(word.replace("out.", "/proc/out.") for word in quick(command)))
    assert (ended.code, ended.out) == (2, "")
    assert f"The output /proc/{output_of(command)} cannot be written" in ended.message


@needs_fork
@pytest.mark.parametrize("command", QUICK)
def test_a_disk_that_is_full(command, files, script):
    ended = script(*quick(command), limits={"RLIMIT_FSIZE": 20})
    assert ended.code == 2
    assert f"{output_of(command)} could not be written: File too large." in ended.message
    assert files() == []


@needs_fork
@pytest.mark.parametrize(
    ("command", "output"), [(name, "-o -") for name in TABLES] + [(name, "--json") for name in QUICK]
)
def test_a_full_device_for_results(command, output, files, script):
    arguments = [word.replace("out.csv", "-") if output == "-o -" else word for word in quick(command)]
    with open("/dev/full", "wb") as full:
        ended = script(*arguments, "--json", stdout=full.fileno())
    assert ended.code == 2
    assert "Error: No space left on device" in ended.err
    assert "Traceback" not in ended.err


@needs_fork
@pytest.mark.parametrize(
    "command", [place for place, call in READ.items() if "g.csv" not in call and place != "blocks"]
)
def test_too_little_memory(command, files, tmp_path, script):
    """All numbers are there: a matrix of 800 MB, on a disk that does not store zeros.

    ``blocks`` reads no such file, because it reads in parts.
    """
    with open(tmp_path / "large.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (10**4,) * 2}
        )
        file.truncate(file.tell() + 8 * 10**8)
    ended = script(*words(READ[command], "large.npy"), limits={"RLIMIT_AS": 3 * 10**8})
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err
    if command not in ("a model for transform", "a checkpoint"):
        assert "memory" in ended.message
    assert files() == ["large.npy"]


@needs_fork
@pytest.mark.parametrize("command", [*QUICK, *(f"{name} --help" for name in COMMANDS), "--help", "--version"])
def test_a_reader_that_goes_away(command, files, script):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        arguments = quick(command) if command in QUICK else command.split()
        ended = script(*arguments, stdout=writer)
    finally:
        os.close(writer)
    assert (ended.code, ended.err.count("Error")) == (141, 0)
    assert files() == ([output_of(command)] if command in QUICK else [])


HIDDEN_CURSOR = b"\x1b[?25l"  # the first that a progress bar sends
LONG = {
    "embed": "g.csv --components 3 --n-negative 0 --tol 0 --gtol 0 --ftol 0 --max-iter 9000000 -o out.csv",
    "cluster": "g.csv --clusters 2 --method directions --n-init 9000000 -o out.csv",
    "links": "g.csv --n-init 9000000 -o out.csv",
    "neighbors": "g.csv --components 1 --n-negative 0 --max-iter 9000000 -o out.csv",
    "rank": "g.csv --ranks 2 --repeats 9000000 -o out.csv",
    "evaluate": "g.csv --splits 9000000 -o out.csv",
    "fit": "g.csv --rank 3 --tol 0 --gtol 0 --ftol 0 --max-iter 9000000 -o out.csv",
    "resume": "f.ckpt --tol 0 --gtol 0 --ftol 0 --max-iter 9000000 -o out.csv",
    "report": "large.npz --max-iter 9000000 -o out.html",
}


@needs_fork
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", LONG)
def test_a_signal(command, number, files, tmp_path, server):
    """It is sent when the progress bar appears on the terminal: the work has begun."""
    import pty  # not on Windows

    terminal, theirs = pty.openpty()
    running = server.start(command, *LONG[command].split(), folder=tmp_path, stderr=theirs)
    os.close(theirs)
    shown, sent = b"", False
    with contextlib.suppress(OSError):  # the other end is closed
        while select.select([terminal], [], [], 60)[0] and (part := os.read(terminal, 4096)):
            shown += part
            if HIDDEN_CURSOR in shown and not sent:
                running.kill(number)
                sent = True
    if not sent:
        running.kill(signal.SIGKILL)
    ended = running.wait()
    os.close(terminal)
    assert ended.code == {signal.SIGINT: 130, signal.SIGTERM: 143}[number], shown.decode()
    assert b"Traceback" not in shown
    assert set(files()) <= ({LONG[command].split()[-1]} if number == signal.SIGINT else set())


@needs_fork
def test_a_fit_that_is_killed_soon_can_be_resumed(files, tmp_path, server):
    """issue 17: the first checkpoint came after a minute."""
    checkpoint = tmp_path / "new.ckpt"
    running = server.start("fit", *LONG["fit"].split(), "--checkpoint", checkpoint, folder=tmp_path)
    while not checkpoint.exists():
        os.stat(f"/proc/{running.pid}")  # it still runs
    running.kill(signal.SIGKILL)
    assert running.wait().code == -signal.SIGKILL
    ended = server.run("resume", checkpoint, "--max-time", 0.001, "-o", "u.npz", "--json", folder=tmp_path)
    assert ended.code == 0, ended.err
    assert ended.found["steps"] == 0
    assert "no step was made" in ended.found["advice"]
    assert "--max-time, which counts the seconds of all runs" in ended.found["advice"]
    assert Solution.load(tmp_path / "u.npz").n_iter > 0


def test_names_that_are_formulas_are_written_as_text(tmp_path, script):
    (tmp_path / "g.csv").write_text("source,target\n=cmd(),b\nb,c\nc,=cmd()\n@x,c\n")
    ended = script("embed", "g.csv", "--components", 2, "--max-iter", 2, "-o", "-", "--quiet")
    assert [row.partition(",")[0] for row in ended.out.splitlines()] == ["node", "'=cmd()", "b", "c", "'@x"]


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_the_terminal_and_flags_have_no_type(command, width, script):
    ended = script(*command.split(), "--help", COLUMNS=str(width))
    assert (ended.code, ended.err) == (0, "")
    assert max(map(len, ended.out.splitlines())) <= width
    assert "<bool" not in ended.out
    assert "BOOL" not in ended.out


COMPLETIONS = {
    "symrelu r": [name for name in COMMANDS if name.startswith("r")],
    "symrelu fit --dia": ["--diagonal"],
    "symrelu embed g.csv --duplicates s": ["sum"],
    "symrelu reproduce syn": ["synthetic"],
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="requires bash")
@pytest.mark.skipif(not SCRIPT.exists(), reason="requires the installed script")
def test_bash_completes_commands_options_and_words(tmp_path, script):
    """bash runs the function of the generated script, which calls the installed script."""
    source = script(_SYMRELU_COMPLETE="source_bash")
    assert source.code == 0, source.err
    asked = "".join(
        f"COMP_WORDS=({line}); COMP_CWORD={len(line.split()) - 1}; COMPREPLY=(); "
        "_symrelu_completion symrelu; echo ${COMPREPLY[*]}\n"
        for line in COMPLETIONS
    )
    environment = os.environ | {"PATH": f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", f"{source.out}\n{asked}"], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines()] == list(COMPLETIONS.values())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_completion_script(shell, script):
    ended = script(_SYMRELU_COMPLETE=f"source_{shell}")
    assert ended.code == 0
    assert "_SYMRELU_COMPLETE" in ended.out


@pytest.mark.skipif(sys.platform != "linux", reason="other systems ignore ulimit -v")
@pytest.mark.skipif(not SCRIPT.exists(), reason="requires the installed script")
def test_a_matrix_larger_than_the_limit_of_the_process(tmp_path):
    """The header promises a matrix that most machines have room for, but not this process."""
    path = tmp_path / "huge.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real symmetric\n25000000 25000000 1\n2 1 1\n")
    call = ["sh", "-c", 'ulimit -v 4000000 && exec "$@"', "sh", SCRIPT, "embed", path, "-o", tmp_path / "v.csv"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    figures = re.search(r"huge\.mtx must fit .* need 5\.0 GB, and only (\d\.\d) GB are", done.stderr)
    assert figures, done.stderr
    assert float(figures[1]) < 4.1
    assert not (tmp_path / "v.csv").exists()
