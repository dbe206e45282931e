"""Bad files of every source: one paragraph that names the remedy, exit code 2, nothing written, no value shown."""

import json
import zipfile
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest
from shell import ROLES, SECRETS, is_one_paragraph, people, shoal_command

from shoal.sources import write

SAS = Path(__file__).parents[1] / "sources" / "data" / "people.sas7bdat"


def workbook(path, rows=None, sheets=("people",)):
    book = openpyxl.Workbook()
    book.active.title = sheets[0]
    for name in sheets[1:]:
        book.create_sheet(name)
    for row in rows or people():
        book.active.append(row)
    book.save(path)
    return path


def encrypted(folder):
    path = folder / "people.xlsx"
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600) + "EncryptedPackage".encode("utf-16-le"))
    return path


def corrupt_sas(folder):
    (folder / "people.sas7bdat").write_bytes(SAS.read_bytes()[:9000])
    return folder / "people.sas7bdat"


def changing_keys(folder):
    header, *rows = people()
    records = [dict(zip(header, row, strict=True)) for row in rows]
    del records[7]["income"]
    (folder / "people.ndjson").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return folder / "people.ndjson"


def zip_bomb(folder):
    path = workbook(folder / "people.xlsx")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/theme/bomb.xml", bytes(20_000_000))
    return path


def parquet_bomb(folder):
    write(pa.table({"age": ["Zyxwv" * 1000] * 5000}), folder / "people.parquet")
    return folder / "people.parquet"


def two_sheets(folder):
    return workbook(folder / "people.xlsx", sheets=("people", "codes"))


def two_headers(folder):
    return workbook(folder / "people.xlsx", [["a", "b", "c", "d", "e", "f"], *people()])


BAD = {
    "no such sheet": (two_sheets, ("--sheet", "persons"), "Sheets: 'people', 'codes'. Give one of them with --sheet"),
    "which sheet": (two_sheets, (), "has 2 visible sheets"),
    "two headers": (two_headers, (), "--header-row 2, then row 1 is left out"),
    "encrypted": (encrypted, (), "save a copy without the password"),
    "corrupt": (corrupt_sas, (), "truncated or damaged. Write it again"),
    "changing keys": (changing_keys, (), "some lack 'income' (1), the first in record 8. If a key"),
    "zip bomb": (zip_bomb, ("--max-unpacked-gb", "0.01"), "unpacks to more than 0.01 GB"),
    "parquet bomb": (parquet_bomb, ("--max-unpacked-gb", "0.01"), "unpacks to more than 0.01 GB"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_source_is_refused_with_its_remedy_and_nothing_is_written(bad, tmp_path):
    make, arguments, words = BAD[bad]
    path = make(tmp_path)
    roles = ("--quasi-identifiers", "age") if bad == "parquet bomb" else ROLES
    result = shoal_command("anonymize", path, *arguments, "-k", 3, *roles, "-o", tmp_path / "release.csv")

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert words in result.stderr
    assert not any(secret in result.stderr for secret in SECRETS)
    assert list(tmp_path.iterdir()) == [path]
