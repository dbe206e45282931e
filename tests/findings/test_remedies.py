"""Every remedy that a message prints runs, and answers what was asked."""

import re

import numpy as np
import pytest

import shoal
from shoal.errors import FileError
from shoal.findings import QuestionError
from shoal.findings.finding import HIDDEN
from shoal.inspection import inspect
from shoal.sources import read

RNG = np.random.default_rng(12)
N = 120
AGES = [str(age) for age in RNG.integers(18, 90, N)]
THOUSANDS = [f"{value:,}" for value in RNG.integers(1000, 999_999, N)]
BELOW_TOO = [f"{value:,}" for value in RNG.integers(1, 30_000, N)]
RATES = [f"{value:.2f}" for value in RNG.uniform(1, 99, N)]


def continental(texts):
    return [text.translate(str.maketrans(",.", ".,")) for text in texts]


COLUMNS = {
    "thousands": THOUSANDS,
    "points": continental(THOUSANDS),
    "below": BELOW_TOO,
    "millions": [f"{value:,}" for value in RNG.integers(1000, 9_999_999, N)],
    "marks": [text if i % 2 else continental([text])[0] for i, text in enumerate(RATES)],
    "few_marks": [text if i % 12 else continental([text])[0] for i, text in enumerate(THOUSANDS)],
    "codes": [str(code) for code in RNG.choice([1, 2, 4, 9], N)],
    "units": [f"{value} kg" for value in RNG.integers(40, 120, N)],
    "dates": [
        f"{day:02d}/{month:02d}/{year}" for day, month, year in RNG.integers((1, 1, 1940), (29, 13, 2005), (N, 3))
    ],
    "refused": [str(value) if i % 9 else "-99" for i, value in enumerate(RNG.integers(1, 60, N))],
    "words": [str(value) if i % 15 else "none" for i, value in enumerate(RNG.integers(1000, 9000, N))],
}


@pytest.fixture
def file(tmp_path):
    def make(columns, delimiter=";"):
        path = tmp_path / ("people.tsv" if delimiter == "\t" else "people.csv")
        path.write_text("\n".join(map(delimiter.join, [list(columns), *zip(*columns.values(), strict=True)])) + "\n")
        return path

    return make


def answered(path, names, remedy):
    """Make a release with a remedy."""
    roles = {"quasi_identifiers": names, "identifiers": []}
    given = {"columns": {}, "reading": {}, "accept": []}
    if remedy.place == "field":
        given["reading"] = {"fields": {remedy.column: remedy.settings}}
    elif remedy.place == "column":
        given["columns"] = {remedy.column: remedy.settings}
    elif remedy.place == "rows":
        given["reading"] = remedy.settings
    elif remedy.place == "accept":
        given["accept"] = remedy.settings["accept"]
    else:
        roles = {"quasi_identifiers": [name for name in names if name != remedy.column], **remedy.settings}
    return shoal.anonymize(path, k=5, seed=1, missing="own-value", **given, **roles)


@pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_every_remedy_of_a_question_answers_it(file, name, delimiter):
    path = file({name: COLUMNS[name], "age": AGES}, delimiter)
    asked = [finding for finding in inspect(path, show_values=True).findings if finding.question]
    assert asked or (name, delimiter) == ("points", "\t")
    for finding in asked:
        with pytest.raises(QuestionError, match=f"Column '{name}'"):
            shoal.anonymize(path, k=5, seed=1, missing="own-value", quasi_identifiers=[name, "age"])
        assert len(finding.remedies) > 1
        for remedy in finding.remedies:
            assert HIDDEN not in str(remedy.settings)
            assert answered(path, [name, "age"], remedy).verdict.holds, remedy.argument


@pytest.mark.parametrize(("columns", "n_ways"), [(("rate", "pay"), 2), (("rate", "thousands"), 3)])
def test_columns_of_two_decimal_marks_are_read_by_each_remedy_of_the_refusal(file, columns, n_ways):
    first, second = columns
    texts = {"pay": [f"{value:.1f}".replace(".", ",") for value in RNG.uniform(1, 99, N)], "thousands": THOUSANDS}
    path = file({first: RATES, second: texts[second]})
    with pytest.raises(FileError, match="has decimal commas in") as caught:
        read(path)
    ways = [eval(way) for way in re.findall(r"fields=(\{.*?\}\})", str(caught.value))]

    assert len(ways) == n_ways
    for fields in ways:
        assert [str(kind) for kind in read(path, fields=fields).types.types] in (["double"] * 2, ["double", "int64"])


def test_a_mark_that_was_given_is_not_asked_about(file):
    path = file({"length": THOUSANDS, "age": AGES})

    for reading in ({"decimal": ","}, {"fields": {"length": {"decimal": ","}}}):
        assert [finding.name for finding in inspect(path, **reading).findings] == []
