"""The operator on a real cluster of processes: every primitive, every solver, and workers that are killed."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from helpers import PROBLEMS, evaluate, factor, reference, solved, sparse_
from local_cluster import local_cluster
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import Problem, SymReLU, decompose, metrics
from symrelu.datasets import load_digits_graph, make_relu_gram
from symrelu.fit.starts import start as starting_factor
from symrelu.graphs import write_blocks
from symrelu.kernels.block_grid import traffic
from symrelu.operators import SparseOperator
from symrelu.solvers import SOLVERS as METHODS

distributed = pytest.importorskip("distributed", reason="dask is not installed")
cluster = import_module("symrelu.operators.cluster")
block_session = import_module("symrelu.operators.block_session")
cluster_workers = import_module("symrelu.operators.cluster_workers")
clients = import_module("symrelu.operators.cluster_clients")
pd = pytest.importorskip("pandas")
psutil = import_module("psutil")  # which distributed needs
warm_up = import_module("symrelu.operators.block_tasks").warm_up
# Dask's own processes and sockets are closed by it, some of them after the test.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

BACKENDS = ("sparse", "dask")
SETTINGS = {"n_negative": 1, "diagonal": "ignore", "random_state": 0, "tol": 0.0, "init": "random"}


@pytest.fixture(scope="module")
def four():
    """Four workers with one thread each, for all tests of this module."""
    warm_up(np.dtype(float))  # compiled once for all workers, which find it in numba's cache
    with local_cluster(4) as (workers, client):
        yield workers, client


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    path = tmp_path_factory.mktemp("blocks") / "digits"
    write_blocks(load_digits_graph()[0], path, rows=450)
    return path


@pytest.mark.parametrize("label", ["dense data", "diagonal ignored", "everything", "everything, at least"])
def test_primitives_equal_the_formulas(four, label):
    from symrelu.operators.dask import DaskOperator

    problem = PROBLEMS[label]
    unknown = sparse.csr_array(problem.unknown) if problem.unknown.any() else None
    op = DaskOperator.of(sparse.csr_array(problem.M), unknown, rows=13, **problem.settings())
    formulas, U, V = reference(problem), factor(problem, 1), factor(problem, 2, 5)
    found, expected = evaluate(op, U, V), evaluate(formulas, U, V)
    tolerance = {"rtol": 1e-12, "atol": 1e-12 * np.linalg.norm(problem.M)}
    assert_allclose(found.product, expected.product, **tolerance)
    for name in ("latent_loss", "loss", "latent_norm_squared", "active_zeros", "alignment"):
        assert_allclose(getattr(found, name), getattr(expected, name), err_msg=name, rtol=1e-12)
    assert_allclose(evaluate(op, U).loss, expected.loss, rtol=1e-12)
    assert_allclose(op.frozen(U)(V), expected.product, **tolerance)
    assert_allclose(op.norm, formulas.norm, rtol=1e-14)
    assert op.n_positive == formulas.n_positive
    assert_allclose(op.matmul(V), formulas.matmul(V), **tolerance)
    assert_allclose(op.imputed_matmul(V, -0.3), formulas.imputed_matmul(V, -0.3), **tolerance)
    right = np.random.default_rng(0).standard_normal((problem.n, 4, 2))
    ridge = 0.5 * np.eye(4)
    solutions = solved(op, U, ridge, right)
    assert_allclose(solutions, solved(sparse_(problem), U, ridge, right), rtol=1e-12)
    # The formula solves by another method: the two differ by the condition of the systems.
    assert_allclose(solutions, solved(formulas, U, ridge, right), rtol=1e-10, atol=1e-12)
    assert op.evaluations == 5  # a V of 5 columns counts twice
    folders = op._session.data.temporary
    op.release()
    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize("label", ["signed", "mask", "diagonal ignored", "everything"])
def test_every_solver_goes_the_same_way_as_on_one_machine(four, label):
    """From the default start, whose eigenvectors are far from converged: they must have the same bits."""
    problem = PROBLEMS[label]
    n_negative = int(np.sum(problem.signature < 0))
    settings = {"rank": 4, "n_negative": n_negative, "random_state": 0, "max_iter": 15}
    settings |= {"alpha": problem.alpha, "zero_weight": problem.zero_weight}
    limits = {"tol": 0.0, "gtol": 0.0, "ftol": 0.0}
    data = Problem.of(sparse.csr_array(problem.M), problem.unknown)
    starts = [starting_factor(data.operator(problem.signature, backend=one), "imputed", 0) for one in BACKENDS]
    assert_array_equal(*starts)
    for name, method in METHODS.items():
        if "curvature" in method.requires:  # which the cluster does not offer
            continue
        one, many = (decompose(data, **settings, **limits, solver=method(), backend=one) for one in BACKENDS)
        assert_allclose(many.history.objective, one.history.objective, rtol=1e-8, err_msg=name)
        assert_allclose(many.relative_error, one.relative_error, rtol=1e-8, err_msg=name)
    data.release()


def test_the_default_fit_ends_with_the_error_of_one_machine(four, tmp_path):
    M, _ = make_relu_gram(300, 3, random_state=0)
    write_blocks(M, tmp_path / "blocks", rows=110)
    one, many = decompose(M, 3, random_state=0), decompose(tmp_path / "blocks", 3, random_state=0)
    assert many.relative_error <= max(1e-4, 1.01 * one.relative_error)
    assert_allclose(metrics.relative_error(tmp_path / "blocks", many.U), many.relative_error, rtol=1e-9)


def test_estimators_take_a_folder_and_its_names(four, tmp_path):
    M, _ = make_relu_gram(60, 3, random_state=0)
    names = [f"n{k}" for k in range(60)]
    write_blocks(pd.DataFrame(M, names, names), tmp_path / "blocks", rows=25)
    settings = {"n_components": 3, "n_negative": 0, "diagonal": "fit", "init": "random", "random_state": 0}
    one = SymReLU(**settings).fit(M)
    many = SymReLU(**settings, client=four[1].scheduler.address).fit(tmp_path / "blocks")
    assert many.relative_error_ < 1e-4
    assert_allclose(many.solution_.history.objective[:10], one.solution_.history.objective[:10], rtol=1e-8)
    assert many.n_features_in_ == 60
    assert list(many.node_names_) == names
    assert_array_equal(many.top_k(["n7"], 3)[0][0], [names[k] for k in one.top_k([7], 3)[0][0]])
    with pytest.raises(TypeError, match=r"Pass client\.scheduler\.address"):
        SymReLU(client=four[1]).fit(tmp_path / "blocks")


def test_scores_are_those_of_one_machine(four, digits):
    M, labels = load_digits_graph()
    rng = np.random.default_rng(0)
    U, signature = rng.standard_normal((1797, 3)) / 9, np.array([1.0, 1.0, -1.0])
    mask = metrics.random_mask(1797, 0.05, random_state=0)
    assert_allclose(
        metrics.held_out_error(digits, U, signature, mask=mask),
        metrics.held_out_error(M, U, signature, mask=mask),
        rtol=1e-12,
    )
    assert_allclose(metrics.modularity(digits, labels), metrics.modularity(M, labels), rtol=1e-12)
    assert_allclose(metrics.parameters_per_pair(digits, 3), metrics.parameters_per_pair(M, 3), rtol=1e-14)
    assert_allclose(
        metrics.relative_error(digits, U, signature, mask=mask),
        metrics.relative_error(M, U, signature, mask=mask),
        rtol=1e-12,
    )


@pytest.mark.parametrize("rank", [3, 40])
def test_the_driver_moves_what_the_formula_of_the_grid_says(four, digits, rank):
    """At rank 40, panels are sent once, and workers share them; at rank 3 they go with each task."""
    op = Problem.of(digits).operator(np.ones(rank))
    U = np.random.default_rng(0).standard_normal((1797, rank))
    assert (U.nbytes > cluster._SMALL) == (rank == 40)
    op.residual_product(U, U)
    moved, grid = op._session.cluster.moved, op._session.grid
    before = dict(moved)
    op.residual_product(U, U)
    rows, row = traffic(grid, 4), rank * 8  # bytes of a row
    sent = (rows["sent"] if rank == 40 else rows["shared"]) * row
    signs = 4 * row  # with each task
    assert moved["sent"] - before["sent"] == sent + signs
    assert rows["returned"] * row <= moved["received"] - before["received"] <= 1.2 * rows["returned"] * row


class Killer:
    """A callback that kills so many workers at once, which are alive, at a drawn moment after an iteration."""

    def __init__(self, workers, client, numbers):
        self.workers, self.client, self.numbers = workers, client, numbers  # how many, by iteration
        self.rng = random.Random(0)
        self.killed, self.thread = [], None

    def __call__(self, progress):
        self.finish()  # so that each is killed while the fit goes on
        count = self.numbers.get(progress.record.iteration)
        if count:
            self.thread = threading.Thread(target=self.kill, args=(count,))
            self.thread.start()
        return False

    def kill(self, count):
        time.sleep(0.1 * self.rng.random())
        deadline = time.monotonic() + 60
        while len(alive := self.alive()) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in self.rng.sample(alive, count):
            os.kill(pid, signal.SIGKILL)
            self.killed.append(pid)

    def alive(self):
        there = self.client.nthreads()  # a nanny does not start one again that dies before it is there
        pids = [worker.pid for worker in self.workers.workers.values() if worker.worker_address in there]
        # One that was killed may still look alive for a moment.
        return [pid for pid in pids if pid not in (None, *self.killed) and self.lives(pid)]

    @staticmethod
    def lives(pid):
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def finish(self):
        if self.thread is not None:
            self.thread.join()


def test_bits_do_not_depend_on_the_workers_nor_on_their_deaths(four, digits):
    """One is killed in nine of twelve steps, two at once in another; then there are three, and at last one."""
    workers, client = four
    fit = {"rank": 5, **SETTINGS}
    calm = decompose(digits, max_iter=12, **fit)
    moments = random.Random(0).sample(range(1, 12), 10)
    killer = Killer(workers, client, dict.fromkeys(moments, 1) | {moments[0]: 2})
    disturbed = decompose(digits, max_iter=12, callback=killer, **fit)
    assert len(set(killer.killed)) == 11
    assert disturbed.n_iter == 12
    assert_array_equal(disturbed.U, calm.U)
    assert_array_equal(disturbed.history.objective, calm.history.objective)
    for left in (3, 1):
        workers.scale(left)
        fewer = decompose(digits, max_iter=4, **fit)
        assert_array_equal(fewer.history.objective, calm.history.objective[: len(fewer.history.objective)])


FOREIGN = {
    "__version__ = '0.0.1'": r"The worker tcp://.* has symrelu 0\.0\.1, .* Install the same version",
    "raise ImportError('it is broken')": r"The worker tcp://.* cannot import symrelu \(it is broken\)\.",
}


@contextmanager
def foreign_worker(source, scheduler, folder):
    """Yield a function that starts a real worker with this module in place of symrelu, and waits for it."""
    package = folder / f"foreign-{len(list(folder.iterdir()))}"
    package.mkdir()
    (package / "symrelu.py").write_text(source)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--no-nanny", "--no-dashboard"]
    process = None

    def join(client):
        nonlocal process
        own = {**os.environ, "PYTHONPATH": str(package)}
        process = subprocess.Popen(
            command, env=own, cwd=package, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        client.wait_for_workers(2, timeout=60)

    yield join
    process.kill()
    process.wait()


def test_failures_say_what_happened_and_lose_nothing(digits, tmp_path, monkeypatch):
    """In one test, because each failure needs a cluster that it spoils: files, workers, versions, scheduler."""
    monkeypatch.setattr(cluster_workers, "PATIENCE", 1.0)
    temporary = tmp_path / "temporary"  # where no other test leaves anything
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    path = tmp_path / "blocks"
    write_blocks(load_digits_graph()[0], path, rows=900)
    fit = {"rank": 4, "max_iter": 8, **SETTINGS}
    whole = decompose(load_digits_graph()[0], 4, max_iter=8, **SETTINGS)
    with local_cluster(1) as (workers, client):

        def after(step, action):
            return lambda progress: progress.record.iteration == step and action() and False

        def fails(match, action, **more):
            with pytest.raises(cluster.ClusterError, match=match) as found:
                decompose(path, **fit, **more, callback=after(3, action))
            assert found.value.solution.n_iter == 3
            assert found.value.solution.U.shape == (1797, 4)

        # Workers with another version, or without symrelu, that join a fit.
        monkeypatch.setattr(block_session, "_RECENTLY", 0.0)
        for source, match in FOREIGN.items():
            with foreign_worker(source, workers.scheduler_address, tmp_path) as join:
                fails(match, lambda join=join: join(client))
                with pytest.raises(cluster.ClusterError, match=match):
                    decompose(path, **fit, client=client)

        # A file that changes, or is not there, when a worker has to read it again.
        block = path / "block-0-1.npz"
        content = block.read_bytes()

        def change_and_kill(text):
            block.write_bytes(text) if text else block.unlink()
            os.kill(first_pid(), signal.SIGKILL)

        def first_pid():
            return next(iter(workers.workers.values())).pid

        monkeypatch.setattr(cluster_workers, "PATIENCE", 60.0)
        fails(r"block-0-1\.npz of a block folder has changed", lambda: change_and_kill(content[:-1] + b"x"))
        block.write_bytes(content)
        fails(r"block-0-1\.npz of a block folder cannot be read: No such file", lambda: change_and_kill(b""))
        block.write_bytes(content)

        # All workers are gone for good: an error in bounded time, and the fit resumes from the checkpoint.
        monkeypatch.setattr(cluster_workers, "PATIENCE", 1.0)
        begin = time.monotonic()
        fails("has lost all of its workers", lambda: workers.scale(0), checkpoint=tmp_path / "fit.ckpt")
        assert time.monotonic() - begin < 60
        workers.scale(1)
        client.wait_for_workers(1, timeout=60)
        resumed = decompose(path, **fit, checkpoint=tmp_path / "fit.ckpt")
        assert_allclose(resumed.history.objective, whole.history.objective, rtol=1e-8)
        assert not list(temporary.glob("symrelu-blocks-*"))

        # A client that is closed, and a scheduler that goes away.
        other = distributed.Client(workers.scheduler_address, set_as_default=False)
        fails("client of the cluster is closed", lambda: other.close(), client=other)
        fails("cannot be reached|is closed", workers.close, client=client)
    monkeypatch.setattr(clients, "_CONNECTING", 0.5)
    with pytest.raises(cluster.ClusterError, match="No scheduler answers at"):
        decompose(path, 4, client="tcp://127.0.0.1:1")


def test_blocks_are_shipped_where_workers_do_not_see_them(four, digits, monkeypatch):
    from symrelu.operators.block_session import BlockSession

    M, _ = load_digits_graph()
    monkeypatch.setattr(BlockSession, "_is_shipped", lambda self: True)
    op = Problem.of(Path(digits)).operator(np.ones(2))
    V = np.random.default_rng(0).standard_normal((1797, 2))
    assert_allclose(op.matmul(V), SparseOperator(M, signature=np.ones(2)).matmul(V), rtol=1e-12)
