"""M on a torch device, dense and sparse: the same entries, products and batches of rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

torch = pytest.importorskip("torch")

from symrelu.operators import torch_rows  # noqa: E402

CPU = torch.device("cpu")
M = np.array([[0, 2, 0, 1], [2, 3, 0, 0], [0, 0, 0, 0], [1, 0, 0, 5.0]])
HIDDEN = sparse.csr_array(np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]], bool))
KINDS = {
    "sparse": lambda height: torch_rows.SparseRows(sparse.csr_array(M), HIDDEN, height, CPU),
    "dense": lambda height: torch_rows.DenseRows(M, HIDDEN, height, CPU),
}
OBSERVED = np.where(HIDDEN.toarray(), 0, M)


@pytest.mark.parametrize("height", [1, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_have_all_entries(kind, height):
    rows = KINDS[kind](height)
    found, hidden = np.zeros((4, 4)), np.zeros((4, 4), bool)
    for first, last in rows.blocks():
        entries = rows.entries(first, last)
        found[first:last].flat[entries.support] = entries.values
        hidden[first:last].flat[entries.hidden] = True
    assert_allclose(found, OBSERVED)
    assert_allclose(hidden, HIDDEN.toarray())


@pytest.mark.parametrize("kind", KINDS)
def test_what_follows_from_the_entries(kind):
    rows, V = KINDS[kind](2), np.random.default_rng(0).standard_normal((4, 3))
    assert_allclose(rows.matmul(torch.from_numpy(V)), OBSERVED @ V)
    assert_allclose(rows.occupied_matmul(torch.from_numpy(V)), ((OBSERVED > 0) | HIDDEN.toarray()) @ V)
    assert rows.norm() == pytest.approx(np.linalg.norm(OBSERVED))
    assert rows.n_positive == np.count_nonzero(OBSERVED)
    assert_allclose(rows.unknown_diagonal, [2, 0, 0, 1])


@pytest.mark.parametrize("numbers", [1, 10, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_have_each_row_once_with_its_support(kind, numbers, monkeypatch):
    monkeypatch.setattr(torch_rows, "BLOCK", numbers)
    rows = KINDS[kind](4)
    support = {}
    for items, neighbours in rows.neighbours(2):
        for item, columns in zip(items.tolist(), neighbours.tolist(), strict=True):
            assert item not in support
            support[item] = [column for column in columns if column < 4]
    assert support == {i: np.flatnonzero(row).tolist() for i, row in enumerate(OBSERVED)}


def test_a_gpu_gets_larger_blocks():
    assert torch_rows.numbers_at_once(torch.device("cuda")) > torch_rows.numbers_at_once(CPU)
