"""The installed script ``symrelu``, in its own process: exit code, streams and files."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from command_line import symrelu

SCRIPT = Path(sysconfig.get_path("scripts")) / ("symrelu.exe" if sys.platform == "win32" else "symrelu")
GRAPH = "source,target,weight\na,b,2\nb,c,1\nc,d,2\nd,a,1\nd,e,3\ne,f,1\nf,d,2\n"
CHECKPOINT = ["--checkpoint", "f.ckpt", "-o", "f.npz"]

# Command -> what is called before, in this process; its arguments; and the file that it writes.
CALLS = {
    "embed": ([], ["g.csv", "--components", 2, "--max-iter", 2, "-o", "out.csv"], "out.csv"),
    "cluster": ([], ["g.csv", "--clusters", 2, "--max-iter", 2, "-o", "out.csv"], "out.csv"),
    "links": ([], ["g.csv", "--components", 2, "--max-iter", 2, "-o", "out.csv"], "out.csv"),
    "neighbors": ([], ["g.csv", "--seed", 0, "--max-iter", 300, "-o", "out.csv"], "out.csv"),
    "evaluate": ([], ["g.csv", "--components", 2, "--max-iter", 2, "--splits", 2, "-o", "out.csv"], "out.csv"),
    "fit": ([], ["g.csv", "--rank", 2, "--max-iter", 2, "-o", "out.npz"], "out.npz"),
    "transform": (
        ["embed", "g.csv", "--components", 2, "--max-iter", 2, "--model", "m.npz"],
        ["m.npz", "new.csv", "-o", "out.csv"],
        "out.csv",
    ),
    "resume": (["fit", "g.csv", "-r", 2, "--max-iter", 2, *CHECKPOINT], ["f.ckpt", "--max-iter", 3], "f.npz"),
}


@pytest.mark.skipif(not SCRIPT.exists(), reason="requires the installed script")
@pytest.mark.parametrize("command", CALLS)
def test_the_script_writes_its_result(command, tmp_path, monkeypatch, capsys):
    (tmp_path / "g.csv").write_text(GRAPH)
    (tmp_path / "new.csv").write_text("new,a,1\n")
    monkeypatch.chdir(tmp_path)
    before, arguments, output = CALLS[command]
    if before:
        assert symrelu(monkeypatch, capsys, *before)[0] == 0
        (tmp_path / output).unlink(missing_ok=True)
    call = [SCRIPT, command, *map(str, arguments), "--json"]
    done = subprocess.run(call, capture_output=True, env=os.environ | {"PYTHONUTF8": "1"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["command"] == command
    assert b"Traceback" not in done.stderr
    assert b"Warning" not in done.stderr
    assert (tmp_path / output).stat().st_size > 0
