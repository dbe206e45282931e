"""Which lines of a CSV file are read: from the header on, without comments, and fields without blanks around them."""

import pytest

from shoal import FileError
from shoal.sources import csv as csv_format
from shoal.sources import read, write

PEOPLE = {"id": [1, 2], "town": ["Ulm", "Bonn"], "income": [2, 3]}


@pytest.fixture
def file(tmp_path):
    def make(content):
        path = tmp_path / "people.csv"
        path.write_bytes(content.encode())
        return path

    return make


def test_years_below_a_title_may_name_columns(file):
    path = file("Inhabitants\nregion;2020;2021\nUlm;3;4\nBonn;5;6\n")
    with pytest.raises(FileError, match=r"one field, and most lines .*header_row=2\. .*header=True"):
        read(path)

    assert read(path, header_row=2).names == ("region", "2020", "2021")


@pytest.mark.parametrize("text", ["name\nMay, A\nLee, B\n", "income\n1,5\n2,75\n"])
def test_values_with_commas_may_be_one_column(file, text):
    path = file(text)
    with pytest.raises(FileError, match="If the file has one column, give header=True"):
        read(path)

    name, *values = text.split("\n")[:-1]
    assert read(path, header=True).arrow[name].to_pylist() in (values, [1.5, 2.75])


def test_lines_keep_their_numbers_below_titles_and_comments(file):
    path = file("Report\n# a\nid;x\n1;2\n# b\n3\n")
    with pytest.raises(FileError, match=r"1 records .* line\(s\) 6\. Correct"):
        read(path, header_row=3, comment="#")


def test_comments_are_asked_about_and_left_out_but_not_within_quotes(file):
    path = file('# it\'s "fun\nid;x\n1;"a\n# no comment"\n# one "\n2;#b\n')
    with pytest.raises(FileError, match=r'as comments do\..*comment="#".*header=True'):
        read(path)

    assert read(path, comment="#").arrow.to_pydict() == {"id": [1, 2], "x": ["a\n# no comment", "#b"]}
    assert read(file("#id,x\n1,2\n"), header=True).names == ("#id", "x")
    assert read(file("id\n1\n# c\n\n2\n"), comment="#").arrow["id"].to_pylist() == [1, None, 2]


def test_comments_below_the_header_are_named_as_the_likely_cause(file):
    with pytest.raises(FileError, match=r"line\(s\) 3\. If lines that begin with '#' are comments, give comment=\"#\""):
        read(file("id,x\n1,2\n# note\n3,4\n"))


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_comments_are_found_wherever_a_file_is_cut(file, size, monkeypatch):
    monkeypatch.setattr(csv_format, "_AT_ONCE", size)
    text = 'id,x\r\n#a\r\n1,"#b\r\n#c"\r\n#d "\r\n2,e\r\n#f'
    read_again = csv_format.CsvFile.texts
    monkeypatch.setattr(csv_format.CsvFile, "texts", lambda self, wanted: read_again(self, wanted, at_once=size))

    assert read(file(text), comment="#").arrow.to_pydict() == {"id": [1, 2], "x": ["#b\r\n#c", "e"]}


@pytest.mark.parametrize(
    "text",
    [
        'id, town, income\n1, Ulm, 2\n2, "Bonn", 3\n',
        "id,town,income\n1, Ulm, 2\n2, Bonn, 3\n",
        "id ;town ;income\n1 ;Ulm  ;2\n2 ;Bonn ;3 \n",
    ],
)
def test_blanks_beside_delimiters_are_no_part_of_fields_and_the_receipt_says_so(file, text):
    table = read(file(text))

    assert table.arrow.to_pydict() == PEOPLE
    assert table.receipt.found.blanks == "strip"
    assert "Blanks beside the delimiter" in table.receipt.notes[0]


def test_blanks_within_fields_and_quotes_stay(file):
    table = read(file('a, b\n" x ", one two \n\t"y,\n z" ,\n'))

    assert table.arrow.to_pydict() == {"a": [" x ", "y,\n z"], "b": ["one two", None]}
    assert read(file("a,b\n1, x\n2,y\n")).arrow["b"].to_pylist() == [" x", "y"]


def test_a_blank_before_a_quote_is_named_as_the_cause(file):
    path = file('a,b\n1,x\n2, "y"\n')
    with pytest.raises(FileError, match=r'line 3\. If blanks beside the delimiter .* give blanks="strip"'):
        read(path)

    assert read(path, blanks="strip").arrow["b"].to_pylist() == ["x", "y"]


def test_names_with_blanks_survive_a_release(file, tmp_path):
    table = read(file("a, b\nx, y\n"), blanks="keep")
    write(table.arrow, tmp_path / "out.csv", like=table)

    assert read(tmp_path / "out.csv", **csv_format.CSV.own_reading).arrow == table.arrow
