"""Every kernel that may take long can be stopped on the way: it looks for signals and reports progress."""

import operator
import signal
from functools import partial

import numpy as np
import pytest

from shoal import _kernels

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
    guarantees = _kernels.Guarantees()
    guarantees.nominal_closeness(codes, np.bincount(codes), 4, 10)
    return guarantees


def guarded_search(at_any_cost, progress):
    _kernels.guarded_search(POINTS, np.arange(100_000) // 10, 5, vetoes(), 9, 20, 0.0, at_any_cost, 2, progress)


def ncp_table(n):
    table = _kernels.NcpTable(n)
    for column in POINTS[:n].T:
        table.numbers(column.copy(), 8.0, 1.0)
    return table


def ncp_search(progress):
    models = _kernels.Guarantees()
    _kernels.ncp_search(
        ncp_table(20_000), POINTS[:20_000], LABELS[:20_000].copy(), 2, models, 10**9, 8, 16, 0.5, 4.0, 1, 2, progress
    )


def ncp_recode(progress):
    _kernels.ncp_recode(ncp_table(2_000), LABELS[:2_000].copy(), 2, _kernels.Guarantees(), 10**9, 1, 2, progress)


# Each takes a progress callback, and runs for longer than the callback needs to stop it.
REPORTING = {
    "mdav": lambda progress: _kernels.mdav(POINTS, 2, 1, progress),
    "refine": lambda progress: _kernels.refine(POINTS, LABELS.copy(), 2, 99, 20, 0.0, True, 2, progress),
    "refine_around": lambda progress: _kernels.refine_around(
        POINTS, LABELS, LABELS[::2], NONE, NONE, 2, 99, 20, 0.0, 2, progress
    ),
    "arrive": lambda progress: _kernels.arrive(POINTS, LABELS[:20_000], 2, True, True, 1, progress),
    "anneal": lambda progress: _kernels.anneal(POINTS[:1_000], LABELS[:1_000].copy(), 2, 10**9, 4.0, 7.0, 1, progress),
    "ncp_search": ncp_search,
    "ncp_recode": ncp_recode,
    "ncp_specialise": lambda progress: _kernels.ncp_specialise(ncp_table(len(POINTS)), 2, progress),
    "univariate": lambda progress: _kernels.univariate(np.arange(4e6), 1_000, progress),
    "split": lambda progress: _kernels.split(POINTS, np.zeros(len(POINTS), dtype=np.int64), 1, 2, 2, progress),
    "split, a single piece": lambda progress: _kernels.split(SPHERE, ALONE, 1, 15_000, 2, progress),
    "linkage": lambda progress: _kernels.linkage(
        POINTS, POINTS * 1.5, np.arange(len(POINTS)), np.arange(len(POINTS)), np.arange(len(POINTS)), 2, progress
    ),
    "guarded_search, repairing": partial(guarded_search, True),
    "guarded_search, improving": partial(guarded_search, False),
}


@pytest.fixture
def alarm():
    """Return what sets a handler and has a signal come in a moment.

    It is a moment of the processor: on a busy machine the signal would come before the kernel has begun otherwise.
    """

    def ring(handler):
        signal.signal(signal.SIGVTALRM, handler)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)

    before = signal.getsignal(signal.SIGVTALRM)
    yield ring
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("name", REPORTING)
def test_a_signal_is_handled_before_the_kernel_is_done(name, alarm):
    rung, stopped_at = [], []

    def progress(done, total):
        if rung:
            stopped_at.append((done, total))
            raise Stopped

    alarm(lambda *_: rung.append(True))
    with pytest.raises(Stopped):
        REPORTING[name](progress)

    assert all(done < total for done, total in stopped_at)


# These report no progress: they are parts of longer work.
SILENT = {
    "cell_neighbours": partial(_kernels.cell_neighbours, POINTS, LABELS, 2, 60, 2),
    "assign": partial(_kernels.assign, POINTS, POINTS[:2_000], 2),
    "dissolve_cells": partial(_kernels.dissolve_cells, POINTS / 10, LABELS, 2, 2),
    "balanced_cells": partial(
        _kernels.balanced_cells, RNG.normal(size=(2_000_000, 1)), RNG.integers(0, 9, 2_000_000), 4, 3
    ),
    "grow": partial(_kernels.Remaining(POINTS, 1).grow, 0, 50_000),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_signal_ends_a_kernel_that_reports_no_progress(name, alarm):
    def stop(*_):
        raise Stopped

    ended = []
    with pytest.raises(Stopped):
        # No bytecode runs in between, so the handler could not run between the end of the kernel and the note of it.
        list(map(operator.call, [partial(alarm, stop), SILENT[name], partial(ended.append, True)]))

    assert ended == []
