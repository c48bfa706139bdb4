"""Compare the time of imports and of the shortest commands, as ratios within one run.

    git worktree add ../base 324cf23
    python benchmarks/imports.py --base ../base [--rounds 15] [--json FILE]

Every measurement is a new process, from its start to its end. The programs take turns in random order, so that
other processes on the machine affect all of them equally; a ratio is the median over the rounds. A first round,
which writes the byte code and reads the files from disk, does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parents[1]


class Program(NamedTuple):
    """What a process runs, from the tree ``base`` or this one."""

    code: str
    tree: str = "here"


def command_line(*arguments: str) -> str:
    """Return a program that does what the installed command ``symrelu`` does."""
    return f"import sys; sys.argv = {['symrelu', *arguments]!r}; from symrelu.cli import main; main()"


PROGRAMS = {
    "import sklearn.base, numba": Program("import sklearn.base, numba"),
    "import symrelu": Program("import symrelu"),
    "from symrelu import decompose": Program("from symrelu import decompose"),
    "from symrelu import SymReLU": Program("from symrelu import SymReLU"),
    "from symrelu import decompose, base": Program("from symrelu import decompose", "base"),
    "symrelu --help": Program(command_line("--help")),
    "symrelu --version": Program(command_line("--version")),
    "symrelu --help, base": Program(command_line("--help"), "base"),
}
# Numerator -> denominator. 0.1.0 has no --version, so the one here is compared with its --help.
RATIOS = {
    "import symrelu": "import sklearn.base, numba",
    "from symrelu import decompose": "import sklearn.base, numba",
    "from symrelu import SymReLU": "import sklearn.base, numba",
    "from symrelu import decompose, base": "import sklearn.base, numba",
    "symrelu --help": "symrelu --help, base",
    "symrelu --version": "symrelu --help, base",
}


def seconds(program: Program, trees: dict[str, Path]) -> float:
    """Return the time of one process, which must not fail."""
    # PYTHONPATH takes precedence over an installed symrelu.
    environment = {**os.environ, "PYTHONPATH": str(trees[program.tree].resolve() / "src")}
    start = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", program.code], env=environment, capture_output=True, text=True, check=False
    )
    elapsed = time.perf_counter() - start
    if run.returncode:
        raise SystemExit(f"{program.code!r} ended with status {run.returncode}:\n{run.stderr}")
    return elapsed


def measure(base: Path, rounds: int) -> dict[str, list[float]]:
    """Return the times of each program, in the order of the rounds."""
    trees = {"base": base, "here": HERE}
    shuffled = random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds + 1):
        for name in shuffled.sample(list(PROGRAMS), len(PROGRAMS)):
            times[name].append(seconds(PROGRAMS[name], trees))
    return {name: values[1:] for name, values in times.items()}


def rows(times: dict[str, list[float]]) -> list[dict[str, object]]:
    """Return the median time and the median ratio of each program."""
    table: list[dict[str, object]] = []
    for name, values in times.items():
        row: dict[str, object] = {"program": name, "seconds": statistics.median(values)}
        if name in RATIOS:
            ratios = [value / other for value, other in zip(values, times[RATIOS[name]], strict=True)]
            row |= {"ratio": statistics.median(ratios), "to": RATIOS[name]}
        table.append(row)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="source tree to compare with")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    table = rows(measure(options.base, options.rounds))
    print(f"median of {options.rounds} interleaved rounds, each a new process\n")
    print("| program                             | seconds | ratio | to                         |")
    print("|:------------------------------------|--------:|------:|:---------------------------|")
    for row in table:
        ratio = f"{row['ratio']:5.2f}" if "ratio" in row else " " * 5
        print(f"| {row['program']:35} | {row['seconds']:7.2f} | {ratio} | {row.get('to', ''):26} |")
    if options.json:
        options.json.write_text(json.dumps(table, indent=2))


if __name__ == "__main__":
    main()
