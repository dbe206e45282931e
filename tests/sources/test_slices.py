"""Slices of columns are read right by any version of Arrow."""

import ast
import csv
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import shoal
from shoal.sources import read
from shoal.sources.clean import nulled

TEXTS = (pa.string(), pa.large_string(), pa.binary())


def people(n):
    """Return a CSV with quoted and empty fields, in which each record's texts tell its number."""
    rng = np.random.default_rng(1)
    rows = [["age", "income", "city", "born", "note"]]
    for i in range(n):
        row = [str(20 + i % 50), f"{i}.5", f"city {i}", f"19{i % 90 + 10}-01-0{i % 9 + 1}", f"note, {i}"]
        rows.append([field if rng.random() > 0.2 else "" for field in row])
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue(), rows


@pytest.fixture
def only_beside_columns(monkeypatch):
    """Fail where Arrow chooses between texts and a scalar, which goes wrong in silence in some versions."""
    chosen = []
    if_else = pc.if_else

    def checked(mask, one, other):
        values = [value for value in (one, other) if isinstance(value, pa.Array | pa.ChunkedArray)]
        assert len(values) == 2 or not any(pa.types.is_large_string(v.type) or v.type in TEXTS for v in values)
        chosen.append(mask)
        return if_else(mask, one, other)

    monkeypatch.setattr(pc, "if_else", checked)
    return chosen


@pytest.mark.parametrize("reading", [{}, {"fields": {"city": {"null_values": ["city 3"]}}}])
def test_each_record_keeps_its_own_texts(tmp_path, reading, only_beside_columns):
    text, rows = people(200)
    path = tmp_path / "people.csv"
    path.write_text(text)
    found = read(path, **reading).arrow
    cities = {"", *reading.get("fields", {}).get("city", {}).get("null_values", ())}

    assert only_beside_columns
    assert found["age"].to_pylist() == [None if row[0] == "" else int(row[0]) for row in rows[1:]]
    assert found["income"].to_pylist() == [None if row[1] == "" else float(row[1]) for row in rows[1:]]
    # Among texts, a quoted empty field is an empty text; null values stand for missing ones.
    assert [v or "" for v in found["city"].to_pylist()] == ["" if row[2] in cities else row[2] for row in rows[1:]]
    assert [str(v or "") for v in found["born"].to_pylist()] == [row[3] for row in rows[1:]]


@pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_release_compares_texts_with_columns_only(tmp_path, engine, only_beside_columns):
    text, rows = people(60)
    (tmp_path / "people.csv").write_text(text)
    release = shoal.anonymize(
        tmp_path / "people.csv",
        k=3,
        seed=1,
        engine=engine,
        quasi_identifiers=["age", "income"],
        other=["city", "born", "note"],
        missing="own-value",
    )
    release.write(tmp_path / "release.csv")
    with open(tmp_path / "release.csv", newline="") as file:
        notes = [row[4] for row in csv.reader(file)][1:]

    assert sorted(notes) == sorted(row[4] for row in rows[1:])


@pytest.mark.parametrize(
    "kind", [*TEXTS, pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.dictionary(pa.int32(), pa.string())]
)
def test_values_of_a_slice_are_nulled_where_the_mask_says(kind):
    plain = [i % 2 for i in range(90)] if kind == pa.bool_() else [10 + i for i in range(90)]
    made = pa.array([f"t{v}" for v in plain]) if kind in TEXTS or pa.types.is_dictionary(kind) else pa.array(plain)
    whole = (
        made.dictionary_encode()
        if pa.types.is_dictionary(kind)
        else made.cast(pa.int32()).cast(kind)
        if kind == pa.date32()
        else made.cast(kind)
    )
    for values, begin in ((whole.slice(13), 13), (pa.chunked_array([whole.slice(13, 30), whole.slice(43)]), 13)):
        mask = [i % 3 == 0 for i in range(len(values))]
        found = nulled(values, pa.chunked_array([pa.array(mask[:50]), pa.array(mask[50:])]))

        assert found.to_pylist() == [None if m else v for m, v in zip(mask, whole.to_pylist()[begin:], strict=True)]


def is_scalar(argument):
    """Return whether an argument is null, a text or a scalar of Arrow, which goes wrong beside a slice of texts."""
    text = ast.unparse(argument)
    return text == "None" or isinstance(getattr(argument, "value", 0), str) or "pa.scalar" in text


def test_values_are_made_null_in_one_place():
    calls = [
        f"{file.name}:{node.lineno}"
        for file in Path(shoal.__file__).parent.rglob("*.py")
        if "import pyarrow.compute" in file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("pc.if_else", "pc.replace_with_mask")
        if any(is_scalar(argument) for argument in node.args)
    ]

    assert calls == []
