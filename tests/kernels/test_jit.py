"""A cache of compiled functions that cannot be used costs time, and no fit (issue 11.10)."""

import errno
import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from numba.core import config
from numba.core.caching import IndexDataCacheFile
from scipy.sparse.csgraph import connected_components

from symrelu.kernels import jit, one_time_warnings
from symrelu.kernels.curved_rows import factor_groups
from symrelu.kernels.lanes import LANES
from symrelu.kernels.pair_curvature import CurvedPairs, curved_part, multiply_rows
from symrelu.kernels.pair_lists import PairList
from symrelu.kernels.pair_passes import Entries, RowSums, Visited, add_rows, directions
from symrelu.kernels.row_references import movement_of_rows, new_references

FUNCTIONS = """
from symrelu.kernels.jit import compiled

@compiled
def twice(x):
    return 2 * x

@compiled
def four_times(x):
    return twice(twice(x))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of the cache, and no warning given so far."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(one_time_warnings, "_already_warned", {})
    (tmp_path / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
    return tmp_path / "cache"


def fresh_functions(cache):
    """Return a module with new functions, as a new process would have."""
    spec = importlib.util.spec_from_file_location("functions", cache.parent / "functions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files(cache, pattern):
    return sorted(cache.glob(f"*/{pattern}"))


def hits(function):
    return sum(function.stats.cache_hits.values())


def test_the_cache_is_used(cache):
    """It is put where numba keeps its own: should numba look elsewhere one day, this fails."""
    first = fresh_functions(cache)
    assert first.four_times(3) == 12
    assert len(files(cache, "*.nbi")) == len(files(cache, "*.nbc")) == 2
    assert hits(first.four_times) == 0
    second = fresh_functions(cache)
    assert second.four_times(3) == 12
    assert hits(second.four_times) == 1


def test_a_change_of_a_file_next_to_it_discards_the_code_of_a_function(cache):
    """A compiled function contains the functions that it calls, which may be in another file."""
    fresh_functions(cache).four_times(3)
    (cache.parent / "neighbour.py").touch()
    jit._directory_stamp.cache_clear()  # as in a new process
    changed = fresh_functions(cache)
    assert changed.four_times(3) == 12
    assert hits(changed.four_times) == 0


def replace_folder_by_file(cache):
    for folder in cache.iterdir():
        shutil.rmtree(folder)
        folder.touch()


def replace_indices_by_folders(cache):
    for index in files(cache, "*.nbi"):
        index.unlink()
        index.mkdir()


@pytest.mark.parametrize("spoil", [replace_folder_by_file, replace_indices_by_folders])
def test_a_cache_that_cannot_be_written_or_read_is_done_without(spoil, cache):
    fresh_functions(cache).four_times(3)
    functions = fresh_functions(cache)
    spoil(cache)
    with pytest.warns(RuntimeWarning, match=r"could not be cached in .*cache.*NUMBA_CACHE_DIR") as told:
        results = [functions.four_times(number) for number in (3, 3.0)]
    assert results == [12, 12.0]
    assert len(told) == 1


def remove(cache):
    shutil.rmtree(cache)


def spoil_indices(cache):
    for index in files(cache, "*.nbi"):
        index.write_bytes(b"garbage")


def empty_everything(cache):
    for file in files(cache, "*.nb?"):
        file.write_bytes(b"")


def truncate_code(cache):
    for file in files(cache, "*.nbc"):
        file.write_bytes(file.read_bytes()[:100])


def spoil_code(cache):
    for file in files(cache, "*.nbc"):
        file.write_bytes(b"\x80\x04N.")  # pickled None


@pytest.mark.parametrize("spoil", [remove, spoil_indices, empty_everything, truncate_code, spoil_code])
def test_a_damaged_cache_is_written_anew(spoil, cache):
    fresh_functions(cache).four_times(3)
    functions = fresh_functions(cache)
    spoil(cache)
    assert functions.four_times(3) == 12
    after = fresh_functions(cache)
    assert after.four_times(3) == 12
    assert hits(after.four_times) == 1


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.ENOENT])
@pytest.mark.parametrize("part", ["_save_index", "_save_data"])
def test_every_reason_why_the_cache_cannot_be_written(part, code, cache, monkeypatch):
    def refuse(self, *args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(IndexDataCacheFile, part, refuse)
    functions = fresh_functions(cache)
    with pytest.warns(RuntimeWarning, match=os.strerror(code)) as told:
        results = [functions.four_times(3) for _ in range(2)]
    assert results == [12, 12]
    assert len(told) == 1
    assert functions.twice.signatures


def test_where_warnings_are_errors_the_call_is_not_lost(cache, monkeypatch, caplog):
    def refuse(self, *args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(IndexDataCacheFile, "save", refuse)
    functions = fresh_functions(cache)
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "symrelu"):
        warnings.simplefilter("error")
        assert functions.four_times(3) == 12
    assert ["No space left" in message for message in caplog.messages] == [True]


WITHOUT_DISK = """
import resource, signal, warnings
import numpy as np
from symrelu.kernels.vectors import inner

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no file can grow: every write fails
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    found = [inner(np.ones((3, 2), dtype), np.ones((3, 2), dtype)) for dtype in ("float32", "float64")]
print(len(told), told[0].category.__name__, found == [6, 6])
"""


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on the size of files")
def test_work_goes_on_where_nothing_can_be_written(tmp_path):
    """The real thing: a kernel is compiled with a cache all of whose writes fail."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    run = [sys.executable, "-c", WITHOUT_DISK]
    result = subprocess.run(run, capture_output=True, text=True, env=environment, check=False)
    assert result.stdout.split() == ["1", "RuntimeWarning", "True"], result.stderr
    assert not [path for path in Path(tmp_path).rglob("*") if path.is_file()]


# Like kernels/streaming.py, in a folder of its own: a function that calls the excess function of its data.
CALLER = """
from symrelu.kernels.jit import compiled
from symrelu.kernels.tiles import excess

@compiled
def first(tile, data):
    return excess(tile, data, 0, 0, 1)[0]
"""
EXTENSION = """
from typing import NamedTuple
import numpy as np
from caller.functions import first
from symrelu.kernels.tiles import excess_of

class MyTiles(NamedTuple):
    number: float

@excess_of(MyTiles)
def my_excess(tile, data, i, j, side):
    return NUMBER, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0

print(first(np.ones((1, 1)), MyTiles(0.5)))
"""
ORDINARY = """
import numpy as np
from caller.functions import first
from symrelu.kernels.tiles import DenseTiles

first(np.ones((1, 1)), DenseTiles(np.ones((1, 1)), 1.0, False))
print(sum(first.stats.cache_hits.values()))
"""


def test_code_from_elsewhere_is_not_cached(tmp_path):
    """It changes without notice, and other processes may not be able to import it."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "caller").mkdir()
    (tmp_path / "caller" / "functions.py").write_text(CALLER)

    def output(code):
        command = [sys.executable, "-B", "-c", code]
        run = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert not run.stderr
        return run.stdout.strip()

    assert output(ORDINARY) == "0"
    for number in ("1.0", "7.0"):
        (tmp_path / "extension.py").write_text(EXTENSION.replace("NUMBER", number))
        assert output("import extension") == number
    (tmp_path / "extension.py").unlink()
    assert output(ORDINARY) == "1"


def counted_in_loops(function, *arguments):
    """Return to what a function counts references inside its loops, by names in its code."""
    fresh = njit(nogil=True, fastmath=jit.FASTMATH)(function.py_func)  # code from the cache cannot be read
    fresh(*arguments)
    (code,) = fresh.inspect_llvm().values()
    body = re.split(r"\ndefine ", code)[1].split("\n}")[0]  # after the function, those that it is called by
    blocks = re.split(r"\n(?=\S+:)", body)
    places = {block.split(":")[0]: place for place, block in enumerate(blocks)}
    follows = np.zeros((len(blocks), len(blocks)), bool)
    for place, block in enumerate(blocks):
        follows[place, [places[name] for name in re.findall(r"label %([^\s,]+)", block)]] = True
    # A loop are the blocks from each of which the others can be reached.
    _, loops = connected_components(follows, connection="strong")
    looped = (np.bincount(loops)[loops] > 1) | follows.diagonal()
    # Pointers are printed as "ptr" or, by earlier releases, as "i8*", and may be called "nonnull".
    return [
        name
        for place in np.flatnonzero(looped)
        for name in re.findall(r"NRT_incref\([^)]*%\.?([^)]+)\)", blocks[place])
    ]


@njit
def kept_rows(n, U):
    rows = [U[i] for i in range(n)]
    return len(rows)


@njit
def kept_array(n, U):
    total = 0.0
    for i in range(n):
        total += U[i, 0]
    return total, U


def test_references_that_are_counted_in_loops_are_found():
    U = np.ones((5, 4))
    assert any(name.startswith("arg.") for name in counted_in_loops(kept_rows, 5, U))
    assert counted_in_loops(kept_array, 5, U) == []


def test_references_are_not_counted_for_each_row_or_entry():
    """It takes time and, where several threads count those to one array, they wait for each other."""
    n, U, signs = 5, np.ones((5, 4)), np.ones(4)
    nothing = Entries(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0))
    listed = PairList(n * np.arange(n + 1), np.tile(np.arange(n, dtype=np.int32), n))
    visited, rounded = Visited(nothing, nothing, listed, 1.0, False), directions(U, signs, wanted=True)
    moved, found = np.empty(n), RowSums(np.empty_like(U), np.zeros((n, 7)), np.empty(n))
    references, pairs = new_references(U, signs), CurvedPairs(*listed, np.ones(n * n), np.ones(n * n))
    for function, arguments in (
        (add_rows, (U, signs, U, visited, rounded, found)),
        (movement_of_rows, (U, references.packed, references.nonzero, moved)),
        (curved_part, (U, signs, np.ones(n), nothing, listed, 1.0, False, np.empty(n, np.int64))),
        (multiply_rows, (pairs, U, signs, U, 1.0, np.empty_like(U))),
    ):
        assert counted_in_loops(function, 0, n, *arguments) == []
    # For BLAS, it makes slices of its own arrays, which no other thread has.
    counted = counted_in_loops(factor_groups, 0, 1, pairs, U, 1.0, np.empty((1, 10, LANES)))
    assert not any(name.startswith("arg.") for name in counted)
