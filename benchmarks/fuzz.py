"""Fuzz decompose: random edge cases, checked against extended precision and against each other.

    python benchmarks/fuzz.py --fits 10000 --seed 0 --jobs 2 [--only CHECK ...] [--output FILE.json]
    python benchmarks/fuzz.py --seed 0 --replay 123

Case k of a seed depends only on (seed, k): ``--replay k`` repeats it and prints it as code. Each case is fitted
as drawn, and again with another backend, container or scale, or with other values under the mask. The cases are
defined in fuzz_cases.py, the checks and their tolerances in fuzz_checks.py. A case that takes longer than
``--limit`` is killed and counts as failed. The exit code is 1 if a check failed.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import multiprocessing
import re
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_cases import Case, draw
from fuzz_checks import CHECKS, Trial, Verdict
from scipy import sparse
from threadpoolctl import threadpool_limits

from symrelu import decompose

COMPILING = 600.0  # seconds that a new process may take to compile


@dataclass
class Result:
    """The result of a case: complaints by check, None if a check does not apply."""

    number: int
    n: int = 0
    ending: str = ""  # the status, or the error message
    seconds: float = 0.0
    verdicts: dict[str, Verdict] = field(default_factory=dict)


def examine(seed: int, number: int, checks: Iterable[str]) -> Result:
    """Fit a case and run the checks on it."""
    result, began = Result(number, verdicts={"finished": []}), time.perf_counter()
    # An error of the fuzzer itself should not stop thousands of other cases.
    try:
        case = draw(seed, number)
        trial = Trial(case)
        result.n, result.ending = len(case.matrix), trial.ending
        for name in checks:
            result.verdicts[name] = CHECKS[name](trial)
    except Exception as error:
        frames = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
        result.verdicts["finished"] = [f"the fuzzer itself failed: {error!r} at {' '.join(frames)}"]
    result.seconds = time.perf_counter() - began
    return result


def serve(pipe: Any, seed: int, checks: list[str], limit: float) -> None:
    """Examine the cases whose numbers are received. Send None first, when everything is compiled."""
    # One thread, because "seed" and other checks compare bits.
    with threadpool_limits(1):
        for dtype, make in product(("float32", "float64"), (np.asarray, sparse.csr_array)):
            decompose(make(np.eye(3, dtype=dtype)), 2, max_iter=2)
        pipe.send(None)
        for number in iter(pipe.recv, None):
            faulthandler.dump_traceback_later(0.9 * limit)  # shows where a fit hangs
            pipe.send(examine(seed, number, checks))


class Worker:
    """A process that can be replaced if a fit hangs or crashes it."""

    def __init__(self, *task: Any) -> None:
        # A forked process could inherit locks of BLAS and numba threads in a bad state.
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, *task), daemon=True)
        self.process.start()
        self.ready = False
        other.close()  # else the end of the process would not close the pipe

    def give(self, number: int | None) -> None:
        self.number, self.began = number, time.monotonic()
        self.pipe.send(number)

    def answer(self, limit: float) -> Result | None:
        """Return the result, None if there is none yet, or a failure if the process died or hangs."""
        assert self.number is not None
        try:
            if self.pipe.poll():
                answer = self.pipe.recv()
                if answer is None:
                    self.ready, self.began = True, time.monotonic()
                return answer
            if time.monotonic() - self.began < (limit if self.ready else limit + COMPILING):
                return None
            reason = f"hung: not done after {limit:g} s"
            self.process.kill()
        except EOFError:
            reason = "the process died"
        self.process.join()
        return Result(self.number, ending=reason, seconds=limit, verdicts={"finished": [reason]})


def examine_all(
    seed: int, numbers: Iterable[int], jobs: int, checks: list[str], limit: float
) -> Iterator[Result]:
    """Examine cases in ``jobs`` processes; a case that takes longer than ``limit`` seconds fails."""
    task, waiting = (seed, checks, limit), iter(numbers)
    busy: list[Worker] = []
    free = [Worker(*task) for _ in range(jobs)]
    while True:
        while free and (number := next(waiting, None)) is not None:
            busy.append(free.pop())
            busy[-1].give(number)
        if not busy:
            break
        wait([worker.pipe for worker in busy], timeout=1)
        for worker in busy.copy():
            result = worker.answer(limit)
            if result is not None:
                busy.remove(worker)
                free.append(worker if worker.process.is_alive() else Worker(*task))
                yield result
    for worker in free:
        worker.give(None)


def literal(value: Any) -> str:
    """Return an argument as code."""
    if sparse.issparse(value):
        coo = value if value.format == "coo" else value.tocoo()
        places = ", ".join(str(index.tolist()) for index in coo.coords)
        inside = f"({coo.data.tolist()}, ({places})), shape={coo.shape}, dtype='{coo.dtype}'"
        return f"sparse.{type(value).__name__}(sparse.coo_array({inside}))"
    if isinstance(value, np.ndarray):
        order = ", order='F'" if np.isfortran(value) else ""
        return f"np.array({value.tolist()}, dtype='{value.dtype}'{order})"
    return repr(value)


def code(case: Case) -> str:
    """Return the case as code."""
    arguments, named = case.arguments(), ("M", "mask", "init")
    call = ", ".join(f"{k}={k if k in named else repr(value)}" for k, value in arguments.items())
    return "\n".join(
        [
            f"# case {case.number} of seed {case.seed}: " + ", ".join(map(" ".join, case.traits.items())),
            "import numpy as np; from numpy import inf, nan; from scipy import sparse",
            "from symrelu import AAPB, LBFGS, PALM, Eigen, decompose",
            *(f"{name} = {literal(arguments[name])}" for name in named),
            f"solution = decompose({call})",
        ]
    )


def template(message: str) -> str:
    """Return a message without its numbers, so that equal failures can be grouped."""
    return re.sub(r"-?\b\d[\d.]*(e[+-]?\d+)?\b|\b(nan|inf)\b", "#", message)


def outcome(verdict: Verdict) -> str:
    return "not applicable" if verdict is None else "failed" if verdict else "passed"


def summarise(seed: int, results: list[Result], checks: list[str]) -> dict[str, Any]:
    """Count outcomes and endings, and group failures by check and message, the smallest case first."""
    groups: dict[tuple[str, str], list[tuple[int, int, str]]] = defaultdict(list)
    for r in results:
        for name, complaints in r.verdicts.items():
            for text in complaints or []:
                groups[name, template(text)].append((r.n, r.number, text))
    found = [(name, sorted(cases)) for (name, _), cases in groups.items()]
    slowest = max(results, key=lambda r: r.seconds)
    return {
        "seed": seed,
        "fits": len(results),
        "checks": {
            name: Counter(outcome(r.verdicts.get(name)) for r in results) for name in ("finished", *checks)
        },
        "endings": dict(Counter(template(r.ending) for r in results).most_common()),
        "slowest": {"case": slowest.number, "seconds": slowest.seconds},
        "failures": [
            {"check": name, "example": cases[0][2], "cases": [number for _, number, _ in cases]}
            for name, cases in sorted(found, key=lambda group: -len(group[1]))
        ],
    }


def print_summary(summary: dict[str, Any]) -> None:
    """Print the tables, and for each group of failures its smallest case as code."""
    print("| check | passed | failed | not applicable |\n|---|---:|---:|---:|")
    for name, count in summary["checks"].items():
        print(f"| {name} | {count['passed']} | {count['failed']} | {count['not applicable']} |")
    print("\n| ending | cases |\n|---|---:|")
    for ending, cases in summary["endings"].items():
        print(f"| {ending} | {cases} |")
    print("\nSlowest: case {case}, {seconds:.1f} s.".format(**summary["slowest"]))
    for failure in summary["failures"]:
        cases = failure["cases"]
        print(f"\n{len(cases)} x {failure['check']}: {failure['example']}")
        print(f"cases {', '.join(map(str, cases[:8]))}\n{code(draw(summary['seed'], cases[0]))}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=CHECKS, default=list(CHECKS), metavar="CHECK")
    parser.add_argument("--limit", type=float, default=60, help="seconds allowed for a case")
    parser.add_argument("--replay", type=int, nargs="+", metavar="CASE", help="run only these cases")
    parser.add_argument("--output", type=Path, help="write the summary to this JSON file")
    return parser.parse_args()


def main() -> None:
    options = parse()
    numbers = options.replay or range(options.fits)
    if options.replay:
        print(*(code(draw(options.seed, number)) + "\n" for number in numbers), sep="\n")
    results: list[Result] = []
    for result in examine_all(options.seed, numbers, options.jobs, options.only, options.limit):
        results.append(result)
        if len(results) % 100 == 0:
            failed = sum(any(r.verdicts.values()) for r in results)
            print(f"{len(results)} of {len(numbers)} cases, {failed} failed", file=sys.stderr)
    summary = summarise(options.seed, results, options.only)
    print_summary(summary)
    if options.output:
        options.output.write_text(json.dumps(summary, indent=1))
    sys.exit(1 if summary["failures"] else 0)


if __name__ == "__main__":
    main()
