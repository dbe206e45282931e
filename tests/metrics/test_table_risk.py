"""Risk and utility of tables: what the array metrics are given."""

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.metrics import linkage
from shoal.metrics.table_risk import SAMPLE, table_linkage


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
    monkeypatch.setattr("shoal.metrics.table_risk.MOST_NUMBERS", 10)
    monkeypatch.setattr("shoal.metrics.table_risk.SAMPLE", 50)
    table = people()
    release = shoal.anonymize(table, k=4, quasi_identifiers=["age", "pay", "sex"], other=["region"], seed=1)
    made = (release.original, release.replaced, release.schema, release.space, release.X, release.labels)
    again = table_linkage(*made)

    assert release.risk.linkage.n_ranked == 50 < SAMPLE
    assert again.dld == release.risk.linkage.dld


def test_utility_tells_of_numbers_and_of_categories():
    release = shoal.anonymize(people(), k=4, quasi_identifiers=["age", "pay", "sex"], other=["region"], seed=1)

    assert set(release.utility["numeric"]["columns"]) == {"age", "pay"}
    assert set(release.utility["nominal"]) == {"sex"}
    assert release.utility["numeric"]["columns"]["age"]["mean"] == pytest.approx(0, abs=1e-12)
    assert release.utility["numeric"]["columns"]["age"]["variance"] < 0


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
