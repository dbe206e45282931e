"""Calibration: real runs, the shape that the planner needs."""

import numpy as np
import pytest

from shoal import ParameterError
from shoal.incremental.calibrate import LATE_SHARES, calibrate
from shoal.plan import Arrivals, plan


def test_times_and_losses_of_growing_samples_are_measured():
    X = np.random.default_rng(0).normal(size=(800, 3))
    measured = calibrate(X, 5_000, 5, method="mdav", variant="split-end", seconds=5, seed=1)
    sizes = sorted({run.n_records for run in measured.runs})

    assert measured.variant == "split-end"
    assert sizes[-1] == 800
    assert {run.late_share for run in measured.runs} == {0.0, *LATE_SHARES}
    assert all(run.base_seconds > 0 for run in measured.runs)
    assert all(run.extra_loss > 0 for run in measured.runs if run.late_share)
    assert plan(measured, Arrivals.uniform(1.0)).finish > 0


def test_too_few_records_to_measure_on_are_refused():
    with pytest.raises(ParameterError, match="at least 40 records"):
        calibrate(np.zeros((39, 2)), 1_000, 5)
