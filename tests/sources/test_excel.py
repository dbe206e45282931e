import sys
import zipfile
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
import xlwt

import shoal
from shoal import FileError, ParameterError
from shoal.sources import read, write

DATA = Path(__file__).parent / "data"
ROWS = [["age", "born", "name"], *([20 + i, date(1990, 1, 1 + i), f"Zyxwv{i}"] for i in range(6))]


def workbook(path, rows, change=None):
    """Write a workbook with openpyxl; `change` gets the sheet."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    if change is not None:
        change(book.active)
    book.save(path)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.xlsx"


def test_numbers_dates_and_truth_values_are_read_by_the_types_of_their_cells(path):
    rows = [
        ["whole", "real", "flag", "text", "day", "at", "clock", "code"],
        [1, 1.5, True, "a", date(2020, 2, 29), datetime(2020, 1, 1), time(10, 30), "007"],
        [None, 2, False, None, None, datetime(2020, 1, 1, 10, 30, 1), None, "12"],
    ]
    found = read(workbook(path, rows)).arrow

    assert found.to_pylist() == [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    assert [str(kind) for kind in found.schema.types] == [
        *("int64", "double", "bool", "string", "date32[day]", "timestamp[s]", "time64[us]", "string")
    ]


def test_the_only_visible_sheet_is_read_and_hidden_ones_are_named(path):
    def change(sheet):
        sheet.parent.create_sheet("notes").sheet_state = "hidden"

    table = read(workbook(path, ROWS, change))

    assert table.n_records == 6
    assert table.receipt.notes == ("The workbook has hidden sheets, which are not read: 'notes'.",)
    with pytest.raises(FileError, match=r"Sheet 'notes' of 'people\.xlsx' is empty"):
        read(path, sheet="notes")


def test_a_sheet_that_is_not_there_is_refused_with_the_names_of_the_others(path):
    def change(sheet):
        sheet.title = "people"
        sheet.parent.create_sheet("codes")

    workbook(path, ROWS, change)

    assert read(path, sheet="people").n_records == 6
    for options in ({}, {"sheet": "persons"}):
        with pytest.raises(FileError, match=r"Sheets: 'people', 'codes'\. Give one of them with sheet="):
            read(path, **options)


@pytest.mark.parametrize(
    ("rows", "row"),
    [
        ([[], [], *ROWS], 3),
        ([["Report 2024"], [], *ROWS], 3),
        ([["person", None, "who"], *ROWS], 2),
    ],
)
def test_a_header_below_other_rows_is_asked_for_with_its_number(path, rows, row):
    workbook(path, rows)

    with pytest.raises(FileError, match=f"If row {row} is the header, give header_row={row}"):
        read(path)
    assert read(path, header_row=row).arrow.to_pylist() == [dict(zip(ROWS[0], one, strict=True)) for one in ROWS[1:]]


def test_two_header_rows_are_a_question(path):
    workbook(path, [["a", "b", "c"], *ROWS])

    with pytest.raises(FileError, match=r"rows 1 and 2 hold texts.*header_row=1.*header_row=2"):
        read(path)
    table = read(path, header_row=2)
    assert table.names == ("age", "born", "name")
    assert table.receipt.notes == ("1 row(s) above the header, in row 2, are not read.",)
    assert read(path, header_row=1).receipt.mixed == {"a": {"texts": 1, "numbers": 6}, "b": {"texts": 1, "dates": 6}}


def test_a_sheet_without_a_header_is_asked_for_names(path):
    workbook(path, ROWS[1:])

    with pytest.raises(FileError, match=r"looks like a record.*column\(s\) A, B hold.*names=\[\.\.\.\]") as caught:
        read(path)
    assert "Zyxwv" not in str(caught.value)
    assert read(path, names=ROWS[0]).n_records == 6
    assert read(path, names=["x", "y", "z"], header_row=1).n_records == 5
    with pytest.raises(ParameterError, match=r"names= gives 2 names.*3 columns"):
        read(path, names=["x", "y"])


@pytest.mark.parametrize(
    ("header", "words"), [(["age", None, "name"], "without a name"), (["age", "age", "name"], "same name")]
)
def test_columns_without_a_name_of_their_own_are_refused(path, header, words):
    workbook(path, [header, *ROWS[1:]])

    with pytest.raises(shoal.ShoalError, match=words):
        read(path)


@pytest.mark.parametrize("row", [0, 99, "2", True])
def test_a_header_row_that_cannot_be_is_refused(path, row):
    workbook(path, ROWS)

    with pytest.raises(shoal.ShoalError, match="header_row"):
        read(path, header_row=row)


def test_hidden_and_merged_cells_blank_rows_and_formulas_are_told(path):
    def change(sheet):
        sheet.column_dimensions["C"].hidden = True
        sheet.row_dimensions[3].hidden = True
        sheet.merge_cells("A4:A5")
        sheet["A6"] = "=1+1"
        sheet["A7"] = "#N/A"
        sheet["A7"].data_type = "e"
        sheet["A9"] = 7

    table = read(workbook(path, ROWS, change))

    assert table.receipt.notes == (
        "1 blank row(s) between the records are left out.",
        "1 range(s) of merged cells: the first cell of each has the value, the others are read as missing.",
        "1 row(s) are hidden in the sheet, and read like the others.",
        "Column(s) 'name' are hidden in the sheet, and read like the others.",
        "1 formula(s) are read as the values stored with them.",
        "1 formula(s) have no stored value and are read as missing. Open the workbook in Excel and save it to store "
        "them.",
        "1 cell(s) of 'age' hold an error such as #N/A and are read as missing.",
    )
    assert table.arrow["age"].to_pylist() == [20, 21, 22, None, None, None, 7]


def test_what_is_told_of_a_sheet_stands_in_inspect_and_in_the_warnings_of_a_release(path):
    workbook(path, ROWS, lambda sheet: setattr(sheet.row_dimensions[3], "hidden", True))
    with pytest.warns(shoal.ShoalWarning, match="1 row"):
        release = shoal.anonymize(path, k=3, quasi_identifiers=["age"], identifiers=["name", "born"])

    assert "1 row(s) are hidden" in str(shoal.inspect(path))
    assert shoal.inspect(path).to_dict()["notes"] == list(read(path).receipt.notes)
    assert "1 row(s) are hidden in the sheet, and read like the others." in release.warnings


def test_a_formula_is_read_as_its_value_and_a_text_like_a_formula_as_text(tmp_path):
    texts = ["=1+1", "+1", "-1", "@A1", "a"]
    write(pa.table({"=a": texts}), tmp_path / "out.xlsx")
    cells = [cell for (cell,) in openpyxl.load_workbook(tmp_path / "out.xlsx").active.iter_rows()]

    assert read(tmp_path / "out.xlsx", header_row=1).arrow["=a"].to_pylist() == texts
    assert [cell.value for cell in cells] == ["=a", *texts]
    with zipfile.ZipFile(tmp_path / "out.xlsx") as archive:
        assert b"<f" not in archive.read("xl/worksheets/sheet1.xml")


def test_a_mixed_column_is_a_question_with_its_exact_remedy(path):
    rows = [["age", "height"], *([20 + i % 7, 100 + i] for i in range(30)), ["n/a", 130], ["refused", 131]]
    table = read(workbook(path, rows))
    (finding,) = [one for one in shoal.inspect(path, show_values=True).findings if one.name == "mixed-types"]
    remedy = finding.remedies[0]
    again = read(path, fields={"age": remedy.settings})

    assert table.receipt.mixed == {"age": {"numbers": 30, "texts": 2}}
    assert finding.what == "it holds 30 numbers and 2 texts"
    assert remedy.option == "--null-values age=n/a,refused"
    assert again.arrow["age"].to_pylist() == [*(20 + i % 7 for i in range(30)), None, None]
    with pytest.raises(shoal.ShoalError, match=r"30 numbers and 2 texts.*null_values") as caught:
        shoal.anonymize(path, k=3, quasi_identifiers=["age", "height"])
    assert "refused" not in str(caught.value)
    assert shoal.anonymize(
        path,
        k=3,
        quasi_identifiers=["age", "height"],
        missing="own-value",
        reading={"fields": {"age": remedy.settings}},
    ).verdict.holds


def test_every_type_goes_out_and_comes_back(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "number": range(23),
            "real": [0.1 + 0.2, None, 1e-300, *rng.normal(size=20)],
            "whole": [2**53, None, -(2**53), *range(20)],
            "flag": [True, None, False, *[True] * 20],
            "text": [" =a\n", None, "_x0041_\t\x01", *["Zürich \U0001f600"] * 20],
            "day": [date(1900, 3, 1), None, date(2200, 12, 31), *[date(2020, 2, 29)] * 20],
            "at": pa.array(
                [datetime(2020, 1, 1, 10, 30, 0, 123000), None, datetime(1999, 12, 31), *[datetime(2020, 5, 5)] * 20],
                pa.timestamp("ms"),
            ),
        }
    )
    write(table, tmp_path / "out.xlsx")

    found = read(tmp_path / "out.xlsx").arrow
    assert found.schema == table.schema
    assert found.to_pydict() == table.to_pydict()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([float("nan")], "NaN or infinite"),
        ([2**53 + 1], "integers of more than 15 digits"),
        ([date(1900, 2, 28)], "dates before March 1900"),
        ([datetime(1850, 1, 1)], "dates before March 1900"),
        (pa.array([2_932_897, 0], pa.date32()), "dates before March 1900 or after the year 9999"),
        (pa.array([-(2**40), 0], pa.timestamp("s")), "dates before March 1900 or after the year 9999"),
        ([datetime(2020, 1, 1, 0, 0, 0, 1)], "finer than a millisecond"),
        ([timedelta(1)], "durations"),
        (["Zyxwv" * 10_000], "more than 32,767 characters"),
        ([["Zyxwv"]], "hold lists"),
    ],
)
def test_what_a_sheet_cannot_hold_is_refused_by_column(tmp_path, values, words):
    with pytest.raises(FileError, match=rf"'a'.*{words}") as caught:
        write(pa.table({"a": values}), tmp_path / "out.xlsx")

    assert "Zyxwv" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_more_records_than_a_sheet_holds_are_refused(tmp_path):
    with pytest.raises(FileError, match="1,048,575 records"):
        write(pa.table({"a": np.zeros(1_048_576, np.int8)}), tmp_path / "out.xlsx")


def test_categories_decimals_and_times_with_a_zone_are_stored_as_what_there_is(tmp_path):
    at = pa.array([datetime(2020, 1, 1, 10)], pa.timestamp("s", "Europe/Paris"))
    write(
        pa.table({"at": at, "town": pa.array(["Ulm"]).dictionary_encode(), "price": [Decimal("1.50")]}),
        tmp_path / "out.xlsx",
    )

    assert read(tmp_path / "out.xlsx").arrow.to_pylist() == [
        {"at": datetime(2020, 1, 1, 11), "town": "Ulm", "price": 1.5}
    ]


def test_an_encrypted_workbook_is_refused_with_the_way_out(path):
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600) + "EncryptedPackage".encode("utf-16-le"))
    with pytest.raises(FileError, match=r"is encrypted.*without the password"):
        read(path)
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600))
    with pytest.raises(FileError, match=r"Excel 97 to 2003\. Give it the extension \.xls"):
        read(path)


@pytest.mark.parametrize("share", [0, 0.3, 0.7, 0.99])
def test_a_damaged_workbook_is_refused(path, share):
    content = workbook(path, ROWS).read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FileError, match="not a complete Excel workbook"):
        read(path)


def test_a_workbook_whose_parts_are_damaged_is_refused(path):
    for broken in ("xl/workbook.xml", "xl/worksheets/sheet1.xml"):
        workbook(path, ROWS)
        _with_part(path, broken, b"<worksheet><sheetData><row r='1'>")
        with pytest.raises(FileError, match=r"not a complete Excel workbook|is empty"):
            read(path)


def _with_part(path, name, content):
    """Replace one part of a workbook."""
    with zipfile.ZipFile(path) as archive:
        parts = {each: archive.read(each) for each in archive.namelist()} | {name: content}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in parts.items():
            archive.writestr(each, data)


def test_a_zip_bomb_is_refused(path):
    workbook(path, ROWS)
    _with_part(path, "xl/sharedStrings.xml", b"<sst>" + bytes(20_000_000) + b"</sst>")

    with pytest.raises(FileError, match=r"unpacks to more than 0\.01 GB.*max_unpacked_gb="):
        read(path, max_unpacked_gb=0.01)


def test_a_zip_bomb_that_declares_a_small_size_is_refused(path):
    workbook(path, ROWS)
    _with_part(path, "xl/sharedStrings.xml", b"<sst>" + bytes(20_000_000) + b"</sst>")
    content = path.read_bytes()
    path.write_bytes(content.replace((20_000_011).to_bytes(4, "little"), (500).to_bytes(4, "little")))

    assert path.read_bytes() != content
    with pytest.raises(FileError, match=r"unpacks to more than 0\.01 GB"):
        read(path, max_unpacked_gb=0.01)


@pytest.mark.parametrize("cell", ["XFD1048576", "ZZ1048576"])
def test_a_lone_cell_in_the_last_corner_is_refused(path, cell):
    workbook(path, ROWS)
    lone = f'<worksheet><sheetData><row r="1048576"><c r="{cell}"><v>1</v></c></row></sheetData></worksheet>'
    _with_part(path, "xl/worksheets/sheet1.xml", lone.encode())

    with pytest.raises(FileError, match="unpacks to more than 2 GB"):
        read(path)


def test_spreadsheets_that_are_only_read_are_not_written(tmp_path):
    for ending in (".xlsm", ".xlsb", ".xls", ".ods"):
        with pytest.raises(FileError, match=rf"\{ending} files are read only.*for instance \.xlsx"):
            write(pa.table({"a": [1]}), tmp_path / f"a{ending}")


def old_workbook(path):
    """Write ROWS as a workbook of Excel 97 to 2003, with a hidden sheet."""
    book = xlwt.Workbook()
    sheet, hidden = book.add_sheet("people"), book.add_sheet("notes")
    hidden.visibility = 1
    day = xlwt.easyxf(num_format_str="YYYY-MM-DD")
    for i, row in enumerate(ROWS):
        for j, cell in enumerate(row):
            sheet.write(i, j, cell, *([day] if isinstance(cell, date) else []))
    book.save(str(path))


NAMESPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
)
FILLER = (
    '<table:table-row table:number-rows-repeated="{}"><table:table-cell table:number-columns-repeated="{}"/>'
    "</table:table-row>"
)
BELOW = FILLER.format(1_048_570, 16_384)


def open_document(path, rows, last=BELOW):
    """Write rows as a spreadsheet of LibreOffice, with the empty rows that it adds below them."""

    def cell(value):
        text = f"<text:p>{value}</text:p></table:table-cell>"
        if isinstance(value, date):
            return f'<table:table-cell office:value-type="date" office:date-value="{value}">{text}'
        if isinstance(value, int):
            return f'<table:table-cell office:value-type="float" office:value="{value}">{text}'
        return f'<table:table-cell office:value-type="string">{text}'

    body = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows) + last
    sheet = f'<table:table table:name="people">{body}</table:table>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr(
            "content.xml",
            f"<office:document-content {NAMESPACES}><office:body><office:spreadsheet>{sheet}</office:spreadsheet>"
            "</office:body></office:document-content>",
        )


@pytest.mark.parametrize("ending", [".xls", ".ods"])
def test_other_spreadsheets_are_read_alike(path, tmp_path, ending):
    other = tmp_path / f"people{ending}"
    if ending == ".xls":
        old_workbook(other)
    else:
        open_document(other, ROWS)
    table = read(other)

    assert table.arrow.equals(read(workbook(path, ROWS)).arrow)
    assert table.receipt.notes[-1].startswith("Rows and columns that are hidden are read like the others")
    assert ending == ".ods" or "not read: 'notes'" in table.receipt.notes[0]
    content = other.read_bytes()
    for share in (0, 0.3, 0.7, 0.95):
        other.write_bytes(content[: int(share * len(content))])
        with pytest.raises(FileError):
            read(other)


def binary_workbook(path, part="", change=lambda content: content):
    """Write tests/sources/data/people.xlsb, which SheetJS has made, with a part of it changed."""
    with zipfile.ZipFile(DATA / "people.xlsb") as made, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in made.namelist():
            archive.writestr(name, change(made.read(name)) if name == part else made.read(name))
    return path


def test_a_binary_workbook_is_read_by_the_types_of_its_cells(tmp_path):
    table = read(binary_workbook(tmp_path / "a.xlsb"))

    assert table.arrow.to_pydict() == {
        "age": [20, 21, 22, 23, 24, 25, 26],
        "town": ["Ulm", "Zürich", "Oslo", "Ulm", "Zürich", "Oslo", "Ulm"],
        "born": [date(1990, 1, day) for day in (1, 2, 3, 4, 5, 6, 8)],
        "member": [True, False, True, False, True, False, True],
        "rate": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, None],
    }
    told = (
        "The workbook has hidden sheets",
        "1 blank row",
        "1 range",
        "1 row",
        "Column(s) 'town' are hidden",
        "1 cell",
    )
    assert [note.startswith(start) for note, start in zip(table.receipt.notes, told, strict=True)] == [True] * 6
    assert read(tmp_path / "a.xlsb", sheet="notes").arrow.to_pydict() == {"x": [1]}


def test_dates_of_a_binary_workbook_may_count_from_1904(tmp_path):
    counts = binary_workbook(
        tmp_path / "a.xlsb", "xl/workbook.bin", lambda raw: raw.replace(b"\x99\x01\x24\0", b"\x99\x01\x24\1")
    )

    assert read(counts).arrow["born"][0].as_py() == date(1994, 1, 2)


def test_cells_that_the_reader_would_skip_are_refused(tmp_path):
    short = binary_workbook(
        tmp_path / "a.xlsb", "xl/worksheets/sheet1.bin", lambda raw: raw.replace(b"\x02\x0c\2", b"\x0d\x0c\2")
    )
    short = binary_workbook(short, "xl/worksheets/sheet1.bin", lambda raw: raw.replace(b"\x05\x10\4", b"\x10\x10\4"))
    with pytest.raises(FileError, match=r"Sheet 'people' of 'a\.xlsb' has cells in a short form that is not read"):
        read(short)


def test_a_damaged_or_huge_binary_workbook_is_refused(tmp_path):
    path = binary_workbook(tmp_path / "a.xlsb")
    content = path.read_bytes()
    for share in (0, 0.3, 0.7, 0.95):
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(FileError, match="not a complete Excel workbook"):
            read(path)
    with pytest.raises(FileError, match="not a complete Excel workbook"):
        read(binary_workbook(path, "xl/worksheets/sheet1.bin", lambda raw: raw[:-5]))
    lone = bytes.fromhex("001900000f00") + bytes(21) + bytes.fromhex("020cff3f0000") + bytes(8)
    with pytest.raises(FileError, match=r"unpacks to more than 0\.05 GB"):
        read(binary_workbook(path, "xl/worksheets/sheet1.bin", lambda raw: raw + lone), max_unpacked_gb=0.05)


@pytest.mark.parametrize(
    "last",
    [
        FILLER.format(1_000_000, 3).replace("/></", ' office:value-type="float" office:value="1"/></'),
        FILLER.format(1_000_000, 1)
        + '<table:table-row><table:table-cell table:number-columns-repeated="1000"/>'
        + '<table:table-cell office:value-type="float" office:value="1"/></table:table-row>',
    ],
    ids=["repeated records", "a lone cell"],
)
def test_a_small_open_document_of_many_cells_is_refused(tmp_path, last):
    open_document(tmp_path / "a.ods", ROWS, last)

    with pytest.raises(FileError, match=r"unpacks to more than 0\.05 GB"):
        read(tmp_path / "a.ods", max_unpacked_gb=0.05)


@pytest.mark.parametrize("module", ["python_calamine", "xlsxwriter"])
def test_without_the_packages_the_extra_is_named(path, module, monkeypatch):
    workbook(path, ROWS)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(FileError, match=r"pip install 'shoal-privacy\[excel\]'"):
        write(read(path).arrow, path.with_name("out.xlsx"))


def test_a_workbook_in_strict_open_xml_is_read(path):
    plain = workbook(path.with_name("plain.xlsx"), ROWS)
    kinds = {
        "officeDocument/2006/relationships": "officeDocument/relationships",
        "spreadsheetml/2006/main": "spreadsheetml/main",
    }
    with zipfile.ZipFile(plain) as archive, zipfile.ZipFile(path, "w") as strict:
        for name in archive.namelist():
            xml = archive.read(name).decode()
            for one, other in kinds.items():
                xml = xml.replace(f"http://schemas.openxmlformats.org/{one}", f"http://purl.oclc.org/ooxml/{other}")
            strict.writestr(name, xml)

    assert read(path).arrow.to_pydict() == read(plain).arrow.to_pydict()
