"""A CSV file that is read a part at a time is the table that is read as a whole, in bounded memory."""

import os

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import shoal.sources.csv
from shoal import FileError
from shoal.sources import csv_types, read
from shoal.sources.batches import open_batches

CELLS = ["", '""', "1", "-2", " 3", "2.5", "2,5", "1e3", "nan", "inf", "007", "+1", "0x1F", "99999999999999999999"]
CELLS += ["1.234,5", "1.234", "true", "FALSE", "2020-01-01", "2020-02-30", "2020-01-01 10:00", "1066-10-14 10:00"]
CELLS += [
    "2020-01-01T10:00:00.123456789",
    "2020-01-01T10:00+01:00",
    "2020-07-01T10:00+02",
    "31.12.1999",
    "NA",
    '"two\nlines"',
    '"a;""b"',
    "é",
]
READING = [{}, {"null_values": ["NA"]}, {"thousands": "."}, {"date_format": "%d.%m.%Y"}, {"decimal": ","}]
READING += [{"fields": {"b": {"date_format": "%d.%m.%Y", "null_values": ["1"]}}}, {"fields": {"a": {"decimal": ","}}}]
READING += [{"blanks": "strip"}, {"comment": "2"}, {"header_row": 1}]
COLUMNS = st.lists(st.sampled_from(CELLS), min_size=1, max_size=4).flatmap(
    lambda some: st.lists(st.sampled_from(some), min_size=8, max_size=8)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(
    a=COLUMNS, b=COLUMNS, end=st.sampled_from(["\n", "\r\n"]), reading=st.sampled_from(READING), size=st.integers(1, 90)
)
@example(a=["1"] * 8, b=["2020-01-01T10:00+01:00"] * 6 + ["2020-07-01T10:00+02"] * 2, end="\n", reading={}, size=30)
@example(
    a=["nan", "nan", "2.5", *["1"] * 5], b=["99999999999999999999", "1.5", *["1"] * 6], end="\n", reading={}, size=9
)
@example(a=[""] * 5 + ["1", "x", ""], b=["1.234", "1.234,5", *["1"] * 6], end="\n", reading={"thousands": "."}, size=9)
def test_types_values_and_refusals_do_not_depend_on_the_parts(tmp_path, a, b, end, reading, size):
    path = tmp_path / "table.csv"
    path.write_bytes("".join(f"{one};{two}{end}" for one, two in zip(["a", *a], ["b", *b], strict=True)).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_types, "_N_FIRST", 2)  # so that eight records are many
        patch.setattr(csv_types, "_N_EARLY", 4)
        whole = outcome(lambda: at_once(path, delimiter=";", **reading))
        patch.setattr(shoal.sources.csv, "_TEXT", size)
        parts = outcome(lambda: in_parts(path, delimiter=";", **reading))

    assert parts == whole


def at_once(path, **reading):
    found = read(path, **reading)
    return found.types, repr(found.arrow.to_pydict()), found.receipt  # so that NaN is NaN


def in_parts(path, **reading):
    source = open_batches(path, **reading)
    found = pa.concat_tables([source.types.empty_table(), *source.read()])
    assert found.num_rows == source.n_records
    return source.types, repr(found.to_pydict()), source.receipt


def outcome(call):
    """Return what a call returns, or its refusal."""
    try:
        return call()
    except FileError as error:
        return str(error)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "shift_jis"])
def test_records_end_where_lines_end_in_every_encoding(tmp_path, monkeypatch, encoding, end):
    text = "a;b\n" + '1;x\n22;"y\nz"\n' * 9
    (tmp_path / "table.csv").write_bytes(text.replace("\n", end).encode(encoding))
    expected = at_once(tmp_path / "table.csv", encoding=encoding)
    for size in (1, 8, 33):
        monkeypatch.setattr(shoal.sources.csv, "_TEXT", size)

        assert in_parts(tmp_path / "table.csv", encoding=encoding) == expected
    assert "[1, 22, 1, 22" in expected[1]


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1,2\n\n1,SECRET,3\n" + "1,2\n" * 40 + '"two\nlines",SECRET\nSECRET\n' + "1,2,3\n" * 9,
        "a,b\n" + "1,2\n" * 40 + '1,x\n1,5" SECRET\n' + "1,2\n" * 40,
        "a,b\n" + "1,2\n" * 40 + '1,"SECRET\n' + "1,2\n" * 40,
        b"a,b\n" + b"1,2\n" * 40 + b"1,M\xfcnchen\n" + b"1,2\n" * 40,
        b"a,b\n" + b"1,2\n" * 40 + b"1,SEC\0RET\n",
    ],
)
def test_the_place_of_what_is_wrong_does_not_depend_on_the_parts(tmp_path, monkeypatch, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    whole = outcome(lambda: read(path))
    monkeypatch.setattr(shoal.sources.csv, "_TEXT", 16)

    assert outcome(lambda: open_batches(path)) == whole
    assert "line" in whole
    assert "SECRET" not in whole


def test_values_of_another_type_than_when_the_file_was_opened_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    state = path.stat()
    source = open_batches(path)
    with open(path, "r+") as file:  # the same file, of the same size
        file.write("a,b\n1,x\n")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(FileError, match="has changed while it was in use"):
        list(source.read())


def test_a_record_that_does_not_end_is_refused_before_it_takes_all_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(shoal.sources.csv, "_TEXT", 1 << 10)
    monkeypatch.setattr(shoal.sources.csv, "_LONGEST", 1 << 12)
    path = tmp_path / "table.csv"
    path.write_text('a,b\n1,2\n1,"' + "SECRET\n" * 10_000 + '"\n')
    with pytest.raises(FileError, match=r"record in line 3 of 'table.csv' has more than 4,096 bytes") as caught:
        open_batches(path)

    assert "SECRET" not in str(caught.value)
    assert read(path).n_records == 2


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_memory_does_not_grow_with_the_file_its_columns_or_its_quotes(tmp_path, monkeypatch, encoding):
    monkeypatch.setattr(shoal.sources.csv, "_TEXT", 1 << 14)
    opened = []
    monkeypatch.setattr(shoal.sources.csv, "unpacked", counting(shoal.sources.csv.unpacked, opened))
    names = [f"c{i}" for i in range(50)]
    peaks = []
    for n in (400, 1_600):
        path = tmp_path / f"{n}.csv"
        with open(path, "w") as file:
            file.write(",".join(names) + "\n")
            file.writelines(",".join(f'"{(i * j) % 97}"' for j in range(50)) + "\n" for i in range(n))
        base = pa.total_allocated_bytes()
        source = open_batches(path, encoding=encoding)
        peaks.append(max(pa.total_allocated_bytes() - base for _ in source.read(["c1", "c49"])))
        assert source.n_records == n

    # The beginning, all once for the types, and once for each reading.
    assert len(opened) == 2 * 3
    assert peaks[1] < 1.5 * peaks[0] < 2e6


def counting(call, calls):
    def counted(*arguments):
        calls.append(arguments)
        return call(*arguments)

    return counted


def test_the_batches_of_an_arrow_file_are_not_read_to_be_counted(tmp_path, monkeypatch):
    path = tmp_path / "table.arrow"
    table = pa.table({"a": range(1_000)})
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table, max_chunksize=10)
    monkeypatch.setattr(pa.ipc.RecordBatchFileReader, "get_batch", None)

    assert open_batches(path).n_records == 1_000
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(FileError, match="Arrow"):
        open_batches(path)
