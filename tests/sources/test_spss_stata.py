import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyreadstat
import pytest

from shoal import FileError, ParameterError, SchemaError
from shoal.sources import read, write

VALUES = {"sex": {1.0: "female", 2.0: "male", 9.0: "not said"}}


def people():
    return pa.table(
        {
            "sex": [1.0, 2.0, 1.0, None],
            "age": [31.5, 99.0, None, 40.0],
            "town": ["Ulm", "Zürich", "", "Oslo"],
            "born": [date(1990, 1, 2), None, date(1800, 5, 6), date(2020, 2, 29)],
            "seen": pa.array([datetime(2020, 1, 1, 10, 30), None, None, datetime(1999, 1, 1)], pa.timestamp("us")),
        }
    )


@pytest.fixture(params=[".sav", ".zsav", ".dta"])
def path(request, tmp_path):
    path = tmp_path / f"people{request.param}"
    labels = {"column_labels": {"sex": "Sex of the person"}, "variable_value_labels": VALUES}
    if request.param == ".dta":
        labels["variable_value_labels"] = {"sex": {int(value): label for value, label in VALUES["sex"].items()}}
        pyreadstat.write_dta(pl.DataFrame(people()), path, **labels)
    else:
        missing = {"sex": [9], "age": [{"lo": 90, "hi": 99}]}
        measures = {"sex": "nominal", "age": "scale"}
        compress = request.param == ".zsav"
        pyreadstat.write_sav(
            pl.DataFrame(people()), path, missing_ranges=missing, variable_measure=measures, compress=compress, **labels
        )
    return path


def test_values_and_labels_are_read(path):
    table = read(path)

    assert table.arrow.to_pydict() == people().to_pydict()
    assert table.labels.variables == {"sex": "Sex of the person"}
    assert table.labels.values == VALUES
    if path.suffix != ".dta":
        assert table.labels.missing == {"sex": [(9.0, 9.0)], "age": [(90.0, 99.0)]}
        assert table.labels.measures == {"sex": "nominal", "age": "scale"}


def test_what_is_written_carries_the_labels_of_what_is_published_and_occurs(path, tmp_path):
    table = read(path)
    out = tmp_path / f"out{path.suffix}"
    write(table.arrow.select(["age", "sex"]), out, like=table)
    again = read(out)

    assert again.arrow.to_pydict() == people().select(["age", "sex"]).to_pydict()
    assert again.labels.variables == {"sex": "Sex of the person"}
    assert again.labels.values == {"sex": {1.0: "female", 2.0: "male"}}
    assert b"not said" not in out.read_bytes()
    if path.suffix != ".dta":
        assert again.labels.missing == {"age": [(90.0, 99.0)]}
        assert again.labels.measures == {"sex": "nominal", "age": "scale"}


def test_labelled_tables_go_to_other_formats_and_others_come_in(path, tmp_path):
    table = read(path, columns=["sex", "town"])
    write(table.arrow, tmp_path / "out.csv", like=table)
    text = read(tmp_path / "out.csv")
    write(text.arrow, tmp_path / f"again{path.suffix}", like=text)

    assert (tmp_path / "out.csv").read_text() == 'sex,town\n1.0,Ulm\n2.0,Zürich\n1.0,""\n,Oslo\n'
    assert read(tmp_path / f"again{path.suffix}").arrow == table.arrow


def test_every_type_goes_out_and_comes_back(path, tmp_path):
    table = read(path)
    write(table.arrow, tmp_path / f"out{path.suffix}", like=table)

    assert read(tmp_path / f"out{path.suffix}").arrow == table.arrow


def test_the_time_of_writing_is_not_in_the_file(path, tmp_path):
    table = read(path)
    out = tmp_path / f"out{path.suffix}"
    write(table.arrow, out, like=table)
    content = out.read_bytes()

    assert b"01 Jan 70" in content[:200] or b"01 Jan 1970 00:00" in content[:300]
    assert str(datetime.now().year).encode() not in content[:300]


def test_columns_are_taken_as_asked(path):
    table = read(path, columns=["town", "sex"])

    assert table.names == ("town", "sex")
    assert table.arrow.to_pydict() == people().select(["town", "sex"]).to_pydict()
    with pytest.raises(SchemaError, match=r"no column 'sexx'\. Did you mean 'sex'"):
        read(path, columns=["sexx"])
    with pytest.raises(ParameterError, match="decimal cannot be given"):
        read(path, decimal=",")


def test_a_damaged_file_is_refused(path):
    content = path.read_bytes()
    # The last bytes of a Stata file are a closing tag, without which nothing is lost.
    for n in (0, 100, len(content) // 2, len(content) - (5 if path.suffix != ".dta" else len(content) // 4)):
        path.write_bytes(content[:n])
        with pytest.raises(FileError, match="is not a complete"):
            read(path)


def test_columns_that_such_a_file_cannot_hold_are_refused_without_values(path, tmp_path):
    for table in (pa.table({"a b": ["SECRET"]}), pa.table({"a": [["SECRET"]]})):
        with pytest.raises(FileError, match=r"Rename or convert|hold lists") as caught:
            write(table, tmp_path / f"out{path.suffix}")

        assert "SECRET" not in str(caught.value)
        assert not (tmp_path / f"out{path.suffix}").exists()


@pytest.mark.parametrize("values", [[2**53 + 1, None], [-(2**60)]])
def test_whole_numbers_that_would_be_rounded_are_refused(path, tmp_path, values):
    write(pa.table({"n": [2**53, -(2**53)]}), tmp_path / f"fits{path.suffix}")
    with pytest.raises(FileError, match="Column 'n' has integers"):
        write(pa.table({"n": values}), tmp_path / f"out{path.suffix}")

    assert read(tmp_path / f"fits{path.suffix}").arrow["n"].to_pylist() == [2**53, -(2**53)]


def test_categories_decimals_and_times_with_a_zone_are_stored_as_what_there_is(path, tmp_path):
    instant = pa.array([datetime(2020, 1, 1, 10, tzinfo=UTC)], pa.timestamp("us", "Europe/Paris"))
    town = pa.array(["Ulm"]).dictionary_encode()
    write(pa.table({"at": instant, "town": town, "price": [Decimal("1.50")]}), tmp_path / f"out{path.suffix}")

    assert read(tmp_path / f"out{path.suffix}").arrow.to_pydict() == {
        "at": [datetime(2020, 1, 1, 11)],
        "town": ["Ulm"],
        "price": [1.5],
    }
    with pytest.raises(FileError, match="has durations"):
        write(pa.table({"d": [timedelta(1)]}), tmp_path / f"d{path.suffix}")


def test_integers_of_stata_stay_integers_with_gaps(tmp_path):
    path = tmp_path / "a.dta"
    pyreadstat.write_dta(pl.DataFrame({"n": pl.Series([1, 2], dtype=pl.Int32)}), path)

    assert read(path).arrow.schema.field("n").type == pa.int64()


def test_without_pyreadstat_the_extra_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyreadstat", None)

    with pytest.raises(FileError, match=r"pip install 'shoal-privacy\[spss\]'"):
        read(path)


@pytest.mark.parametrize("ending", ["sav", "dta"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_come_back_in_milliseconds(tmp_path, ending, unit):
    ticks = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
    moments = np.random.default_rng(0).integers(-5_000_000_000, 5_000_000_000, 300) * ticks + ticks // 7
    table = pa.table({"at": pa.array(moments, pa.timestamp(unit))})
    write(table, tmp_path / f"table.{ending}")
    back = read(tmp_path / f"table.{ending}").arrow["at"]

    assert back.cast(pa.timestamp("ms")).equals(
        pc.round_temporal(table["at"], 1, "millisecond").cast(pa.timestamp("ms"))
    )


@pytest.mark.parametrize(
    ("name", "seconds", "shown_as"), [("a.sav", 4e11, "DATETIME20"), ("a.dta", 4e15, "%tc")], ids=["SPSS", "Stata"]
)
def test_dates_beyond_the_year_9999_are_refused_by_the_name_of_their_column(tmp_path, name, seconds, shown_as):
    frame = pl.DataFrame({"age": [20.0, 21.0], "seen": [seconds, None]})
    writer = pyreadstat.write_sav if name.endswith("sav") else pyreadstat.write_dta
    writer(frame, tmp_path / name, variable_format={"seen": shown_as})

    assert read(tmp_path / name, columns=["age"]).n_records == 2
    with pytest.raises(FileError, match=rf"Column\(s\) 'seen' of '{name}' hold dates outside the years 1 to 9999"):
        read(tmp_path / name)


def test_a_format_of_stata_that_is_too_old_is_called_so(tmp_path):
    (tmp_path / "a.dta").write_bytes(bytes([102, 1, 0, 0]) + bytes(400))

    with pytest.raises(FileError, match="too old to be read"):
        read(tmp_path / "a.dta")


def test_a_portable_file_is_read_and_says_what_became_missing(tmp_path):
    table = read(Path(__file__).parent / "data" / "people.por")

    assert table.arrow.to_pydict() == {
        "AGE": [20.0, None, 21.0],
        "SEX": [1.0, 2.0, None],
        "TOWN": ["Ulm", "Bern", "Oslo"],
        "BORN": [date(1990, 1, 1), date(1980, 2, 2), date(1970, 3, 3)],
    }
    assert table.labels.values == {"SEX": VALUES["sex"]}
    assert table.receipt.notes == ("Values that the .por file declares missing are read as missing.",)
    with pytest.raises(FileError, match=r"\.por files are read only"):
        write(table.arrow, tmp_path / "out.por")
    with pytest.raises(ParameterError, match="encoding"):
        read(Path(__file__).parent / "data" / "people.por", encoding="cp1252")
