import json
from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest

import shoal
from shoal import FileError
from shoal.sources import read, write


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.ndjson"


def lines(path, *records):
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in records))
    return path


def test_types_are_those_of_json_and_dates_are_iso_texts(path):
    records = [
        {"n": 1, "x": 1, "flag": True, "town": "Ulm", "born": "2020-02-29", "at": "2020-01-01T10:00:00", "code": "007"},
        {"n": None, "x": 1.5, "flag": None, "town": "", "born": None, "at": "2020-01-01T10:00:01", "code": "12"},
    ]
    found = read(lines(path, records[0], "", records[1])).arrow

    assert [str(kind) for kind in found.schema.types] == [
        *("int64", "double", "bool", "string", "date32[day]", "timestamp[s]", "string")
    ]
    assert found["town"].to_pylist() == ["Ulm", ""]
    assert found["born"].to_pylist() == [date(2020, 2, 29), None]
    assert found["code"].to_pylist() == ["007", "12"]


def test_every_type_goes_out_and_comes_back(path):
    table = pa.table(
        {
            "real": [20.0, 0.1 + 0.2, None],
            "whole": [2**63 - 1, None, -5],
            "text": ['"\u2028\n', "", None],
            "day": [date(1800, 1, 1), None, date(2020, 2, 29)],
            "at": pa.array([datetime(2020, 1, 1, 10), None, datetime(1999, 1, 1)], pa.timestamp("s")),
            "flag": [True, False, None],
        }
    )
    write(table, path)

    assert read(path).arrow == table
    assert len(path.read_text().split("\n")) == 4


def test_changing_keys_are_refused_until_they_are_said_to_be_missing(path):
    lines(path, {"a": 1, "b": 2}, {"a": 3}, {"b": 4, "a": 5, "c": "Zyxwv"})

    with pytest.raises(FileError, match=r"lack 'b' \(1\), 'c' \(2\).*fill_keys=True") as caught:
        read(path)
    assert "Zyxwv" not in str(caught.value)
    assert read(path, fill_keys=True).arrow.to_pydict() == {
        "a": [1, 3, 5],
        "b": [2, None, 4],
        "c": [None, None, "Zyxwv"],
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"a": "Zyxwv', "is not valid JSON"),
        ('{"a": 1, "a": "Zyxwv"}', "the same key twice"),
        ('{"a": NaN}', "NaN, which is not JSON"),
        ('["Zyxwv"]', "holds a list"),
        ('"Zyxwv"', "holds a single value"),
        ("[" * 100_000, "is not valid JSON"),
        (r'{"a": "Zyxwv\ud83d"}', "half of a surrogate pair"),
        (r'{"Zyxwv\uDC00": 1}', "half of a surrogate pair"),
    ],
)
def test_a_line_that_is_no_object_is_refused_by_its_number(path, line, words):
    with pytest.raises(FileError, match=rf"Line 2 of 'a\.ndjson' .*{words}") as caught:
        read(lines(path, {"a": 1}, line))

    assert "Zyxwv" not in str(caught.value)


def test_an_empty_file_and_another_encoding_are_refused(path):
    path.write_bytes(b"\n")
    with pytest.raises(FileError, match="has no records"):
        read(path)
    path.write_bytes(b"{}\n{}\n")
    with pytest.raises(FileError, match="have no keys"):
        read(path)
    path.write_bytes(b'{"a": "Z\xfcrich"}\n')
    with pytest.raises(FileError, match="is not UTF-8"):
        read(path)
    assert read(path, encoding="latin-1").arrow["a"].to_pylist() == ["Zürich"]


def test_a_mixed_column_is_text_and_a_finding_and_null_values_settle_it(path):
    lines(path, *({"a": value} for value in [*range(20), "n/a", "n/a"]))
    (finding,) = [one for one in shoal.inspect(path, show_values=True).findings if one.name == "mixed-types"]

    assert read(path).receipt.mixed == {"a": {"numbers": 20, "texts": 2}}
    assert finding.remedies[0].option == "--null-value a=n/a"
    assert read(path, fields={"a": {"null_values": ["n/a"]}}).arrow["a"].to_pylist() == [*range(20), None, None]
    assert read(path, null_values=["n/a"]).receipt.mixed == {}


def test_numbers_that_a_type_would_round_stay_text(path):
    lines(path, {"a": 2**70, "b": 2**60}, {"a": 1, "b": 0.5})

    assert read(path).arrow.to_pydict() == {"a": [str(2**70), "1"], "b": [str(2**60), "0.5"]}


def test_lists_and_objects_are_read_and_not_written(path, tmp_path):
    table = read(lines(path, {"a": [1, 2], "b": {"c": 1}}, {"a": [], "b": {"c": None}}))

    assert table.arrow["a"].to_pylist() == [[1, 2], []]
    with pytest.raises(FileError, match="'a', 'b' hold lists"):
        write(table.arrow, tmp_path / "out.ndjson")


@pytest.mark.parametrize(("value", "words"), [(float("inf"), "NaN or infinite"), (timedelta(1), "durations")])
def test_what_json_cannot_hold_is_refused(path, value, words):
    with pytest.raises(FileError, match=words):
        write(pa.table({"a": [value]}), path)

    assert not path.exists()
