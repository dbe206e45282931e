"""What a labelled file says about its columns is used, and travels to the release."""

import json
import warnings

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.findings import QuestionError
from shoal.sources import read

pyreadstat = pytest.importorskip("pyreadstat")

N = 120
ROLES = {
    "quasi_identifiers": ["age", "income", "job", "school"],
    "confidential": ["health"],
    "identifiers": ["person"],
}


@pytest.fixture
def frame():
    rng = np.random.default_rng(8)
    return pl.DataFrame(
        {
            "person": np.arange(N, dtype=float),
            "age": rng.integers(18, 90, N).astype(float),
            "income": np.where(rng.random(N) < 0.1, -9.0, rng.lognormal(10, 0.5, N).round()),
            "job": rng.integers(1, 6, N).astype(float),
            "school": rng.choice([1.0, 2.0, 3.0, 8.0], N, p=[0.3, 0.3, 0.3, 0.1]),
            "health": rng.integers(1, 4, N).astype(float),
        }
    )


JOBS = {1.0: "farmer", 2.0: "clerk", 3.0: "nurse", 4.0: "smith", 5.0: "cook"}
SCHOOLS = {1.0: "low", 2.0: "mid", 3.0: "high", 8.0: "don't know"}


@pytest.fixture
def spss(frame, tmp_path):
    path = tmp_path / "survey.sav"
    pyreadstat.write_sav(
        frame,
        path,
        column_labels={"job": "Occupation", "income": "Income in a month"},
        variable_value_labels={
            "job": JOBS,
            "school": SCHOOLS,
            "income": {-9.0: "refused"},
            "health": {1.0: "good", 2.0: "fair", 3.0: "bad"},
        },
        missing_ranges={"income": [{"lo": -9, "hi": -1}], "school": [{"lo": 8, "hi": 9}]},
        variable_measure={
            "job": "nominal",
            "school": "ordinal",
            "income": "scale",
            "age": "scale",
            "health": "nominal",
        },
    )
    return path


def test_a_labelled_file_needs_no_option_beyond_roles_and_k(spss, frame):
    release = shoal.anonymize(spss, k=5, seed=1, **ROLES)
    made = release.table.to_pydict()

    assert set(made["job"]) <= set(JOBS)
    assert set(made["school"]) <= {1.0, 2.0, 3.0, None}
    assert (
        min(value for value in made["income"] if value is not None) >= frame["income"].filter(frame["income"] > 0).min()
    )
    assert str(release.schema["health"].kind) == "nominal"


def test_a_comparison_takes_a_labelled_file_as_a_release_does(spss):
    release = shoal.anonymize(spss, k=5, seed=1, **ROLES)
    found = shoal.compare(spss, k=5, methods="auto", seed=1, **ROLES)

    assert found.choices[0].loss == release.loss.il


def test_labels_of_variables_and_values_travel_to_the_release_and_its_codebook(spss, tmp_path):
    release = shoal.anonymize(spss, k=5, seed=1, **ROLES)
    written = tmp_path / "release.sav"
    release.write(written)
    public = json.loads((tmp_path / "release.sav.public.json").read_text())
    labels = read(written).labels
    book = {column["name"]: column for column in public["codebook"]}

    assert labels.variables["job"] == "Occupation"
    assert labels.values["job"] == JOBS
    assert labels.measures["school"] == "ordinal"
    assert book["job"]["label"] == "Occupation"
    assert book["job"]["kind"] == "category"
    assert {entry["value"]: entry["label"] for entry in book["job"]["values"]} == JOBS
    assert -9.0 not in [entry["value"] for entry in book["income"].get("values", [])]
    assert "person" not in book


def test_what_somebody_says_goes_before_what_the_file_says(spss):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ShoalWarning)
        release = shoal.anonymize(spss, k=5, seed=1, columns={"job": {"kind": "numeric"}}, **ROLES)

    assert str(release.schema["job"].kind) == "numeric"


def test_labelled_values_of_a_scale_are_asked_about(frame, tmp_path):
    path = tmp_path / "survey.sav"
    pyreadstat.write_sav(
        frame, path, variable_value_labels={"income": {-9.0: "refused"}}, variable_measure={"income": "scale"}
    )
    settled = {"job": {"kind": "nominal"}, "school": {"kind": "ordinal"}}

    with pytest.raises(QuestionError, match="labelled") as caught:
        shoal.anonymize(path, k=5, columns=settled, **ROLES)
    assert [(finding.name, finding.column) for finding in caught.value.findings] == [("labelled-values", "income")]
    coded = shoal.anonymize(
        path, k=5, seed=1, missing="own-value", columns={**settled, "income": {"missing_codes": [-9]}}, **ROLES
    )
    assert coded.verdict.holds


def test_values_of_a_stata_file_that_all_have_labels_are_categories(frame, tmp_path):
    path = tmp_path / "survey.dta"
    pyreadstat.write_dta(frame, path, variable_value_labels={"job": {int(key): text for key, text in JOBS.items()}})
    release = shoal.anonymize(
        path,
        k=5,
        seed=1,
        missing="own-value",
        columns={"income": {"missing_codes": [-9]}, "school": {"kind": "ordinal"}},
        **ROLES,
    )

    assert str(release.schema["job"].kind) == "nominal"


def test_inspect_knows_what_the_file_says(spss):
    found = {column.facts.name: column for column in shoal.inspect(spss).columns}

    assert not found["job"].findings
    assert not found["income"].findings


def test_inspect_and_a_release_say_the_same_of_a_labelled_file(spss):
    inspected = {column.facts.name: column for column in shoal.inspect(spss).columns}
    release = shoal.anonymize(spss, k=5, seed=1, **ROLES)
    lines = {receipt.name: receipt.line for receipt in release.receipts}

    assert all(inspected[name].receipt.line == lines[name] for name in ROLES["quasi_identifiers"])
    assert str(inspected["job"].kind) == "nominal"
    assert str(inspected["school"].kind) == "ordinal"
    assert inspected["income"].facts.missing == release.original["income"].null_count > 0
    assert "'Occupation'" in lines["job"]
    assert "'Occupation'" in str(shoal.inspect(spss))


def test_an_identifier_stored_with_decimals_is_proposed_to_be_dropped(spss):
    assert "person" in shoal.inspect(spss).roles()["identifiers"]
