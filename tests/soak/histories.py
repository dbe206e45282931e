"""Histories: an intruder who owns all releases of a series attacks it; `tests/series/generated.py` makes the series."""

from collections import Counter

from generated import attacked


def round_of(rng, folder):
    """Attack a series under either policy about those who leave; return how many research files and versions it has."""
    number, counts = int(rng.integers(2**31)), Counter()
    for leavers in ("withhold", "state"):
        found, n_research, n_versions = attacked(number, leavers)
        assert not found, (number, leavers, found[:3])
        counts += Counter({f"{leavers}: series of {n_research} with {n_versions} versions": 1})
    return counts
