"""How many threads a round has: from its work and from what rounds took, on simulated machines."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from shoal import _kernels

MICROSECOND = 1_000.0
MILLISECOND = 1_000_000.0


def after(pace, seconds, machine, *, n_items=1_000, most=16):
    """Run rounds for some simulated time; return the mean number of threads in the later half of them.

    Cores that are lost are left alone for a while, as in a pool.
    """
    cores, left = _kernels.LostCores(), most
    passed, used = 0.0, []
    while passed < seconds * 1e9:
        threads = pace.threads(n_items, left if cores.are_lost(passed) else most)
        if threads == most:
            cores.use(passed)
        time = machine(threads, passed)
        passed += time
        used.append(threads)
        # The calling thread keeps its core.
        if pace.note(n_items, threads, threads, time, n_items // threads, min(time, idle(threads, passed))):
            left = cores.left_of(left if cores.lose(passed) else most)
    return np.mean(used[len(used) // 2 :])


def idle(threads, passed):
    return 200 * MICROSECOND / threads + MICROSECOND


@pytest.mark.parametrize(
    ("work", "threads"), [(1, 1), (15 * MICROSECOND, 1), (17 * MICROSECOND, 2), (100 * MICROSECOND, 12), (1e9, 16)]
)
def test_threads_come_from_the_work(work, threads):
    assert _kernels.Pace(work / 1_000).threads(1_000, 16) == threads


def test_what_the_caller_took_for_its_items_counts_from_then_on():
    pace = _kernels.Pace(15.0)
    assert pace.threads(1_000, 16) == 1
    pace.note(1_000, 1, 1, 80 * MICROSECOND, 1_000, 80 * MICROSECOND)

    assert pace.threads(1_000, 16) == 10


def test_the_number_of_threads_stays_while_the_work_changes_little():
    # With another number, each thread gets another part of the data.
    pace = _kernels.Pace(100.0)
    times = np.random.default_rng(0).uniform(94, 114, 300) * MICROSECOND
    used = []
    for time in times:
        threads = pace.threads(1_000, 16)
        pace.note(1_000, threads, threads, time / threads, 1_000 // threads, time * (1_000 // threads) / 1_000)
        used.append(threads)

    assert len(set(used[:64])) == 1
    assert pace.threads(2_000, 16) == 16
    assert pace.threads(500, 16) < used[0]


def test_on_an_idle_machine_nearly_all_rounds_have_all_threads():
    assert after(_kernels.Pace(200.0), 1.0, idle) > 15


@pytest.mark.parametrize(("most", "n_between", "left"), [(16, 100, 14), (16, 3_000, 16), (2, 100, 2)])
def test_a_time_slice_lost_is_reported_and_lost_again_soon_gives_threads_back(most, n_between, left):
    # Of two threads, one is left anyway while the core that was lost is left alone.
    def is_lost_in_round_of(time):
        threads = pace.threads(1_000, most)
        return pace.note(1_000, threads, threads, time, 1_000 // threads, 200 * MICROSECOND / threads)

    pace = _kernels.Pace(200.0)
    for n_rounds in (1, n_between):
        assert not any(is_lost_in_round_of(100 * MICROSECOND) for _ in range(n_rounds))
        assert pace.threads(1_000, most) == most
        assert is_lost_in_round_of(4 * MILLISECOND)

    assert pace.threads(1_000, most) == left


def test_threads_that_often_do_not_come_are_given_back():
    pace = _kernels.Pace(200.0)
    lost = [pace.threads(1_000, 4) == 4 and pace.note(1_000, 4, 4 - 3 * (i % 2), 75e3, 250, 50e3) for i in range(32)]

    assert lost == 2 * ([False] * 15 + [True])
    assert pace.threads(1_000, 4) == 3


def test_threads_without_which_short_rounds_would_be_faster_are_given_back():
    pace = _kernels.Pace(200.0)
    for _ in range(16):
        assert pace.threads(150, 2) == 2
        # Other kinds of rounds need not share this.
        assert not pace.note(150, 2, 2, 60e3, 75, 15e3)

    assert pace.threads(150, 2) == 1


@pytest.mark.parametrize(("every", "n_items"), [(8, 1_000), (2, 250)])
def test_threads_that_seldom_miss_a_round_or_only_short_ones_stay(every, n_items):
    pace = _kernels.Pace(200.0)
    for i in range(100):
        assert pace.threads(n_items, 2) == 2
        present = 1 if i % every == 0 else 2
        assert not pace.note(n_items, 2, present, 100.0 * n_items, n_items // 2, 100.0 * n_items)


def test_where_another_program_holds_one_of_two_cores_one_thread_is_left_nearly_always():
    def busy(threads, passed):
        return 200 * MICROSECOND if threads == 1 else 4 * MILLISECOND

    assert after(_kernels.Pace(200.0), 1.0, busy, most=2) < 1.01


def test_where_others_hold_half_of_the_cores_about_half_of_the_threads_are_left():
    def busy(threads, passed):
        return idle(threads, passed) if threads <= 8 else 4 * MILLISECOND

    assert 7 < after(_kernels.Pace(200.0), 1.0, busy) < 8.1


def test_threads_that_make_rounds_slower_are_given_back():
    def slower_from_eight_on(threads, passed):
        return 200 * MICROSECOND / threads + 5 * MICROSECOND * max(threads - 6, 0)

    assert 4 <= after(_kernels.Pace(200.0), 2.0, slower_from_eight_on) <= 9


def test_threads_come_back_when_the_machine_is_idle_again():
    def busy_at_first(threads, passed):
        return 4 * MILLISECOND if passed < 0.2e9 and threads > 1 else idle(threads, passed)

    assert after(_kernels.Pace(200.0), 20.0, busy_at_first, most=2) > 1.9


def rounds_within(seconds, machine):
    """Return the number of rounds of two threads in some simulated time."""
    pace, passed, n_rounds = _kernels.Pace(4_000.0), 0.0, 0
    while passed < seconds * 1e9:
        threads = pace.threads(1_000, 2)
        time = machine(threads, n_rounds)
        pace.note(1_000, threads, threads, time, 1_000 // threads, min(time, 4 * MILLISECOND / threads))
        passed += time
        n_rounds += 1
    return n_rounds


def test_long_rounds_are_seldom_tried_with_fewer_threads():
    ideal = 5 / 0.002

    assert rounds_within(5.0, lambda threads, number: 4 * MILLISECOND / threads) > 0.95 * ideal


def test_threads_come_back_soon_where_rounds_are_long():
    ideal = 5 / 0.002

    def late_every_second(threads, number):
        return (12 if threads > 1 and number % 500 == 499 else 4 / threads) * MILLISECOND

    assert rounds_within(5.0, late_every_second) > 0.9 * ideal


def test_a_level_outlasts_a_time_with_fewer_threads():
    pace = _kernels.Pace(200.0)
    after(pace, 0.1, idle)
    assert pace.threads(1_000, 2) == 2
    pace.note(1_000, 2, 2, idle(2, 0), 500, idle(2, 0))

    assert pace.threads(1_000, 16) == 16


def losses(attempts_fail):
    """Return when a core is lost in 10 simulated seconds, in milliseconds, if it is used whenever it is not lost."""
    cores, times = _kernels.LostCores(), []
    for now in np.arange(0, 10_000, 4.0):
        if cores.are_lost(now * MILLISECOND):
            continue
        cores.use(now * MILLISECOND)
        if attempts_fail(now):
            cores.lose(now * MILLISECOND)
            times.append(now)
    return times


def test_a_core_that_is_lost_whenever_it_is_used_is_tried_less_and_less_often():
    gaps = np.diff(losses(lambda now: True))

    assert gaps[0] >= 50
    assert (gaps[1:4] > 1.9 * gaps[:3]).all()
    assert gaps.max() <= 1_010


def test_time_in_which_nobody_uses_a_core_says_nothing_about_it():
    # Short calls far apart, each of which would lose the core after some milliseconds.
    cores, n_lost = _kernels.LostCores(), 0
    for start in np.arange(0, 10_000, 120.0):
        if not cores.are_lost(start * MILLISECOND):
            cores.use(start * MILLISECOND)
            cores.lose((start + 4) * MILLISECOND)
            n_lost += 1

    assert n_lost <= 15


def test_a_core_is_used_again_soon_where_it_is_lost_now_and_then():
    gaps = np.diff(losses(lambda now: now % 400 == 0))

    assert (gaps == 400).all()


def test_cores_lost_at_the_same_time_are_told_from_single_ones():
    cores = _kernels.LostCores()

    assert [cores.lose(now * MILLISECOND) for now in (0, 4, 8, 45, 2_000)] == [False, True, True, False, False]


@pytest.mark.parametrize(("threads", "left"), [(1, 1), (2, 1), (8, 7), (16, 14)])
def test_a_lost_core_takes_one_thread_in_eight(threads, left):
    assert _kernels.LostCores.left_of(threads) == left


NO_THREADS = """
import resource
import numpy as np
from shoal import partition
X = np.random.default_rng(0).normal(size=(20_000, 10))
alone = partition(X, 50, "mdav", threads=1)
resource.setrlimit(resource.RLIMIT_AS, (2**35, resource.RLIM_INFINITY))
assert (partition(X, 50, "mdav", threads=4) == alone).all()
assert (partition(X, 50, "blocks", threads=4, size=5_000) == partition(X, 50, "blocks", threads=1, size=5_000)).all()
try:
    __import__("threading").Thread(target=print).start()
except RuntimeError:
    print("no thread can be started here")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space count only on Linux")
def test_where_no_thread_can_be_started_one_does_the_work():
    # A stack of 64 GB for each thread, in an address space of 32.
    def large_stacks():
        resource.setrlimit(resource.RLIMIT_STACK, (2**36, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    program = subprocess.run(
        [sys.executable, "-c", NO_THREADS],
        env={"OPENBLAS_NUM_THREADS": "1", "PATH": ""},
        preexec_fn=large_stacks,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (program.returncode, program.stdout, program.stderr) == (0, "no thread can be started here\n", "")
