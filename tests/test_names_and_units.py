"""One name and one unit for each number: those of the attribute are those of the JSON, and shares are from 0 to 1."""

import json

import pyarrow as pa
import pytest

import shoal
from shoal.measures import loss, lower_bound

PEOPLE = pa.table(
    {
        "age": [20, 21, 40, 44, 60, 61, 62, 80],
        "income": [1.0, 2.0, 8.0, 9.0, 4.0, 5.0, 3.0, 7.0],
        "town": ["a", "b", "a", "b", "c", "c", "a", "b"],
        "illness": ["x", "y", "x", "y", "x", "y", "x", "y"],
    }
)
ROLES = {"quasi_identifiers": ["age", "income"], "confidential": ["illness"], "other": ["town"]}


@pytest.fixture(scope="module")
def release():
    return shoal.anonymize(PEOPLE, k=2, seed=1, models=shoal.LDiversity("illness", l=2), truthful=True, **ROLES)


def objects(release):
    comparison = shoal.compare(PEOPLE, k=[2, 3], methods=["mdav"], seed=1, **ROLES)
    inspection = shoal.inspect(PEOPLE)
    return {
        "verdict": release.verdict,
        "model": release.verdict.models[0],
        "loss": release.loss,
        "certainty": release.certainty,
        "risk": release.risk,
        "linkage": release.risk.linkage,
        "classes": release.risk.classes,
        "uniqueness": release.risk.uniqueness,
        "comparison": comparison,
        "inspection": inspection,
        "series": shoal.audit_series([PEOPLE, PEOPLE], key="age", quasi_identifiers=["town"], k=2),
    }


ADDED = {
    "model": {"column", "l", "kind", "c", "unit", "promise", "promised"},  # what the model is, beside the recount
    "comparison": {"risk"},  # what the risk is, in words
    "inspection": {"notes"},
}


def test_every_key_of_the_json_is_an_attribute(release):
    unknown = {
        name: {key for key in each.to_dict() if not hasattr(each, key)} - ADDED.get(name, set())
        for name, each in objects(release).items()
    }

    assert unknown == {name: set() for name in unknown}


def test_a_number_has_the_same_name_in_python_in_the_manifests_and_in_the_report(release, tmp_path):
    release.write(tmp_path / "r.csv", json=tmp_path / "r.json")
    public, internal, report = (
        json.loads((tmp_path / name).read_text()) for name in ("r.csv.public.json", "r.csv.internal.json", "r.json")
    )

    for found in (public, internal, report):
        assert found["verdict"]["smallest"] == release.verdict.smallest
        assert found["verdict"]["n_below"] == release.verdict.n_below == 0
    assert internal["loss"]["il"] == report["loss"]["il"] == release.loss.il


def test_shares_are_fractions_in_data_and_per_cent_in_text(release):
    X = [[1.0], [2.0], [8.0], [9.0]]
    found, bound = loss(X, [0, 0, 1, 1]), lower_bound(X, 2)
    comparison = shoal.compare(PEOPLE, k=2, methods=["mdav"], seed=1, **ROLES)

    assert found.il == found.sse / found.sst
    assert 0 <= bound.gap(found) <= 1
    assert release.loss.il == pytest.approx(release.loss.sse / release.loss.sst)
    assert 0 < release.certainty.ncp < 1
    assert 0 < comparison.choices[0].loss < 1
    assert f"{100 * comparison.choices[0].loss:.4f}" in str(comparison)
