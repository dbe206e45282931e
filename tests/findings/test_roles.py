"""Columns that are published unchanged: identifiers are asked about, and the verdict names what nearly identifies."""

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.columns.sharing import Sharing
from shoal.findings import QuestionError
from shoal.findings.roles import PUBLISHED
from shoal.output.report.sentences import explanation, headline

pytestmark = pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")

N = 300
ENGINES = ["memory", "disk"]


def patients():
    """Return records of patients: every name, number and household is shared by two or three of them."""
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "age": rng.integers(20, 80, N),
            "pay": rng.integers(1000, 9000, N),
            "patient_id": np.arange(N) // 3 + 5000,
            "name": [f"Zyxwv {i // 2}" for i in range(N)],
            "ssn": [f"{i // 3:09d}" for i in range(N)],
            "household_id": np.arange(N) // 4 * 7,
            "remark": [f"seen on day {i} by a colleague" for i in range(N)],
            "row": np.arange(N),
            "has_email": rng.choice(["yes", "no"], N),
            "email": rng.choice(["yes", "no"], N),
            "wave": rng.integers(1, 4, N),
            "town": rng.choice(["Reus", "Valls", "Flix"], N),
            "income": rng.integers(1000, 90_000, N),
        }
    )


TELLING = ["patient_id", "name", "ssn", "household_id", "remark", "row"]
HARMLESS = ["has_email", "email", "wave", "town"]


def asked(table=None, **settings):
    table = patients() if table is None else table
    given = {*settings.get("other", ()), *settings.get("confidential", ()), "age", "pay"}
    rest = [name for name in table.column_names if name not in given]
    settings = {
        "k": 5,
        "seed": 1,
        "quasi_identifiers": ["age", "pay"],
        "identifiers": rest,
        "missing": "own-value",
    } | settings
    with shoal.anonymize(table, **settings) as release:
        return release.verdict


@pytest.mark.parametrize("engine", ENGINES)
def test_named_identifiers_are_not_published_in_silence(engine):
    with pytest.raises(QuestionError) as caught:
        asked(other=["patient_id", "name", "ssn"], engine=engine)

    assert [(found.name, found.column) for found in caught.value.findings] == [
        (PUBLISHED, "patient_id"),
        (PUBLISHED, "name"),
        (PUBLISHED, "ssn"),
    ]
    assert "Zyxwv" not in str(caught.value)


@pytest.mark.parametrize("role", ["other", "confidential"])
@pytest.mark.parametrize("column", TELLING)
def test_whatever_identifies_is_asked_about_in_every_role_that_publishes_it(column, role):
    with pytest.raises(QuestionError, match=f"'{column}'"):
        asked(**{role: [column]})
    assert asked(**{role: [column]}, accept=f"{column}={PUBLISHED}").holds


@pytest.mark.parametrize("engine", ENGINES)
def test_what_many_share_is_not_asked_about(engine):
    assert asked(other=HARMLESS, confidential=["income"], engine=engine).holds


def test_a_person_number_can_be_the_subject_or_dropped():
    with pytest.raises(QuestionError) as caught:
        asked(other=["patient_id"])
    (found,) = caught.value.findings

    assert [remedy.settings for remedy in found.remedies] == [
        {"subject": "patient_id"},
        {"identifiers": ["patient_id"]},
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_verdict_and_its_sentence_name_what_nearly_identifies(engine):
    verdict = asked(other=["household_id"], accept=PUBLISHED, confidential=["income", "town"], engine=engine)

    assert [found.column for found in verdict.unchanged] == ["household_id", "income"]
    assert all(found.share > 0.9 for found in verdict.unchanged)
    assert headline(verdict).endswith("but the unchanged columns household_id and income nearly identify")
    assert "Who knows such a value finds the record" in explanation(verdict)
    assert [found["column"] for found in verdict.to_dict()["unchanged"]] == ["household_id", "income"]


def test_few_records_are_not_judged_by_their_counts():
    table = pa.table({"age": [30, 30, 40, 40], "code": ["a", "b", "c", "d"]})

    assert asked(table, k=2, quasi_identifiers=["age"], other=["code"], identifiers=[]).holds


@pytest.mark.parametrize("most", [3, 50, 10_000])
def test_sharing_is_the_same_in_parts_in_any_order(most, monkeypatch):
    monkeypatch.setattr("shoal.columns.sharing.MOST", most)
    rng = np.random.default_rng(2)
    values = pa.array([None if i % 50 == 0 else f"v{value}" for i, value in enumerate(rng.integers(0, 200, 2000))])
    parts = [values.slice(start, 300) for start in range(0, 2000, 300)]
    whole = Sharing.of(pa.chunked_array([values]))
    counted = [Sharing.of(pa.chunked_array([part])) for part in parts]

    for order in (counted, counted[::-1], [counted[3], Sharing.merged(counted[:3]), *counted[4:]]):
        merged = Sharing.merged(order)
        assert merged.hashes.tolist() == whole.hashes.tolist()
        assert merged.counts.tolist() == whole.counts.tolist()
        assert merged.facts("x", values.type) == whole.facts("x", values.type)


def test_sharing_estimates_what_it_cannot_hold(monkeypatch):
    rng = np.random.default_rng(3)
    values = pa.chunked_array([rng.integers(0, 3000, 20_000)])
    exact = Sharing.of(values)
    monkeypatch.setattr("shoal.columns.sharing.MOST", 500)
    sampled = Sharing.of(values)

    assert len(sampled.hashes) == 500
    assert sampled.below(7) == pytest.approx(exact.below(7), abs=0.1)
    assert sampled.facts("x", values.type).distinct == pytest.approx(exact.facts("x", values.type).distinct, rel=0.1)
