"""Risk and utility of tables: what the array metrics are given."""

import numpy as np
import pyarrow as pa
import pytest

import shoal
import shoal.output.report
from sharing import everything_shared
from shoal import kernels
from shoal.measures import linkage
from shoal.measures.table_risk import SAMPLE, table_intervals, table_linkage


def people(n=120, seed=1):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.integers(18, 90, n),
            "pay": rng.normal(size=n),
            "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(["n", "e", "s"], n),
        }
    )


def test_the_linkage_of_a_table_is_that_of_its_points():
    table = people()
    release = shoal.anonymize(table, k=4, quasi_identifiers=["age", "pay", "sex"], other=["region"], seed=1)
    X, Y = (release.space.encode(side) for side in (release.original, release.replaced))

    assert release.risk.linkage.dld == linkage(X, Y).dld
    assert release.risk.linkage.linked == linkage(X, Y).linked


def test_whoever_knows_the_stratum_links_within_it():
    table = people()
    release = shoal.anonymize(table, k=4, quasi_identifiers=["age", "pay", "sex"], by=["region"], seed=1)
    linked = []
    for region in ("n", "e", "s"):
        inside = np.flatnonzero(np.asarray(table["region"]) == region)
        X, Y = (release.space.encode(side.take(pa.array(inside))) for side in (release.original, release.replaced))
        found = linkage(X, Y)
        linked.append((len(inside), found.dld, found.linked))
    n, dld, share = map(np.array, zip(*linked, strict=True))

    assert release.risk.linkage.dld == pytest.approx((n * dld).sum() / n.sum())
    assert release.risk.linkage.linked == pytest.approx((n * share).sum() / n.sum())


def test_of_a_large_table_a_sample_is_linked(monkeypatch):
    monkeypatch.setattr("shoal.measures.table_risk.MOST_NUMBERS", 10)
    monkeypatch.setattr("shoal.measures.table_risk.SAMPLE", 50)
    table = people()
    release = shoal.anonymize(table, k=4, quasi_identifiers=["age", "pay", "sex"], other=["region"], seed=1)
    made = (release.original, release.replaced, release.schema, release.space, release.X, release.labels)
    again = table_linkage(*made)

    assert release.risk.linkage.n_ranked == 50 < SAMPLE
    assert again.dld == release.risk.linkage.dld


def test_intervals_found_once_a_cell_are_those_of_every_record():
    table = people()
    table = table.set_column(1, "pay", pa.array(table["pay"].to_pylist()[:-9] + [None] * 9))
    settings = {"quasi_identifiers": ["age", "pay", "sex"], "other": ["region"], "missing": "own-value"}
    release = shoal.anonymize(table, k=4, seed=1, **settings)
    sides = (release.original, release.plain_columns.replaced, release.schema)

    assert table_intervals(*sides, release.labels) == table_intervals(*sides) == release.risk.intervals


def test_utility_tells_of_numbers_and_of_categories():
    release = shoal.anonymize(people(), k=4, quasi_identifiers=["age", "pay", "sex"], other=["region"], seed=1)

    assert set(release.utility.numeric.columns) == {"age", "pay"}
    assert set(release.utility.nominal) == {"sex"}
    assert release.utility.numeric.columns["age"].mean == pytest.approx(0, abs=1e-12)
    assert release.utility.numeric.columns["age"].variance < 0


def test_the_risk_of_withheld_categories_is_measured_where_none_was_missing():
    jobs = ["common" if i % 5 > 1 else f"rare{i}" for i in range(40)]
    release = shoal.anonymize(
        pa.table({"age": range(40), "job": jobs}),
        k=2,
        quasi_identifiers=["age", "job"],
        columns={"job": {"aggregate": "withhold"}},
        method="mdav",
    )

    assert release.published["job"].null_count > 0
    assert 0 <= release.risk.linkage.dld <= 1


def test_the_measures_of_a_release_are_those_that_were_written_down():
    rng = np.random.default_rng(20)
    age = rng.integers(18, 90, 600)
    table = {
        "age": age,
        "income": np.round(np.exp(rng.normal(10, 0.5, 600) + age / 200), 0),
        "town": np.array(list("abcdefgh"))[np.minimum(rng.geometric(0.35, 600) - 1, 7)],
        "sex": np.array(["f", "m"])[rng.integers(0, 2, 600)],
    }
    release = shoal.anonymize(pa.table(table), k=4, quasi_identifiers=list(table), method="mdav", seed=1)
    linkage, numeric = release.measures["risk"]["linkage"], release.measures["utility"]["numeric"]
    (last_one,) = release.measures["attacks"]

    assert (linkage["dld"], linkage["dld_within_2"]) == pytest.approx((143 / 600, 278 / 600), rel=1e-12)
    assert (linkage["linked"], linkage["within"]["6"], linkage["median_rank"]) == (0.20375, 0.8725, 2.5)
    assert release.measures["risk"]["intervals"] == {
        "age": {"by_rank": 520 / 600, "by_sd": 212 / 600},
        "income": {"by_rank": 484 / 600, "by_sd": 194 / 600},
    }
    assert numeric["il1s"] == pytest.approx(0.14616456419160176, rel=1e-12)
    assert numeric["correlation_max"] == pytest.approx(0.0123975021830459, rel=1e-10)
    assert numeric["eigenvalues_after"] == pytest.approx([1.1071095704048917, 0.7464419216902364], rel=1e-12)
    assert numeric["columns"]["income"]["variance"] == pytest.approx(-0.07241691362981173, rel=1e-12)
    assert release.measures["utility"]["nominal"]["town"] == pytest.approx(
        {"changed": 40 / 600, "total_variation": 25 / 600, "hellinger": 0.030667460190170054}, rel=1e-12
    )
    assert last_one["after"] == 1.0
    assert last_one["meaning"].endswith("without the release 14.3%")


def test_risk_utility_and_attacks_are_the_same_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("shoal.kernels.parallel_calls.MANY_RECORDS", 0)
    table = people(600).append_column("born", pa.array(np.arange(600), pa.int32()).cast(pa.date32()))
    quasi = ["age", "pay", "sex", "born"]
    found = []
    with everything_shared():
        for threads in (1, 2, 3, 16):
            release = shoal.anonymize(
                table, k=4, quasi_identifiers=quasi, confidential=["region"], seed=1, threads=threads
            )
            with kernels.using(threads):
                found.append(shoal.output.report.gather(release))

    assert found[1:] == found[:-1]
