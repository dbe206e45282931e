"""Strata are split by themselves, several at a time, with the same result for any number of threads."""

import threading

import numpy as np
import pytest

from shoal import partition
from shoal.methods import within_strata as module
from shoal.methods.within_strata import within


def cut(X, threads, progress):
    return partition(X, 3, "auto", seed=5, threads=threads, progress=progress)


@pytest.fixture
def problem():
    rng = np.random.default_rng(1)
    return rng.normal(size=(900, 3)), rng.integers(0, 12, 900)


def test_cells_are_those_of_each_stratum_by_itself(problem):
    X, strata = problem
    labels = within(X, strata, cut, threads=3)

    for stratum in range(12):
        alone = cut(X[strata == stratum], 1, None)
        np.testing.assert_array_equal(labels[strata == stratum] - labels[strata == stratum].min(), alone)


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_the_number_of_threads_does_not_matter(problem, threads):
    np.testing.assert_array_equal(within(*problem, cut, threads=threads), within(*problem, cut, threads=1))


def test_small_strata_have_a_thread_each_and_a_large_one_has_all(problem, monkeypatch):
    X, strata = problem
    monkeypatch.setattr(module, "LARGE", 100)
    asked = {}

    def ask(part, threads, progress):
        asked[len(part)] = threads
        return cut(part, threads, progress)

    merged = np.maximum(strata - 5, 0)
    within(X, merged, ask, threads=8)

    assert asked == {size: 8 if size > 225 else 1 for size in np.bincount(merged)}


def test_progress_is_reported_on_the_calling_thread_and_ends_with_all_records(problem):
    told = []
    within(*problem, cut, lambda done, total: told.append((done, total, threading.current_thread())), threads=3)

    assert {(total, thread) for _, total, thread in told} == {(900, threading.current_thread())}
    assert told[-1][0] == 900
    assert all(0 <= done <= 900 for done, _, _ in told)


def test_what_one_stratum_raises_is_raised(problem):
    def fail(X, threads, progress):
        raise MemoryError

    with pytest.raises(MemoryError):
        within(*problem, fail, threads=3)
