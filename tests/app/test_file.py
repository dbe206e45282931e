"""The page File: a file is read by buttons and menus, also one that was refused at first."""

import re

import pytest
from steward import text_of

from shoal.app.fields import ENCODINGS

MESSY = [
    *("Amt für Statistik;;;;", "Stand: 30.06.2024;;;;", "", "Name;Alter;Ort;Miete;Miete"),
    *(f"Müller{i};{20 + i % 40};{'Köln' if i % 2 else 'Münster'};{300 + i},50;{200 + i},00" for i in range(60)),
    *("Summe;;;19.800,00;13.770,00", "Quelle: Anträge"),
]


@pytest.fixture
def messy(steward, folder):
    (folder / "messy.csv").write_bytes("\r\n".join(MESSY).encode("cp1252"))
    steward.open("messy.csv")
    return steward


def press(steward, words):
    """Press the button with these words, and return the page when the file is read."""
    page = steward.settle("file")
    buttons = re.findall(r'<button[^>]*name="(\w+)" value="([^"]*)"[^>]*>([^<]*)<', page)
    ((name, value),) = ((name, value) for name, value, told in buttons if words in told)
    assert steward.post("file/settle", **{name: value}).status_code == 200
    return text_of(steward.settle("file"))


def test_a_messy_file_is_read_by_buttons_alone(messy):
    told = [
        press(messy, "Read it as Western European (Windows)"),
        press(messy, "Use line 4 as the header"),
        press(messy, "Rename the second “Miete” to “Miete_2”"),
        press(messy, "Leave out record 62"),
    ]
    reading = messy.work.draft.input

    assert ["Reading the file was refused" in page for page in told] == [True, True, True, False]
    assert "Encoding: Western European (Windows)" in told[-1]
    assert "Records 60 " in told[-1]
    assert "Records that look like totals or notes are not counted here" in told[-1]
    assert (reading.encoding, reading.header_row, reading.skip_rows) == ("cp1252", 4, "62")
    assert reading.names == ("Name", "Alter", "Ort", "Miete", "Miete_2")


def test_the_first_and_last_lines_are_shown_after_consent_also_of_a_file_that_was_refused(messy):
    hidden = messy.page("file")
    messy.post("values", show="yes", back="file")
    shown = text_of(messy.settle("file"))
    messy.post("file", encoding="cp1252", header_row="4", names="a\nb\nc\nd\ne", skip_rows="62")
    read = messy.settle("file")
    messy.post("file/settle", leave_out="61")

    assert "Stand" not in hidden
    assert "Stand: 30.06.2024" in shown
    assert "M\ufffdller1;" in shown  # as it is read: the encoding is wrong
    assert "Quelle: Antr\ufffdge" in shown
    assert "Müller1" in read
    assert 'name="leave_out" value="61"' in read
    assert messy.work.draft.input.skip_rows == "61-62"
    assert "Summe" not in text_of(messy.settle("file")).partition("The file as it is, line by line")[0]


def test_the_encoding_of_the_release_is_said_where_it_is_another_one(messy):
    messy.post("file", encoding="cp1252", header_row="4", names="a\nb\nc\nd\ne", skip_rows="61-62")
    messy.settle("file")
    told = "The file is in Western European (Windows); a release that is a text is written in Unicode (UTF-8)."

    assert told in text_of(messy.page("release"))


def test_a_line_is_made_the_header_in_the_preview(messy):
    messy.post("file", encoding="cp1252")
    messy.post("values", show="yes", back="file")
    page = messy.settle("file")
    messy.post("file/settle", header_row="4")

    assert 'name="header_row" value="4"' in page
    assert messy.work.draft.input.header_row == 4


def test_the_sheet_of_a_workbook_is_chosen_by_a_button_or_a_menu(steward, folder):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    pytest.importorskip("python_calamine")
    with xlsxwriter.Workbook(str(folder / "rents.xlsx")) as book:
        book.add_worksheet("Notes").write(0, 0, "do not change")
        sheet = book.add_worksheet("Rents of 2024")
        sheet.write(0, 0, "Rents, part of the register")
        for row in range(40):
            for column in range(3):
                sheet.write(row + 2, column, row * column if row else f"name{column}")
        sheet.write(42, 0, "Total")
    steward.open("rents.xlsx")
    page = steward.page("file")
    press(steward, "Read the sheet “Rents of 2024”")
    told = press(steward, "Use row 3 as the header")
    steward.post("values", show="yes", back="file")
    shown = text_of(steward.settle("file"))

    assert '<option value="Notes">Notes</option>' in page
    assert "What was read" in told
    assert "Sheet of the workbook: Rents of 2024" in told
    assert "Rents, part of the register" in shown
    assert "40 Leave out" in shown


def test_a_file_without_a_header_gets_names(steward, folder):
    (folder / "bare.csv").write_text("1,2\n3,4\n5,6\n")
    steward.open("bare.csv")
    told = press(steward, "There is no header: call the columns “column_1” to “column_2”")

    assert "Records 3" in told


@pytest.mark.parametrize(
    ("content", "words"),
    [("secret;secret;x\n" + "a;b;c\n" * 9, "Put a number behind"), ("7;7;secret\n" + "1;2;c\n" * 9, "no header")],
)
def test_a_first_line_that_may_be_a_record_is_not_shown_before_consent(steward, folder, content, words):
    (folder / "bare.csv").write_text(content)
    steward.open("bare.csv")
    page = steward.settle("file")
    told = press(steward, words)

    assert "secret" not in page
    assert "What was read" in told


def test_menus_know_the_names_of_windows_and_take_any_other(messy):
    page = messy.page("file")
    messy.post("file", encoding="other:", **{"encoding-other": "cp1255"}, quote="none", delimiter=";")
    after = messy.page("file")

    assert all(f">{word}</option>" in page for word in ENCODINGS.values())
    assert (messy.work.draft.input.encoding, messy.work.draft.input.quote) == ("cp1255", "")
    assert '<option value="cp1255" selected>' in after
    assert '<option value="none" selected>' in after
