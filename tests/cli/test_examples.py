"""The examples in the help texts, each run in a folder with the files it names."""

import json
import shlex
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import symrelu
from scipy import io, sparse

from symrelu import cli
from symrelu.cli.commands import COMMANDS
from symrelu.experiments import EXPERIMENTS
from symrelu.experiments.tables import Table

GROUPS = (9, 8, 7)


def example_matrix():
    """A weighted graph of three groups, without self loops."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(3), GROUPS)
    linked = rng.random((24, 24)) < np.where(group[:, None] == group, 0.7, 0.05)
    M = np.triu(linked * rng.integers(1, 4, (24, 24)), 1).astype(float)
    return M + M.T


def write_edges(path):
    rows, cols = np.nonzero(np.triu(example_matrix()))
    lines = [f"n{i},n{j},{example_matrix()[i, j]:g}" for i, j in zip(rows, cols, strict=True)]
    path.write_text("source,target,weight\n" + "\n".join(lines) + "\n")


FILES = {
    "graph.csv": write_edges,
    "pairs.csv": lambda path: path.write_text("source,target\nn0,n1\nn2,n20\n"),
    "new.csv": lambda path: path.write_text("new,known,weight\nx,n0,1\nx,n1,2\ny,n20,1\n"),
    "nodes.csv": lambda path: path.write_text("node,kind,size\nn0,a,1\nn1,b,2.5\n"),
    "matrix.npz": lambda path: sparse.save_npz(path, sparse.csr_array(example_matrix())),
    "matrix.mtx": lambda path: io.mmwrite(path, sparse.coo_array(example_matrix())),
}


@pytest.fixture
def no_long_work(monkeypatch):
    """Leave out the work of the demo and the experiments, which other tests do."""
    rows, labels = [cli.demo.Row("a model", 0.1, 0.2)], np.zeros(DENSE.shape[0])
    result = cli.demo.Demo(DENSE, labels, {}, rows, SimpleNamespace(labels_=labels))
    monkeypatch.setattr(cli.demo, "run_demo", lambda callback: result)
    monkeypatch.setattr(cli.demo, "draw_demo", lambda result, path: path.write_bytes(b"figure"))
    monkeypatch.setattr(cli.reproduce, "reproduce", written)
    monkeypatch.delenv("SYMRELU_DATA", raising=False)


DENSE = sparse.csr_array(np.ones((4, 4)))


def written(experiment, output, **how):
    return [Table("errors", "Errors", "problem", ("method",), (("a", (None,)),))], [output / "index.html"]


EXAMPLES = {name: getattr(cli, name).EXAMPLES for name in COMMANDS}
EXAMPLES["the top level"] = cli.EXAMPLES
EXAMPLES |= {f"reproduce {name}": cli.reproduce.examples_of(name) for name in EXPERIMENTS}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name, tmp_path, monkeypatch, capsys, script, no_long_work):
    monkeypatch.chdir(tmp_path)
    for file, write in FILES.items():
        write(tmp_path / file)
    for example in EXAMPLES[name]:
        program, *arguments = shlex.split(example)
        assert program == "symrelu"
        redirected = arguments.index(">") if ">" in arguments else len(arguments)
        # The work of the last commands is replaced, which can only be done in this process.
        run = partial(symrelu, monkeypatch, capsys) if arguments[0] in ("demo", "reproduce") else script
        code, out, err = run(*arguments[:redirected])
        if redirected < len(arguments):
            (tmp_path / arguments[-1]).write_text(out)
        assert code == 0, f"{example}: {err}"
        if "--json" in arguments:
            assert json.loads(out)["command"].startswith(arguments[0])
        for word in arguments:
            if word.partition(".")[2] in ("csv", "npz", "json", "tsv", "png", "svg", "ckpt", "html"):
                assert (tmp_path / word).stat().st_size > 0


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_fit_a_line_of_80_columns(name):
    assert max(map(len, EXAMPLES[name])) <= 78
