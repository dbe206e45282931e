import os
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal.sources.batches
import shoal.sources.csv
from shoal.errors import FileError, ParameterError
from shoal.sources import read, write
from shoal.sources.batches import open_batches

TABLE = pa.table(
    {
        "number": [1, 2, None, 4, 5],
        "code": ["007", "x", "", None, "é"],
        "share": [0.5, 1.0, 2.5, None, 1e300],
        "day": pa.array([1, 2, 3, 4, None], pa.int32()).cast(pa.date32()),
    }
)


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_batches_together_are_the_table_that_is_read_at_once(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(shoal.sources.batches, "AT_ONCE", 2)
    monkeypatch.setattr(shoal.sources.csv, "_TEXT", 10)
    path = tmp_path / f"table.{ending}"
    write(TABLE, path)
    source = open_batches(path)
    batches = list(source.read(["share", "code"]))

    assert (source.n_records, source.kind) == (5, ending)
    assert len(batches) >= 3
    assert pa.concat_tables(batches).equals(read(path).arrow.select(["share", "code"]))
    assert source.sha256 == read(path).sha256


def test_a_folder_is_read_in_the_order_of_names_without_hidden_files(tmp_path):
    for name in ("b.parquet", "a.parquet", "_SUCCESS.parquet", ".hidden.parquet", "c.PARQUET"):
        pq.write_table(TABLE.slice(0, 2) if name == "a.parquet" else TABLE, tmp_path / name)
    source = open_batches(tmp_path)

    assert [path.name for path in source.files.paths] == ["a.parquet", "b.parquet", "c.PARQUET"]
    assert source.n_records == 12


def test_files_that_would_be_left_out_of_a_folder_are_refused_unless_they_are_hidden(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".a.parquet.crc").write_text("")
    assert open_batches(tmp_path).n_records == TABLE.num_rows

    (tmp_path / "b.csv").write_text("code,share\n1,2\n")
    with pytest.raises(FileError, match=r"1 file\(s\) that are not Parquet, such as 'b.csv': .* would be left out"):
        open_batches(tmp_path)


def test_a_folder_that_gets_another_file_is_refused(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    source = open_batches(tmp_path)
    source.check_unchanged()
    pq.write_table(TABLE, tmp_path / "b.parquet")

    with pytest.raises(FileError, match="holds other Parquet files"):
        source.check_unchanged()


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (TABLE.drop_columns(["code"]), "it has no column 'code'"),
        (TABLE.append_column("new", TABLE["code"]), "only it has the column 'new'"),
        (TABLE.set_column(0, TABLE.column_names[0], pa.nulls(len(TABLE), pa.date32())), "holds date32.* instead of"),
        (TABLE.select(TABLE.column_names[::-1]), "in another order"),
    ],
)
def test_files_of_a_folder_that_differ_are_refused_with_the_difference(tmp_path, other, difference):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(other, tmp_path / "b.parquet")

    with pytest.raises(FileError, match=rf"'b.parquet' does not have .* 'a.parquet': .*{difference}"):
        open_batches(tmp_path)


def test_folders_that_are_no_table_are_refused(tmp_path):
    with pytest.raises(FileError, match="no Parquet file"):
        open_batches(tmp_path)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_that_changes_is_refused(tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    write(TABLE, path)
    source = open_batches(path)
    os.utime(path, ns=(1, 1))

    with pytest.raises(FileError, match="has changed"):
        list(source.read())
    with pytest.raises(FileError, match="has changed"):
        source.check_unchanged()


def test_formats_that_have_no_batches_are_refused(tmp_path):
    write(TABLE, tmp_path / "table.csv.gz")
    with pytest.raises(ParameterError, match="Unpack it"):
        open_batches(tmp_path / "table.csv.gz")
    with pytest.raises(FileError, match="does not exist"):
        open_batches(tmp_path / "nothing.parquet")


def test_a_damaged_file_is_named_without_its_values(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(TABLE, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileError, match="not a complete Parquet file"):
        open_batches(path)


NAMED = [
    (["1", "02", "-3"], pa.int32(), [1, 2, -3]),
    (["1", "3000000000"], pa.int64(), [1, 3_000_000_000]),
    (["1", "1.5"], pa.float64(), [1.0, 1.5]),
    (["3000000000", "1.5"], pa.string(), ["3000000000", "1.5"]),
    (["2020-01-01", "2021-02-03"], pa.date32(), [date(2020, 1, 1), date(2021, 2, 3)]),
    (["2020-02-30", "2020-01-01"], pa.string(), ["2020-02-30", "2020-01-01"]),
    (["1", "a%2Fb", "c d"], pa.string(), ["1", "a/b", "c d"]),
    (["01", "true"], pa.string(), ["01", "true"]),
    (["__HIVE_DEFAULT_PARTITION__", "7"], pa.int32(), [None, 7]),
    (["0x1F", "1_000", "2020-1-2"], pa.string(), ["0x1F", "1_000", "2020-1-2"]),
]
"""Names of folders, and the type and values that Spark reads from them (tests/engines/spark/test_spark_release.py)."""


def named_folder(folder, texts):
    """Write a file for each text, in a folder named by it."""
    for number, text in enumerate(texts):
        (folder / f"part={text}").mkdir(parents=True)
        pq.write_table(pa.table({"number": [number]}), folder / f"part={text}" / "a.parquet")


@pytest.mark.parametrize(("texts", "kind", "values"), NAMED)
def test_names_of_folders_are_columns(tmp_path, texts, kind, values):
    named_folder(tmp_path, texts)
    source = open_batches(tmp_path)
    found = pa.concat_tables(source.read())

    assert source.types.field("part").type == found.schema.field("part").type == kind
    assert dict(zip(found["number"].to_pylist(), found["part"].to_pylist(), strict=True)) == dict(enumerate(values))
    assert pa.concat_tables(source.read(["part"]))["part"].equals(found["part"])


@pytest.mark.parametrize("text", ["99999999999999999999", "1e5", "2.", "1d", "1.5F", "NaN", " 1", "2020-01-01 10%3A00"])
def test_names_of_folders_that_other_programs_read_otherwise_are_refused_without_them(tmp_path, text):
    named_folder(tmp_path, [text, "1"])
    with pytest.raises(FileError, match="give column 'part' values that other programs read as") as caught:
        open_batches(tmp_path)

    assert text not in str(caught.value).replace(str(tmp_path), "")


def test_a_folder_is_another_table_when_another_name_gives_it_other_values(tmp_path):
    named_folder(tmp_path, ["1"])
    before = open_batches(tmp_path).sha256
    (tmp_path / "part=1").rename(tmp_path / "part=2")

    assert open_batches(tmp_path).sha256 != before


@pytest.mark.parametrize("place", ["b.parquet", "other=1/b.parquet", "part=1/part=2/b.parquet", "part=1/x=2/b.parquet"])
def test_files_in_folders_of_other_columns_are_refused(tmp_path, place):
    named_folder(tmp_path, ["1"])
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"number": [1]}), tmp_path / place)
    with pytest.raises(FileError, match="is not in folders named COLUMN=VALUE of the same columns"):
        open_batches(tmp_path)


def test_a_column_in_files_and_in_names_is_refused(tmp_path):
    named_folder(tmp_path / "number=1", ["1"])
    with pytest.raises(FileError, match="has column 'number' twice"):
        open_batches(tmp_path)


def test_a_folder_without_a_limit_of_memory_is_refused_with_the_option(tmp_path):
    with pytest.raises(FileError, match=r'with a limit of memory, memory="2GB"'):
        read(tmp_path)
