"""The benchmarks run, on sizes that say nothing."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="benchmarks/ is part of the repository only")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("evaluation.py --sizes 60 --rank 3 --rounds 1 --threads 1", "/ bare"),
        ("evaluation.py --sizes 60 --rank 3 --rounds 1 --threads 1 --tiles 16 32", "tile 16"),
        ("memory.py --n 300 --rank 3 --steps 1", "MB"),
        ("transform.py --n 200 --new 100 --rank 3", "in evaluations"),
        (
            "usefulness.py --tasks clustering --images digits --seeds 1 --jobs 2 --output out "
            "--store scores.csv --methods 'control: linkage on M' 'control: linkage on the eigendecomposition'",
            "| control: linkage on M | 0.887",
        ),
        ("rank.py --tasks synthetic --n 60 --seeds 1 --jobs 2 --output out", "| n=60, p=0.1 | 0 |"),
        ("solvers.py --problems tiny --seeds 1 --iterations 30 --output out", "geometric mean"),
    ],
)
def test_benchmark_runs(tmp_path, command, expected):
    script, *options = shlex.split(command)
    result = subprocess.run(
        [sys.executable, str(FOLDER / script), *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert expected in result.stdout


def test_fuzzer_runs_every_check(tmp_path):
    """A run by hand says whether the fits pass; this one that every check is made, and the fuzzer works."""
    options = "--fits 10 --seed 4 --output fuzz.json"
    result = subprocess.run(
        [sys.executable, str(FOLDER / "fuzz.py"), *options.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    summary = json.loads((tmp_path / "fuzz.json").read_text())
    assert result.returncode == (1 if summary["failures"] else 0), result.stderr
    assert "| history |" in result.stdout
    assert summary["checks"]["finished"] == {"passed": 10}, summary["failures"]
    assert all(counts.get("passed", 0) + counts.get("failed", 0) for counts in summary["checks"].values())
