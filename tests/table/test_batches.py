import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal.table.batches
from shoal.errors import FileError, ParameterError
from shoal.table import read, write
from shoal.table.batches import open_batches

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
    monkeypatch.setattr(shoal.table.batches, "AT_ONCE", 2)
    monkeypatch.setattr(shoal.table.batches, "_TEXT", 10)
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

    assert [path.name for path in source.paths] == ["a.parquet", "b.parquet", "c.PARQUET"]
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
    (tmp_path / "year=2024").mkdir()
    pq.write_table(TABLE, tmp_path / "year=2024" / "a.parquet")
    with pytest.raises(FileError, match="partitions"):
        open_batches(tmp_path)
    (tmp_path / "year=2024" / "a.parquet").rename(tmp_path / "a.parquet")


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
