import stat
import subprocess
import sys
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hiding import HARMLESS, HIDING, NOT_IN_PARQUET, SECRET, unused_category
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal import FileError, ParameterError, SchemaError
from shoal.sources import parquet_rewrite, read, rewrite_parquet
from shoal.sources.clean import publishable
from strategies import arrow_tables


def records(n, seed=0):
    """Return a table with a column of each awkward type, and a replacement for two of its columns."""
    rng = np.random.default_rng(seed)
    words = np.array(["Turin", "Ulm", "Oslo", None], dtype=object)
    table = pa.table(
        {
            "id": np.arange(n),
            "age": rng.integers(0, 99, n),
            "town": pa.array(words[rng.integers(0, 4, n)]).dictionary_encode(),
            "note": pa.array([f"note {i}\n" * (i % 3) for i in range(n)]),
            "at": pa.array([datetime(2020, 1, 1, tzinfo=UTC)] * n, pa.timestamp("us", "UTC")),
            "list": pa.array([[i] * (i % 2) for i in range(n)]),
        }
    )
    return table, pa.table({"age": rng.normal(size=n), "cell": rng.integers(0, 5, n)})


def in_memory(table, replaced, columns, order):
    whole = pa.table({name: replaced[name] if name in replaced.column_names else table[name] for name in columns})
    return whole.take(order) if order is not None else whole


COLUMNS = ["note", "age", "town", "cell", "at", "list", "id"]


@pytest.mark.parametrize("shuffled", [True, False])
@pytest.mark.parametrize("columns", [COLUMNS, ["age"], ["id"], ["cell", "age"]], ids=lambda columns: "-".join(columns))
def test_the_file_holds_what_doing_it_in_memory_gives(tmp_path, monkeypatch, shuffled, columns):
    # Small pieces, so that a small file is cut as a large one is.
    monkeypatch.setattr(parquet_rewrite, "_BATCH", 300)
    monkeypatch.setattr(parquet_rewrite, "_BUCKET_BYTES", 20_000)
    table, replaced = records(5000)
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=700)
    order = np.random.default_rng(1).permutation(5000) if shuffled else None
    rewrite_parquet(tmp_path / "in.parquet", tmp_path / "out.parquet", replaced=replaced, columns=columns, order=order)
    found = read(tmp_path / "out.parquet").arrow

    assert found.column_names == columns
    assert found.to_pydict() == in_memory(table, replaced, columns, order).to_pydict()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=arrow_tables(), seed=st.integers(0, 99), n_bytes=st.sampled_from([1, 100, 10**6]))
def test_any_table_is_put_in_any_order(tmp_path, table, seed, n_bytes):
    pq.write_table(table, tmp_path / "in.parquet")
    order = np.random.default_rng(seed).permutation(table.num_rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_rewrite, "_BUCKET_BYTES", n_bytes)
        rewrite_parquet(
            *(tmp_path / "in.parquet", tmp_path / "out.parquet"),
            **{"replaced": pa.table({}), "columns": table.column_names, "order": order, "force": True},
        )

    assert read(tmp_path / "out.parquet").arrow.to_pydict() == table.take(order).to_pydict()


def test_the_same_input_gives_the_same_bytes(tmp_path):
    table, replaced = records(1000)
    pq.write_table(table, tmp_path / "in.parquet")
    for name in ("a.parquet", "b.parquet"):
        options = {"replaced": replaced, "columns": COLUMNS, "order": np.arange(1000)[::-1]}
        rewrite_parquet(tmp_path / "in.parquet", tmp_path / name, **options)

    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_the_bytes_do_not_depend_on_the_order_and_the_row_groups_of_the_source(tmp_path, monkeypatch):
    n = 5000
    table, replaced = records(n)
    order = np.random.default_rng(1).permutation(n)
    texts = pa.array([f"person {i:04}" * (i // 1000) for i in range(n)])  # longer at the end: other pieces
    table = table.append_column("who", texts.dictionary_encode())
    monkeypatch.setattr(parquet_rewrite, "_BATCH", 300)
    monkeypatch.setattr(parquet_rewrite, "_BUCKET_BYTES", 100_000)
    pq.write_table(table, tmp_path / "in.parquet")
    listed = table.take(order[::-1])  # the categories by first occurrence, as they are in frames
    for name in ("who", "town"):
        listed = listed.set_column(
            listed.column_names.index(name), name, listed[name].cast(pa.string()).dictionary_encode()
        )
    pq.write_table(listed, tmp_path / "shuffled.parquet", row_group_size=700)
    ways = {"in": (replaced, order), "shuffled": (replaced.take(order[::-1]), np.arange(n)[::-1])}
    columns = [*COLUMNS, "who"]
    for name, (values, rows) in ways.items():
        rewrite_parquet(
            *(tmp_path / f"{name}.parquet", tmp_path / f"{name}.out.parquet"),
            **{"replaced": values, "columns": columns, "order": rows},
        )
    found = pq.ParquetFile(tmp_path / "in.out.parquet")

    assert (tmp_path / "in.out.parquet").read_bytes() == (tmp_path / "shuffled.out.parquet").read_bytes()
    assert found.num_row_groups > 2
    assert read(tmp_path / "in.out.parquet").arrow.to_pydict() == in_memory(table, replaced, columns, order).to_pydict()


@pytest.mark.parametrize("order", [None, np.arange(3000)[::-1]])
def test_ordered_categories_keep_their_order_in_a_file_that_is_written_in_pieces(tmp_path, monkeypatch, order):
    monkeypatch.setattr(parquet_rewrite, "_BATCH", 500)
    monkeypatch.setattr(parquet_rewrite, "_BUCKET_BYTES", 10_000)
    codes = np.repeat([0, 2, 1], 1000)  # the first piece lacks a category in the middle
    grade = pa.DictionaryArray.from_arrays(codes, ["low", "mid", "high", "none"], ordered=True)
    pq.write_table(pa.table({"grade": grade}), tmp_path / "in.parquet")
    rewrite_parquet(
        *(tmp_path / "in.parquet", tmp_path / "out.parquet"),
        **{"replaced": pa.table({}), "columns": ["grade"], "order": order},
    )
    found = pq.read_table(tmp_path / "out.parquet")["grade"]

    assert found.type.ordered
    assert found.num_chunks > 1
    assert {tuple(chunk.dictionary.to_pylist()) for chunk in found.chunks} == {("low", "mid", "high")}
    assert found.to_pylist() == (grade if order is None else grade.take(order)).to_pylist()


def test_no_metadata_and_no_unused_category_comes_along(tmp_path):
    town = pa.DictionaryArray.from_arrays(pa.array([1, 1]), ["SECRET", "Ulm"])
    pq.write_table(pa.table({"town": town}).replace_schema_metadata({"author": "SECRET"}), tmp_path / "in.parquet")
    for order in (None, [1, 0]):
        options = {"replaced": pa.table({}), "columns": ["town"], "order": order, "force": True}
        rewrite_parquet(tmp_path / "in.parquet", tmp_path / "out.parquet", **options)

        assert b"SECRET" not in (tmp_path / "out.parquet").read_bytes()


def test_what_does_not_fit_is_refused_and_leaves_nothing(tmp_path):
    table, replaced = records(100)
    source, path = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source)
    with pytest.raises(ParameterError, match="has 100 records, but the columns to replace have 99"):
        rewrite_parquet(source, path, replaced=replaced.slice(1), columns=["age"])
    with pytest.raises(SchemaError, match=r"no column 'agee'\. Did you mean 'age'"):
        rewrite_parquet(source, path, replaced=replaced, columns=["agee"])
    for order in (np.zeros(100, dtype=int), np.arange(99), np.arange(100.0)):
        with pytest.raises(ParameterError, match="each record number from 0 to 99 once"):
            rewrite_parquet(source, path, replaced=replaced, columns=["age"], order=order)
    with pytest.raises(FileError, match="does not exist"):
        rewrite_parquet(tmp_path / "none.parquet", path, replaced=replaced, columns=["age"])

    assert [file.name for file in tmp_path.iterdir()] == ["in.parquet"]


def test_a_damaged_page_is_told_and_leaves_nothing(tmp_path):
    table, replaced = records(5000)
    pq.write_table(table, tmp_path / "in.parquet", compression="zstd")
    content = bytearray((tmp_path / "in.parquet").read_bytes())
    content[1000:9000] = bytes(8000)
    (tmp_path / "in.parquet").write_bytes(content)
    with pytest.raises(FileError, match="damaged"):
        rewrite_parquet(
            *(tmp_path / "in.parquet", tmp_path / "out.parquet"),
            **{"replaced": replaced, "columns": COLUMNS, "order": np.arange(5000)},
        )

    assert [file.name for file in tmp_path.iterdir()] == ["in.parquet"]


def test_the_temporary_folder_is_closed_to_others_and_beside_the_file(tmp_path, monkeypatch):
    modes = []
    scatter = parquet_rewrite._scatter

    def watched(file, untouched, places, size, folder):
        modes.append((folder.parent, stat.S_IMODE(folder.stat().st_mode)))
        scatter(file, untouched, places, size, folder)

    monkeypatch.setattr(parquet_rewrite, "_scatter", watched)
    table, replaced = records(10)
    pq.write_table(table, tmp_path / "in.parquet")
    rewrite_parquet(
        *(tmp_path / "in.parquet", tmp_path / "out.parquet"),
        **{"replaced": replaced, "columns": ["id"], "order": np.arange(10)},
    )

    assert modes == [(tmp_path, 0o700)]


def test_memory_stays_far_below_the_size_of_the_file(tmp_path):
    # 80 MB of untouched text, in pieces of 4 MB: Arrow's own count of its most memory must not come near the whole.
    code = """
import sys
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from shoal.sources import parquet_rewrite, rewrite_parquet
parquet_rewrite._BUCKET_BYTES = 4 << 20
n, rng = 40_000, np.random.default_rng(0)
folder = sys.argv[1]
with pq.ParquetWriter(folder + "/in.parquet", pa.schema({"id": pa.int64(), "text": pa.string()})) as writer:
    for start in range(0, n, 2000):
        texts = [rng.bytes(1000).hex() for _ in range(2000)]
        writer.write_table(pa.table({"id": np.arange(start, start + 2000), "text": texts}))
del texts
options = {"replaced": pa.table({"id": rng.normal(size=n)}), "columns": ["id", "text"], "order": rng.permutation(n)}
rewrite_parquet(folder + "/in.parquet", folder + "/out.parquet", **options)
print(pa.default_memory_pool().max_memory())
"""
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    most = int(ran.stdout)

    assert most < 40e6
    assert pq.ParquetFile(tmp_path / "out.parquet").metadata.num_rows == 40_000


@pytest.mark.parametrize("hiding", [each for each in HIDING if each not in NOT_IN_PARQUET])
@pytest.mark.parametrize("order", [None, [2, 0, 1]])
def test_columns_that_pass_through_carry_nothing_that_no_record_has(tmp_path, hiding, order):
    for text in (SECRET, HARMLESS):
        array, source = hiding(text), tmp_path / f"in-{text}.parquet"
        schema = pa.schema([pa.field("a", array.type, metadata={"by": text})], metadata={"by": text})
        try:
            pq.write_table(pa.table([array], schema=schema), source)
        except pa.ArrowNotImplementedError:  # Parquet has neither runs nor views
            pq.write_table(publishable(pa.table({"a": array})), source)
        given = {"replaced": pa.table({"b": unused_category(text)}), "columns": ["a", "b"], "order": order}
        rewrite_parquet(source, tmp_path / f"out-{text}.parquet", **given)
    found = pq.read_table(tmp_path / f"out-{SECRET}.parquet")

    assert found["a"].to_pylist() == [array.to_pylist()[i] for i in order or range(3)]
    written = [(tmp_path / f"out-{text}.parquet").read_bytes() for text in (SECRET, HARMLESS)]
    assert SECRET.encode() not in written[0]
    assert written[0] == written[1]
