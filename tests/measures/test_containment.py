import warnings

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.measures import containment
from shoal.measures.table_risk import as_floats

N = 60


def people():
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "age": rng.integers(18, 60, N),
            "zip": [None if i % 7 == 0 else str(code) for i, code in enumerate(rng.choice([431, 432, 501], N))],
            "status": rng.choice(["a", "b", "c"], N).tolist(),
            "pay": rng.lognormal(3, 1, N),
        }
    )


def naive(release):
    """Return the expected shares linked from the records to the originals and back, pair by pair."""
    own, shown = release.original.to_pylist(), release.replaced.to_pylist()
    pay = [as_floats(table["pay"]) for table in (release.original, release.replaced)]

    def holds(person, record):
        low, high = map(float, record["age"][1:-1].split(", "))
        zips, missing = record["zip"], record["zip"] is None or record["zip"].endswith("missing")
        within = zips is not None and str(person["zip"]).startswith(zips.removesuffix(" or missing").rstrip("*"))
        at_home = missing if person["zip"] is None else within
        return low <= person["age"] <= high and at_home and person["status"] in record["status"][1:-1].split(", ")

    far = np.array(
        [
            [abs(pay[0][i] - pay[1][j]) if holds(own[i], shown[j]) else np.inf for j in range(len(own))]
            for i in range(len(own))
        ]
    )
    mine = np.diag(far)
    shares = [[], []]
    for i in range(len(own)):
        for side, others in ((0, far[:, i]), (1, far[i])):
            shares[side].append(0.0 if (others < mine[i]).any() else 1 / (others == mine[i]).sum())
    return np.mean(shares, axis=1)


@pytest.mark.parametrize("at_once", [1, 1 << 23])
def test_people_are_linked_to_the_records_that_hold_them(monkeypatch, at_once):
    monkeypatch.setattr(containment, "AT_ONCE", at_once)
    columns = {
        "age": {"aggregate": "interval"},
        "zip": {"aggregate": "ancestor", "hierarchy": "prefix:2"},
        "status": {"aggregate": "set"},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ShoalWarning)
        release = shoal.anonymize(
            people(), k=4, quasi_identifiers=people().column_names, columns=columns, missing="own-value", seed=1
        )
    found = release.risk.linkage

    assert (found.dld, found.linked) == pytest.approx(tuple(naive(release)))
    assert found.n_ranked == N


def test_of_many_people_a_sample_is_linked(monkeypatch):
    monkeypatch.setattr(containment, "_MOST_PAIRS", 0)
    table = pa.table({"age": np.random.default_rng(1).integers(0, 99, 300)})
    release = shoal.anonymize(table, k=5, quasi_identifiers=["age"], truthful=True, seed=1)

    assert release.risk.linkage.n_ranked == 100
    assert 0 < release.risk.linkage.linked <= 1 / 5
