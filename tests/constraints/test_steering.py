"""Steering columns of a table: together, apart, and what is refused."""

import contextlib

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as pacsv

import shoal
from cli.shell import shoal_command
from shoal.columns.schema import Roles, Schema
from shoal.constraints.steering import with_steering
from shoal.errors import ParameterError, SchemaError

N = 120
RNG = np.random.default_rng(5)
PEOPLE = pa.table(
    {
        "age": RNG.integers(18, 90, N),
        "income": RNG.normal(30, 9, N).round(1),
        "region": RNG.choice(["north", "south", "west"], N),
        "hospital": np.repeat(list("abcdef"), N // 6),
        "visit": np.arange(N),
    }
)
ROLES = {
    "quasi_identifiers": ["age", "income"],
    "other": ["region"],
    "confidential": ["hospital"],
    "identifiers": ["visit"],
}


def mean_values_in_a_cell(release, column):
    values = np.asarray(PEOPLE[column])
    return np.mean([len(set(values[release.labels == cell])) for cell in range(release.labels.max() + 1)])


def release_of(**settings):
    return shoal.anonymize(PEOPLE, **{"k": 4, "method": "mdav", "seed": 1, **ROLES, **settings})


def test_a_positive_weight_keeps_equal_values_together():
    free, led = release_of(), release_of(steer={"region": 100})

    assert mean_values_in_a_cell(led, "region") < 1.2 < 2 < mean_values_in_a_cell(free, "region")
    assert led.verdict.holds


def test_a_negative_weight_spreads_equal_values_over_cells():
    free, led = release_of(k=6), release_of(k=6, steer={"hospital": -100})

    assert mean_values_in_a_cell(led, "hospital") == 6 > mean_values_in_a_cell(free, "hospital")
    assert led.verdict.holds


def test_without_steering_columns_the_points_are_not_copied():
    X = np.zeros((2, 3))

    assert (
        with_steering(
            X, pa.table({"a": [1, 2]}), Schema.of(pa.schema({"a": pa.int64()}), Roles(quasi_identifiers=("a",))), {}
        )
        is X
    )


def test_several_columns_steer_at_once():
    led = release_of(steer={"region": 100, "hospital": -10})

    assert mean_values_in_a_cell(led, "region") < 1.2
    assert mean_values_in_a_cell(led, "hospital") > mean_values_in_a_cell(release_of(steer={"region": 100}), "hospital")


def test_loss_is_measured_on_the_quasi_identifiers_alone():
    assert [column.name for column in release_of(steer={"region": 3}).schema.quasi] == ["age", "income"]
    assert release_of(steer={"region": 1e-9}).loss.il == pytest.approx(release_of().loss.il)


@pytest.mark.filterwarnings("ignore:More than half:shoal.ShoalWarning")
def test_a_number_steers_by_its_distance():
    led = release_of(steer={"visit": 1000})

    assert max(np.ptp(np.flatnonzero(led.labels == cell)) for cell in range(led.labels.max() + 1)) < 10


def test_the_command_line_says_the_same(tmp_path):
    pacsv.write_csv(PEOPLE, tmp_path / "people.csv")
    arguments = [
        "people.csv",
        "-k",
        4,
        "--quasi-identifiers",
        "age,income",
        "--other",
        "region",
        "--confidential",
        "hospital",
    ]
    arguments += [
        "--identifiers",
        "visit",
        "--method",
        "mdav",
        "--seed",
        1,
        "--steer",
        "region=5",
        "--steer",
        "hospital=-2.5",
    ]
    with contextlib.chdir(tmp_path):
        done = shoal_command("anonymize", *arguments, "-o", "out.csv", "--order", "keep", "--save-job", "job.toml")

    assert done.exit_code == 0, done.output
    assert shoal.Job.load(tmp_path / "job.toml").steer == {"region": 5, "hospital": -2.5}
    led = release_of(steer={"region": 5, "hospital": -2.5})
    assert pacsv.read_csv(tmp_path / "out.csv")["age"].to_pylist() == pytest.approx(led.table["age"].to_pylist())


@pytest.mark.parametrize(
    ("text", "said"), [("region", "COLUMN=VALUE"), ("region=x", "steer"), ("region=0", "has no effect")]
)
def test_the_command_line_refuses_what_is_no_weight(text, said, tmp_path):
    pacsv.write_csv(PEOPLE, tmp_path / "people.csv")
    arguments = [
        tmp_path / "people.csv",
        "-k",
        4,
        "--quasi-identifiers",
        "age,income",
        "--other",
        "region,visit,hospital",
    ]
    done = shoal_command("anonymize", *arguments, "--steer", text, "-o", tmp_path / "out.csv")

    assert done.exit_code == 2
    assert said in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_job_repeats_it_and_the_report_says_that_nothing_is_promised():
    led = release_of(steer={"region": 5, "hospital": -2.5})
    again = shoal.run(shoal.Job.from_toml(led.job.to_toml()), PEOPLE)

    assert "[steer]\nregion = 5" in led.job.to_toml()
    np.testing.assert_array_equal(again.labels, led.labels)
    from shoal.output.report import render

    assert render(led, "html").count("This is not guaranteed") == 2


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"steer": {"height": 1}}, SchemaError, "Steering column 'height' is not in the table"),
        ({"steer": {"region": 0}}, ParameterError, "other than 0, which has no effect"),
        ({"steer": {"region": float("nan")}}, ParameterError, "steer"),
        ({"steer": {"region": "much"}}, ParameterError, "steer"),
        (
            {"steer": {"region": 1}, "models": [shoal.TCloseness("hospital", t=0.5, weight=2)]},
            ParameterError,
            "cannot be combined with steering columns",
        ),
        ({"steer": {"region": 1}, "household": "visit", "identifiers": []}, ParameterError, "households"),
    ],
)
def test_what_cannot_steer_is_refused(settings, error, said):
    with pytest.raises(error, match=said):
        release_of(**settings)


def test_missing_values_of_a_steering_column_are_refused_or_a_value_of_their_own():
    region = PEOPLE["region"].to_pylist()
    region[7] = None
    table = PEOPLE.set_column(2, "region", pa.array(region))
    with pytest.raises(SchemaError, match="region"):
        shoal.anonymize(table, k=4, steer={"region": 1}, **ROLES)

    assert shoal.anonymize(table, k=4, steer={"region": 1}, missing="own-value", seed=1, **ROLES).verdict.holds


def test_a_collection_refuses_it(tmp_path):
    from shoal.incremental.collection import begin

    with pytest.raises(ParameterError, match="Steering by 'region'"):
        begin(tmp_path / "evening", PEOPLE, k=4, steer={"region": 1}, **ROLES)


def test_models_are_kept_beside_steering():
    led = release_of(steer={"region": 50}, models=[shoal.LDiversity("hospital", l=2)])

    assert led.verdict.holds


def test_the_primitive_is_public():
    assert shoal.steer(np.zeros((2, 1)), [0, 1], 3).tolist() == [[0.0, 0.0], [0.0, 3.0]]


def test_missing_values_of_a_steering_column_are_told_as_such():
    table = pa.table({"age": list(range(20)), "region": ["a", None] * 10})
    with pytest.raises(shoal.SchemaError, match=r"Missing values in steering columns: 'region' \(10\)"):
        shoal.anonymize(table, k=3, quasi_identifiers=["age"], other=["region"], steer={"region": 1.0})
