"""Atomic operations: no addition is lost, and nothing is seen before it is written."""

import threading

import numpy as np
from numba import njit
from numpy.testing import assert_array_equal

from symrelu.kernels.atomics import fetch_add, load, store


@njit(nogil=True)
def take(numbers, count, mine):
    for k in range(count):
        mine[k] = fetch_add(numbers, 0, 2)


@njit(nogil=True)
def hand_over(turns, values, rounds, me):
    """Two threads take turns; each adds one to what the other left."""
    for k in range(rounds):
        while load(turns, 0) != 2 * k + me:
            pass
        values[0] += 1.0
        store(turns, 0, 2 * k + me + 1)


def run_together(function, *arguments):
    workers = [threading.Thread(target=function, args=arguments_of_one) for arguments_of_one in arguments]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def test_no_two_threads_get_the_same_number():
    count = 20_000
    numbers = np.zeros(3, np.int64)
    taken = np.zeros((4, count), np.int64)
    take(np.zeros(1, np.int64), 0, taken[0])
    run_together(take, *[(numbers, count, mine) for mine in taken])
    assert_array_equal(np.sort(taken, axis=None), 2 * np.arange(4 * count))
    assert_array_equal(numbers, [8 * count, 0, 0])


def test_what_was_written_before_a_store_is_seen_after_the_load():
    rounds = 200
    turns, values = np.zeros(1, np.int64), np.zeros(1)
    hand_over(turns, values, 0, 0)
    run_together(hand_over, (turns, values, rounds, 0), (turns, values, rounds, 1))
    assert values[0] == 2 * rounds
    assert turns[0] == 2 * rounds
