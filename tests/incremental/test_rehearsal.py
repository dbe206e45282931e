"""A rehearsal: tables like the one at hand, of any size, in batches that a collection takes."""

import numpy as np
import pyarrow as pa
import pytest

from shoal import GuaranteeError, Job, LDiversity, ParameterError
from shoal.incremental.rehearsal import Tables, rehearse


def visits(n_people=200):
    """Return people with one to three records each, in four districts, two of which are small."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(n_people), rng.integers(1, 4, n_people))
    district = np.array(["a", "b", "c", "d"])[np.searchsorted([0.5, 0.96, 0.98], rng.random(n_people), "right")]
    return pa.table(
        {
            "person": pa.array([f"p{i}" for i in person]),
            "district": district[person],
            "age": rng.integers(20, 80, len(person)),
            "vote": rng.choice(["x", "y"], len(person)),
        }
    )


def job(**roles):
    return Job.of(k=5, seed=1, roles={"quasi_identifiers": ["age"], "confidential": ["vote"], **roles})


@pytest.mark.parametrize("n", [150, 5_000])
def test_nobody_is_in_two_batches(n):
    base, late = Tables(visits(), job(subject="person", other=["district"])).batches(n, 0.3)
    in_base, in_late = (set(batch["person"].to_pylist()) for batch in (base, late))

    assert len(base) + len(late) == n
    assert in_base & in_late == set()
    assert len(late) == pytest.approx(0.3 * n, abs=10)


def test_a_person_has_as_many_records_as_before():
    everything = Tables(visits(), job(subject="person", other=["district"])).batches(6_000, 0.0)[0]
    counts = np.unique(everything["person"].to_numpy(), return_counts=True)[1]

    assert counts.max() <= 3
    assert len(everything.column_names) == 4


def test_values_are_those_of_the_sample():
    everything = Tables(visits(), job(subject="person", other=["district"])).batches(3_000, 0.0)[0]

    assert set(everything["age"].to_pylist()) == set(visits()["age"].to_pylist())


def test_strata_that_are_too_small_are_left_out():
    everything = Tables(visits(), job(by=["district"], identifiers=["person"])).batches(120, 0.0)[0]
    counts = np.unique(everything["district"].to_numpy(zero_copy_only=False), return_counts=True)[1]

    assert counts.min() >= 5


def test_members_of_a_household_share_what_they_shared():
    roles = {"quasi_identifiers": ["district", "age"], "household": "person"}
    everything = Tables(visits(), job(**roles)).batches(4_000, 0.0)[0]
    pairs = {
        (home, where)
        for home, where in zip(*(everything[name].to_pylist() for name in ("person", "district")), strict=True)
    }

    assert len(pairs) == len({home for home, _ in pairs})


def test_what_the_evening_would_refuse_is_said_beforehand():
    asked = Job.of(
        k=5,
        roles={
            "quasi_identifiers": ["age"],
            "confidential": ["vote"],
            "identifiers": ["person"],
            "other": ["district"],
        },
        models=[LDiversity("vote", l=3)],
    )
    with pytest.raises(GuaranteeError, match=r"rehearsal with similar records failed.*cannot be satisfied"):
        rehearse(visits(), asked, 1_000, seconds=1)


def test_too_few_records_to_rehearse_with_are_refused():
    with pytest.raises(ParameterError, match="at least 40 records"):
        rehearse(visits(10).slice(0, 15), job(identifiers=["person", "district"]), 1_000)
