import json
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given

import shoal
from shoal import GuaranteeError, ParameterError, SchemaError, ShoalWarning, anonymize, datasets, kernels
from shoal import release as release_module
from shoal.aggregate import aggregate
from shoal.columns.equivalence import value_codes
from shoal.columns.schema import Kind, natural_kind
from shoal.job import checks as job_checks
from shoal.measures import loss, lower_bound
from strategies import COLUMNS, mixed_tables

SECRET = "s3cr3t"


@pytest.fixture
def people():
    rng = np.random.default_rng(4)
    n = 200
    return pa.table(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "income": rng.lognormal(10, 1, n),
            "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(["north", "south", "west"], n),
            "weight": rng.uniform(0.5, 30, n),
            "disease": rng.choice(["flu", "cold", "none"], n),
        }
    )


ROLES = {
    "identifiers": ["name"],
    "quasi_identifiers": ["age", "income", "sex", "region"],
    "confidential": ["disease"],
    "weights": "weight",
}


def quiet(table, accept=("near-unique-text", "single-record-values", "two-scales"), **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return anonymize(table, accept=accept, **settings)


def one_column(name, n=23):
    return pa.table({name: COLUMNS[name](np.random.default_rng(0), n)})


@given(mixed_tables())
@example((pa.table({name: column(np.random.default_rng(0), 23) for name, column in COLUMNS.items()}), 4))
def test_any_table_becomes_k_anonymous_with_one_value_for_each_cell_and_column(problem):
    table, k = problem
    release = quiet(table, k=k, quasi_identifiers=table.column_names, missing="own-value", seed=1)

    assert release.verdict.holds
    assert np.bincount(release.labels).min() >= k
    assert release.published.num_rows == table.num_rows
    for column in release.published.columns:
        codes = value_codes(column)
        assert len(np.unique(np.column_stack([release.labels, codes]), axis=0)) == release.labels.max() + 1
    assert np.isfinite([release.loss.il, release.loss.mse, release.loss.mae]).all()
    assert -1e-9 <= release.loss.il <= 1 + 1e-9


@pytest.mark.parametrize("scaling", ["zscore", "minmax", "none"])
@pytest.mark.parametrize("name", sorted(set(COLUMNS) - {"as large as floats go"}))
def test_a_column_of_any_type_alone_can_be_released_under_any_scaling(name, scaling):
    table = one_column(name)
    release = quiet(table, k=3, quasi_identifiers=[name], missing="own-value", scaling=scaling, seed=1)

    assert release.verdict.smallest >= 3


def test_numbers_too_large_to_be_squared_have_to_be_scaled():
    with pytest.raises(SchemaError, match="Choose a scaling"):
        anonymize(one_column("as large as floats go"), k=3, quasi_identifiers="as large as floats go", scaling="none")


@given(mixed_tables())
def test_the_input_is_not_changed(problem):
    table, k = problem
    before = [column.to_pylist() for column in table.columns]
    quiet(table, k=k, quasi_identifiers=table.column_names, missing="own-value", seed=1)

    assert [repr(column.to_pylist()) for column in table.columns] == [repr(values) for values in before]


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_columns_keep_their_type_but_means_of_numbers_are_floats(name):
    table = one_column(name)
    came = table[name].type
    went = quiet(table, k=3, quasi_identifiers=[name], missing="own-value", seed=1).published[name].type

    if natural_kind(came) is Kind.NUMERIC and table[name].null_count < table.num_rows:
        assert went == pa.float64()
    else:
        assert went == came


def test_the_same_seed_gives_the_same_bytes_whatever_the_threads(people):
    def release(threads):
        return quiet(people, k=5, seed=3, threads=threads, **ROLES)

    one, two = release(1), release(2)

    assert one.published.equals(two.published)
    assert np.array_equal(one.labels, two.labels)


def test_a_release_without_a_seed_can_be_repeated_from_its_job(people):
    first = quiet(people, k=5, method="topdown", **ROLES)
    again = release_module.execute_job(first.job, first.records.source)

    assert again.published.equals(first.published)


def test_every_kind_of_frame_gives_the_same_published_values_in_its_own_kind(people):
    duckdb = pytest.importorskip("duckdb")
    frames = [people, people.to_pandas(), pl.from_arrow(people), duckdb.from_arrow(people)]
    releases = [quiet(frame, k=5, seed=3, **ROLES) for frame in frames]

    assert [type(release.table) for release in releases] == [type(frame) for frame in frames]
    values = [release.published.to_pydict() for release in releases]
    assert all(found == values[0] for found in values)


def test_identifiers_and_helpers_are_dropped_and_the_rest_stays_in_order(people):
    release = quiet(people, k=5, seed=1, **ROLES)

    assert release.published.column_names == ["age", "income", "sex", "region", "disease"]
    assert release.published["disease"].equals(people["disease"])


def test_means_keep_the_weighted_totals(people):
    release = quiet(people, k=5, seed=1, **ROLES)
    weights = people["weight"].to_numpy()

    for name in ("age", "income"):
        before, after = people[name].to_numpy(), release.published[name].to_numpy()
        assert after @ weights == pytest.approx(before @ weights, rel=1e-12)


def test_published_weights_keep_their_total_and_the_weighted_totals(people):
    roles = {**ROLES, "quasi_identifiers": [*ROLES["quasi_identifiers"], "weight"]}
    release = anonymize(people, k=5, **roles)
    before, after = (table["weight"].to_numpy() for table in (people, release.table))

    assert after.sum() == pytest.approx(before.sum(), rel=1e-12)
    total = np.sum(before * people["income"].to_numpy())
    assert np.sum(after * release.table["income"].to_numpy()) == pytest.approx(total, rel=1e-12)


def test_means_keep_the_totals(people):
    release = quiet(people.drop(["weight"]), k=5, seed=1, **{**ROLES, "weights": None})

    for name in ("age", "income"):
        assert pc.sum(release.published[name]).as_py() == pytest.approx(pc.sum(people[name]).as_py(), rel=1e-12)


def test_rounded_whole_numbers_stay_whole(people):
    release = quiet(people, k=5, seed=1, columns={"age": {"round": 0}, "income": {"round": -2}}, **ROLES)

    assert release.published["age"].type == pa.int64()
    assert set(np.mod(release.published["income"].to_numpy(), 100)) == {0.0}


def test_ordered_categories_stay_ordered_and_lose_those_that_nobody_has_any_more():
    levels = ["none", "low", "mid", "high"]
    frame = pd.DataFrame({"x": pd.Categorical(["mid", "mid", "high", "high"], levels, ordered=True)})
    release = anonymize(frame, k=2, quasi_identifiers="x", seed=1)

    assert release.table["x"].dtype == pd.CategoricalDtype(["mid", "high"], ordered=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sensibleVar": ["b"]}, "Unknown argument 'sensibleVar'. In sdcMicro, that is what confidential is here"),
        ({"sens_att": ["b"]}, "Unknown argument 'sens_att'. In pyCANON, that is what confidential is here"),
        ({"reading": 3}, "reading is of type int, and should be a dict of reading options"),
    ],
)
def test_words_of_other_tools_and_arguments_of_a_wrong_type_are_refused_in_words(arguments, words):
    with pytest.raises(ParameterError, match=words):
        shoal.anonymize(pa.table({"a": [1, 2], "b": [1, 2]}), k=2, quasi_identifiers=["a"], **arguments)


@pytest.mark.parametrize(
    "names",
    [
        {"keyVars": ["sex", "region"], "numVars": ["age", "income"], "weightVar": "weight"},
        {"numVars": ["age", "income"], "quasi_identifiers": ["sex", "region"], "weights": "weight"},
    ],
)
def test_names_of_sdcmicro_are_understood(people, names):
    ours = quiet(people, k=5, seed=1, **ROLES)
    theirs = quiet(people, k=5, seed=1, confidential="disease", identifiers="name", **names)

    assert theirs.published.equals(ours.published)
    assert set(theirs.job.roles.quasi_identifiers) == set(ours.job.roles.quasi_identifiers)


def test_a_helper_column_named_in_two_ways_is_an_error(people):
    with pytest.raises(SchemaError, match="Give only one of them"):
        anonymize(people, k=5, weightVar="weight", **ROLES)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"k": 201}, GuaranteeError, "only 200 records"),
        ({"k": True}, ParameterError, "k cannot be used: it should be a whole number"),
        ({"k": "10"}, ParameterError, "k cannot be used"),
        ({"k": 10.0}, ParameterError, "k cannot be used"),
        ({"k": 1}, ParameterError, "at least 2"),
        ({"seed": -1}, ParameterError, "seed cannot be used"),
        ({"seed": True}, ParameterError, "seed cannot be used"),
        ({"seed": "7"}, ParameterError, "seed cannot be used"),
        ({"method": "best"}, ParameterError, "Unknown method"),
        ({"effort": "best", "method": "mdav"}, ParameterError, "has no option 'effort'"),
        ({"scaling": "rank"}, ParameterError, "scaling cannot be used"),
        ({"missing": "drop"}, ParameterError, "missing cannot be used"),
        ({"columns": {"age": {"wieght": 2}}}, ParameterError, "Did you mean 'weight'"),
        ({"columns": {"age": {"weight": float("nan")}}}, ParameterError, "columns.age.weight cannot be used"),
        ({"columns": {"age": {"weight": "2"}}}, ParameterError, "columns.age.weight cannot be used"),
        ({"columns": {"agee": {"weight": 2}}}, SchemaError, "Did you mean 'age'"),
        ({"quasi_identifiers": None}, ParameterError, "a name or a list of names"),
        ({"quasi_identifiers": [1, 2]}, ParameterError, "quasi_identifiers.0 cannot be used"),
        ({"threads": 0}, ParameterError, "threads must be"),
        ({"columns": 3}, ParameterError, "columns cannot be used"),
        ({"steer": 3}, ParameterError, "steer cannot be used"),
    ],
)
def test_what_cannot_be_used_is_refused_in_our_words(people, settings, error, message):
    with pytest.raises(error, match=message):
        anonymize(people, **{"k": 5, "seed": 1, **ROLES, **settings})


def test_a_job_that_is_none_is_refused(people):
    with pytest.raises(ParameterError, match="the path of its file, not int"):
        shoal.run(3, people)


def test_whole_numbers_of_numpy_are_whole_numbers(people):
    release = quiet(people, k=np.int64(5), seed=np.uint32(3), **ROLES)

    assert release.published.equals(quiet(people, k=5, seed=3, **ROLES).published)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -1.0, 2.0, 3.0], "1 are not, the first in record 2"),
        ([1.0, 2.0, float("nan"), None], "2 are not, the first in record 3"),
        ([1.0, 2.0, 3.0, float("inf")], "1 are not, the first in record 4"),
        (["1", "2", "3", "4"], "must be numbers; the column holds string"),
    ],
)
def test_survey_weights_have_to_be_numbers_that_are_not_negative(weights, message):
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "w": weights})

    with pytest.raises(SchemaError, match=message):
        anonymize(table, k=2, quasi_identifiers="x", weights="w")


@pytest.mark.parametrize("weights", [[0, 0, 0, 0], [0.0, 3.0, 1e-300, 1e300], [5e-324, 5e-324, 1.7e308, 1.7e308]])
def test_weights_of_any_size_give_means_within_the_cell(weights):
    table = pa.table({"x": [1.0, 2.0, 30.0, 40.0], "w": weights})
    published = quiet(table, k=2, quasi_identifiers="x", weights="w", seed=1).published["x"].to_numpy()

    assert set(published) == {published[0], published[2]}
    assert 1 <= published[0] <= 2
    assert 30 <= published[2] <= 40


def test_decimal_weights_are_numbers():
    weights = pa.array([1, 2, 3, 4]).cast(pa.decimal128(21, 1))
    release = anonymize(pa.table({"x": [1, 2, 8, 9], "w": weights}), k=2, quasi_identifiers="x", weights="w", seed=1)

    assert release.published["x"].to_pylist() == pytest.approx([5 / 3, 5 / 3, 60 / 7, 60 / 7])


def test_what_somebody_should_look_at_is_a_warning(people):
    constant = people.append_column("here", pa.array(["x"] * 200))
    roles = {**ROLES, "identifiers": (), "other": ["name", "weight"]}
    roles["quasi_identifiers"] = [*ROLES["quasi_identifiers"], "here"]

    with pytest.warns(ShoalWarning) as caught:
        release = anonymize(constant, k=5, seed=1, accept="name=published-identifier", **roles)
    assert [str(warning.message) for warning in caught] == list(release.warnings)
    assert [re.findall("'.*?'", text)[0] for text in release.warnings] == [
        "'here'",
        "'name'",
        "'name'",
        "'weight'",
        "'weight'",
    ]


def test_a_list_column_can_be_published_by_explicit_word_but_not_be_confidential_or_grouped():
    table = pa.table({"x": [1, 2, 3, 4], "tags": [["a"], ["a"], [], None]})
    release = anonymize(table, k=2, quasi_identifiers="x", other="tags", seed=1)

    assert release.published["tags"].to_pylist() == [["a"], ["a"], [], None]
    for role in ("confidential", "quasi_identifiers"):
        with pytest.raises(SchemaError, match="'tags' holds list"):
            anonymize(table, k=2, **{"quasi_identifiers": "x", "other": ()} | {role: ["tags"]} | _x_elsewhere(role))


def _x_elsewhere(role):
    return {"other": "x"} if role == "quasi_identifiers" else {}


def test_findings_are_made_once_for_a_release(people, monkeypatch, tmp_path):
    made = []
    original = job_checks.column_findings
    monkeypatch.setattr(job_checks, "column_findings", lambda *about: made.append(about) or original(*about))
    release = anonymize(people.select(["age", "income"]), k=5, quasi_identifiers=["age", "income"], seed=1)
    release.write(tmp_path / "people.parquet", report=tmp_path / "people.html")

    assert len(made) == 1


def test_nothing_is_released_when_the_recount_disagrees(people, monkeypatch):
    def leaking(*arguments):
        replaced = aggregate(*arguments)
        ages = replaced["age"].to_pylist()
        return {**replaced, "age": pa.array([ages[0] + 0.125, *ages[1:]])}

    monkeypatch.setattr(release_module, "aggregate", leaking)

    with pytest.raises(GuaranteeError, match=r"a class of 1 records where k=5 .* Nothing was released"):
        anonymize(people, k=5, seed=1, **ROLES)


@pytest.mark.parametrize(
    "settings",
    [
        {"columns": {"text": {"kind": "numeric"}}},
        {"columns": {"text": {"categories": ["a", "b"]}}},
        {"columns": {"text": {"categories": [1, "b"]}}},
        {"columns": {"number": {"categories": [SECRET]}}},
        {"columns": {"number": {"missing_codes": [SECRET]}}},
        {"columns": {"number": {"missing_codes": [f"{SECRET}.5"]}}},
        {"columns": {"category": {"missing_codes": [47.11]}}},
        {"columns": {"number": {"top": 47.11}}},
        {"columns": {"number": {"top": 1e300}}},
        {"columns": {"when": {"missing_codes": [SECRET]}}},
        {"columns": {"real": {"missing_codes": ["x", 4711]}}},
        {"missing": "error"},
        {"weights": "text"},
        {"weights": "bad"},
        {"by": ["bad"], "k": 3},
        {"household": "text"},
        {"subject": "text", "k": 7},
        {"k": 99},
        {"scaling": "none"},
    ],
)
def test_no_message_shows_a_value_of_the_table(settings):
    table = pa.table(
        {
            "text": [SECRET, f"{SECRET}2", "b", SECRET, None, "b", "b", "c"],
            "category": pa.array([SECRET, "b", "b", SECRET, None, "b", "b", "c"]).dictionary_encode(),
            "number": [4711, 4711, 1, 1, 2, None, 4711, 4],
            "real": [4711.25, float("inf"), 1, 1, 2, None, 4711, 4],
            "when": pa.array([4711, 4711, 1, 1, 2, None, 4711, 4]).cast(pa.timestamp("s")),
            "bad": [-4711.5, 1.0, 2.0, 3.0, None, float("nan"), 7.0, 1e300],
        }
    )
    quasi = [name for name in table.column_names if name not in [*settings.values(), *settings.get("by", [])]]

    with pytest.raises(shoal.ShoalError) as refusal:
        quiet(table, **{"k": 2, "quasi_identifiers": quasi, "missing": "own-value", "seed": 1} | settings)
    assert SECRET not in str(refusal.value).replace(repr([SECRET]), "")
    assert "4711" not in str(refusal.value)
    assert "47.11" not in str(refusal.value)
    assert refusal.value.__cause__ is None or SECRET not in str(refusal.value.__cause__)
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


def test_the_census_set_loses_what_the_literature_prints():
    data = datasets.census()
    table = pa.table(dict(zip(data.columns, data.X.T, strict=True)))
    release = anonymize(table, k=10, quasi_identifiers=data.columns, method="mdav")

    assert release.loss.il == pytest.approx(0.14156, abs=1e-5)


def test_the_report_says_what_no_release_can_lose_less_than(tmp_path):
    quasi = datasets.census().columns
    release = shoal.anonymize(datasets.path("census"), k=5, quasi_identifiers=quasi, seed=1)
    release.write(tmp_path / "r.csv", report=tmp_path / "r.html", json=tmp_path / "r.json", bound="cheap")
    told = json.loads((tmp_path / "r.json").read_text())["bound"]

    assert told == release.bound("cheap").il
    assert 0.01 < told < release.loss.il < 0.09
    assert "can lose less than the bound" in (tmp_path / "r.html").read_text()


@pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")  # two records of tarragona repeat others
def test_the_bound_is_that_of_the_matrix_the_loss_was_measured_on():
    quasi = datasets.tarragona().columns
    release = shoal.anonymize(
        datasets.path("tarragona"), k=5, quasi_identifiers=quasi, columns={quasi[0]: {"weight": 3.0}}, seed=1
    )
    X = release.space.encode(release.original)

    assert release.bound().il == lower_bound(X, 5).il
    assert release.loss.il == pytest.approx(loss(X, release.labels).il)


def test_without_an_internal_report_there_is_no_place_for_the_bound(tmp_path, people):
    release = shoal.anonymize(people.select(["age"]), k=2, quasi_identifiers=["age"])
    for said in ({}, {"report": tmp_path / "r.html", "form": "public"}):
        with pytest.raises(ParameterError, match="internal report"):
            release.write(tmp_path / "r.csv", bound="cheap", **said)

    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"quasi_identifiers": ["age", "sex"]}, "nominal columns .* 'sex'"),
        ({"quasi_identifiers": ["age", "income"], "rho": 0.5}, "random aggregation"),
        ({"quasi_identifiers": ["age"], "household": "age"}, "households"),
    ],
)
def test_where_no_bound_is_proven_none_is_told(people, settings, said):
    release = quiet(people.select(["age", "income", "sex"]), k=2, seed=1, **_rest(settings))

    with pytest.raises(ParameterError, match=said):
        release.bound()


def _rest(settings):
    named = set(settings["quasi_identifiers"])
    return {**settings, "identifiers": [name for name in ("age", "income", "sex") if name not in named]}


def test_the_number_of_threads_also_limits_what_is_measured_later(monkeypatch):
    seen = []
    linkage = kernels.linkage
    monkeypatch.setattr(kernels, "linkage", lambda *given: seen.append(kernels.n_threads()) or linkage(*given))
    table = pa.table({"age": np.arange(40.0), "income": np.arange(40.0) ** 2})
    assert anonymize(table, k=5, quasi_identifiers=["age", "income"], seed=1, threads=1).risk

    assert seen == [1]


def test_a_warning_stands_where_the_release_was_asked_for():
    table = pa.table({"age": [30, 30, 40, 40], "note": ["a", "b", "c", "d"]})

    with pytest.warns(shoal.ShoalWarning) as caught:
        shoal.anonymize(table, k=2, quasi_identifiers=["age"], other=["note"], seed=1)

    assert {warning.filename for warning in caught} == {__file__}
