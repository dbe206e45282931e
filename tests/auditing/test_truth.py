"""Releases whose values are true of every record: made, recounted, written, read back, compared with the originals."""

import json
import shutil
import warnings
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal import datasets
from shoal import release as releasing
from shoal.columns.coarse.interval_ends import Ends
from shoal.errors import GuaranteeError, ParameterError, SchemaError
from shoal.incremental.collection import begin
from shoal.sources import read, write

QUASI = ["age", "pay", "status", "zip", "born"]
ROLES = {"quasi_identifiers": QUASI, "confidential": ["illness"]}
ZIP = {"zip": {"hierarchy": "prefix:2"}}


def people(n=120, missing=False):
    rng = np.random.default_rng(2)
    days = [date(1950, 1, 1) + timedelta(int(day)) for day in rng.integers(0, 15_000, n)]
    columns = {
        "age": rng.integers(18, 90, n).tolist(),
        "pay": np.round(rng.lognormal(7, 0.4, n), 2).tolist(),
        "status": rng.choice(["married", "single", "widowed, once", "{other}"], n).tolist(),
        "zip": rng.choice(["43001", "43002", "44001", "50001"], n).tolist(),
        "born": days,
        "illness": rng.choice(["flu", "cold"], n).tolist(),
    }
    if missing:
        for name in QUASI:
            columns[name] = [None if i % 11 == len(name) else value for i, value in enumerate(columns[name])]
    return pa.table(columns)


def truthful(table, k=4, columns=ZIP, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ShoalWarning)
        return shoal.anonymize(table, k=k, truthful=True, columns=columns, seed=1, **(ROLES | settings))


def test_every_quasi_identifier_of_a_truthful_release_is_true_of_every_record():
    release = truthful(people())
    forms = {found.column: (found.form, found.n_false) for found in release.verdict.truth}

    assert release.verdict.holds
    assert forms == {
        "age": ("interval", 0),
        "pay": ("interval", 0),
        "status": ("set", 0),
        "zip": ("ancestor", 0),
        "born": ("period", 0),
    }
    assert release.table["illness"] == people()["illness"]


def test_truth_is_what_a_naive_reader_finds():
    original, release = people(), truthful(people())

    for own, shown in zip(original["age"].to_pylist(), release.table["age"].to_pylist(), strict=True):
        low, high = shown[1:-1].split(", ")
        assert int(low) <= own <= int(high)
    for own, shown in zip(original["zip"].to_pylist(), release.table["zip"].to_pylist(), strict=True):
        assert own.startswith(shown.rstrip("*"))


@pytest.mark.parametrize(
    ("ending", "intervals", "missing"), [*product(["csv", "parquet"], ["text", "columns"], [0, 1])]
)
def test_what_is_written_is_true_when_read_back_and_against_the_originals(tmp_path, ending, intervals, missing):
    original = people(missing=bool(missing))
    write(original, tmp_path / f"people.{ending}")
    columns = ZIP | {"age": {"top": 80, "bottom": 25}}
    settings = {"missing": "own-value"} if missing else {}
    release = truthful(tmp_path / f"people.{ending}", intervals=intervals, columns=columns, **settings)
    release.write(tmp_path / f"release.{ending}")
    found = shoal.audit(tmp_path / f"release.{ending}", original=original, quasi_identifiers=QUASI).truth

    assert [truth.n_false for truth in found] == [0] * 5
    assert shoal.audit(tmp_path / f"release.{ending}", quasi_identifiers=QUASI, k=4).holds
    names = read(tmp_path / f"release.{ending}").names
    assert ("age.low" in names, "age.missing" in names) == (
        intervals == "columns",
        intervals == "columns" and bool(missing),
    )


@pytest.mark.parametrize("ending", [".csv", ".sav", ".dta", ".xpt", ".xlsx"])
def test_a_class_of_missing_values_alone_is_read_back_from_every_format(tmp_path, ending):
    columns = {"side": [0, 0, 99, 99], "age": [20, 21, None, None], "status": ["a", "b", None, None]}
    path, table = tmp_path / f"release{ending}", pa.table(columns)
    roles = {"quasi_identifiers": [*columns], "confidential": (), "other": ()}
    truthful(table, k=2, columns={}, missing="own-value", method="mdav", **roles).write(path)
    found = shoal.audit(path, original=table, quasi_identifiers=["age", "status"]).truth
    published = read(path).arrow

    assert [(truth.n_values, truth.n_false) for truth in found] == [(2, 0), (2, 0)]
    assert np.isnan(shoal.read_published(published["age"]).low).sum() == 2
    assert sorted(map(len, shoal.read_published(published["status"]).members)) == [0, 2]


def test_values_beyond_a_top_code_are_compared_as_they_are():
    ages = pa.table({"age": [70, 75, 80, 95]})

    def false(upper):
        published = pa.table({"age": ["[70, 79]"] * 2 + [f"[80, {upper}"] * 2})
        columns = {"age": {"top": 80, "aggregate": "interval"}}
        found = shoal.audit(published, original=ages, quasi_identifiers="age", same_order=True, columns=columns).truth
        return found[0].n_false

    assert false("inf)") == 0
    assert false("84]") == 1


def test_intervals_can_be_structs_in_parquet_but_not_in_csv(tmp_path):
    release = truthful(people(missing=True), missing="own-value", intervals="struct")
    release.write(tmp_path / "release.parquet")
    first = pq.read_table(tmp_path / "release.parquet")["age"][0].as_py()

    assert set(first) == {"low", "high", "missing"}
    assert shoal.audit(tmp_path / "release.parquet", quasi_identifiers=QUASI, k=4).holds
    found = shoal.audit(tmp_path / "release.parquet", original=people(missing=True), quasi_identifiers=QUASI).truth
    assert [truth.n_false for truth in found] == [0] * 5
    with pytest.raises(shoal.FileError, match="structs"):
        release.write(tmp_path / "release.csv")
    assert not list(tmp_path.glob("release.csv*"))


def test_the_midpoints_of_columns_structs_and_texts_agree():
    texts, structs = (truthful(people(), intervals=layout).table for layout in ("text", "struct"))
    columns = truthful(people(), intervals="columns").table
    middle = shoal.read_published(texts["age"]).midpoint

    assert shoal.read_published(structs["age"]).midpoint.tolist() == middle.tolist()
    assert ((np.asarray(columns["age.low"]) + np.asarray(columns["age.high"])) / 2).tolist() == middle.tolist()


def test_a_planted_lie_is_found_before_and_after_writing(tmp_path, monkeypatch):
    release = truthful(people())
    release.write(tmp_path / "release.csv")
    lied = (tmp_path / "release.csv").read_text().splitlines()
    lied[1] = '"[10, 11]"' + lied[1][lied[1].index(']"') + 2 :]
    (tmp_path / "lied.csv").write_text("\n".join(lied))
    manifest = tmp_path / "release.csv.internal.json"
    asked = {"quasi_identifiers": ["age", "pay"], "original": people(), "manifest": manifest}
    found = shoal.audit(tmp_path / "lied.csv", **asked).truth
    honest = releasing.aggregate

    def lying(*given):
        made = honest(*given)
        return made | {"status": pa.array(["{married}"] * len(made["status"]))}

    assert [truth.n_false for truth in found] == [1, 0]
    monkeypatch.setattr(releasing, "aggregate", lying)
    with pytest.raises(GuaranteeError, match="not within the published set of column 'status'"):
        truthful(people())


def test_a_file_that_does_not_say_what_was_meant_is_not_released(tmp_path, monkeypatch):
    release = truthful(people())
    monkeypatch.setattr(
        "shoal.output.places.laid_out",
        lambda table, schema, layout: table.set_column(0, "age", pa.array(["[1, 2]"] * 120)),
    )

    with pytest.raises(GuaranteeError, match="not true of every record: read back, 120 records"):
        release.write(tmp_path / "release.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_beside_another_table_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truthful(people()).write("a.csv")
    truthful(people(), k=5).write("b.csv")
    (tmp_path / "b.csv.internal.json").rename("a.csv.internal.json")
    for tried in (shoal.audit, shoal.attack):
        with pytest.raises(shoal.ParameterError, match=r"'a\.csv\.internal\.json' describes another file"):
            tried("a.csv", original=people(), quasi_identifiers=QUASI)


def test_a_manifest_and_the_same_order_are_refused_together():
    ages = pa.table({"age": [20, 29]})
    given = {"quasi_identifiers": "age", "manifest": "release.internal.json", "same_order": True}
    for compare in (shoal.audit, shoal.attack):
        with pytest.raises(ParameterError, match="Give one of them"):
            compare(ages, original=ages, **given)


def test_the_releases_of_other_tools_are_compared_in_the_same_order():
    arx = pa.table({"age": ["[20, 30[", "[20, 30[", "[30, 40["]})

    people = pa.table({"age": [20, 29, 40]})
    (found,) = shoal.audit(arx, original=people, quasi_identifiers="age", same_order=True).truth

    assert (found.form, found.n_false) == ("interval", 1)
    with pytest.raises(ParameterError, match="same_order=True"):
        shoal.audit(arx, original=people, quasi_identifiers="age")
    with pytest.raises(ParameterError, match="3 records and the original 2"):
        shoal.audit(arx, original=pa.table({"age": [20, 29]}), quasi_identifiers="age", same_order=True)


def test_an_audit_recognises_what_it_cannot_compare():
    verdict = shoal.audit(truthful(people()).table, quasi_identifiers=QUASI, k=4)

    assert verdict.holds
    assert {found.column: found.form for found in verdict.truth} == {
        "age": "interval",
        "pay": "interval",
        "status": "set",
        "born": "period",
    }
    assert {found.n_false for found in verdict.truth} == {None}


def test_measures_and_reports_handle_truthful_columns_and_say_so(tmp_path):
    release = truthful(people(missing=True), missing="own-value")
    release.write(tmp_path / "release.csv", report=tmp_path / "report.html", json=tmp_path / "report.json")
    truthful(people()).write(tmp_path / "public.csv", report=tmp_path / "public.html", form="public")
    facts = json.loads((tmp_path / "report.json").read_text())

    assert 0 < release.loss.il < 1
    assert set(release.utility.numeric.columns) == {"age", "pay", "born"}
    assert set(release.utility.nominal) == {"status", "zip"}
    assert release.risk.classes.prosecutor_max <= 0.25
    assert any("they use its middle" in line for line in facts["done"])
    assert [entry["step"] > 0 for entry in facts["codebook"] if "step" in entry] == [True, True]
    assert [found["n_false"] for found in facts["verdict"]["truth"]] == [0] * 5
    assert "interval, true of every record" in (tmp_path / "public.html").read_text()


def test_what_is_public_names_hierarchies_without_their_folders(tmp_path):
    (tmp_path / "zip.csv").write_text(
        "".join(f"{code};{code[:2]};*\n" for code in ("43001", "43002", "44001", "50001"))
    )
    release = truthful(people(), columns={"zip": {"hierarchy": str(tmp_path / "zip.csv")}})
    release.write(tmp_path / "release.csv", report=tmp_path / "report.html", form="public")

    for file in ("release.csv.public.json", "report.html"):
        assert str(tmp_path) not in (tmp_path / file).read_text()
    assert str(tmp_path / "zip.csv") in (tmp_path / "release.csv.internal.json").read_text()


def test_models_subjects_and_strata_are_kept_beside_truth():
    table = (
        people()
        .append_column("person", pa.array([i // 2 for i in range(120)]))
        .append_column("region", pa.array([i % 2 for i in range(120)]))
    )
    release = truthful(
        table,
        subject="person",
        by=["region"],
        models=[shoal.LDiversity("illness", l=2)],
    )

    assert release.verdict.holds
    assert release.verdict.subjects >= 4


@pytest.mark.parametrize("type_", [pa.float32(), pa.decimal128(4, 2)])
def test_intervals_are_open_beyond_a_code_that_the_column_stores_as_another_number(type_):
    shares = pa.array([i / 50 for i in range(50)]).cast(pa.decimal128(4, 2)).cast(type_)
    release = shoal.anonymize(
        pa.table({"share": shares}), k=5, truthful=True, quasi_identifiers=["share"], columns={"share": {"top": 0.7}}
    )
    ends = shoal.read_published(release.table["share"]).high

    assert (np.isinf(ends) | (ends >= np.asarray(shares.cast(pa.float64())))).all()


def test_the_records_of_one_person_do_not_make_its_value_one_that_many_share():
    table = pa.table({"person": [i // 6 for i in range(60)], "age": [40 + i // 6 for i in range(60)]})
    release = shoal.anonymize(table, k=3, truthful=True, quasi_identifiers=["age"], subject="person", seed=1)

    assert set(release.table["age"].to_pylist()) <= {"[40, 44]", "[40, 49]", "[45, 49]"}


def people_at_ends(release):
    """Return how few people have a value in a step at which a published interval of the release ends."""
    fewest = []
    for column in release.schema.quasi:
        units = column.grid.units(release.original[column.name])
        own, shown = column.grid.intervals(units, units), release.table[column.name].to_pylist()
        for place in (0, 1):
            counts = Counter(interval.split(", ")[place] for interval in own)
            fewest += [counts[interval.split(", ")[place]] for interval in set(shown)]
    return min(fewest)


@pytest.mark.parametrize(("name", "k"), [("census", 5), ("tarragona", 10)])
def test_k_people_of_a_reference_table_are_where_a_published_interval_ends(name, k):
    roles = {"quasi_identifiers": list(getattr(datasets, name)().columns)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ShoalWarning)
        release = shoal.anonymize(datasets.path(name), k=k, truthful=True, **roles, method="mdav", seed=1)

    assert people_at_ends(release) >= k
    assert {found.n_exposed for found in release.verdict.truth} == {0}


@pytest.mark.parametrize("joined", [lambda number, persons, full, k: np.arange(len(full))])
@pytest.mark.parametrize("quasi", ["age", "born"])
def test_an_end_that_shows_fewer_than_k_people_is_not_released(monkeypatch, joined, quasi):
    monkeypatch.setattr("shoal.columns.coarse.interval_ends._joined", joined)
    table = people().select(["age", "born"]).slice(0, 40)

    with pytest.raises(shoal.GuaranteeError, match="shows where fewer than 4 people are"):
        shoal.anonymize(table.select([quasi]), k=4, truthful=True, quasi_identifiers=[quasi], seed=1)


def test_a_written_end_that_shows_fewer_than_k_people_is_not_released(tmp_path):
    release = truthful(people())
    finer = replace(release.schema["age"].grid, ends=Ends.of(np.arange(90), None, 1, 1))
    columns = [replace(c, grid=finer) if c.name == "age" else c for c in release.schema.columns]
    published = replace(release.columns, schema=replace(release.schema, columns=tuple(columns)))
    release = replace(release, records=replace(release.records, columns=published))

    with pytest.raises(shoal.GuaranteeError, match="shows where fewer than 4 people are: read back"):
        release.write(tmp_path / "release.csv")
    assert not list(tmp_path.iterdir())


def test_the_ends_of_a_release_do_not_depend_on_the_order_of_its_records(tmp_path):
    table = people(missing=True)
    for number, rows in enumerate([np.arange(120), np.random.default_rng(1).permutation(120)]):
        release = truthful(table.take(pa.array(rows)), method="mdav", missing="own-value")
        release.write(tmp_path / f"{number}.csv")

    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "1.csv").read_bytes()


def test_a_person_with_many_records_is_one_where_an_interval_ends():
    table = pa.table(
        {"person": [*range(60), *[60] * 20], "pay": [*range(1_000, 61_000, 1_000), *range(990_000, 1_010_000, 1_000)]}
    )
    asked = {"quasi_identifiers": ["pay"], "subject": "person", "accept": ["two-scales"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ShoalWarning)
        release = shoal.anonymize(table, k=4, truthful=True, seed=1, **asked)
    steps = Counter(release.schema["pay"].grid.ends.places(release.schema["pay"].grid.units(table["pay"])).tolist())

    assert release.verdict.truth[0].n_exposed == 0
    assert steps[max(steps)] >= 20 + 3  # that of the one person is joined with those of others


def test_a_column_with_a_hierarchy_can_be_published_as_sets():
    release = truthful(people(), columns={"zip": {"hierarchy": "prefix:2", "aggregate": "set"}})

    assert [found.n_false for found in release.verdict.truth if found.form == "set"] == [0, 0]


def test_dates_that_no_period_is_written_for_are_refused():
    days = pa.array(range(3_000_000, 3_000_030), pa.int32()).cast(pa.date32())

    with pytest.raises(SchemaError, match="outside the years 0 to 9999"):
        shoal.anonymize(pa.table({"born": days}), k=3, truthful=True, quasi_identifiers=["born"])


def test_truthful_comparisons_measure_the_middles():
    found = shoal.compare(people(), k=[3, 6], methods=["auto"], truthful=True, columns=ZIP, **ROLES)

    assert [choice.loss > 0 for choice in found.choices] == [True, True]


def test_the_same_seed_gives_the_same_bytes_whatever_the_threads(tmp_path):
    for threads in (1, 2):
        truthful(people(), threads=threads).write(tmp_path / f"{threads}.csv")

    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"truthful": True, "columns": {"age": {"aggregate": "mean"}}}, "aggregated by mean, which is not"),
        ({"columns": {"age": {"aggregate": "ancestor"}}}, "has no hierarchy"),
        ({"columns": {"age": {"aggregate": "interval", "step": 500}}}, "more than the range"),
        ({"columns": {"age": {"aggregate": "interval", "round": 0}}}, "could make it false"),
        ({"columns": {"status": {"aggregate": "interval"}}}, "has no intervals"),
        ({"columns": {"age": {"aggregate": "period"}}}, "no months and years"),
        ({"columns": {"age": {"step": 5}}}, 'works with aggregate="interval"'),
        ({"columns": {"age": {"hierarchy": "steps:5"}}}, "nothing would use it"),
        ({"columns": {"zip": {"outside": "root"}}}, "has no hierarchy"),
        ({"columns": {"zip": {"hierarchy": "prefix:2", "aggregate": "ancestor", "level": 3}}}, "its root is level 2"),
        ({"columns": {"zip": {"hierarchy": "nowhere.csv"}}}, "cannot be read"),
        ({"columns": {"age": {"aggregate": "set", "top": 80}}}, "false for those beyond the code"),
        (
            {"columns": {"age": {"hierarchy": "steps:5", "aggregate": "ancestor", "bottom": 20}}},
            "false for those beyond",
        ),
        ({"intervals": "columns"}, "no column is published as an interval"),
        ({"truthful": True, "rho": 0.5}, "Random aggregation"),
    ],
)
def test_what_cannot_be_true_is_refused_in_a_paragraph(settings, said):
    with pytest.raises(shoal.ShoalError, match=said) as error:
        shoal.anonymize(people(), k=4, **ROLES, **settings)

    assert "\n" not in str(error.value)


def test_a_step_of_zero_is_refused():
    with pytest.raises(ParameterError, match=r"columns\.age\.step cannot be used: input should be greater than 0"):
        shoal.anonymize(people(), k=4, columns={"age": {"aggregate": "interval", "step": 0}}, **ROLES)


def test_the_columns_of_ends_must_not_be_there_already():
    table = people().append_column("age.low", pa.array(range(120)))

    with pytest.raises(SchemaError, match=r"'age\.low', but the table has one"):
        truthful(table, intervals="columns", other=["age.low"])


def test_a_step_as_fine_as_the_values_is_warned_about():
    with pytest.warns(shoal.ShoalWarning, match="as fine as its values"):
        shoal.anonymize(people(), k=4, columns={"age": {"aggregate": "interval", "step": 1}}, **ROLES)


def test_streams_and_collections_refuse_truthful_values(tmp_path):
    with pytest.raises(ParameterError, match="no truthful"):
        shoal.Stream(4, quasi_identifiers=["age"], delay=9, columns={"age": {"aggregate": "interval"}})
    with pytest.raises(ParameterError, match="no truthful"):
        begin(tmp_path / "folder", people(), k=4, truthful=True, **ROLES)
    assert list(tmp_path.iterdir()) == []


def test_the_project_carried_over_from_arx_runs_on_data_that_come_with_shoal(tmp_path, monkeypatch):
    shutil.copytree(Path(__file__).parents[2] / "examples" / "from_arx", tmp_path / "project")
    shutil.copy(datasets.path("people"), tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    release = shoal.run("job.toml")

    assert {(truth.column, truth.form, truth.n_false) for truth in release.verdict.truth} == {
        ("age", "ancestor", 0),
        ("zip", "ancestor", 0),
        ("sex", "set", 0),
        ("income", "interval", 0),
    }


def test_a_semantic_release_publishes_medoids_of_the_hierarchy():
    release = shoal.anonymize(people(), k=4, columns=ZIP, seed=1, **ROLES)

    assert set(release.table["zip"].to_pylist()) <= set(people()["zip"].to_pylist())
    assert release.verdict.truth == ()


def test_ranges_of_years_are_not_taken_for_intervals_of_numbers(tmp_path):
    columns = ZIP | {"born": {"precision": "year"}}
    release = truthful(people(), columns=columns)
    release.write(tmp_path / "release.csv")
    found = shoal.audit(tmp_path / "release.csv", original=people(), quasi_identifiers=["born"]).truth

    assert any("/" in period for period in release.table["born"].to_pylist())
    assert [(truth.form, truth.n_false) for truth in found] == [("period", 0)]
    assert shoal.read_published(["1951/1953", "1960/1961"]).is_period


def test_the_month_of_a_time_is_that_of_its_own_zone(tmp_path):
    """In UTC it was still December of 2019."""
    times = [f"2020-01-01T09:{minute}+13:00" for minute in range(10, 40)]
    (tmp_path / "visits.csv").write_text("\n".join(["at", *times]) + "\n")
    settings = {"k": 5, "quasi_identifiers": ["at"], "seed": 1}
    release = shoal.anonymize(tmp_path / "visits.csv", truthful=True, **settings)
    release.write(tmp_path / "true.csv")
    for ending in ("csv", "parquet", "xlsx"):
        shoal.anonymize(tmp_path / "visits.csv", **settings).write(tmp_path / f"close.{ending}")

    assert set(release.table["at"].to_pylist()) == {"2020-01"}
    assert [
        found.n_false
        for found in shoal.audit(tmp_path / "true.csv", original=tmp_path / "visits.csv", quasi_identifiers="at").truth
    ] == [0]
    assert {time[:10] for time in (tmp_path / "close.csv").read_text().split()[1::2]} == {"2020-01-01"}


def test_times_of_several_zones_are_asked_about(tmp_path):
    times = [f"2020-01-{day}T09:30+{1 + day % 2:02}:00" for day in range(10, 31)]
    (tmp_path / "visits.csv").write_text("\n".join(["at", *times]) + "\n")

    with pytest.raises(SchemaError, match=r"Column 'at'.* 2 different offsets from UTC.* one zone"):
        shoal.anonymize(tmp_path / "visits.csv", k=5, truthful=True, quasi_identifiers=["at"], seed=1)


def test_an_audit_with_the_originals_finds_ends_that_show_single_people(tmp_path):
    original, release = people(), truthful(people())
    release.write(tmp_path / "release.csv", order="keep")
    own, shown = (np.array(table["age"].to_pylist()) for table in (original, release.table))
    widest = max(set(shown), key=lambda text: int(text[1:-1].split(", ")[1]))
    exact = f"[{own[shown == widest].min()}, {own[shown == widest].max()}]"
    text = (tmp_path / "release.csv").read_text()
    (tmp_path / "release.csv").write_text(text.replace(widest, exact))
    manifest = tmp_path / "release.csv.internal.json"  # one that is named may be that of a file that was changed
    asked = {"quasi_identifiers": ["age", "zip"], "original": original, "manifest": manifest}
    verdict = shoal.audit(tmp_path / "release.csv", **asked)

    assert not verdict.holds
    assert [(truth.n_false, truth.n_exposed) for truth in verdict.truth] == [(0, (shown == widest).sum()), (0, 0)]


def test_a_column_in_which_fewer_than_k_people_have_a_value_shows_no_end(tmp_path):
    table = people().slice(0, 60)
    rare = {name: pa.array([v if i < 3 else None for i, v in enumerate(table[name].to_pylist())]) for name in QUASI}
    table = table.drop(["pay", "zip", "born"]).add_column(0, "pay", rare["pay"]).add_column(1, "zip", rare["zip"])
    release = truthful(table.add_column(2, "born", rare["born"]), missing="own-value")
    release.write(tmp_path / "release.csv", report=tmp_path / "report.html")
    original = table.add_column(2, "born", rare["born"])
    found = shoal.audit(tmp_path / "release.csv", original=original, quasi_identifiers=QUASI).truth

    assert set(release.table["pay"].to_pylist()) == {"(-inf, inf) or missing", None}
    assert set(release.table["zip"].to_pylist()) == {"* or missing", None}
    assert set(release.table["born"].to_pylist()) == {"../.. or missing", None}
    assert {(truth.n_false, truth.n_exposed or 0) for truth in found} == {(0, 0)}
