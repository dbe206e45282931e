import json
import warnings

import numpy as np
import pyarrow as pa
import pytest

from shoal import FileError, ParameterError, SchemaError, ShoalWarning, anonymize
from shoal.auditing.attacks import attack
from shoal.output.report import render

ROLES = {"quasi_identifiers": ["age", "pay"], "confidential": ["disease"]}


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    return pa.table(
        {"age": rng.integers(18, 90, 200), "pay": rng.lognormal(8, 1, 200), "disease": rng.choice(["a", "b", "c"], 200)}
    )


def written(people, path, order="shuffle", **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = anonymize(people, **{"k": 5, "seed": 3, **ROLES, **settings})
    release.write(path, order=order)
    return release


def by_name(found):
    return {(one.name, one.column): one for one in found}


@pytest.mark.parametrize("order", ["shuffle", "keep"])
def test_linkage_is_that_of_the_release_itself_whatever_the_order(people, tmp_path, order):
    release = written(people, tmp_path / "r.csv", order)
    found = by_name(attack(tmp_path / "r.csv", people, **ROLES))

    assert found["nearest", None].after == pytest.approx(release.risk.linkage.linked)
    assert found["nearest", None].before == 1.0
    assert found["matching", None].after <= 0.3
    assert found["k - 1 known", None].after == 1.0


def test_random_aggregation_is_not_safe_from_somebody_who_knows_all_but_one(people, tmp_path):
    written(people, tmp_path / "r.csv", rho=1)
    found = by_name(attack(tmp_path / "r.csv", people, **ROLES, seed=1))

    assert 0 < found["k - 1 known", None].after < 1


def test_k_anonymity_does_not_stop_homogeneity(people, tmp_path):
    same = people.set_column(2, "disease", pa.array(["a"] * 200))
    written(same, tmp_path / "r.csv")
    found = by_name(attack(tmp_path / "r.csv", same, **ROLES))

    assert found["homogeneity", "disease"].after == 1.0
    assert found["skewness", "disease"].after == 1.0


def test_two_releases_tell_more_than_one(people, tmp_path):
    unique = people.set_column(2, "disease", pa.array([f"d{i}" for i in range(200)]))
    accepted = {"accept": ["published-identifier"]}
    written(unique, tmp_path / "one.csv", k=4, **accepted)
    written(unique, tmp_path / "two.csv", k=7, method="mdav", **accepted)
    found = by_name(attack(tmp_path / "one.csv", unique, **ROLES, second=tmp_path / "two.csv"))

    assert found["intersection", "disease"].before == 0.0
    assert found["intersection", "disease"].after > 0.02


def test_without_the_manifest_only_what_needs_no_rows_is_tried(people, tmp_path):
    written(people, tmp_path / "r.csv")
    (tmp_path / "r.csv.internal.json").unlink()
    found = by_name(attack(tmp_path / "r.csv", people, **ROLES))

    assert found["nearest", None].after is None
    assert "internal manifest" in found["nearest", None].meaning
    assert found["homogeneity", "disease"].after is not None


def test_the_same_order_can_be_said(people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = anonymize(people, k=5, seed=3, **ROLES)
    found = by_name(attack(release.table, people, **ROLES, same_order=True))

    assert found["nearest", None].after == pytest.approx(release.risk.linkage.linked)


def test_what_does_not_fit_is_refused(people, tmp_path):
    written(people, tmp_path / "r.csv")
    with pytest.raises(SchemaError, match="'zip' is not in the original"):
        attack(tmp_path / "r.csv", people, quasi_identifiers="zip")
    with pytest.raises(SchemaError, match="the intruder knows nothing"):
        attack(tmp_path / "r.csv", people, quasi_identifiers=())
    with pytest.raises(ParameterError, match="same people"):
        attack(tmp_path / "r.csv", people.slice(1), **ROLES)
    with pytest.raises(FileError, match="cannot be read"):
        attack(tmp_path / "r.csv", people, **ROLES, manifest=tmp_path / "none.json")
    with pytest.raises(ParameterError, match="not the internal manifest"):
        attack(tmp_path / "r.csv", people, **ROLES, manifest=tmp_path / "r.csv.public.json")


def test_a_manifest_of_other_records_is_refused(people, tmp_path):
    written(people, tmp_path / "r.csv")
    written(people.slice(50), tmp_path / "s.csv")
    with pytest.raises(ParameterError, match="150 records"):
        attack(tmp_path / "r.csv", people, **ROLES, manifest=tmp_path / "s.csv.internal.json")


def test_the_internal_manifest_says_in_which_order_records_were_written(people, tmp_path):
    written(people, tmp_path / "r.csv", "keep")

    assert json.loads((tmp_path / "r.csv.internal.json").read_text())["order"] == "keep"
    assert "order" not in json.loads((tmp_path / "r.csv.public.json").read_text())


def test_the_internal_report_shows_attacks_and_the_public_one_does_not(people, tmp_path):
    release = written(people, tmp_path / "r.csv")
    internal, public = (render(release, "html", form) for form in ("internal", "public"))

    assert "k - 1 known" in internal
    assert "Homogeneity: <bdi>disease</bdi>" in internal
    assert "omogeneity" not in public
    assert "attacks" not in json.loads((tmp_path / "r.csv.public.json").read_text())


def test_what_the_report_shows_is_what_the_attack_finds(people, tmp_path):
    release = written(people, tmp_path / "r.csv")
    found = by_name(attack(tmp_path / "r.csv", people, **ROLES))

    for one in release.attacks:
        assert one.before == pytest.approx(found[one.name, one.column].before)
        assert one.after == pytest.approx(found[one.name, one.column].after)


def holding(person, release):
    """Return the rows whose intervals hold a person."""
    ends = [[text[1:-1].split(", ") for text in release[name].to_pylist()] for name in ROLES["quasi_identifiers"]]
    own = [person[name] for name in ROLES["quasi_identifiers"]]
    return [
        row
        for row in range(release.num_rows)
        if all(float(e[row][0]) <= value <= float(e[row][1]) for e, value in zip(ends, own, strict=True))
    ]


def test_whoever_reads_intervals_picks_among_those_that_hold_a_person(people, tmp_path):
    unique = people.set_column(2, "disease", pa.array([f"d{i % 60}" for i in range(200)]))
    one = written(unique, tmp_path / "one.csv", k=4, truthful=True)
    two = written(unique, tmp_path / "two.csv", k=7, truthful=True, method="mdav")
    found = by_name(attack(tmp_path / "one.csv", unique, **ROLES, second=tmp_path / "two.csv"))
    rows = [[holding(person, release.table) for person in unique.to_pylist()] for release in (one, two)]
    own = unique["disease"].to_pylist()
    seen = [[{own[row] for row in those} for those in release] for release in rows]

    # Its own record always holds a person, so that all others are what protects it.
    assert all(i in those for release in rows for i, those in enumerate(release))
    assert found["nearest", None].after == pytest.approx(np.mean([1 / len(those) for those in rows[0]]))
    assert found["intersection", "disease"].after == np.mean([len(a & b) == 1 for a, b in zip(*seen, strict=True)])
    assert "not tried" in found["matching", None].meaning
    for shown in one.attacks:
        assert shown.after == pytest.approx(found[shown.name, shown.column].after)


def test_missing_values_sets_and_ancestors_are_read_as_they_are_published(tmp_path):
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "status": rng.choice(["married", "single", "widowed"], 90).tolist(),
            "zip": [None if i % 9 == 0 else str(code) for i, code in enumerate(rng.choice([43001, 43002, 50001], 90))],
            "born": pa.array(rng.integers(0, 9_000, 90), pa.int32()).cast(pa.date32()),
            "disease": [f"d{i}" for i in range(90)],
        }
    )
    roles = {"quasi_identifiers": ["status", "zip", "born"], "confidential": ["disease"]}
    settings = {"truthful": True, "missing": "own-value", "columns": {"zip": {"hierarchy": "prefix:2"}}}
    settings |= {"accept": ["published-identifier"]}
    release = written(table, tmp_path / "r.parquet", **roles, **settings)
    found = by_name(attack(tmp_path / "r.parquet", table, **roles))

    assert 0 < found["nearest", None].after <= 1 / 5
    for shown in release.attacks:
        assert (shown.after is None) == (found[shown.name, shown.column].after is None)
        assert shown.after is None or shown.after == pytest.approx(found[shown.name, shown.column].after)
