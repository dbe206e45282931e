import bz2
import contextlib
import gzip
import lzma
import zipfile

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from shoal import FileError, ParameterError
from shoal.sources import read, write
from shoal.sources.unpacking import PACKINGS

PACK = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}
REFUSAL = r"has [\d,]+ bytes and unpacks to more than {} GB.*max_unpacked_gb=\."


@pytest.fixture(params=PACKINGS)
def packed(request, tmp_path):
    return tmp_path / f"a.csv{request.param}"


def test_every_compression_is_read_and_written_as_the_same_bytes(packed):
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    packed.write_bytes(PACK[packed.suffix](b"a,b\n1,x\n2,\n"))
    again = packed.with_name(f"again.csv{packed.suffix}")
    write(table, again)
    written = again.read_bytes()
    write(table, again, force=True)

    assert read(packed).arrow == table
    assert read(again).arrow == table
    assert again.read_bytes() == written


def test_an_extension_in_capitals_is_the_same(packed):
    capitals = packed.with_name(f"A.CSV{packed.suffix.upper()}")
    capitals.write_bytes(PACK[packed.suffix](b"a\n1\n"))

    assert read(capitals).arrow.to_pydict() == {"a": [1]}


def test_a_compressed_text_is_bounded(packed):
    packed.write_bytes(PACK[packed.suffix](b"a\n" + b"1\n" * 200_000))

    with pytest.raises(FileError, match=REFUSAL.format(r"0\.0001")):
        read(packed, max_unpacked_gb=0.0001)
    assert read(packed, max_unpacked_gb=0.001).n_records == 200_000


def archive(path, *members, **options):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content, **options)
    return path


def test_the_only_file_of_an_archive_is_read(tmp_path):
    beside = ("__MACOSX/._a.csv", b"0")
    path = archive(tmp_path / "A.CSV.ZIP", ("data/", b""), ("data/a.csv", b"a,b\n1,x\n2,\n"), beside)

    assert read(path).arrow.to_pydict() == {"a": [1, 2], "b": ["x", None]}
    with pytest.raises(FileError, match=r"\.csv\.zip files are read only"):
        write(pa.table({"a": [1]}), tmp_path / "out.csv.zip")


def test_archives_that_hold_no_one_table_are_refused(tmp_path):
    several = archive(tmp_path / "several.csv.zip", ("a.csv", b"a\n1\n"), ("b.csv", b"a\n1\n"))
    large = archive(tmp_path / "large.csv.zip", ("a.csv", b"a\n" + b"1\n" * 200_000))
    cut = tmp_path / "cut.csv.zip"
    cut.write_bytes(large.read_bytes()[:-30])
    locked = archive(tmp_path / "locked.csv.zip", ("a.csv", b"a\n1\n"))
    content = bytearray(locked.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + place] |= 1  # says that the member is encrypted
    locked.write_bytes(content)

    for path, options, message in (
        (several, {}, "is an archive of 2 files"),
        (large, {"max_unpacked_gb": 0.0001}, REFUSAL.format(r"0\.0001")),
        (cut, {}, "is not a complete ZIP file"),
        (locked, {}, "is encrypted"),
    ):
        with pytest.raises(FileError, match=message):
            read(path, **options)


def test_a_truncated_file_is_refused(packed):
    content = PACK[packed.suffix](b"a\n" + b"1\n" * 1000)
    packed.write_bytes(content[:-5])

    with pytest.raises(FileError, match=f"is not a complete {PACKINGS[packed.suffix].name} file"):
        read(packed)


def test_files_that_were_compressed_by_themselves_can_follow_each_other(packed):
    packed.write_bytes(PACK[packed.suffix](b"a\n1\n") + PACK[packed.suffix](b"2\n"))

    assert read(packed).arrow.to_pydict() == {"a": [1, 2]}


def test_what_follows_and_cannot_be_unpacked_is_never_left_out_silently(packed):
    packed.write_bytes(PACK[packed.suffix](b"a\n1\n") + b"x" + PACK[packed.suffix](b"2\n")[1:])

    with pytest.raises(FileError, match=f"is not a complete {PACKINGS[packed.suffix].name} file"):
        read(packed)


def parquet_of_texts(path):
    pq.write_table(pa.table({"a": ["x" * 1000] * 5_000}), path)


def parquet_of_numbers(path):
    pq.write_table(pa.table({"a": [7] * 500_000}), path)


def arrow_compressed(path):
    table = pa.table({"a": [7] * 500_000})
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer,
    ):
        writer.write_table(table)


def arrow_stream(path):
    table = pa.table({"a": pa.array(["x" * 1000] * 5_000)})
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_stream(file, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer,
    ):
        writer.write_table(table)


def arrow_of_runs(path):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([500_000], pa.int32()), pa.array([7]))
    table = pa.table({"a": runs})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def spss(path):
    pyreadstat.write_sav(pl.DataFrame({"a": ["x" * 1000] * 5_000}), path, compress=True)


BOMBS = {
    parquet_of_texts: ".parquet",
    parquet_of_numbers: ".parquet",
    arrow_compressed: ".arrow",
    arrow_stream: ".arrow",
    arrow_of_runs: ".arrow",
    spss: ".zsav",
}


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_every_format_that_can_expand_is_bounded_by_the_same_option(bomb, tmp_path):
    path = tmp_path / f"a{BOMBS[bomb]}"
    bomb(path)

    assert path.stat().st_size < 200_000
    with pytest.raises(FileError, match=REFUSAL.format(r"0\.003")):
        assert read(path, max_unpacked_gb=0.003).arrow
    assert read(path).arrow.num_rows >= 5_000


def test_a_stata_file_does_not_expand_and_has_no_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.sources.unpacking.MAX_UNPACKED_GB", 1e-9)
    write(pa.table({"a": [1.0, 2.0]}), tmp_path / "a.dta")

    assert read(tmp_path / "a.dta").n_records == 2


def test_texts_stored_by_reference_are_read_with_their_own_type(tmp_path):
    table = pa.table({"a": pa.array(["x" * 100, None, "y"] * 3000, pa.large_string()), "b": range(9000)})
    pq.write_table(table, tmp_path / "a.parquet")

    # Below the limit, and above it only if every record had all texts.
    assert read(tmp_path / "a.parquet", max_unpacked_gb=0.001).arrow == table


def test_only_the_columns_that_are_read_count(tmp_path):
    pq.write_table(pa.table({"a": ["x" * 1000] * 5_000, "b": range(5_000)}), tmp_path / "a.parquet")

    assert read(tmp_path / "a.parquet", max_unpacked_gb=0.003).load(["b"]).num_rows == 5_000


@pytest.mark.parametrize("most", [0, -1, True, "2", float("nan")])
@pytest.mark.parametrize("ending", [".csv.zst", ".parquet", ".arrow", ".sav", ".ndjson"])
def test_a_limit_that_is_none_is_refused(tmp_path, ending, most):
    write(pa.table({"a": [1.0]}), tmp_path / f"a{ending}")

    with pytest.raises(ParameterError, match="max_unpacked_gb"):
        assert read(tmp_path / f"a{ending}", max_unpacked_gb=most).arrow


def test_a_damaged_footer_of_an_arrow_file_is_refused(tmp_path):
    arrow_compressed(tmp_path / "a.arrow")
    content = bytearray((tmp_path / "a.arrow").read_bytes())
    footer = len(content) - 10 - int.from_bytes(content[-10:-6], "little")
    for place in range(footer, len(content) - 10, 4):
        (tmp_path / "a.arrow").write_bytes(content[:place] + b"\xff" * 8 + content[place + 8 :])
        with contextlib.suppress(FileError):  # the only error there may be; some bytes do not matter
            read(tmp_path / "a.arrow")
