"""The command line, run as a user runs it."""

from dataclasses import replace
from functools import partial

import pytest
from command_line import symrelu
from installed_script import new_server
from scipy import sparse

from symrelu.datasets import make_relu_gram
from symrelu.experiments import real, synthetic


@pytest.fixture
def matrix_file(tmp_path):
    M, _ = make_relu_gram(60, 3, random_state=0)
    path = tmp_path / "matrix.npz"
    sparse.save_npz(path, sparse.csr_array(M))
    return path


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """A function that runs a command in the temporary folder, and returns its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: symrelu(monkeypatch, capsys, *arguments)


@pytest.fixture(scope="session")
def server():
    """What runs the installed script, for all tests of a worker."""
    server = new_server()
    yield server
    server.close()


@pytest.fixture
def script(server, tmp_path):
    """A function that runs the installed script in the temporary folder, in a process of its own."""
    return partial(server.run, folder=tmp_path)


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("SYMRELU_DATA", raising=False)


@pytest.fixture
def short_fits(monkeypatch):
    """Let the experiments make five iterations."""
    for module in (real, synthetic):
        monkeypatch.setattr(module, "LIMITS", replace(module.LIMITS, max_iter=5))
