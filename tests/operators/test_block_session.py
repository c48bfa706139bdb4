"""Which worker has which block, with a cluster that is only pretended."""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from block_folders import random_similarity

from symrelu.files.block_folder import write_matrix
from symrelu.operators.block_data import BlockData

pytest.importorskip("distributed", reason="dask is not installed")
BlockSession = import_module("symrelu.operators.block_session").BlockSession


class Pretended:
    """A cluster whose workers are names, and whose tasks are records."""

    def __init__(self, *workers):
        self.names, self.submitted, self.closed = list(workers), [], False

    def workers(self, recently=0.0):
        return dict.fromkeys(sorted(self.names), 1)

    def submit(self, name, function, *arguments, worker, **settings):
        self.submitted.append((name, worker, arguments))
        result = arguments[0] if name == "send-block" else None
        return worker, SimpleNamespace(status="finished", result=result)

    def scatter(self, arrays):
        return list(arrays)

    def ask_each(self, function, *arguments):
        return {name: function(*arguments) for name in self.names}

    def run_round(self, make, count):
        return list(make(range(count), 0).values())

    def close(self):
        self.closed = True


@pytest.fixture
def data(tmp_path):
    (tmp_path / "temporary").mkdir()
    folder = write_matrix(random_similarity(40), tmp_path / "matrix", rows=5)
    return BlockData(folder, temporary=(tmp_path / "temporary",))


def loads(cluster):
    found = [arguments[0].block for name, _, arguments in cluster.submitted if name == "load-block"]
    cluster.submitted.clear()
    return found


def test_blocks_are_read_once_and_those_of_a_replaced_worker_again(data):
    cluster = Pretended("a", "b", "c")
    session = BlockSession(cluster, data)
    assert len(session.over_blocks("survey", None, {})) == 3
    assert sorted(loads(cluster)) == sorted(data.grid.blocks())
    session.over_blocks("survey", None, {})
    assert loads(cluster) == []
    shares = [list(share) for share in session._shares]
    cluster.names[1] = "d"  # another worker in its place: only its blocks move
    session.over_blocks("survey", None, {})
    assert sorted(loads(cluster)) == sorted(shares[1])
    cluster.names.append("e")
    assert len(session.over_blocks("survey", None, {})) == 4


def test_a_worker_that_comes_late_gets_the_share_of_a_lost_one(data):
    cluster = Pretended("a", "b", "c")
    session = BlockSession(cluster, data)

    def lost_in_the_round(make, count):
        make(range(count), 0)
        cluster.names.remove("b")
        return list(make([1], 1).values())  # its share goes to another for this round

    cluster.run_round = lost_in_the_round
    session.over_blocks("survey", None, {})
    assert sorted(session._slots) == ["a", "a", "c"]
    del cluster.run_round
    cluster.names.insert(1, "d")
    session.over_blocks("survey", None, {})
    assert session._slots == ["a", "c", "d"]


def test_a_share_gets_the_panels_that_it_needs(data):
    cluster = Pretended("a", "b")
    session = BlockSession(cluster, data)
    U = np.arange(80.0).reshape(40, 2)
    session.over_blocks("survey", None, {"U": U})
    sent = session._send({"U": U})["U"]
    assert len(sent) == 8
    assert np.concatenate(sent).tolist() == U.tolist()


def test_rows_are_read_where_their_panels_are_computed(data):
    cluster = Pretended("a", "b", "c")
    cluster.run_round = lambda make, count: [make(range(count), 0) and {} for _ in range(1)]
    session = BlockSession(cluster, data)
    U = np.ones((40, 2))
    session.over_panels("solve", None, U, [U])
    read = [(worker, arguments[0]) for name, worker, arguments in cluster.submitted if name == "load-rows"]
    assert sorted(panel for _, panel in read) == list(range(8))
    assert {worker for worker, _ in read} == {"a", "b", "c"}


def test_content_is_sent_if_a_worker_does_not_see_the_files(data):
    cluster = Pretended("a", "b")
    session = BlockSession(cluster, data)

    def contents():
        session.over_blocks("survey", None, {})
        orders = [arguments[0] for name, _, arguments in cluster.submitted if name == "load-block"]
        cluster.submitted.clear()
        found = [getattr(order, "result", order).matrix for order in orders]
        return {source.content is not None for source in found if source is not None}

    assert contents() == {False}
    # One that comes later sees nothing: from then on, blocks are sent to all.
    cluster.names[1] = "c"
    cluster.ask_each = lambda *_: {"a": True, "c": False}
    assert contents() == {True}
    assert data.order((0, 0), shipped=True).matrix.content == (data.folder.path / "block-0-0.npz").read_bytes()


def test_content_is_sent_once_for_blocks_and_rows(data):
    """A block off the diagonal is loaded by three tasks; the scheduler held its content three times."""
    cluster = Pretended("a", "b")
    cluster.ask_each = lambda *_: {"a": False, "b": False}
    session = BlockSession(cluster, data)
    session.over_blocks("survey", None, {})
    cluster.run_round = lambda make, count: [make(range(count), 0) and {}]
    session.over_panels("solve", None, np.ones((40, 2)), [])
    tasks = {name: [] for name, *_ in cluster.submitted}
    for name, _, arguments in cluster.submitted:
        tasks[name].append(arguments)
    assert sorted(order.block for (order,) in tasks["send-block"]) == sorted(data.grid.blocks())
    loaded = [order for (order,) in tasks["load-block"]]
    loaded += [order for _, orders in tasks["load-rows"] for order in orders]
    assert len(loaded) == 36 + 64
    assert {order.result.block for order in loaded} == set(data.grid.blocks())  # futures all


def test_closing_deletes_temporary_folders(data):
    cluster = Pretended("a")
    session = BlockSession(cluster, data)
    assert session.open
    session.close()
    assert not session.open
    assert cluster.closed
    assert not data.temporary[0].exists()
    assert data.folder.path.exists()
