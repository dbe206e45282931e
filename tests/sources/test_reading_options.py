"""Every reading option has an effect on the formats that have it, and is refused by name for the others.

A receipt holds every setting that had an effect, and who decided on it.
"""

import subprocess
import sys

import pyarrow as pa
import pytest

from shoal.errors import ParameterError, ShoalError
from shoal.sources import KINDS, Reading, read, write
from shoal.sources.batches import open_batches
from shoal.sources.csv import CSV
from shoal.sources.ndjson import NDJSON
from shoal.sources.reading import OF_ANY_SOURCE

OPTIONS = Reading.model_fields.keys() - {"format"}  # the format is one of standard input

# What a file holds, and a value with which it reads otherwise.
EFFECTS = {
    ("csv", "delimiter"): ("a:b\n1:2\n", ":"),
    ("csv", "encoding"): ("a,b\né,2\n", "cp1252"),
    ("csv", "decimal"): ("a;b\n1,5;2\n", "."),
    ("csv", "quote"): ("a,b\n'x,y',2\n", "'"),
    ("csv", "null_values"): ("a,b\nNA,2\n", ["NA"]),
    ("csv", "header"): ("a,1\nx,2\n", True),
    ("csv", "header_row"): ("People;\na;b\n1;2\n", 2),
    ("csv", "names"): ("a,b\nx,2\n", ["c", "d"]),
    ("csv", "thousands"): ("a;b\n1.234.567;2\n", "."),
    ("csv", "date_format"): ("a,b\n31.12.1980,2\n", "%d.%m.%Y"),
    ("csv", "unit"): ("a,b\n12 kg,2\n", "after"),
    ("csv", "fields"): ("a,b\nNA,2\n", {"a": {"null_values": ["NA"]}}),
    ("csv", "comment"): ("# People\na,b\nx,2\n", "#"),
    ("csv", "blanks"): ("a, b\nx, y\n", "keep"),
    ("ndjson", "encoding"): ('{"a": "é"}\n', "cp1252"),
    ("ndjson", "null_values"): ('{"a": "NA"}\n{"a": "x"}\n', ["NA"]),
    ("ndjson", "fields"): ('{"a": "31.12.1980"}\n', {"a": {"date_format": "%d.%m.%Y"}}),
    ("ndjson", "fill_keys"): ('{"a": 1, "b": 2}\n{"a": 1}\n', True),
}


def test_every_option_of_text_files_is_tried_here():
    tried = {kind.name: {name for of, name in EFFECTS if of == kind.name} for kind in (CSV, NDJSON)}

    # A limit holds for files of any size.
    assert {kind.name: kind.options - {"max_unpacked_gb"} for kind in (CSV, NDJSON)} == tried
    assert frozenset().union(*(kind.options for kind in KINDS)) | {"table", "query"} | OF_ANY_SOURCE == OPTIONS


def outcome(path, **reading):
    try:
        table = read(path, **reading).arrow
    except ShoalError:
        return "refused"
    return table.schema, table.to_pylist()


@pytest.mark.parametrize(("kind", "name"), EFFECTS)
def test_an_option_has_an_effect(kind, name, tmp_path):
    text, value = EFFECTS[kind, name]
    path = tmp_path / f"people.{kind}"
    path.write_text(text, encoding="cp1252" if name == "encoding" else "utf-8")

    assert outcome(path) != outcome(path, **{name: value}) != "refused"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_option_that_a_format_does_not_have_is_refused_by_name(kind, tmp_path):
    for name in OPTIONS - kind.options - OF_ANY_SOURCE:
        with pytest.raises(ParameterError, match=f"^{name} cannot be given for a {kind.endings[0]} file"):
            read(tmp_path / f"people{kind.endings[0]}", **{name: "x"})


PEOPLE = "born;height;income;town;since\n31.12.1980;1,8;1.200,50;NA;2020-01-31\n01.02.1990;1,75;900;Ulm;2021-02-28\n"
AS_GIVEN = {
    "date_format": "%d.%m.%Y",
    "null_values": ["-"],
    "fields": {"income": {"thousands": "."}, "town": {"null_values": ["NA"]}},
}


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE, encoding="cp1252")
    return path


def test_a_receipt_says_how_each_column_was_read_and_who_decided(people):
    receipt = read(people, **AS_GIVEN).receipt
    found = receipt.found

    assert (found.delimiter, found.decimal, found.encoding, found.quote, found.header) == (";", ",", "utf-8", '"', True)
    assert {name: how.model_dump(exclude_none=True) for name, how in found.fields.items()} == {
        "born": {"date_format": "%d.%m.%Y"},
        "height": {"decimal": ","},
        "income": {"decimal": ",", "thousands": "."},
        "town": {"null_values": ("NA",)},
    }
    assert receipt.decided_by("delimiter") == "reader"
    assert receipt.decided_by("null_values") == "file"
    assert receipt.decided_by("date_format", "born") == "file"
    assert receipt.decided_by("thousands", "income") == "column"
    assert receipt.decided_by("decimal", "height") == "reader"
    assert receipt.decided_by("date_format", "since") is None


def test_what_a_receipt_says_reads_the_file_the_same_way(people):
    whole = read(people, **AS_GIVEN)
    again = read(people, **whole.receipt.found.given)

    assert again.arrow == whole.arrow
    assert again.receipt.found == whole.receipt.found == open_batches(people, **AS_GIVEN).receipt.found


def test_a_receipt_of_cells_tells_what_their_texts_were_read_by(tmp_path):
    path = tmp_path / "people.ndjson"
    path.write_text('{"born": "31.12.1980", "age": 1}\n{"born": "n/a", "age": "x"}\n')
    born = {"date_format": "%d.%m.%Y", "null_values": ["n/a"]}
    receipt = read(path, fields={"born": born}).receipt

    assert receipt.found.fields["born"].model_dump(exclude_none=True) == born | {"null_values": ("n/a",)}
    assert receipt.decided_by("date_format", "born") == "column"
    assert receipt.mixed == {"age": {"numbers": 1, "texts": 1}}


def test_a_receipt_names_the_format_and_the_encoding_that_a_file_says(tmp_path):
    pytest.importorskip("pyreadstat")
    write(pa.table({"town": ["Ulm", "Zürich"]}), tmp_path / "people.sav")
    program = "from shoal.sources import read; r = read('-').receipt; print(r.found.format, r.decided_by('format'))"
    with open(tmp_path / "people.sav", "rb") as file:
        told = subprocess.run([sys.executable, "-c", program], stdin=file, capture_output=True, check=True).stdout
    receipt = read(tmp_path / "people.sav").receipt

    assert told == b"sav reader\n"
    assert (receipt.found.encoding, receipt.decided_by("encoding")) == ("UTF-8", "reader")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"delimeter": ";"}, "There is no key 'delimeter'. Did you mean 'delimiter'"),
        ({"quote": "''"}, "quote cannot be used: it should be one ASCII character"),
        ({"comment": ";"}, 'comment=";" cannot be used here: it is the delimiter'),
        ({"sheet": "People"}, "sheet cannot be given for a .csv file"),
        ({"fields": {"born": {"decimal": ";"}}}, "fields.born.decimal cannot be used: it should be '.' or ','"),
        ({"date_format": "%d.%m."}, "date_format cannot be used: '%d.%m.' has no year"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_the_same_way_in_parts(people, options, complaint):
    for opened in (read, open_batches):
        with pytest.raises(ParameterError) as caught:
            opened(people, **options)

        assert str(caught.value).startswith(complaint.split(" for a ", maxsplit=1)[0])
