from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from shoal.dp.comparable import ValueForm, as_floats, comparable, comparables
from shoal.sources import read

ALIKE = [
    [1, 1.0, Decimal("1.00"), "1", "1.0", " 1 ", "1e0", "1,0"],
    [0, 0.0, -0.0, "0", "-0.0"],
    [True, "true", "TRUE", "True"],
    [date(2020, 1, 2), datetime(2020, 1, 2), "2020-01-02", "2020-01-02T00:00:00"],
    [datetime(2020, 1, 2, 9, tzinfo=UTC), "2020-01-02T09:00:00Z", "2020-01-02 10:00+01:00"],
    ["01"],
    ["+1"],
    ["1_0"],
    ["."],
    ["e5"],
    [".5", 0.5],
    ["true "],
    ["2020-13-01"],
]


@pytest.mark.parametrize("group", ALIKE)
def test_spellings_of_one_value_are_alike_and_those_of_others_are_not(group):
    values = {comparable(value) for value in group}
    others = {comparable(value) for other in ALIKE if other is not group for value in other}

    assert len(values) == 1
    assert not values & others


@pytest.mark.parametrize("value", [None, float("nan"), "nan", "NaN", ""])
def test_missing_has_many_spellings(value):
    assert comparable(value) is None


@pytest.mark.parametrize(
    ("texts", "odd"),
    [
        (["1", "2", "-3"], ["2.5", "x", "01", "99999999999999999999", "1e3", "true", "2020-01-01"]),
        (["9007199254740993", "1"], ["0.5", "x"]),
        (["1.0", "2.50", "nan", "inf"], ["x", "001", "true"]),
        (["true", "False"], ["x", "1"]),
        (["2020-01-01", "1999-12-31"], ["x", "2020-01-01T10:00:00", "2020-01-01 10:00", "20200101"]),
        (["2020-01-01T10:00:00Z"], ["2020-01-01T10:00:00", "2020-01-01T10:00:00.123456Z", "x"]),
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_what_a_record_is_compared_by_does_not_depend_on_other_records(tmp_path, texts, odd, delimiter):
    alone = []
    for other in [None, *odd]:
        lines = [f"{text}{delimiter}1" for text in [*texts, *([] if other is None else [other])]]
        (tmp_path / "a.csv").write_text("\n".join([f"c{delimiter}d", *lines]) + "\n")
        alone.append(comparables(read(tmp_path / "a.csv").arrow["c"])[: len(texts)])

    assert all(found == alone[0] for found in alone)


def test_the_digits_of_one_decimal_change_no_other_number():
    short = pa.chunked_array([pa.array([Decimal("0.1"), Decimal("12.3")])])
    long = pa.chunked_array([pa.array([Decimal("0.1"), Decimal("12.3"), Decimal("1.00000000000000000000000001")])])

    assert as_floats(short).to_pylist() == as_floats(long).to_pylist()[:2] == [0.1, 12.3]


def test_nanoseconds_need_no_pandas_and_do_not_count():
    moments = pa.array([1, 1_000_000_001], pa.timestamp("ns"))

    assert comparables(moments) == [
        (ValueForm.DATE, datetime(1970, 1, 1)),
        (ValueForm.DATE, datetime(1970, 1, 1, 0, 0, 1)),
    ]
