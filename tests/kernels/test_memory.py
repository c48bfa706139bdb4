"""How much memory there is, and work in parts that fit into it."""

import builtins
import io
import os

import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st

from symrelu.kernels.memory import available_memory, batches, rows_per_worker, working_memory


def test_available_memory_is_plausible():
    assert 10**7 < available_memory() < 10**14


def pretend(monkeypatch, text):
    """Let /proc/meminfo hold a text, or be missing."""
    original = builtins.open

    def opened(path, *args, **kwargs):
        if path != "/proc/meminfo":
            return original(path, *args, **kwargs)
        if text is None:
            raise FileNotFoundError
        return io.StringIO(text)

    monkeypatch.setattr(builtins, "open", opened)


def test_the_kernel_says_what_is_available(monkeypatch):
    pretend(monkeypatch, "MemTotal: 32 kB\nMemFree: 8 kB\nMemAvailable:   12 kB\nBuffers: 1 kB\n")
    assert available_memory() == 12 * 1024


@pytest.mark.parametrize("text", [None, "", "MemTotal: 32 kB\n", "MemAvailable: many kB\n"])
def test_without_it_the_pages_are_counted(monkeypatch, text):
    pretend(monkeypatch, text)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert available_memory() == 4_096_000


@pytest.mark.parametrize("error", [ValueError, OSError])
def test_a_system_that_does_not_answer(monkeypatch, error):
    def unanswered(name):
        raise error(name)

    pretend(monkeypatch, None)
    monkeypatch.setattr(os, "sysconf", unanswered)
    assert available_memory() is None


@given(
    count=st.integers(0, 500), bytes_each=st.integers(1, 2**22), megabytes=st.sampled_from([0.001, 0.1, 1, 3])
)
def test_batches_cover_everything_once_and_fit(count, bytes_each, megabytes):
    with sklearn.config_context(working_memory=megabytes):
        assert working_memory() == megabytes * 2**20
        parts = list(batches(count, bytes_each))
        limit = working_memory()
    assert [k for part in parts for k in range(count)[part]] == list(range(count))
    sizes = [len(range(count)[part]) for part in parts]
    assert all(size == 1 or 0 < size * bytes_each <= limit for size in sizes)
    assert all((size + 1) * bytes_each > limit for size in sizes[:-1]), "no part is smaller than it must be"


@pytest.mark.parametrize(
    ("megabytes", "expected"),
    [(0, (1, 1)), (1, (1, 1)), (10, (10, 1)), (32, (32, 1)), (100, (32, 3)), (1e12, (32, int(1e12 / 32)))],
)
def test_rows_of_a_megabyte_each(megabytes, expected):
    """First a worker gets its rows, then there is room for others."""
    with sklearn.config_context(working_memory=megabytes):
        assert rows_per_worker(2**20, 32) == expected
