"""A setting of the process: the first block saves it, the last one restores it."""

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symrelu.kernels.shared_context import SharedContext


def context():
    """Return a new kind of context, and the calls that its blocks make."""
    calls = []

    class Recording(SharedContext):
        def _save(self):
            calls.append("save")

        def _apply(self):
            calls.append("apply")

        def _restore(self):
            calls.append("restore")

    return Recording, calls


def test_nested_blocks():
    kind, calls = context()
    with kind(), kind():
        assert calls == ["save", "apply", "apply"]
    assert calls == ["save", "apply", "apply", "restore"]


@given(order=st.permutations(range(4)))
def test_blocks_that_overlap_in_any_order(order):
    kind, calls = context()
    blocks = [kind() for _ in order]
    for block in blocks:
        block.__enter__()
    for place in order:
        assert "restore" not in calls
        blocks[place].__exit__(None, None, None)
    assert calls == ["save", *["apply"] * 4, "restore"]


def test_leaving_twice_or_without_entering_does_nothing():
    kind, calls = context()
    kind().__exit__(None, None, None)
    block = kind()
    with block:
        pass
    block.__exit__(None, None, None)
    assert calls == ["save", "apply", "restore"]


def test_a_block_that_was_never_left_is_left_when_it_is_collected():
    kind, calls = context()
    block = kind()
    block.__enter__()
    del block
    gc.collect()
    assert calls == ["save", "apply", "restore"]
    assert not kind._inside


def test_a_restore_that_was_interrupted_is_repeated():
    kind, calls = context()

    class Interrupted(kind):
        def _restore(self):
            super()._restore()
            if calls.count("restore") == 1:
                raise KeyboardInterrupt

    block = Interrupted()
    with pytest.raises(KeyboardInterrupt), block:
        pass
    assert calls.count("restore") == 1
    del block
    gc.collect()
    assert calls.count("restore") == 2


def test_kinds_do_not_share_their_blocks():
    (one, calls), (other, further) = context(), context()
    with one(), other():
        assert calls == further == ["save", "apply"]
    assert one._lock is not other._lock


def test_blocks_in_several_threads_save_and_restore_in_turn():
    kind, calls = context()

    def work(_):
        with kind():
            assert kind._inside

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(200)))
    assert calls.count("apply") == 200
    assert [call for call in calls if call != "apply"] == ["save", "restore"] * calls.count("save")
    assert not kind._inside
