"""How one CSV column is read, where its owner says so."""

from datetime import date, datetime

import pyarrow as pa
import pytest

from shoal import FileError, ParameterError, SchemaError
from shoal.job import Input
from shoal.sources import read


@pytest.fixture
def file(tmp_path):
    def write(*texts, delimiter=";"):
        path = tmp_path / "office.csv"
        path.write_text(f"a{delimiter}b\n" + "".join(f"x{delimiter}{text}\n" for text in texts), encoding="utf-8")
        return path

    return write


def column(path, **reading):
    found = read(path, **reading).arrow["b"]
    return found.type, found.to_pylist()


@pytest.mark.parametrize(
    ("texts", "settings", "type_", "values"),
    [
        (["1,234.50", "12"], {"thousands": ","}, pa.float64(), [1234.5, 12.0]),
        (["1,234", "12"], {"thousands": ","}, pa.int64(), [1234, 12]),
        (["22.096,68", "1.000"], {"thousands": "."}, pa.float64(), [22096.68, 1000.0]),
        (["22 096,68", "1\u00a0000,5"], {"thousands": " ", "decimal": ","}, pa.float64(), [22096.68, 1000.5]),
        (["1'234", "-5"], {"thousands": "'"}, pa.int64(), [1234, -5]),
        (["1.5", "2"], {"decimal": "."}, pa.float64(), [1.5, 2.0]),
        (["31.12.1980", "1.2.1999"], {"date_format": "%d.%m.%Y"}, pa.date32(), [date(1980, 12, 31), date(1999, 2, 1)]),
        (["12/31/80"], {"date_format": "%m/%d/%y"}, pa.date32(), [date(1980, 12, 31)]),
        (["31.12.1980 13:05"], {"date_format": "%d.%m.%Y %H:%M"}, pa.timestamp("s"), [datetime(1980, 12, 31, 13, 5)]),
        (["19801231", "NA"], {"date_format": "%Y%m%d", "null_values": ["NA"]}, pa.date32(), [date(1980, 12, 31), None]),
        (["1", '"NA"', " . "], {"null_values": ["NA", "."]}, pa.int64(), [1, None, None]),
        (["1,5", "n/a"], {"decimal": ",", "null_values": ["n/a"]}, pa.float64(), [1.5, None]),
    ],
)
def test_a_column_is_read_as_its_owner_says(file, texts, settings, type_, values):
    assert column(file(*texts), fields={"b": settings}) == (type_, values)


def test_what_holds_for_all_columns_is_used_where_it_fits(file):
    assert column(file("31.12.1980"), date_format="%d.%m.%Y")[0] == pa.date32()
    assert column(file("1.234,5", "7"), thousands=".") == (pa.float64(), [1234.5, 7.0])


@pytest.mark.parametrize("texts", [("31.12.1980", "text"), ("1980-12-31", "1999-02-01"), ("5", "7")])
def test_a_date_format_that_fits_no_column_is_refused(file, texts):
    with pytest.raises(FileError, match=r'date_format="%d.%m.%Y" has no effect'):
        read(file(*texts), date_format="%d.%m.%Y")
    assert read(file(), date_format="%d.%m.%Y").n_records == 0
    assert read(file(*texts), date_format="%d.%m.%Y", columns=["a"]).n_records == 2


@pytest.mark.parametrize(
    ("texts", "settings"),
    [
        (["1980-12-31", "1999-02-01"], {"date_format": "%d.%m.%Y"}),
        (["1980-12-31", "1999-02-01"], {"decimal": ","}),
        (["1980-12-31", "1999-02-28"], {"date_format": "%Y-%d-%m"}),
        (["5", "7"], {"date_format": "%d.%m.%Y"}),
        (["true", "false"], {"thousands": "."}),
    ],
)
def test_a_reading_of_one_column_is_not_ignored_where_its_values_are_of_another_type(file, texts, settings):
    with pytest.raises(FileError, match=r"Column 'b' is specified to hold.*do not match"):
        read(file(*texts), fields={"b": settings})
    lines = file().with_suffix(".ndjson")
    lines.write_text("".join(f'{{"b": "{text}"}}\n' for text in texts), encoding="utf-8")
    with pytest.raises(FileError, match=r"Column 'b' is specified to hold.*do not match"):
        read(lines, fields={"b": settings})


def test_a_reading_of_cells_that_are_no_texts_is_refused(tmp_path):
    (tmp_path / "lines.ndjson").write_text('{"b": 19801231}\n{"b": 19801230}\n', encoding="utf-8")

    with pytest.raises(FileError, match=r"column 'b'.*not texts"):
        read(tmp_path / "lines.ndjson", fields={"b": {"date_format": "%Y%m%d"}})


@pytest.mark.parametrize(
    ("texts", "settings", "complaint"),
    [
        (["31.12.1980", "30.02.1980", "soon"], {"date_format": "%d.%m.%Y"}, "2 of its values do not match.*record 2"),
        (["", "31.12.1980", "soon", ""], {"date_format": "%d.%m.%Y"}, "1 of its values do not match.*record 3"),
        (["1,234", "12,34"], {"thousands": ","}, "1 of its values do not match.*record 2"),
        (["1,5", "abc"], {"decimal": ","}, "1 of its values do not match.*record 2"),
    ],
)
def test_a_reading_of_one_column_that_fits_only_some_texts_is_refused_without_showing_them(
    file, texts, settings, complaint
):
    with pytest.raises(FileError, match=complaint) as caught:
        read(file(*texts), fields={"b": settings})

    assert not any(text in str(caught.value) for text in texts if text)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"c": {"decimal": ","}}, SchemaError),
        ({"b": {"dezimal": ","}}, ParameterError),
        ({"b": {"decimal": ";"}}, ParameterError),
        ({"b": {"decimal": ",", "thousands": ","}}, ParameterError),
        ({"b": {"thousands": "1"}}, ParameterError),
        ({"b": {"date_format": "%d.%m."}}, ParameterError),
        ({"b": {"date_format": "%Q.%Y"}}, ParameterError),
        ({"b": {"null_values": "NA"}}, ParameterError),
    ],
)
def test_settings_that_cannot_be_are_refused(file, fields, error):
    with pytest.raises(error):
        read(file("1"), fields=fields)


def test_one_column_may_have_another_decimal_mark_than_the_file(file):
    path = file("1.5")
    path.write_text("a;b\n1,5;1.5\n", encoding="utf-8")

    assert read(path, fields={"b": {"decimal": "."}}).arrow.to_pylist() == [{"a": 1.5, "b": 1.5}]


def test_a_job_holds_how_single_columns_are_read():
    given = Input(path="a.csv", thousands=".", fields={"b": {"date_format": "%d.%m.%Y", "null_values": ["NA"]}})

    assert given.reading() == {
        "thousands": ".",
        "fields": {"b": {"date_format": "%d.%m.%Y", "null_values": ("NA",)}},
    }
