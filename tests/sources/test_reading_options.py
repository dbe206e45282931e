"""Every reading option has an effect on the formats that have it, and is refused by name for the others."""

import pytest

from shoal.errors import ParameterError, ShoalError
from shoal.job import Input
from shoal.sources import KINDS, read
from shoal.sources.csv import CSV
from shoal.sources.ndjson import NDJSON

OPTIONS = Input.model_fields.keys() - {"path", "format"}  # the format is one of standard input

# What a file holds, and a value with which it reads otherwise.
EFFECTS = {
    ("csv", "delimiter"): ("a:b\n1:2\n", ":"),
    ("csv", "encoding"): ("a,b\né,2\n", "cp1252"),
    ("csv", "decimal"): ("a;b\n1,5;2\n", "."),
    ("csv", "quote"): ("a,b\n'x,y',2\n", "'"),
    ("csv", "null_values"): ("a,b\nNA,2\n", ["NA"]),
    ("csv", "header"): ("a,1\nx,2\n", True),
    ("csv", "names"): ("a,b\nx,2\n", ["c", "d"]),
    ("csv", "thousands"): ("a;b\n1.234.567;2\n", "."),
    ("csv", "date_format"): ("a,b\n31.12.1980,2\n", "%d.%m.%Y"),
    ("csv", "fields"): ("a,b\nNA,2\n", {"a": {"null_values": ["NA"]}}),
    ("ndjson", "encoding"): ('{"a": "é"}\n', "cp1252"),
    ("ndjson", "null_values"): ('{"a": "NA"}\n{"a": "x"}\n', ["NA"]),
    ("ndjson", "fields"): ('{"a": "31.12.1980"}\n', {"a": {"date_format": "%d.%m.%Y"}}),
    ("ndjson", "fill_keys"): ('{"a": 1, "b": 2}\n{"a": 1}\n', True),
}


def test_every_option_of_text_files_is_tried_here():
    tried = {kind.name: {name for of, name in EFFECTS if of == kind.name} for kind in (CSV, NDJSON)}

    # A limit holds for files of any size.
    assert {kind.name: kind.options - {"max_unpacked_gb"} for kind in (CSV, NDJSON)} == tried
    assert frozenset().union(*(kind.options for kind in KINDS)) | {"table", "query"} == OPTIONS


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
    for name in OPTIONS - kind.options:
        with pytest.raises(ParameterError, match=f"^{name} cannot be given for a {kind.endings[0]} file"):
            read(tmp_path / f"people{kind.endings[0]}", **{name: "x"})
