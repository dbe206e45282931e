import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as pacsv

import shoal
from cli.shell import shoal_command
from shoal import kernels
from shoal.errors import ParameterError
from shoal.incremental.collection import begin
from shoal.job import StreamSettings
from shoal.measures import ncp
from shoal.space.ncp_weights import ncp_columns
from shoal.stream.from_job import stream_of

N = 240
RNG = np.random.default_rng(5)
PEOPLE = pa.table(
    {
        "age": RNG.integers(18, 90, N),
        "income": RNG.lognormal(3, 1, N).round(1),
        "sex": RNG.choice(["f", "m"], N),
        "job": RNG.choice(list("abcdefgh"), N),
        "region": RNG.choice(["north", "south"], N),
        "person": np.arange(N) // 2,
        "disease": RNG.choice(["flu", "cold", "gout"], N),
    }
)
ROLES = {"quasi_identifiers": ["age", "income", "sex", "job"], "confidential": ["disease"]}


def release_of(**settings):
    given = {"k": 4, "seed": 1, "objective": "ncp", "identifiers": ["person"], "other": ["region"], **ROLES}
    return shoal.anonymize(PEOPLE, **given | settings)


def test_cells_made_for_certainty_have_a_lower_penalty_than_those_made_for_means():
    made_for_means = release_of(objective="sse", truthful=True)

    assert release_of(truthful=True).certainty.ncp < 0.9 * made_for_means.certainty.ncp
    assert release_of(truthful=True).verdict.smallest >= 4


def test_the_release_depends_on_the_seed_and_not_on_the_threads():
    one, two = release_of(threads=1), release_of(threads=2)

    assert (one.labels == two.labels).all()
    assert (one.labels != release_of(seed=2).labels).any()


def test_more_effort_loses_no_more():
    best = release_of(effort="best", seconds=1)

    assert best.certainty.ncp <= 1.01 * release_of().certainty.ncp
    assert best.verdict.holds


def test_strata_persons_and_models_are_kept():
    release = release_of(
        by=["region"],
        other=[],
        identifiers=[],
        subject="person",
        models=[shoal.LDiversity("disease", l=2), shoal.TCloseness("disease", t=0.5)],
        truthful=True,
    )
    regions, persons = np.asarray(PEOPLE["region"]), np.asarray(PEOPLE["person"])

    assert all(len(set(regions[release.labels == cell])) == 1 for cell in release.labels)
    assert release.verdict.holds
    assert min(len(set(persons[release.labels == cell])) for cell in release.labels) >= 4


def test_large_cells_are_cut_along_hierarchies():
    codes = RNG.choice(["11", "12", "13", "21", "22", "31"], N)
    table = pa.table({"job": codes, "trade": codes[::-1]})
    settings = {"columns": {name: {"kind": "nominal", "hierarchy": "prefix:1"} for name in table.column_names}}
    release = shoal.anonymize(
        table, k=20, quasi_identifiers=table.column_names, objective="ncp", truthful=True, seed=1, **settings
    )
    columns = kernels.NcpTable(N)
    for column in ncp_columns(release.original, release.schema).values():
        column.add_to(columns, np.arange(N))
    cut = kernels.ncp_specialise(columns, 20)

    assert release.verdict.holds
    assert release.certainty.ncp < ncp(release.original, release.schema, {"job": cut, "trade": cut}).ncp


@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
def test_missing_values_ties_and_constant_columns_have_cells():
    table = pa.table(
        {
            "a": pa.array([None if i % 7 == 0 else i % 5 for i in range(90)]),
            "b": ["x"] * 90,
            "c": pa.array([None if i % 4 == 0 else "yz"[i % 2] for i in range(90)]),
            "d": pa.array([None] * 90, pa.float64()),
        }
    )
    release = shoal.anonymize(
        table, k=3, quasi_identifiers=table.column_names, missing="own-value", objective="ncp", truthful=True, seed=1
    )

    assert release.verdict.smallest >= 3
    assert release.certainty.columns["b"] == release.certainty.columns["d"] == 0


@pytest.mark.filterwarnings("ignore:More than half of the differences")
def test_a_column_of_which_only_the_root_is_published_has_cells():
    release = release_of(columns={"job": {"aggregate": "ancestor", "hierarchy": "prefix:1", "level": 2}})

    assert release.table["job"].unique().to_pylist() == ["*"]
    assert release.verdict.holds


def test_an_interrupt_is_raised_or_ends_the_search_as_asked():
    def stop(done, total):
        if done > 0.395 * total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release_of(effort="best", progress=stop)

    asked = []

    def stop_once(done, total):
        if done > 0.395 * total and not asked:
            asked.append(done)
            raise KeyboardInterrupt

    assert release_of(effort="best", interrupt="keep", progress=stop_once).verdict.holds


REFUSED = {
    "method": ({"method": "mdav"}, "'mdav', which has no objective"),
    "rho": ({"rho": 0.5, "quasi_identifiers": ["age", "income"], "other": ["region", "sex", "job"]}, "rho"),
    "steer": ({"steer": {"region": 1.0}}, "steer"),
    "household": ({"identifiers": [], "household": "person", "household_level": ["age"]}, "households"),
    "weight": ({"models": [shoal.TCloseness("disease", t=0.5, weight=1.0)]}, "a model with a weight"),
    "option": ({"swing": 3}, "'swing'"),
    "effort": ({"effort": "huge"}, "effort"),
    "objective": ({"objective": "il"}, "objective"),
}


@pytest.mark.parametrize(("settings", "named"), REFUSED.values(), ids=REFUSED)
def test_what_the_objective_would_ignore_is_refused_by_name(settings, named):
    with pytest.raises(shoal.ShoalError, match=named):
        release_of(**settings)


def test_streams_and_collections_have_no_objective(tmp_path):
    job = shoal.Job.of(k=2, objective="ncp", roles={"quasi_identifiers": ["age"]})

    with pytest.raises(ParameterError, match="objective"):
        stream_of(job.model_copy(update={"stream": StreamSettings(delay=9)}), "row")
    with pytest.raises(ParameterError, match="objective 'ncp'"):
        begin(tmp_path / "collection", PEOPLE.select(["age"]), job)


def test_the_command_line_and_a_job_take_the_objective(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = PEOPLE.select(["age", "income", "sex", "job"])
    pacsv.write_csv(table, "people.csv")
    said = shoal_command(
        *("anonymize", "people.csv", "-k", 4, "--quasi", "age,income,sex,job", "--objective", "ncp", "--truthful"),
        *("--seed", 1, "-o", "release.csv", "--save-job", "job.toml"),
    )

    assert said.exit_code == 0, said.output
    assert "certainty penalty" in said.output
    assert shoal.Job.load("job.toml").objective == "ncp"


def test_the_command_line_refuses_the_objective_with_another_method(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pacsv.write_csv(PEOPLE.select(["age"]), "people.csv")
    said = shoal_command(
        *("anonymize", "people.csv", "-k", 4, "--quasi", "age", "--objective", "ncp", "--method", "mdav"),
        *("-o", "release.csv"),
    )

    assert said.exit_code == 2
    assert "'mdav', which has no objective" in said.output
    assert not (tmp_path / "release.csv").exists()
