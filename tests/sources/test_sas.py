from datetime import date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
import pytest

import shoal
from shoal import FileError, ParameterError
from shoal.sources import read, write
from sources import PEOPLE

DATA = Path(__file__).parent / "data"
PATH, CATALOG = DATA / "people.sas7bdat", str(DATA / "people.sas7bcat")


def test_values_labels_and_formats_are_read():
    table = read(PATH)

    assert table.arrow.to_pydict() == PEOPLE.to_pydict()
    assert table.labels.variables == {"age": "Age in years", "sex": "Sex of the person"}
    assert table.labels.formats == {"born": "DATE9", "sex": "SEXF"}
    assert table.labels.values == {}
    assert table.receipt.notes == (
        "Formats of 'sex' may have labels in a catalogue (.sas7bcat), which is not read. Give it as the catalog.",
    )


def test_a_catalogue_gives_the_labels_of_values_which_make_a_column_one_of_categories():
    table = read(PATH, catalog=CATALOG)
    roles = {"quasi_identifiers": ["age", "sex"], "identifiers": ["town", "income", "illness", "born"]}
    release = shoal.anonymize(PATH, k=3, reading={"catalog": CATALOG}, **roles)

    assert table.labels.values == {"sex": {1.0: "female", 2.0: "male"}}
    assert table.receipt.notes == ()
    assert str(release.schema["sex"].kind) == "nominal"
    assert "female" in str(release.codebook)


def test_a_catalogue_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "bad.sas7bcat").write_bytes(Path(CATALOG).read_bytes()[:9000])
    for path, words in (("missing.sas7bcat", "does not exist"), ("bad.sas7bcat", "cannot be read")):
        with pytest.raises(FileError, match=f"catalogue.*{words}"):
            read(PATH, catalog=str(tmp_path / path))
    with pytest.raises(FileError, match="It is a catalogue"):
        read(CATALOG)


def test_special_missing_values_are_missing_and_need_no_policy():
    table = read(DATA / "special.sas7bdat")
    with pytest.warns(shoal.ShoalWarning, match="Special missing values"):
        release = shoal.anonymize(DATA / "special.sas7bdat", k=3, quasi_identifiers=["pay", "age"])

    assert table.arrow["pay"].null_count == 1
    assert table.arrow.schema.field("pay").type == pa.float64()
    assert table.labels.special == {"pay": ["A"]}
    assert table.receipt.notes[0].startswith("Special missing values (.A to .Z, ._) in 'pay' are read as missing")
    assert release.verdict.holds


def test_special_missing_values_of_stata_are_told_in_the_same_way(tmp_path):
    frame = pd.DataFrame({"pay": [1.0, "a", 3.0] * 4, "age": [20, 21, 22] * 4})
    pyreadstat.write_dta(frame, tmp_path / "a.dta", missing_user_values={"pay": ["a"]})
    table = read(tmp_path / "a.dta")

    assert table.labels.special == {"pay": ["a"]}
    assert table.arrow["pay"].to_pylist() == [1.0, None, 3.0] * 4
    assert shoal.anonymize(tmp_path / "a.dta", k=3, quasi_identifiers=["pay", "age"]).verdict.holds


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9])
def test_a_corrupt_file_is_refused(tmp_path, share):
    content = PATH.read_bytes()
    (tmp_path / "bad.sas7bdat").write_bytes(content[: int(share * len(content))])

    with pytest.raises(FileError, match=r"'bad\.sas7bdat' is not a complete \.sas7bdat file"):
        read(tmp_path / "bad.sas7bdat")


def test_a_transport_file_has_labels_and_exact_numbers_and_no_time_of_writing(tmp_path):
    numbers = [*np.random.default_rng(0).normal(size=50), 0.1, -1e60, 1e-60]
    table = read(PATH)
    release = pa.table({"age": numbers, "at": [datetime(2020, 1, 1, 10, 30)] * 53, "born": [date(1800, 1, 1)] * 53})
    write(release, tmp_path / "a.xpt", like=table)
    again = read(tmp_path / "a.xpt")

    assert again.arrow["age"].to_pylist() == numbers
    assert again.arrow["born"].to_pylist() == release["born"].to_pylist()
    assert again.arrow["at"].to_pylist() == release["at"].to_pylist()
    assert again.labels.variables == {"age": "Age in years"}
    assert b"01JAN70:00:00:00" in (tmp_path / "a.xpt").read_bytes()[:800]
    assert datetime.now().strftime("%b%y").upper().encode() not in (tmp_path / "a.xpt").read_bytes()[:800]


@pytest.mark.parametrize(("column", "version"), [("short", 5), ("a_long_name_of_a_column", 8)])
def test_a_transport_file_has_version_5_unless_a_name_is_too_long(tmp_path, column, version):
    write(pa.table({column: [1.0]}), tmp_path / "a.xpt")

    assert (b"LIBV8" in (tmp_path / "a.xpt").read_bytes()[:200]) == (version == 8)
    assert read(tmp_path / "a.xpt").names == (column,)


def test_sas7bdat_is_not_written(tmp_path):
    with pytest.raises(FileError, match=r"\.sas7bdat files are read only.*for instance \.xpt"):
        shoal.anonymize(PEOPLE.select(["age"]), k=3, quasi_identifiers=["age"]).write(tmp_path / "out.sas7bdat")
    pyreadstat.write_xport(pl.DataFrame({"a": [1.0]}), tmp_path / "a.xpt")
    with pytest.raises(ParameterError, match="catalog cannot be given"):
        read(tmp_path / "a.xpt", catalog=CATALOG)
