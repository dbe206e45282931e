"""On how many records a published value rests is counted on what is published."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.findings import QuestionError


def quiet(table, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ShoalWarning)
        return shoal.anonymize(table, seed=1, **settings)


def test_a_mean_in_which_one_record_has_all_the_weight_is_told():
    table = pa.table({"x": [1.0, 2.0, 3.0, 50.0, 51.0, 52.0], "w": [0.0, 5.0, 0.0, 1.0, 1.0, 1.0]})
    release = quiet(table, k=3, quasi_identifiers="x", weights="w")

    assert release.table["x"].to_pylist()[:3] == [2.0] * 3
    assert release.warnings == (
        "In 1 of 2 cells the published value of column 'x' comes from one record: it has all of the weight.",
    )


def test_a_mean_of_a_single_value_that_is_there_is_told():
    table = pa.table({"x": [1.0, None, 50.0, 51.0], "y": [1.0, 1.0, 9.0, 9.0]})
    release = quiet(table, k=2, quasi_identifiers=["x", "y"], missing="own-value")

    assert release.table["x"].to_pylist()[:2] == [1.0, 1.0]
    assert "In 1 of 2 cells the published value of column 'x' comes from one record: the others have no value." in (
        release.warnings
    )


def test_a_category_that_a_single_record_of_the_table_has_is_not_published_unless_accepted():
    rng = np.random.default_rng(2)
    towns = [f"town {i}" for i in range(9)] + ["city"] * 41
    table = pa.table({"x": np.r_[np.arange(9.0), rng.uniform(500, 900, 41)], "town": towns})
    roles = {"k": 3, "quasi_identifiers": ["x", "town"]}

    with pytest.raises(QuestionError, match="only one record has"):
        quiet(table, **roles)
    accepted = quiet(table, **roles, accept="single-record-values")
    withheld = quiet(table, **roles, columns={"town": {"aggregate": "withhold"}})

    assert sum(one.of_one_person for one in accepted.contributions) == 3
    assert set(withheld.table["town"].to_pylist()) == {"city", None}


def test_of_equally_frequent_categories_the_one_that_more_records_have_is_published():
    table = pa.table({"x": [1.0, 1.1, 9.0, 9.1], "town": ["Aachen", "Bonn", "Bonn", "Bonn"]})

    assert quiet(table, k=2, quasi_identifiers=["x", "town"]).table["town"].to_pylist() == ["Bonn"] * 4


def test_a_column_of_which_nothing_is_left_is_told():
    rng = np.random.default_rng(3)
    bonus = [100.0 + i if i % 12 == 0 else None for i in range(240)]
    table = pa.table({"age": rng.integers(18, 80, 240), "pay": rng.lognormal(9, 1, 240), "bonus": bonus})
    release = quiet(
        table,
        k=20,
        quasi_identifiers=["age", "pay", "bonus"],
        missing="own-value",
        columns={"bonus": {"weight": 0.001}},
    )

    assert release.table["bonus"].null_count == 240
    assert (
        "Column 'bonus' is published entirely as missing: it is missing in most records of every cell."
        in release.warnings
    )
    assert release.utility.numeric.correlation_max > 0
