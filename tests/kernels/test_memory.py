"""How much memory there is, and work in parts that fit into it."""

import builtins
import io
import os
import re
import subprocess
import sys

import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st

from symrelu.kernels import memory
from symrelu.kernels.memory import (
    available_memory,
    batches,
    room_in_address_space,
    room_in_control_groups,
    rows_per_worker,
    working_memory,
)


@pytest.fixture
def no_limits(monkeypatch):
    """As if this process had no other limit than the machine."""
    monkeypatch.setattr(memory, "room_in_control_groups", lambda: None)
    monkeypatch.setattr(memory, "room_in_address_space", lambda: None)


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


def test_the_kernel_says_what_is_available(monkeypatch, no_limits):
    pretend(monkeypatch, "MemTotal: 32 kB\nMemFree: 8 kB\nMemAvailable:   12 kB\nBuffers: 1 kB\n")
    assert available_memory() == 12 * 1024


@pytest.mark.parametrize("text", [None, "", "MemTotal: 32 kB\n", "MemAvailable: many kB\n"])
def test_without_it_the_pages_are_counted(monkeypatch, no_limits, text):
    pretend(monkeypatch, text)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert available_memory() == 4_096_000


@pytest.mark.parametrize("error", [ValueError, OSError])
def test_a_system_that_does_not_answer(monkeypatch, no_limits, error):
    def unanswered(name):
        raise error(name)

    pretend(monkeypatch, None)
    monkeypatch.setattr(os, "sysconf", unanswered)
    assert available_memory() is None


@pytest.mark.parametrize(
    ("machine", "groups", "address_space", "expected"),
    [(9, 7, 8, 7), (9, None, 8, 8), (9, 10, None, 9), (None, None, 5, 5), (9, 0, 8, 0)],
)
def test_the_smallest_limit_counts(monkeypatch, machine, groups, address_space, expected):
    monkeypatch.setattr(memory, "_free_on_the_machine", lambda: machine)
    monkeypatch.setattr(memory, "room_in_control_groups", lambda: groups)
    monkeypatch.setattr(memory, "room_in_address_space", lambda: address_space)
    assert available_memory() == expected


def write_files(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


TOP = "sys/fs/cgroup"
VERSION_1 = f"{TOP}/memory"
UNLIMITED_1 = "9223372036854771712\n"  # how version 1 says that there is no limit


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n"}, None),
        (
            {"proc/self/cgroup": "0::/a\n", f"{TOP}/a/memory.max": "max\n", f"{TOP}/a/memory.current": "5\n"},
            None,
        ),
        (
            {"proc/self/cgroup": "0::/a\n", f"{TOP}/a/memory.max": "900\n", f"{TOP}/a/memory.current": "400\n"},
            500,
        ),
        # The group around it leaves less.
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                f"{TOP}/a/b/memory.max": "900\n",
                f"{TOP}/a/b/memory.current": "100\n",
                f"{TOP}/a/memory.max": "1000\n",
                f"{TOP}/a/memory.current": "700\n",
            },
            300,
        ),
        # Pages of files that can be dropped are free, but there are never more of them than are used.
        (
            {
                "proc/self/cgroup": "0::/a\n",
                f"{TOP}/a/memory.max": "900\n",
                f"{TOP}/a/memory.current": "800\n",
                f"{TOP}/a/memory.stat": "anon 100\nfile 700\ninactive_file 600\n",
            },
            700,
        ),
        (
            {
                "proc/self/cgroup": "0::/a\n",
                f"{TOP}/a/memory.max": "900\n",
                f"{TOP}/a/memory.current": "80\n",
                f"{TOP}/a/memory.stat": "inactive_file 600\n",
            },
            900,
        ),
        # More is used than a limit that was lowered meanwhile.
        ({"proc/self/cgroup": "0::/\n", f"{TOP}/memory.max": "9\n", f"{TOP}/memory.current": "10\n"}, 0),
        # A container, where the path is that of the host.
        (
            {
                "proc/self/cgroup": "5:cpu:/x\n4:memory:/docker/1234\n",
                f"{VERSION_1}/memory.limit_in_bytes": "5000\n",
                f"{VERSION_1}/memory.usage_in_bytes": "1000\n",
                f"{VERSION_1}/memory.stat": "inactive_file 1\ntotal_inactive_file 100\n",
            },
            4100,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu,memory:/a\n0::/\n",
                f"{VERSION_1}/a/memory.limit_in_bytes": UNLIMITED_1,
                f"{VERSION_1}/a/memory.usage_in_bytes": "0\n",
            },
            int(UNLIMITED_1),
        ),
        ({"proc/self/cgroup": "no such lines\n"}, None),
    ],
)
def test_limits_of_control_groups(tmp_path, files, expected):
    write_files(tmp_path, files)
    assert room_in_control_groups(tmp_path) == expected


def test_files_outside_of_the_control_groups_are_not_read(tmp_path):
    limit = {"memory.max": "10\n", "memory.current": "1\n"}
    write_files(
        tmp_path, {"proc/self/cgroup": "0::/a\n", f"{TOP}/a/x": ""} | {f"sys/{k}": v for k, v in limit.items()}
    )
    assert room_in_control_groups(tmp_path) is None


@pytest.mark.skipif(sys.platform != "linux", reason="other systems ignore ulimit -v")
def test_the_limit_of_the_address_space():
    program = "from symrelu.kernels.memory import available_memory; print(available_memory())"
    limited = ["sh", "-c", 'ulimit -v 3000000 && exec "$@"', "sh", sys.executable, "-c", program]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=120)
    assert re.fullmatch(r"\d+\n", done.stdout), done.stderr
    assert 10**8 < int(done.stdout) < 3000000 * 1024


def test_without_a_limit_of_the_address_space(monkeypatch):
    resource = pytest.importorskip("resource", reason="Windows has no such limits")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert room_in_address_space() is None
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (4096, 8192))
    assert room_in_address_space() == 0
    monkeypatch.setattr(memory, "resource", None)
    assert room_in_address_space() is None


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
