"""Programs that each import symrelu for the first time, in one interpreter that loads numba only once."""

import json
import subprocess
import sys

DRIVER = """
import contextlib, io, json, logging, sys, traceback

def forget():
    for name in [name for name in sys.modules if name.partition(".")[0] == "symrelu"]:
        del sys.modules[name]
    logging.Logger.manager.loggerDict.pop("symrelu", None)
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)

results = {}
for key, program in json.load(sys.stdin).items():
    forget()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            exec(program, {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            results[key] = [1]
        else:
            results[key] = [0]
    results[key] += [out.getvalue(), err.getvalue()]
json.dump(results, sys.stdout)
"""


def run_programs(programs, *options):
    """Return the exit status, output and errors of each program, run by an interpreter with these options."""
    command = [sys.executable, *options, "-c", DRIVER]
    run = subprocess.run(command, input=json.dumps(programs), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return {
        key: subprocess.CompletedProcess(programs[key], *result)
        for key, result in json.loads(run.stdout).items()
    }
