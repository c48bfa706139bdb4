"""The benchmarks run, on sizes that say nothing."""

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
