import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import shoal
from shoal import FileError, ParameterError, SchemaError, ShoalError
from shoal.sources import FORMATS, Table, read, write
from shoal.sources.parquet_arrow import read_columns
from strategies import arrow_tables

ENDINGS = [".parquet", ".arrow", ".feather", ".ipc"]
SECRETS = pa.table({"name": ["SECRET"] * 3000, "age": range(3000)})


def types(arrow):
    """Return the types of the columns; Parquet gives text in dictionaries the smaller of its two sizes."""
    return [str(kind).replace("large_string", "string") for kind in arrow.schema.types]


def in_lists(values):
    return pa.ListArray.from_arrays(range(len(values) + 1), values)


def in_structs(values):
    return pa.StructArray.from_arrays([values], ["a"])


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrow=arrow_tables())
def test_values_and_types_survive(tmp_path, ending, arrow):
    write(arrow, tmp_path / f"a{ending}", force=True)
    found = read(tmp_path / f"a{ending}").arrow

    assert types(found) == types(arrow)
    assert found.to_pydict() == arrow.to_pydict()


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_table_gives_the_same_bytes(tmp_path, ending):
    for name in "ab":
        write(SECRETS, tmp_path / f"{name}{ending}")

    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_metadata_and_no_unused_category_is_written(tmp_path, ending):
    town = pa.DictionaryArray.from_arrays(pa.array([1, None, 1]), ["SECRET", "Ulm"])
    arrow = pa.table(
        [town], schema=pa.schema([pa.field("town", town.type, metadata={"by": "SECRET"})], metadata={"by": "SECRET"})
    )
    write(arrow, tmp_path / f"a{ending}")

    assert b"SECRET" not in (tmp_path / f"a{ending}").read_bytes()
    assert read(tmp_path / f"a{ending}").arrow.to_pydict() == {"town": ["Ulm", None, "Ulm"]}


@pytest.mark.parametrize("ending", ENDINGS)
def test_columns_are_taken_as_asked_and_missing_ones_named(tmp_path, ending):
    write(pa.table({"a": [1], "income": [2], "c": [3]}), tmp_path / f"a{ending}")

    assert read(tmp_path / f"a{ending}", columns=["c", "a"]).arrow.to_pydict() == {"c": [3], "a": [1]}
    with pytest.raises(SchemaError, match=r"no column 'incom'\. Did you mean 'income'\? Columns: a, income, c\."):
        read(tmp_path / f"a{ending}", columns=["incom"])


def test_a_column_that_is_not_asked_for_is_not_read(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"keep": range(3000), "name": [f"{i} SECRET" for i in range(3000)]}), path, use_dictionary=False
    )
    content = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(0).column(1).data_page_offset
    content[start : start + 2000] = bytes(2000)
    path.write_bytes(content)

    assert read(path, columns=["keep"]).arrow["keep"].to_pylist() == list(range(3000))
    with pytest.raises(FileError, match="is not a complete Parquet file"):
        read(path).load(["name"])


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("keep", [0, 3, 40, 0.5, 0.99])
def test_a_file_cut_short_is_refused_in_one_paragraph_without_values(tmp_path, ending, keep):
    path = tmp_path / f"a{ending}"
    write(SECRETS, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if keep < 1 else keep])
    with pytest.raises(FileError, match="is not a complete") as caught:
        read(path)

    assert "SECRET" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".arrow", ".sav", ".zsav", ".dta"])
def test_damage_anywhere_is_refused_or_does_no_harm(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    days = [date(2020, 1, 1)] * 60
    write(pa.table({"a": range(60), "day": days, "t": ["x", "y"] * 30}), path)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(30):
        damaged = np.frombuffer(content, dtype=np.uint8).copy()
        damaged[rng.integers(0, len(damaged), 3)] = rng.integers(0, 256, 3)
        path.write_bytes(damaged.tobytes())
        with suppress(ShoalError):
            assert isinstance(read(path), Table)


@pytest.mark.parametrize("ending", sorted(FORMATS))
def test_a_missing_file_a_folder_and_text_of_another_kind_are_refused(tmp_path, ending):
    with pytest.raises(FileError, match="does not exist"):
        read(tmp_path / f"none{ending}")
    (tmp_path / f"folder{ending}").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        read(tmp_path / f"folder{ending}")
    (tmp_path / f"odd{ending}").write_bytes(b"\xff\x00SECRET\n" * 99)
    with pytest.raises(FileError, match="odd") as caught:
        read(str(tmp_path / f"odd{ending}"))
    assert "SECRET" not in str(caught.value)


def test_arrow_is_read_as_file_and_as_stream(tmp_path):
    with pa.ipc.new_stream(tmp_path / "stream.arrow", SECRETS.schema) as writer:
        writer.write_table(SECRETS)
    pyarrow.feather.write_feather(SECRETS, tmp_path / "a.feather", compression="lz4")

    assert read(tmp_path / "stream.arrow").arrow == SECRETS
    assert read(tmp_path / "a.feather").arrow == SECRETS


@pytest.mark.parametrize("wrapped", [lambda texts: texts, in_lists, in_structs])
def test_categories_and_texts_as_polars_writes_them_to_arrow_files_can_be_computed_on(tmp_path, wrapped):
    views = pa.array(["Turin", "Bari", "Turin"]).cast(pa.string_view())
    cities = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.uint32()), views[:2], ordered=True)
    table = pa.table({"category": wrapped(cities), "text": wrapped(views)})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    read_in = read(tmp_path / "a.arrow").arrow

    assert read_in.take([2, 1]).to_pylist() == [table.to_pylist()[i] for i in (2, 1)]
    assert read_in["category"].cast(read_in["text"].type).to_pylist() == table["text"].to_pylist()


def test_two_columns_of_one_name_are_refused(tmp_path):
    twice = pa.table([[1], [2]], names=["a", "a"])
    pq.write_table(twice, tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "a.arrow", twice.schema) as writer:
        writer.write_table(twice)

    for name in ("a.parquet", "a.arrow"):
        with pytest.raises(SchemaError, match="same name: 'a'"):
            read(tmp_path / name)


def test_records_are_written_in_the_order_asked_for(tmp_path):
    arrow = pa.table({"a": [10, 20, 30]})
    write(arrow, tmp_path / "a.csv", order=[2, 0, 1])

    assert read(tmp_path / "a.csv").arrow["a"].to_pylist() == [30, 10, 20]
    with pytest.raises(ParameterError, match="each record number from 0 to 2 once"):
        write(arrow, tmp_path / "b.csv", order=[0, 0, 1])


def test_a_file_is_not_replaced_unless_asked_and_an_unknown_ending_is_refused(tmp_path):
    arrow = pa.table({"a": [1]})
    write(arrow, tmp_path / "a.parquet")
    with pytest.raises(FileError, match="already exists"):
        write(arrow, tmp_path / "a.parquet")
    write(pa.table({"a": [2]}), tmp_path / "a.parquet", force=True)
    with pytest.raises(FileError, match=r"does not end in a known file extension\. Extensions: \.csv"):
        write(arrow, tmp_path / "a.xml")
    with pytest.raises(FileError, match="known file extension"):
        read(tmp_path / "a.xml")

    assert read(tmp_path / "a.parquet").arrow["a"].to_pylist() == [2]


def test_a_type_that_a_format_does_not_have_is_refused(tmp_path):
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array(["SECRET"])])

    with pytest.raises(FileError, match=r"type that a \.parquet file cannot hold") as caught:
        write(pa.table({"a": union}), tmp_path / "a.parquet")
    assert "SECRET" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_option_that_a_format_does_not_know_is_an_error(tmp_path):
    write(pa.table({"a": [1]}), tmp_path / "a.parquet")

    with pytest.raises(ParameterError, match=r"decimal cannot be given for a \.parquet file"):
        read(tmp_path / "a.parquet", decimal=",")


def test_texts_that_are_read_back_coded_are_those_of_the_file(tmp_path):
    some = pa.table({"city": ["Rome", None, "Bari", "", "Rome"], "job": list("abcab"), "age": [1, 2, None, 4, 5]})
    write(some, tmp_path / "a.parquet")
    found = read_columns(tmp_path / "a.parquet", ["age", "city", "job"], coded=["age", "city"])

    assert found.column_names == ["age", "city", "job"]
    assert [pa.types.is_dictionary(kind) for kind in found.schema.types] == [False, True, False]
    assert found.to_pydict() == read(tmp_path / "a.parquet", columns=["age", "city", "job"]).arrow.to_pydict()


def test_columns_read_one_by_one_open_the_file_once(tmp_path, monkeypatch):
    path = tmp_path / "wide.parquet"
    wide = pa.table({f"c{i}": [i, None] for i in range(50)} | {"a.b": ["x", "y"], "pair": [{"low": 1}, {"low": 2}]})
    pq.write_table(wide, path)
    opened = []
    original = pq.ParquetFile.__init__
    monkeypatch.setattr(
        pq.ParquetFile, "__init__", lambda *given, **options: opened.append(1) or original(*given, **options)
    )
    source = read(path)
    before = len(opened)
    columns = {name: source.load([name])[name] for name in source.names}

    assert len(opened) == before + 1
    assert pa.table(columns).equals(source.arrow)


def test_columns_are_read_by_several_threads(tmp_path):
    wide = pa.table({f"c{i}": np.arange(5_000) * i for i in range(40)})
    pq.write_table(wide, tmp_path / "wide.parquet", row_group_size=500)
    source = read(tmp_path / "wide.parquet")
    with ThreadPoolExecutor(8) as threads:
        columns = dict(
            zip(source.names, threads.map(lambda name: source.load([name])[name], source.names), strict=True)
        )

    assert pa.table(columns).equals(wide)


def _people(**columns):
    return pa.table({"age": [20 + i % 9 for i in range(60)], **columns})


IDS = [uuid.UUID(int=i % 20) for i in range(60)]
EXTENSIONS = {
    "uuid": pa.array([each.bytes for each in IDS], pa.uuid()),
    "json": pa.array([f'{{"a": {i % 20}}}' for i in range(60)], pa.json_()),
}
EXTENSIONS["list of uuid"] = in_lists(EXTENSIONS["uuid"])
EXTENSIONS["structure of json"] = in_structs(EXTENSIONS["json"])


@pytest.mark.parametrize("name", EXTENSIONS)
@pytest.mark.parametrize("memory", [None, "1GB"])
def test_columns_of_extension_types_are_published_beside_others(tmp_path, name, memory):
    pq.write_table(_people(x=EXTENSIONS[name]), tmp_path / "a.parquet")
    with shoal.anonymize(
        tmp_path / "a.parquet", k=3, quasi_identifiers=["age"], other=["x"], seed=1, memory=memory
    ) as release:
        release.write(tmp_path / "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")["x"]

    assert found.type == EXTENSIONS[name].type
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, EXTENSIONS[name].to_pylist()))


def test_text_that_is_not_utf_8_is_refused_by_the_name_of_its_column(tmp_path):
    offsets = pa.array(range(61), pa.int32()).buffers()[1]
    broken = pa.Array.from_buffers(pa.string(), 60, [None, offsets, pa.py_buffer(b"\xff" * 60)])
    pq.write_table(_people(name=broken), tmp_path / "a.parquet")

    assert read(tmp_path / "a.parquet", columns=["age"]).arrow.num_rows == 60
    with pytest.raises(FileError, match=r"Column 'name' of 'a\.parquet' holds values that its type does not permit"):
        _ = read(tmp_path / "a.parquet").arrow


@pytest.mark.parametrize("plain_footer", [True, False])
def test_encrypted_files_are_refused(tmp_path, plain_footer):
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):
        def wrap_key(self, key, name):
            return key.hex()

        def unwrap_key(self, wrapped, name):
            return bytes.fromhex(wrapped)

    how = encryption.EncryptionConfiguration("footer", column_keys={"column": ["age"]}, plaintext_footer=plain_footer)
    factory = encryption.CryptoFactory(lambda _: Keys())
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    with pq.ParquetWriter(tmp_path / "a.parquet", _people().schema, encryption_properties=properties) as writer:
        writer.write_table(_people())

    with pytest.raises(FileError, match="encrypted"):
        read(tmp_path / "a.parquet")
