"""What a newcomer meets first: names that complete, help that lists the verbs, and objects that print in a line."""

import pyarrow as pa
import pytest

import shoal
from shoal import datasets
from shoal.progress import OneTotal

CENSUS = {"table": datasets.path("census"), "quasi_identifiers": datasets.census().columns, "seed": 1}


def test_the_verbs_are_offered_and_explained():
    assert set(shoal.__all__) <= set(dir(shoal))
    for verb in ("inspect", "anonymize", "compare", "audit", "run", "partition"):
        assert f"\n{verb}\n" in shoal.__doc__


def test_a_release_prints_in_a_line():
    told = repr(shoal.anonymize(k=5, **CENSUS))

    assert len(told) < 160
    assert told.startswith("Release(k=5, holds: 1,080 records x 13 columns in ")


def test_progress_has_one_total_grows_and_begins_before_the_work(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "shoal.release.prepared", lambda *given, make=shoal.release.prepared: _first(calls, make, given)
    )
    shoal.anonymize(k=5, progress=lambda done, total: calls.append((done, total)), **CENSUS)

    assert {total for _, total in calls} == {1080}
    assert calls[0] == (0, 1080)
    assert calls[-1] == (1080, 1080)
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})
    assert len(calls) > 3


def _first(calls, make, given):
    assert calls == [(0, 1080)]
    return make(*given)


def test_parts_that_count_in_their_own_units_make_one_total():
    calls = []
    whole = OneTotal(lambda *call: calls.append(call), 10)
    for begin in (0.0, 0.5):
        part = whole.part(begin, begin + 0.5)
        part(1, 2)
        part(700, 700)
    whole.finish()

    assert calls == [(0, 10), (2, 10), (5, 10), (7, 10), (10, 10)]


@pytest.mark.parametrize(
    ("given", "meant"), [("confidental", "confidential"), ("quasi_identifier", "quasi_identifiers")]
)
def test_a_mistyped_role_is_refused_as_such(given, meant):
    with pytest.raises(shoal.ParameterError, match=f"Unknown argument '{given}'. Did you mean '{meant}'"):
        shoal.anonymize(pa.table({"age": [1, 2]}), k=2, **{given: ["age"]})


def test_an_option_of_a_method_is_not_taken_for_a_role():
    with pytest.raises(shoal.ParameterError, match="has no option 'efort'"):
        shoal.anonymize(pa.table({"age": [1, 2]}), k=2, quasi_identifiers="age", efort="best")
