"""Cells of a collection: strata, subjects, households and models, as in any release."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

from shoal import GuaranteeError, LDiversity, ParameterError, SchemaError, ShoalWarning, TCloseness, anonymize, audit
from shoal.incremental import VARIANTS
from shoal.incremental.collection import Collection, begin

HOUSEHOLDS = {
    "quasi_identifiers": ["district", "rooms", "age"],
    "confidential": ["vote"],
    "household": "home",
    "subject": "person",
}


def homes(first, last, members=(1, 5), districts=2):
    """Return the people of some homes, by their numbers; each home looks the same whenever it is asked for."""
    rows = []
    for home in range(first, last):
        rng = np.random.default_rng([7, home])
        rows += [
            {
                "home": home,
                "person": 100 * home + i,
                "district": f"d{home % districts}",
                "rooms": 1 + home % 6,
                "age": round(float(rng.normal(45, 20)), 1),
                "vote": "xyz"[rng.integers(3)],
            }
            for i in range(rng.integers(*members))
        ]
    return pa.Table.from_pylist(rows)


def released(collection, **options):
    """Finish, and return the release."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return collection.finish(**options)


def within_homes(release, original, column):
    """Count the homes in which a published column varies."""
    seen = {}
    for home, value in zip(original["home"].to_pylist(), release.table[column].to_pylist(), strict=True):
        seen.setdefault(home, set()).add(value)
    return sum(len(values) > 1 for values in seen.values())


@pytest.mark.parametrize("variant", VARIANTS)
def test_households_stay_whole_whoever_comes_late(tmp_path, variant):
    people = homes(0, 120)
    # Every third person is late: new homes, and members of homes that have begun.
    late = pa.array(np.arange(len(people)) % 3 == 2)
    base, rest = people.filter(pa.compute.invert(late)), people.filter(late)
    collection = begin(tmp_path / "evening", base, k=4, seed=1, variant=variant, **HOUSEHOLDS)
    collection.add(rest)
    release = released(collection)
    original = pa.concat_tables([base, rest])
    verdict = audit(release.table, quasi_identifiers=["district", "rooms", "age"], k=4)

    assert verdict.holds
    assert release.job.roles.household_level == ("district", "rooms")
    assert within_homes(release, original, "district") == within_homes(release, original, "rooms") == 0
    assert release.records.cells.household_labels is not None
    pairs = np.unique(np.stack([release.records.cells.household_labels, original["home"].to_numpy()]), axis=1)
    assert np.bincount(pairs[0]).min() >= 4


def test_groups_of_households_that_nobody_joins_keep_the_cells_of_their_people(tmp_path):
    base = homes(0, 200, members=(2, 5))
    alone = released(begin(tmp_path / "alone", base, k=4, seed=1, **HOUSEHOLDS))
    collection = begin(tmp_path / "evening", base, k=4, seed=1, variant="two-step", **HOUSEHOLDS)
    collection.add(homes(200, 230))
    release = released(collection)
    before = {tuple(np.flatnonzero(alone.labels == cell)) for cell in np.unique(alone.labels)}
    after = {tuple(np.flatnonzero(release.labels == cell)) for cell in np.unique(release.labels)}

    assert before <= after


def test_a_late_member_who_does_not_fit_the_household_is_refused_and_nothing_is_added(tmp_path):
    collection = begin(tmp_path / "evening", homes(0, 60), k=4, **HOUSEHOLDS)
    late = homes(60, 80)
    moved = late.set_column(0, "home", pa.array([3] * len(late), pa.int64()))
    with pytest.raises(SchemaError, match=r"vary within households.*Nothing was added"):
        collection.add(moved)

    assert Collection.open(tmp_path / "evening").n_records == [len(homes(0, 60))]
    assert released(collection).verdict.holds


def test_a_base_with_too_few_households_is_refused(tmp_path):
    with pytest.raises(GuaranteeError, match="has 3 households, fewer than k=4"):
        begin(tmp_path / "evening", homes(0, 3, members=(4, 6)), k=4, **HOUSEHOLDS)


def test_households_in_strata_wait_for_others(tmp_path):
    roles = {**HOUSEHOLDS, "quasi_identifiers": ["rooms", "age"], "by": ["district"]}
    base, late = homes(0, 90, districts=1), homes(90, 130, districts=2)
    collection = begin(tmp_path / "evening", base, k=4, seed=1, **roles)
    collection.add(late)
    release = released(collection)

    assert release.verdict.holds
    assert set(release.table["district"].to_pylist()) == {"d0", "d1"}


def test_several_late_records_of_one_person_count_once(tmp_path):
    rng = np.random.default_rng(0)
    visits = pa.table({"person": np.repeat(np.arange(150), 2), "age": np.repeat(rng.normal(50, 15, 150), 2).round(1)})
    roles = {"quasi_identifiers": ["age"], "subject": "person"}
    collection = begin(tmp_path / "evening", visits.slice(0, 240), k=5, seed=1, **roles)
    collection.add(visits.slice(240))
    release = released(collection)

    assert release.verdict.subjects >= 5


def earners(n, seed=0):
    """Return people with two confidential columns, one of which goes with age."""
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 15, n).round(1)
    return pa.table(
        {
            "age": age,
            "rooms": rng.integers(1, 7, n),
            "salary": (1000 + 40 * age + rng.normal(0, 200, n)).round(-2),
            "vote": rng.choice(["x", "y", "z"], n, p=[0.6, 0.3, 0.1]),
        }
    )


MODELS = {
    "t-closeness": TCloseness("salary", t=0.15),
    "l-diversity": LDiversity("vote", l=2),
}
EARNERS = {"quasi_identifiers": ["age", "rooms"], "confidential": ["salary", "vote"]}


@pytest.mark.parametrize("name", [*MODELS, "both"])
def test_models_hold_for_everything_in_the_end(tmp_path, name):
    models = list(MODELS.values()) if name == "both" else [MODELS[name]]
    collection = begin(tmp_path / "evening", earners(500), k=5, seed=1, models=models, **EARNERS)
    collection.add(earners(60, seed=1))
    release = released(Collection.open(tmp_path / "evening"))
    again = audit(
        release.table, quasi_identifiers=["age", "rooms"], confidential=["salary", "vote"], k=5, models=models
    )

    assert release.verdict.holds
    assert again.holds
    assert [found.model for found in again.models] == models
    assert list(release.job.models) == models


@pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")  # two of its normal ages are negative
@pytest.mark.parametrize("name", MODELS)
def test_a_collection_loses_about_as_much_as_one_run_on_everything(tmp_path, name):
    base, late = earners(900), earners(100, seed=1)
    collection = begin(tmp_path / "evening", base, k=5, seed=1, models=[MODELS[name]], **EARNERS)
    collection.add(late)
    ordinary = anonymize(pa.concat_tables([base, late]), k=5, seed=1, models=[MODELS[name]], **EARNERS)

    assert released(collection).loss.il < 1.25 * ordinary.loss.il


def test_a_model_that_the_base_cannot_keep_may_be_kept_by_all(tmp_path):
    one_vote = earners(200).set_column(3, "vote", pa.array(["x"] * 200))
    with pytest.warns(ShoalWarning, match="The base alone cannot satisfy the models"):
        collection = begin(tmp_path / "evening", one_vote, k=5, seed=1, models=[LDiversity("vote", l=2)], **EARNERS)
    with pytest.raises(GuaranteeError, match="cannot be satisfied"):
        released(collection)
    assert not Collection.open(tmp_path / "evening").is_finished

    collection.add(earners(400, seed=1))
    assert released(collection).verdict.holds


def test_a_weight_that_only_steers_is_refused_at_the_beginning(tmp_path):
    with pytest.raises(ParameterError, match="Leave the weight out"):
        begin(tmp_path / "evening", earners(200), k=5, models=[TCloseness("salary", t=0.2, weight=0.5)], **EARNERS)
    assert not (tmp_path / "evening").exists()


def test_models_and_households_go_together(tmp_path):
    models = [LDiversity("vote", l=2)]
    collection = begin(tmp_path / "evening", homes(0, 120), k=4, seed=1, models=models, **HOUSEHOLDS)
    collection.add(homes(120, 140))
    release = released(collection)

    assert release.verdict.holds
    assert within_homes(release, homes(0, 140), "rooms") == 0


def test_finishing_a_collection_with_models_twice_gives_the_same_cells(tmp_path):
    models = [MODELS["t-closeness"]]
    collection = begin(tmp_path / "evening", earners(300), k=5, seed=1, models=models, **EARNERS)
    collection.add(earners(30, seed=1))
    first = released(collection, threads=1)

    assert np.array_equal(released(Collection.open(tmp_path / "evening"), threads=2).labels, first.labels)
