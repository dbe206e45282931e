"""The planner: the thesis's numbers, any arrival curve, and no promise that cannot be kept."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.incremental.formulas import (
    CRITICAL_HEAD_START,
    critical_share,
    deadline_share,
    earliest,
    optimal_share,
)
from shoal import ParameterError
from shoal.incremental.planning import (
    ALPHA,
    Arrivals,
    Measured,
    NearestNeighbours,
    Quadratic,
    Run,
    as_seconds,
    plan,
    spoken,
)
from shoal.incremental.planning.timeline_svg import timeline

TWO_HOURS = Quadratic(7_200)
TEN_HOURS = Arrivals.uniform(36_000)
head_starts = st.floats(0, 100)


def relative_finish(nu, s):
    """Return when two steps of MDAV are ready, as section 3.2 of the thesis defines it."""
    return max((1 - nu) ** 2 - s * nu, 0.0) + nu**2


def test_the_thesis_vectors_come_out():
    assert round(CRITICAL_HEAD_START, 3) == 0.309
    assert optimal_share(5) == pytest.approx(0.146, abs=5e-4)
    assert deadline_share(5, 0.5) == pytest.approx(0.073, abs=5e-4)
    assert 7_200 * earliest(5) == pytest.approx(153, abs=0.5)


@pytest.mark.parametrize(
    ("nu", "base", "late", "finish"), [(0.1, 97.2 * 60, 72, 38.4 * 60), (0.07295, 103.1 * 60, 38, 3_600)]
)
def test_the_examples_of_the_figures_come_out(nu, base, late, finish):
    head_start = TEN_HOURS.head_start(nu)

    assert TWO_HOURS.base(nu) == pytest.approx(base, rel=1e-3)
    assert TWO_HOURS.late(nu) == pytest.approx(late, abs=0.5)
    assert TWO_HOURS.base(nu) - head_start + TWO_HOURS.late(nu) == pytest.approx(finish, rel=1e-3)


def test_nearest_neighbours_take_what_the_thesis_says_of_them():
    nearest = NearestNeighbours(7_200)
    shares = np.linspace(0, 1, 101)
    late = np.array([nearest.late(nu) / 7_200 for nu in shares])

    assert late.max() == pytest.approx(0.1)  # "does not surpass the 10 %"
    quicker = shares[1:][late[1:] < shares[1:] ** 2]
    assert quicker[0] == pytest.approx(0.3, abs=0.02)  # "from approximately 30 %"
    assert nearest.loss(0.1) == pytest.approx(0.02, abs=0.005)  # "delta about 2 %"
    assert pytest.approx(0.286, abs=1e-3) == ALPHA / (1 + ALPHA)


def test_a_plan_by_nearest_neighbours_is_ready_when_they_are():
    found = plan(NearestNeighbours(7_200, "split-end"), TEN_HOURS, deadline=3_600)

    assert found.variant == "split-end"
    assert found.finish == pytest.approx(3_600)
    assert found.finish == pytest.approx(found.base_seconds + found.start + found.late_seconds)
    assert found.extra_loss < plan(TWO_HOURS, TEN_HOURS, deadline=3_600).extra_loss


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"variant": "reopen"}, "Unknown variant"), ({"alpha": 0.0}, "alpha"), ({"everything": 0.0}, "above 0")],
)
def test_rules_that_cannot_be_are_refused(settings, said):
    with pytest.raises(ParameterError, match=said):
        NearestNeighbours(**{"everything": 60.0, **settings})


@given(s=head_starts)
def test_no_share_is_ready_before_the_optimal_one(s):
    best = relative_finish(optimal_share(s), s)

    assert best == pytest.approx(earliest(s), abs=1e-9)
    assert all(relative_finish(nu, s) >= best - 1e-9 for nu in np.linspace(0, 1, 501))


@given(s=head_starts)
def test_at_the_critical_share_the_base_is_done_when_the_collection_ends(s):
    nu = critical_share(s)

    assert (1 - nu) ** 2 == pytest.approx(s * nu, abs=1e-9)


@given(s=head_starts, part=st.floats(0, 1))
def test_the_deadline_share_is_the_smallest_that_is_in_time(s, part):
    deadline = earliest(s) + part * (1 - earliest(s))
    nu = deadline_share(s, deadline)

    assert relative_finish(nu, s) == pytest.approx(deadline, abs=1e-6)
    assert all(relative_finish(lower, s) >= deadline - 1e-6 for lower in np.linspace(0, nu, 50))


def test_a_deadline_that_no_share_meets_is_refused_with_the_earliest():
    with pytest.raises(ParameterError, match=r"not reachable .* the earliest is 0\.02129"):
        deadline_share(5, 0.02)
    with pytest.raises(ParameterError, match=r"cannot be ready 2 min .* the earliest is 2 min 33 s, with 14\.6%"):
        plan(TWO_HOURS, TEN_HOURS, deadline=120)


@pytest.mark.parametrize("deadline", [0.0, -60.0])
def test_a_deadline_before_the_end_of_the_collection_is_refused_with_the_earliest(deadline):
    with pytest.raises(ParameterError, match=r"still arriving\. The earliest release is 2 min 33 s after"):
        plan(TWO_HOURS, TEN_HOURS, deadline=deadline)


def test_with_time_for_the_ordinary_job_nothing_comes_late():
    relaxed = plan(TWO_HOURS, TEN_HOURS, deadline=7_200)

    assert relaxed.late_share == 0 == deadline_share(5, 1.0)
    assert relaxed.extra_loss == 0
    assert relaxed.finish == 7_200
    assert "ordinary job" in relaxed.text()


@settings(max_examples=25)
@given(s=st.floats(0, 20), part=st.floats(0.01, 0.99))
def test_the_search_finds_what_the_formulas_say(s, part):
    arrivals = Arrivals.uniform(7_200 * s)
    deadline = earliest(s) + part * (1 - earliest(s))

    assert plan(TWO_HOURS, arrivals).finish == pytest.approx(7_200 * earliest(s), abs=0.01)
    found = plan(TWO_HOURS, arrivals, deadline=7_200 * deadline)
    assert found.late_share == pytest.approx(deadline_share(s, deadline), abs=1e-6)


def test_a_curve_of_arrivals_changes_the_plan():
    rush = Arrivals.of([(0, 0), (34_000, 0.3), (36_000, 1)])
    even, late = plan(TWO_HOURS, TEN_HOURS), plan(TWO_HOURS, rush)

    assert late.late_share > even.late_share
    assert late.finish > even.finish


@given(points=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=0, max_size=6), late=st.floats(0, 1))
def test_the_head_start_is_the_first_moment_at_which_the_rest_has_arrived(points, late):
    seconds = [0, *sorted(second for second, _ in points), 20]
    shares = [0, *sorted(share / 20 for _, share in points), 1]
    curve = Arrivals(tuple(seconds), tuple(shares))
    moment = curve.duration - curve.head_start(late)
    before = np.linspace(0, moment, 200, endpoint=False)

    assert np.interp(moment + 1e-9, seconds, shares) >= 1 - late - 1e-6
    assert all(np.interp(second, seconds, shares) <= 1 - late + 1e-6 for second in before)


@pytest.mark.parametrize(
    ("seconds", "shares"),
    [((0,), (1,)), ((0, 5), (0, 0.9)), ((0, 5), (0.5, 0.2)), ((5, 0), (0, 1)), ((1, 5), (0, 1)), ((0, 5, 6), (0, 1))],
)
def test_what_is_no_arrival_curve_is_refused(seconds, shares):
    with pytest.raises(ParameterError):
        Arrivals(seconds, shares)


def test_a_base_that_should_have_started_by_now_starts_now():
    now = plan(TWO_HOURS, TEN_HOURS, latest_start=1_800)

    assert now.late_share <= 0.05 + 1e-9
    assert -now.start <= 1_800 + 1e-6
    with pytest.raises(ParameterError, match="the earliest is"):
        plan(TWO_HOURS, TEN_HOURS, deadline=600, latest_start=1_800)


def runs(exponent=1.2, sizes=(10_000, 20_000, 40_000)):
    """Return a calibration of a method whose time grows with this power."""
    return tuple(
        Run(n, share, 1e-6 * (n * (1 - share)) ** exponent, 2e-7 * n**exponent * share, share / 20)
        for n in sizes
        for share in (0.0, 0.1, 0.5)
    )


@pytest.mark.parametrize("exponent", [1.2, 1.5, 2.0])
def test_measured_times_are_extended_by_their_own_power_law(exponent):
    measured = Measured(1_000_000, runs(exponent))

    assert measured.base(0.0) == pytest.approx(1e-6 * 1e6**exponent)
    assert measured.base(0.1) == pytest.approx(1e-6 * 9e5**exponent)
    assert measured.late(0.1) == pytest.approx(0.02e-6 * 1e6**exponent)
    assert measured.loss(0.05) == pytest.approx(0.0025)
    assert measured.loss(0.8) is None


def test_work_that_does_not_depend_on_the_size_does_not_grow():
    small, large = runs(1.2, sizes=(10_000,)), runs(1.2, sizes=(1_000_000,))
    with_start = tuple(
        replace(run, base_seconds=run.base_seconds + 0.2, late_seconds=run.late_seconds and run.late_seconds + 0.01)
        for run in (*small, *(run for run in large if run.late_share == 0.1))
    )
    measured = Measured(1_000_000, with_start, fixed=(0.2, 0.01, 0.2))

    assert measured.late(0.5) == pytest.approx(0.01 + 0.1e-6 * 1e6**1.2)
    assert measured.base(0.5) == pytest.approx(0.2 + 1e-6 * 5e5**1.2)
    assert measured.base(0.0) == pytest.approx(0.2 + 1e-6 * 1e6**1.2)


def test_shares_that_were_run_at_a_smaller_size_grow_as_the_reference_does():
    small = runs(sizes=(10_000,))
    large = tuple(run for run in runs(sizes=(1_000_000,)) if run.late_share == 0.1)
    measured = Measured(1_000_000, small + large)

    assert measured.late(0.5) == pytest.approx(5 * measured.late(0.1))
    assert measured.base(0.5) == pytest.approx(1e-6 * 5e5**1.2)
    assert measured.margin == (1.0, 1.0)


def test_more_late_records_never_take_less_time():
    noisy = tuple(replace(run, late_seconds=2.0 - run.late_share) for run in runs())
    measured = Measured(40_000, noisy)

    assert measured.late(0.1) == measured.late(0.5) == pytest.approx(1.7)


def test_a_forecast_says_how_far_off_it_may_be():
    near, far = (Measured(n, runs(), spread=(0.9, 1.2)) for n in (40_000, 400_000))
    found = plan(near, Arrivals.uniform(100), deadline=near.late(0.1) * 1.1)

    assert near.margin == (0.9, 1.2)
    assert far.margin[0] < 0.9
    assert far.margin[1] > 1.2
    assert found.finish_between[0] < found.finish < found.finish_between[1]
    assert "between" in found.text()
    assert "doubt" in found.text()
    assert "doubt" not in plan(TWO_HOURS, TEN_HOURS, deadline=3_600).text()


def test_a_measured_plan_meets_its_deadline_with_the_smallest_share():
    measured = Measured(1_000_000, runs())
    arrivals = Arrivals.uniform(100)
    found = plan(measured, arrivals, deadline=8.0)

    assert found.finish <= 8.0
    assert found.variant == "reopen"
    assert 0 < found.late_share < plan(measured, arrivals).late_share


@pytest.mark.parametrize("left_out", [0.0, 0.1])
def test_a_calibration_without_the_ordinary_job_or_the_reference_is_refused(left_out):
    with pytest.raises(ParameterError, match="10% late records at every size"):
        Measured(1_000, tuple(run for run in runs() if run.late_share != left_out))


def test_a_plan_can_be_read_and_stored():
    found = plan(TWO_HOURS, TEN_HOURS, deadline=3_600)

    assert json.loads(json.dumps(found.json()))["late_share"] == found.late_share
    for part in ("92.7% arrived", "1 h 43 min", "38 s", "1 h after the collection", "about 3."):
        assert part in found.text()


@pytest.mark.parametrize("deadline", [None, 3_600, 100_000])
def test_the_time_line_is_one_picture_that_needs_nothing_else(deadline):
    found = plan(TWO_HOURS, TEN_HOURS, deadline=deadline)
    picture = timeline(found)
    root = ET.fromstring(picture)

    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "href" not in picture
    assert spoken(found.finish) in picture
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert float(rect.get("x", 0)) >= 0
        assert float(rect.get("x", 0)) + float(rect.get("width")) <= 861


@pytest.mark.parametrize(("text", "seconds"), [("2h", 7_200), ("1h30min", 5_400), ("1.5 h", 5_400), ("250ms", 0.25)])
def test_durations_are_read(text, seconds):
    assert as_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "1x", "1h30", "-5min", "nan"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ParameterError, match="not a duration"):
        as_seconds(text)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_an_ordinary_job_takes_some_time(seconds):
    with pytest.raises(ParameterError):
        Quadratic(seconds)
