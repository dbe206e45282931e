"""Calibration: real runs, the shape that the planner needs."""

import numpy as np
import pytest

from shoal import ParameterError
from shoal.incremental.calibrate import SHARES, Measurement, PartTimes, calibrate, measure
from shoal.incremental.planning import Arrivals, plan


def test_times_and_losses_are_measured_at_the_size_to_come():
    X = np.random.default_rng(0).normal(size=(800, 3))
    measured = calibrate(X, 5_000, 5, method="mdav", variant="split-end", seconds=5, seed=1)

    assert measured.variant == "split-end"
    assert {(run.n_records, run.late_share) for run in measured.runs} == {(5_000, share) for share in SHARES}
    assert all(run.base_seconds > 0 for run in measured.runs)
    assert all(run.extra_loss > 0 for run in measured.runs if run.late_share)
    assert measured.margin[0] <= 1 <= measured.margin[1]
    assert plan(measured, Arrivals.uniform(1.0)).finish > 0


def machine(load=1.0, noise=()):
    """Return something to rehearse that takes 1 s for 100,000 records by the processors, and what was asked of it."""
    asked, noisy = [], iter(noise)

    def rehearse(n, share):
        asked.append((n, share))
        cpu = n / 100_000 * next(noisy, 1.0)
        return Measurement(PartTimes(cpu, load * cpu), PartTimes(cpu * share, load * cpu * share), 1.0 + share)

    return rehearse, asked


def test_a_busy_machine_lengthens_all_times_alike():
    measured = measure(machine(load=3.0)[0], 100_000, 10, "reopen", seconds=60)

    assert measured.base(0.0) == pytest.approx(3.0)
    assert measured.late(0.5) == pytest.approx(1.5)
    assert measured.loss(0.5) == pytest.approx(0.5)


def test_a_single_slow_turn_does_not_count_but_is_told_of():
    measured = measure(machine(noise=[1, 1, 1, 1, 1, 1, 1, 5])[0], 100_000, 10, "reopen", seconds=60)

    assert measured.base(0.0) == pytest.approx(1.0)
    assert measured.margin[1] >= 4


def test_what_there_is_no_time_for_is_left_out():
    slow, asked = machine(load=1000.0)
    measure(slow, 100_000, 10, "reopen", seconds=0.0)

    assert asked == [(300, 0.0), (300, 0.1), *((6_250, share) for share in SHARES)]


def test_work_that_does_not_depend_on_the_size_is_not_multiplied():
    quick, _ = machine()

    def with_start(n, share):
        base, late, lost = quick(n, share)
        return Measurement(PartTimes(base.cpu + 50, base.wall + 50), late, lost)

    measured = measure(with_start, 1_000_000, 10, "reopen", 0.0)

    assert measured.base(0.1) == pytest.approx(60, rel=0.2)


def test_too_few_records_to_measure_on_are_refused():
    with pytest.raises(ParameterError, match="at least 40 records"):
        calibrate(np.zeros((39, 2)), 1_000, 5)
