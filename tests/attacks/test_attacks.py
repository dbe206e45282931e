import json
import warnings

import numpy as np
import pyarrow as pa
import pytest

from shoal import FileError, ParameterError, SchemaError, ShoalWarning, anonymize
from shoal.attacks import attack
from shoal.report import render

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
    written(unique, tmp_path / "one.csv", k=4)
    written(unique, tmp_path / "two.csv", k=7, method="mdav")
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
