"""One file and one registry line: a toy algorithm, format, model and database appear wherever the others do."""

import json
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

import shoal
from shoal import sources as tables
from shoal.columns.aggregates import AGGREGATES, Aggregate
from shoal.methods import ALGORITHMS, partition
from shoal.methods.algorithm import Algorithm
from shoal.models import MODELS, PSensitive
from shoal.sources import databases
from shoal.sources.batches import open_batches
from shoal.sources.format import Content, Format, InParts, Parts
from shoal.sources.reading import Receipt


def chain(X, k, seed):
    """Sort the records along the first column, and cut every k records."""
    labels = np.empty(len(X), dtype=np.int64)
    labels[np.argsort(X[:, 0], kind="stable")] = np.minimum(np.arange(len(X)) // k, len(X) // k - 1)
    return labels


def read_rows(path, columns, reading):
    rows = pa.Table.from_pylist(json.loads(path.read_text(reading.encoding or "utf-8"))["rows"])
    return Content.of(rows if columns is None else rows.select(columns), Receipt(reading, reading))


def read_rows_in_parts(path, reading):
    found = read_rows(path, None, reading)
    return Parts(found.types, found.n_records, lambda names: iter_parts(found.load(names)), found.receipt)


def iter_parts(rows):
    yield from (rows.slice(start, 2) for start in range(0, rows.num_rows, 2))


def write_rows(table, path, ending, like=None):
    path.write_text(json.dumps({"rows": table.to_pylist()}))


@dataclass(frozen=True)
class Several(PSensitive):
    """Every class has at least `p` different values."""

    name: ClassVar[str] = "several"


@pytest.fixture
def toy_model(monkeypatch):
    monkeypatch.setitem(MODELS, "several", Several)


@pytest.fixture
def toy_database(monkeypatch):
    toy = databases.SQLITE._replace(name="toy", title="Toy", schemes=("toy",), endings=(".toy",))
    for module in (databases, tables):
        monkeypatch.setattr(module, "DATABASES", (*databases.DATABASES, toy))


@pytest.fixture
def toy_method(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "chain", Algorithm(chain))


@pytest.fixture
def toy_format(monkeypatch):
    understood = frozenset({"encoding"})
    parts = InParts(read_rows_in_parts, (".rows",), understood)
    rows = Format("rows", "JSON rows", (".rows",), read_rows, write_rows, "the same", understood, parts)
    monkeypatch.setattr(tables, "KINDS", (*tables.KINDS, rows))
    monkeypatch.setitem(tables.FORMATS, ".rows", rows)


class Halfway:
    """The file of two aggregates: halfway between the lowest and the highest value, and the set of all between them."""

    @staticmethod
    def halfways(values, column, members):
        lowest, highest = members.extremes(np.asarray(values.cast(pa.int64())))
        return pa.array((lowest + highest) / 2)

    @staticmethod
    def all_between(values, column, members):
        ends = zip(*members.extremes(np.asarray(values.cast(pa.int64()))), strict=True)
        return pa.array([f"{{{', '.join(map(str, range(low, high + 1)))}}}" for low, high in ends])


@pytest.fixture
def toy_aggregates(monkeypatch):
    monkeypatch.setitem(sys.modules, "shoal.aggregate.halfway", Halfway)
    fits = {"kinds": ("numeric",), "unfit": "has no middle."}
    texts = "the middle of the group", "middle of the group", "the middle"
    monkeypatch.setitem(AGGREGATES, "halfway", Aggregate("halfway.halfways", *texts, **fits, by_blocks=False))
    monkeypatch.setitem(AGGREGATES, "between", Aggregate("halfway.all_between", *texts, **fits, form="set"))


PEOPLE = pa.table({"age": [20, 21, 22, 40, 41, 42, 60, 61, 62], "zip": [1, 1, 2, 2, 3, 3, 4, 4, 5]})


@pytest.mark.usefixtures("toy_method")
def test_a_new_algorithm_partitions_compares_and_releases():
    found = shoal.compare(PEOPLE, k=3, methods="all", quasi_identifiers=["age", "zip"])
    release = shoal.anonymize(PEOPLE, k=3, quasi_identifiers=["age", "zip"], method="chain")

    assert partition(np.arange(6.0)[:, None], 3, "chain").tolist() == [0, 0, 0, 1, 1, 1]
    assert "chain" in {choice.method for choice in found.choices}
    assert release.verdict.holds
    assert ALGORITHMS["chain"].summary == "Sort the records along the first column, and cut every k records."


@pytest.mark.usefixtures("toy_format")
def test_a_new_format_is_read_released_audited_and_listed(tmp_path):
    (tmp_path / "in.rows").write_text(json.dumps({"rows": PEOPLE.to_pylist()}))
    shoal.anonymize(tmp_path / "in.rows", k=3, quasi_identifiers=["age", "zip"]).write(tmp_path / "out.rows")

    assert tables.read(tmp_path / "in.rows", encoding="utf-8").arrow == PEOPLE
    assert shoal.audit(tmp_path / "out.rows", k=3, quasi_identifiers=["age", "zip"]).holds
    assert tables.formats_in_words().endswith(" or JSON rows")
    for opened in (tables.read, open_batches):
        with pytest.raises(shoal.ShoalError, match=r"^delimiter cannot be given for a \.rows file"):
            opened(tmp_path / "in.rows", delimiter=";")


@pytest.mark.usefixtures("toy_format")
def test_a_new_format_with_its_reader_in_parts_is_released_within_a_limit_of_memory(tmp_path):
    (tmp_path / "in.rows").write_text(json.dumps({"rows": PEOPLE.to_pylist()}))
    settings = {"k": 3, "quasi_identifiers": ["age", "zip"], "seed": 1, "reading": {"encoding": "utf-8"}}
    shoal.anonymize(tmp_path / "in.rows", memory="500MB", **settings).write(tmp_path / "out.parquet")
    source = open_batches(tmp_path / "in.rows")

    assert [part.num_rows for part in source.read(["zip"])] == [2, 2, 2, 2, 1]
    assert source.sha256 == tables.read(tmp_path / "in.rows").sha256
    assert shoal.audit(tmp_path / "out.parquet", k=3, quasi_identifiers=["age", "zip"]).holds


@pytest.mark.usefixtures("toy_model")
def test_a_new_model_is_read_from_a_job_enforced_audited_and_described():
    people = PEOPLE.append_column("illness", pa.array(list("aabbccabc")))
    roles = {"quasi_identifiers": ["age", "zip"], "confidential": ["illness"]}
    job = shoal.Job.of(k=3, roles=roles, models=[{"model": "several", "column": "illness", "p": 2}], accept=["codes"])
    release = shoal.run(job, people)

    assert shoal.Job.from_toml(job.to_toml()) == job
    assert release.verdict.holds
    assert [found.model for found in release.verdict.models] == [Several("illness", p=2)]
    with pytest.raises(shoal.GuaranteeError, match="several of 'illness' with p = 4 cannot be satisfied"):
        shoal.anonymize(people, k=3, models=Several("illness", p=4), **roles)


@pytest.mark.usefixtures("toy_aggregates")
@pytest.mark.filterwarnings("ignore:The sets of column 'zip' list:shoal.ShoalWarning")
def test_new_aggregates_are_read_from_a_job_published_recounted_and_described(tmp_path):
    roles = {"quasi_identifiers": ["age", "zip"]}
    columns = {"age": {"aggregate": "halfway"}, "zip": {"aggregate": "between"}}
    job = shoal.Job.of(k=3, roles=roles, columns=columns, seed=1, accept=["codes"])
    release = shoal.run(job, PEOPLE)
    release.write(tmp_path / "out.csv", report=tmp_path / "out.html")
    report = (tmp_path / "out.html").read_text()

    assert shoal.Job.from_toml(job.to_toml()) == job
    assert sorted(set(release.table["age"].to_pylist())) == [21.0, 41.0, 61.0]
    assert sorted(set(release.table["zip"].to_pylist())) == ["{1, 2}", "{2, 3}", "{4, 5}"]
    assert [(truth.form, truth.n_false) for truth in release.verdict.truth] == [("set", 0)]
    assert "the middle of the group in age" in report
    verdict = shoal.audit(tmp_path / "out.csv", quasi_identifiers=["age", "zip"], original=PEOPLE)
    assert [(truth.column, truth.n_false) for truth in verdict.truth] == [("zip", 0)]


@pytest.mark.usefixtures("toy_aggregates")
def test_a_new_aggregate_is_refused_where_it_does_not_fit(tmp_path):
    roles = {"quasi_identifiers": ["age", "zip"]}
    columns = {"age": {"aggregate": "halfway"}}
    disk = {"engine": "disk", "output": {"path": str(tmp_path / "disk.csv")}}
    job = shoal.Job.of(k=3, roles=roles, columns=columns, accept=["codes"], **disk)
    pcsv.write_csv(PEOPLE, tmp_path / "in.csv")

    with pytest.raises(shoal.SchemaError, match="is nominal and has no middle"):
        shoal.anonymize(PEOPLE, k=3, columns={"age": {"aggregate": "halfway", "kind": "nominal"}}, **roles)
    with pytest.raises(shoal.SchemaError, match="aggregated by halfway, which is not"):
        shoal.anonymize(PEOPLE, k=3, columns=columns, truthful=True, **roles)
    with pytest.raises(shoal.ParameterError, match="'disk' cannot do this: an aggregate of whole tables"):
        shoal.run(job, tmp_path / "in.csv")


@pytest.mark.usefixtures("toy_database")
def test_a_new_database_is_read_written_and_listed(tmp_path):
    connection = sqlite3.connect(tmp_path / "people.toy")
    connection.execute("CREATE TABLE people (age INTEGER, zip INTEGER)")
    connection.executemany("INSERT INTO people VALUES (?, ?)", zip(*PEOPLE.to_pydict().values(), strict=True))
    connection.commit()
    connection.close()
    source = tables.read(tmp_path / "people.toy", table="people")
    release = shoal.anonymize(source.arrow, k=3, quasi_identifiers=["age", "zip"], accept=["codes"])
    release.write(f"toy:///{tmp_path}/people.toy", to_table="safe")

    assert (source.kind, source.n_records) == ("toy", 9)
    assert shoal.audit(tmp_path / "people.toy", table="safe", k=3, quasi_identifiers=["age", "zip"]).holds
    assert tables.databases_in_words().endswith(" or Toy")


def test_the_lists_in_the_docs_are_those_of_the_registries():
    lists = Path(__file__).parents[1] / "tools" / "lists.py"
    done = subprocess.run([sys.executable, lists, "--check"], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert done.returncode == 0
