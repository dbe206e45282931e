import numpy as np
import pyarrow as pa
import pytest

from shoal import GuaranteeError, SchemaError, anonymize
from shoal.columns.equivalence import class_ids


def release(table, **settings):
    return anonymize(table, **{"k": 3, "seed": 1, "method": "mdav", "missing": "own-value"} | settings)


def cells_of(release, values):
    """Return the different values that each cell holds."""
    labels = release.labels
    return [set(np.array(values, dtype=object)[labels == cell]) for cell in range(labels.max() + 1)]


@pytest.fixture
def people():
    rng = np.random.default_rng(8)
    n = 120
    return pa.table(
        {
            "x": rng.normal(size=n),
            "y": rng.normal(size=n),
            "region": pa.array(rng.choice(["n", "s", None], n).tolist()),
            "wave": pa.array(rng.integers(1, 4, n)),
            "income": pa.array([None if i % 11 == 0 else 0.0 if i % 3 else 1.0 + i for i in range(n)]),
        }
    )


def test_no_cell_mixes_strata_and_a_missing_stratum_is_one(people):
    table = people.select(["x", "y", "region", "wave"])
    found = release(table, quasi_identifiers=["x", "y"], by=["region", "wave"])
    strata = class_ids(table.select(["region", "wave"]))

    assert all(len(values) == 1 for values in cells_of(found, strata))
    assert found.published["region"].equals(table["region"])
    assert found.verdict.quasi_identifiers == ("x", "y", "region", "wave")
    assert len(set(strata)) == 9


def test_strata_are_published_as_they_were_counted():
    strata = pa.array([float("nan"), None, float("nan"), None, 0.0, -0.0, 0.0, -0.0])
    found = release(pa.table({"x": range(8), "g": strata}), quasi_identifiers="x", by="g")

    assert repr(found.published["g"].to_pylist()) == "[None, None, None, None, 0.0, 0.0, 0.0, 0.0]"
    assert found.verdict.smallest == 4


def test_many_strata_are_each_split_by_themselves():
    table = pa.table({"x": np.random.default_rng(1).normal(size=2000), "g": np.repeat(np.arange(500), 4)})
    found = release(table, quasi_identifiers=["x"], by=["g"], k=2)

    assert all(len(values) == 1 for values in cells_of(found, table["g"].to_pylist()))
    assert found.verdict.n_classes >= 500


def test_a_stratum_that_is_too_small_is_refused_in_counts():
    table = pa.table({"x": range(10), "g": ["a"] * 7 + ["b"] * 2 + [None]})

    with pytest.raises(GuaranteeError, match=r"2 of 3 strata \(by 'g'\) .* k=3 records, 3 records in all; .* has 1"):
        release(table, quasi_identifiers="x", by="g")


def test_zeros_share_no_cell_with_others_and_stay_zeros_while_missing_values_may_mix(people):
    table = people.select(["x", "income"])
    found = release(table, quasi_identifiers=["x", "income"], columns={"income": {"keep_zeros": True}})
    is_zero = [value == 0 for value in table["income"].to_pylist()]

    assert all(len(values) == 1 for values in cells_of(found, is_zero))
    assert [found.published["income"][i].as_py() for i in np.flatnonzero(is_zero)] == [0.0] * sum(is_zero)


@pytest.mark.parametrize(
    "type_", [pa.uint64(), pa.int8(), pa.float16(), pa.float32(), pa.decimal128(5, 2), pa.decimal256(60, 3)]
)
def test_zeros_of_any_type_are_kept_apart(type_):
    values = pa.array([0.0, 0.0, 5.0, 7.0]).cast(type_)
    found = release(pa.table({"x": values}), k=2, quasi_identifiers="x", columns={"x": {"keep_zeros": True}})

    assert found.published["x"].to_pylist() == [0.0, 0.0, 6.0, 6.0]


def test_the_largest_of_uint64_are_no_zeros():
    values = pa.array([2**64 - 1, 2**64 - 1, 0, 0], pa.uint64())
    found = release(pa.table({"x": values}), k=2, quasi_identifiers="x", columns={"x": {"keep_zeros": True}})

    assert found.published["x"].to_pylist() == [2.0**64, 2.0**64, 0.0, 0.0]


def test_zeros_that_are_too_few_are_refused():
    table = pa.table({"x": [0, 0, 1, 2, 3, 4]})

    with pytest.raises(GuaranteeError, match=r"1 of 2 strata \(zeros in 'x'\)"):
        release(table, quasi_identifiers="x", columns={"x": {"keep_zeros": True}})


def test_k_counts_persons_and_a_missing_person_is_one_for_all():
    rng = np.random.default_rng(5)
    persons = pa.array([None, float("nan")] * 20 + [float(i // 4) for i in range(80)])
    table = pa.table({"x": np.repeat(rng.normal(size=30), 4), "who": persons})
    found = release(table, quasi_identifiers="x", subject="who")
    names = [None if value is None or value != value else value for value in persons.to_pylist()]

    assert min(len(values) for values in cells_of(found, names)) >= 3
    assert found.verdict.subjects >= 3
    assert found.published.column_names == ["x"]


@pytest.mark.parametrize("who", [[None] * 6, ["a", "a", "b", "b", "a", "b"]])
def test_too_few_persons_are_refused(who):
    table = pa.table({"x": range(6), "who": pa.array(who, pa.string())})

    with pytest.raises(GuaranteeError, match="k=3 different subjects"):
        release(table, quasi_identifiers="x", subject="who")


@pytest.fixture
def households():
    rng = np.random.default_rng(3)
    of = np.repeat(np.arange(40), 3)
    names = pa.array([f"h{i}" for i in of])
    listed = pa.array(["nobody", *(f"h{i}" for i in range(40))])
    categories = pa.DictionaryArray.from_arrays(pa.array(of + 1), listed)
    return {
        "texts": pa.table({"h": names, "rent": rng.normal(size=40)[of], "age": rng.normal(size=120)}),
        "categories": pa.table({"h": categories, "rent": rng.normal(size=40)[of], "age": rng.normal(size=120)}),
    }


@pytest.mark.parametrize("kind", ["texts", "categories"])
def test_household_columns_stay_equal_within_a_household(households, kind):
    table = households[kind]
    found = release(table, quasi_identifiers=["rent", "age"], household="h")
    rents = found.published["rent"].to_numpy().reshape(40, 3)

    assert (rents == rents[:, :1]).all()
    assert min(len(set(np.flatnonzero(rents[:, 0] == rent))) for rent in rents[:, 0]) >= 3
    assert found.records.cells.household_level == ("rent",)


def test_only_household_columns_are_fine(households):
    found = release(households["texts"].select(["h", "rent"]), quasi_identifiers="rent", household="h")

    assert found.verdict.smallest >= 9


def test_a_household_is_grouped_among_k_persons_too(households):
    table = households["texts"].append_column("who", pa.array([i % 50 for i in range(120)]))
    found = release(table, quasi_identifiers=["rent", "age"], household="h", subject="who", k=5)
    rents = found.published["rent"].to_numpy().reshape(40, 3)

    assert found.verdict.subjects >= 5
    assert (rents == rents[:, :1]).all()


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        ({"h": [None, *["a", "b", "c", "d"] * 2]}, {}, "'h' is missing or blank in 1 records"),
        ({"h": [float("nan"), *[1.0, 2.0, 3.0, 4.0] * 2]}, {}, "'h' is missing or blank in 1 records"),
        ({}, {"household_level": ["age"]}, r"vary within households: 'age' \(in 3\)"),
        ({"rent": range(9)}, {}, "no quasi-identifier is the same"),
        ({"g": ["p", "q", "q"] * 3}, {"by": ["g"]}, "Some households have records in several strata"),
    ],
)
def test_households_that_do_not_hold_together_are_refused(change, settings, message):
    columns = {"h": np.repeat(["a", "b", "c"], 3), "rent": np.repeat([1, 2, 3], 3), "age": range(9)}
    roles = {"quasi_identifiers": ["rent", "age"], "household": "h"}

    with pytest.raises(SchemaError, match=message):
        release(pa.table({**columns, **change}), **roles, **settings)


def test_too_few_households_are_refused():
    table = pa.table({"h": ["a", "a", "b", "b"], "rent": [1, 1, 2, 2]})

    with pytest.raises(GuaranteeError, match="of households"):
        release(table, quasi_identifiers="rent", household="h")


def test_progress_counts_all_records_once(people):
    seen = []
    release(
        people.select(["x", "y", "wave"]),
        quasi_identifiers=["x", "y"],
        by="wave",
        progress=lambda done, total: seen.append((done, total)),
    )

    assert seen[-1] == (120, 120)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
