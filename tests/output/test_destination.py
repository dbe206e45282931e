"""Where a release goes: checked once, for the engine that writes it."""

from pathlib import Path

import pytest

from shoal.errors import ParameterError
from shoal.job import Output, Writing
from shoal.output.destination import CatalogueAt, Destination


def to(engine="memory", partition_by=(), **asked):
    return Destination.of(Writing.of(**asked), engine, partition_by=partition_by)


@pytest.mark.parametrize("engine", ["disk", "spark"])
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"order": "keep"}, "keeping the order of the input"),
        ({"bound": "cheap", "report": "r.html"}, "a bound on the loss"),
    ],
)
def test_what_blocks_cannot_give_is_refused_with_the_engine_that_can(engine, asked, words):
    with pytest.raises(ParameterError, match=rf"The engine '{engine}' cannot do this: {words}.*engine=\"memory\""):
        to(engine, path="release.parquet", **asked)

    assert to(path="release.parquet", **asked).title == "release.parquet"


@pytest.mark.parametrize(
    ("engine", "asked", "words"),
    [
        ("memory", {}, "Say where the release goes"),
        ("memory", {"path": "r.csv", "partition_by": ["region"]}, "other engines write one file"),
        ("disk", {"path": "r.parquet", "partition_by": ["region"]}, "other engines write one file"),
        ("disk", {"path": "-", "manifest": "m.json"}, "cannot be written in parts"),
        ("disk", {"path": "r.db", "to_table": "people"}, "cannot be written in parts"),
        ("disk", {"path": "r.csv.gz"}, "cannot be written in parts"),
        ("spark", {"path": "r", "to_format": "csv"}, "Spark writes a folder of Parquet files"),
        ("spark", {"path": "r", "to_table": "people"}, "Give one of them"),
        ("spark", {"to_table": "a..b"}, "is not the name of a table"),
    ],
)
def test_a_place_that_an_engine_does_not_write_is_refused(engine, asked, words):
    with pytest.raises(ParameterError, match=words):
        to(engine, **asked)


def test_a_job_and_a_call_mean_the_same_destination():
    asked = {"path": "r.csv", "report": "r.html", "form": "public", "title": "A", "manifest": "m.json"}
    job = Destination.of(Output.model_validate(asked))
    call = to(**{name: Path(value) if name != "form" and name != "title" else value for name, value in asked.items()})

    assert call.paths == job.paths == [Path(name) for name in ("r.csv", "r.csv.public.json", "m.json", "r.html")]
    assert call.private == job.private == [Path("m.json")]
    assert call.asked.model_dump() == job.asked.model_dump()


def test_spark_writes_a_folder_and_the_manifests_beside_it_that_are_not_files_of_this_machine():
    assert to("spark", path="s3a://lake/r/", report="r.html").places == [
        *("s3a://lake/r", "s3a://lake/r.public.json", "s3a://lake/r.internal.json", "r.html")
    ]
    assert to("spark", path="s3a://lake/r", manifest="m.json").places == [
        *("s3a://lake/r", "s3a://lake/r.public.json", "m.json")
    ]


def test_a_table_of_the_catalogue_is_named_by_its_parts():
    found = to("spark", to_table="db.`a.b`", partition_by=["year"])

    assert found.table == CatalogueAt("db.`a.b`", ("`db`", "`a.b`"), ("year",))
    assert found.title == "a.b"
    assert found.places == ["table db.`a.b`", "a.b.internal.json"]
