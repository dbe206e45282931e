import subprocess
import sys
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import shoal
from shoal.errors import FileError
from shoal.sources import read
from shoal.sources.databases.values import in_microseconds

ROUNDED = pa.array([Decimal("1234567890123456.78"), Decimal("0.01")] * 2, pa.decimal128(18, 2))
PADDED = pa.array([Decimal("1234567.8900000000"), Decimal("0.0000000000")] * 2, pa.decimal128(38, 10))
TIMES = pa.array([1, 1_000_000_001] * 2, pa.timestamp("ns"))
NUL = pa.array(["a\0b", "a"] * 2)


def written(values, path):
    table = pa.table({"x": [1.0, 1.0, 2.0, 2.0], "v": values})
    release = shoal.anonymize(table, k=2, quasi_identifiers=["x"], other=["v"], seed=1)
    at = {"table": "t"} if path.suffix in (".db", ".duckdb") else {}
    release.write(path, order="keep", to_table=at.get("table"))
    return read(path, **at).arrow["v"].to_pylist()


@pytest.mark.parametrize(
    ("values", "endings", "message"),
    [
        (ROUNDED, ["xlsx", "sav", "dta", "xpt", "db"], "decimals of more than 15 digits"),
        (NUL, ["csv", "csv.gz", "sav", "dta", "xpt"], "NUL character"),
        (NUL.dictionary_encode(), ["csv", "sav"], "NUL character"),
        (TIMES, ["db"], "finer than a microsecond"),
        (pa.array([1e300, 1.0] * 2), ["xpt"], "above 7e\\+75"),
        (pa.array([1e-300, 1.0] * 2), ["xpt"], "closer to zero"),
        (pa.array([float("nan"), 1.0] * 2), ["xpt", "dta"], "NaN or infinite"),
    ],
)
def test_a_value_that_a_format_would_change_is_refused_and_nothing_is_written(tmp_path, values, endings, message):
    for ending in endings:
        with pytest.raises(FileError, match=f"'v'.*{message}"):
            written(values, tmp_path / f"r.{ending}")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["sav", "dta", "xpt"])
def test_a_full_disk_is_named_as_the_reason(tmp_path, ending):
    code = f"""
import resource, pyarrow as pa, signal
from shoal.errors import FileError
from shoal.sources import write
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
try:
    write(pa.table({{"x": [0.5 * i for i in range(20_000)]}}), {str(tmp_path / f"r.{ending}")!r})
except FileError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "larger than the system allows" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["xlsx", "sav", "dta", "xpt", "db"])
def test_decimals_with_many_places_are_kept_where_a_float_has_their_digits(tmp_path, ending):
    assert written(PADDED, tmp_path / f"r.{ending}") == [1234567.89, 0.0] * 2


@pytest.mark.parametrize("ending", ["duckdb", "parquet"])
def test_types_that_few_have_are_written_as_the_nearest_one(tmp_path, ending):
    hundreds = pa.array([Decimal("1100"), Decimal("2200")] * 2, pa.decimal128(9, -2))
    halves = pa.array([0.5, 1.5] * 2, pa.float32()).cast(pa.float16())

    assert written(hundreds, tmp_path / f"a.{ending}") == [Decimal("1100"), Decimal("2200")] * 2
    assert written(halves, tmp_path / f"b.{ending}") == [0.5, 1.5] * 2


def test_times_for_a_database_are_refused_without_a_value():
    with pytest.raises(FileError) as refusal:
        in_microseconds("seen", pa.chunked_array([TIMES]), "PostgreSQL")
    stored = in_microseconds("seen", pa.chunked_array([TIMES.cast(pa.timestamp("us"), safe=False)]), "PostgreSQL")

    assert "1000000001" not in str(refusal.value)
    assert stored.to_pylist()[1] == datetime(1970, 1, 1, 0, 0, 1)
