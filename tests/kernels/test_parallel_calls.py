"""Calls of kernels side by side: results in order, the first failure raised, fewer threads where there are no more."""

import signal
import sys
import threading
import time
import traceback

import pytest

from shoal import kernels
from shoal.kernels.parallel_calls import MANY_RECORDS, column_by_column, side_by_side
from systems import signal_main_thread
from waits import LIMIT, wait_until


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(threads):
    def slow_at_first(item):
        time.sleep(0.01 * (item == 0))
        return item * item

    assert side_by_side(slow_at_first, range(20), threads) == [item * item for item in range(20)]


def test_several_threads_are_at_work():
    both = threading.Barrier(2, timeout=LIMIT)

    assert sorted(side_by_side(lambda item: both.wait(), range(2), 2)) == [0, 1]


def test_the_first_failure_ends_the_others_and_is_raised():
    failed = threading.Event()

    def call(item):
        if item == 1:
            failed.set()
            raise ValueError("the second")
        failed.wait(LIMIT)
        while True:
            kernels.progress_callback()(0, 1)
            time.sleep(0.001)

    with pytest.raises(ValueError, match="the second"):
        side_by_side(call, range(1000), 2)


def test_each_item_is_worked_on_with_the_threads_it_is_given():
    with kernels.using(7):
        assert side_by_side(lambda item: kernels.n_threads(), range(3), 2, threads=3) == [3, 3, 3]


def test_an_interrupt_in_the_calling_thread_is_raised():
    def call(item):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side(call, range(3), 2)


def functions_of(thread):
    """Return the names of the functions that a thread is inside."""
    return {frame.f_code.co_name for frame, _ in traceback.walk_stack(sys._current_frames()[thread])}


def test_ctrl_c_while_the_others_are_waited_for_is_raised_when_they_have_ended():
    begun, ended = threading.Event(), threading.Event()
    caller = threading.get_ident()

    def call(item):
        if threading.get_ident() == caller:
            begun.wait(LIMIT)
        else:
            begun.set()
            # The caller has nothing left to do.
            wait_until(lambda: "wait_for_helpers" in functions_of(caller))
            signal_main_thread(signal.SIGINT)
            time.sleep(0.5)
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        side_by_side(call, range(2), 2)
    assert ended.is_set()


def test_ctrl_c_at_the_moment_at_which_the_others_end_is_raised():
    caller = threading.get_ident()

    def interrupted(seconds):
        begun = threading.Event()

        def call(item):
            if threading.get_ident() == caller:
                begun.wait(LIMIT)
            else:
                begun.set()
                time.sleep(seconds)
                signal_main_thread(signal.SIGINT)

        side_by_side(call, range(2), 2)
        time.sleep(1)  # a signal that comes late

    for number in range(500):
        with pytest.raises(KeyboardInterrupt):
            interrupted(number % 10 * 2e-5)


def test_a_piece_that_is_split_itself_ends_when_another_piece_fails():
    begun = threading.Event()

    def outer(item):
        if item == 1:
            begun.wait(LIMIT)
            raise ValueError("the second")

        check = kernels.progress_callback()

        def inner(piece):
            begun.set()
            while True:
                kernels.progress_callback()(0, 1)
                check(0, 1)
                time.sleep(0.001)

        return side_by_side(inner, range(2), 2)

    with pytest.raises(ValueError, match="the second"):
        side_by_side(outer, range(2), 2)


def test_where_no_thread_can_be_started_the_calling_one_does_it_all(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    assert side_by_side(lambda item: threading.current_thread(), range(3), 4) == [threading.current_thread()] * 3


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
@pytest.mark.parametrize("n_records", [10, MANY_RECORDS])
def test_columns_come_in_order_whatever_the_threads(threads, n_records):
    with kernels.using(threads):
        assert list(column_by_column(lambda column: column * column, range(7), n_records)) == [c * c for c in range(7)]


def test_of_many_records_columns_are_at_work_at_the_same_time_with_a_thread_each():
    both = threading.Barrier(2, timeout=LIMIT)

    def call(column):
        both.wait()
        return kernels.n_threads()

    with kernels.using(2):
        assert list(column_by_column(call, range(4), MANY_RECORDS)) == [1, 1, 1, 1]


def test_of_few_records_columns_are_measured_one_by_one_by_the_caller():
    with kernels.using(2):
        found = list(column_by_column(lambda column: threading.current_thread(), range(4), MANY_RECORDS - 1))

    assert set(found) == {threading.current_thread()}
