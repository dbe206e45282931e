"""Every kernel that may take long can be stopped on the way: it looks for signals and reports progress."""

import operator
import signal
import threading
from functools import partial

import numpy as np
import pytest

from shoal import kernels
from systems import WINDOWS, signal_main_thread

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(100_000, 8))
LABELS = np.arange(100_000) // 2
SPHERE = POINTS[:30_000] / np.linalg.norm(POINTS[:30_000], axis=1)[:, None]
ALONE = np.zeros(30_000, dtype=np.int64)
NONE = np.empty(0, dtype=np.int64)


class Stopped(Exception):  # noqa: N818
    """What the handler of the signal raises."""


def vetoes():
    codes = RNG.integers(0, 9, len(POINTS))
    guarantees = kernels.Guarantees()
    guarantees.nominal_closeness(codes, np.bincount(codes), 4, 10)
    return guarantees


def guarded_search(at_any_cost):
    kernels.guarded_search(POINTS, np.arange(100_000) // 10, 5, vetoes(), kernels.Effort(9, 20, 0.0, at_any_cost))


def ncp_table(n):
    table = kernels.NcpTable(n)
    for column in POINTS[:n].T:
        table.numbers(column.copy(), 8.0, 1.0)
    return table


def ncp_search():
    schedule = kernels.Schedule(10**9, hot=0.5, fall=4.0)
    kernels.ncp_search(ncp_table(20_000), POINTS[:20_000], LABELS[:20_000], 2, kernels.Guarantees(), 8, schedule, 1)


# Each runs for longer than a progress callback needs to stop it.
REPORTING = {
    "mdav": lambda: kernels.mdav(POINTS, 2),
    "mdav of some": lambda: kernels.mdav(POINTS, 2, np.arange(90_000)),
    "refine": lambda: kernels.refine(POINTS, LABELS, 2, 99, 20, 0.0, True),
    "refine_around": lambda: kernels.refine_around(
        POINTS, LABELS, kernels.RefineHints(LABELS[::2], NONE, NONE), 2, 99, 20, 0.0
    ),
    "arrive": lambda: kernels.arrive(POINTS, LABELS[:20_000], 2, inertial=True, split_mid=True),
    "anneal": lambda: kernels.anneal(POINTS[:1_000], LABELS[:1_000], 2, kernels.Schedule(10**9, 4.0, 7.0), 1),
    "ncp_search": ncp_search,
    "ncp_recode": lambda: kernels.ncp_recode(ncp_table(2_000), LABELS[:2_000], 2, kernels.Guarantees(), 10**9, 1),
    "ncp_specialise": lambda: kernels.ncp_specialise(ncp_table(len(POINTS)), 2),
    "univariate": lambda: kernels.univariate(np.arange(4e6), 1_000),
    "split": lambda: kernels.split(POINTS, np.zeros(len(POINTS), dtype=np.int64), 2),
    "split, a single piece": lambda: kernels.split(SPHERE, ALONE, 15_000),
    "linkage": lambda: kernels.linkage(POINTS, POINTS * 1.5, np.arange(len(POINTS))),
    "guarded_search, repairing": partial(guarded_search, True),
    "guarded_search, improving": partial(guarded_search, False),
}


@pytest.fixture
def alarm():
    """Return what sets a handler and has a signal come in a moment.

    It is a moment of the processor: on a busy machine the signal would come before the kernel has begun otherwise.
    """

    number = signal.SIGBREAK if WINDOWS else signal.SIGVTALRM

    def ring(handler):
        signal.signal(number, handler)
        if WINDOWS:
            threading.Timer(0.02, signal_main_thread, [number]).start()
        else:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)

    before = signal.getsignal(number)
    yield ring
    if not WINDOWS:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(number, before)


@pytest.mark.parametrize("name", REPORTING)
def test_a_signal_is_handled_before_the_kernel_is_done(name, alarm):
    rung, stopped_at = [], []

    def progress(done, total):
        if rung:
            stopped_at.append((done, total))
            raise Stopped

    alarm(lambda *_: rung.append(True))
    with pytest.raises(Stopped), kernels.using(2, progress):
        REPORTING[name]()

    assert all(done < total for done, total in stopped_at)


# These report no progress: they are parts of longer work.
SILENT = {
    "cell_neighbours": partial(kernels.cell_neighbours, POINTS, LABELS, 2, 60),
    "assign": partial(kernels.assign, POINTS, POINTS[:2_000]),
    "dissolve_cells": partial(kernels.dissolve_cells, POINTS / 10, LABELS, 2),
    "balanced_cells": partial(
        kernels.balanced_cells, RNG.normal(size=(2_000_000, 1)), RNG.integers(0, 9, 2_000_000), 4, 3
    ),
    "grow": partial(kernels.Remaining(POINTS).grow, 0, 50_000),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_signal_ends_a_kernel_that_reports_no_progress(name, alarm):
    def stop(*_):
        raise Stopped

    ended = []
    with pytest.raises(Stopped), kernels.using(2):
        # No bytecode runs in between, so the handler could not run between the end of the kernel and the note of it.
        list(map(operator.call, [partial(alarm, stop), SILENT[name], partial(ended.append, True)]))

    assert ended == []
