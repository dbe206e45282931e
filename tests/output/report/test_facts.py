import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from reported import SECRET, SECRET_NUMBER, K, at_risk, changed, quietly, release

from shoal import audit
from shoal.errors import ParameterError
from shoal.job import Input, Output
from shoal.measures.recount import Verdict
from shoal.output.report import FORMATS, gather, render
from shoal.output.report.facts import class_sizes
from strategies import problems

FORMS = ["internal", "public"]
SEED = "987654321"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("format", FORMATS)
def test_no_value_of_a_single_record_is_in_any_report(format, form):
    said = render(at_risk(release()), format, form)

    assert SECRET not in said
    assert str(SECRET_NUMBER).split(".")[0] not in said.replace(",", "").replace(SEED, "")


@pytest.mark.parametrize("form", FORMS)
@given(problem=problems())
def test_no_number_of_the_original_is_in_the_facts(form, problem):
    X, k = problem
    X = X + np.random.default_rng(len(X)).random(X.shape)  # seventeen digits, so that a hit is no chance
    names = [f"c{i}" for i in range(X.shape[1])]
    table = pa.table(dict(zip(names, X.T, strict=True)))
    said = json.dumps(gather(quietly(table, k=k, quasi_identifiers=names, accept=["two-scales"]), form))

    assert [value for value in X.ravel().tolist() if len(repr(value)) > 12 and repr(value) in said] == []


@given(problem=problems())
def test_every_bin_holds_at_least_k_records_before_and_after(problem):
    X, k = problem
    names = [f"c{i}" for i in range(X.shape[1])]
    table = pa.table(dict(zip(names, X.T, strict=True)))
    facts = gather(quietly(table, k=k, quasi_identifiers=names, accept=["two-scales"]))
    bins = [bin for column in facts["distributions"] for bin in column.get("bins", [])]

    assert all(bin["before"] >= k and bin["after"] >= k for bin in bins)
    assert {sum(bin["before"] for bin in column["bins"]) for column in facts["distributions"] if "bins" in column} <= {
        len(X)
    }


def test_the_public_form_depends_on_the_release_alone():
    one = release()
    n = one.original.num_rows
    strange = pa.table({name: pa.nulls(n, one.original[name].type) for name in one.original.column_names})
    other = changed(one, original=strange, measures=None, warnings=("Look at this.",))

    for format in FORMATS:
        assert render(one, format, "public") == render(other, format, "public", bound=12.5)
        assert render(one, format, "internal") != render(one, format, "public")


def test_the_public_form_has_neither_seed_nor_places_of_files_and_the_internal_one_repeats_the_release():
    files = {
        "input": Input(path="/home/keeper-of-data/people.csv"),
        "output": Output(path="/home/keeper-of-data/out.csv"),
    }
    one = changed(release(), job=release().job.model_copy(update=files))

    for format in FORMATS:
        public = render(one, format, "public")
        assert SEED not in public
        assert "keeper-of-data" not in public
    assert gather(one)["job"] == one.job.to_toml()
    assert set(gather(one)) - set(gather(one, "public")) == {
        "attacks",
        "correlations",
        "loss",
        "quality",
        "bound",
        "reading",
        "risk",
        "series",
        "utility",
        "warnings",
    }


def test_missing_values_of_fewer_than_k_records_are_not_counted():
    table = pa.table({"age": [*range(40), None, None], "pay": [*range(30), *[None] * 12]})
    columns = gather(quietly(table, k=5, quasi_identifiers=["age", "pay"], missing="own-value"))["distributions"]

    assert columns[0]["missing"]["before"] is None
    assert columns[1]["missing"]["before"] == 12


def test_the_facts_are_plain_values_that_json_knows():
    odd = {"odd": {1: np.float64(0.5), "far": float("inf"), "n": np.int64(3)}}
    facts = gather(changed(release(), measures={**release().measures, "risk": odd}))

    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["risk"] == {"odd": {"1": 0.5, "far": None, "n": 3}}


def test_columns_that_are_published_as_they_are_are_told_once():
    roles = {column["name"]: column for column in gather(release())["distributions"]}

    assert "before" in roles["age"]["bins"][0]
    assert "before" not in roles["dose"]["bins"][0]
    assert roles["note"]["figure"] is None


def test_unknown_forms_and_formats_are_refused():
    with pytest.raises(ParameterError, match="no form 'secret'"):
        gather(release(), "secret")
    with pytest.raises(ParameterError, match="no format 'pdf'"):
        render(release(), "pdf")


@given(problem=problems())
def test_class_sizes_count_every_group_once_and_never_mix_both_sides_of_k(problem):
    X, k = problem
    verdict = audit(pa.table({"a": np.round(X[:, 0], 1)}), quasi_identifiers="a", k=k)
    bars = class_sizes(verdict)

    assert sum(bar["classes"] for bar in bars) == verdict.n_classes
    assert sum(bar["records"] for bar in bars) == verdict.n_records
    assert sum(bar["records"] for bar in bars if bar["below_k"]) == verdict.n_below
    assert all(bar["from"] <= bar["to"] for bar in bars)


def test_many_class_sizes_share_bars():
    sizes = dict.fromkeys(range(10, 5000, 7), 1)
    n_records = sum(sizes)
    bars = class_sizes(Verdict(10, n_records, len(sizes), 10, sizes, 0, ("a",)))

    assert len(bars) <= 26
    assert bars[0]["from"] == 10
    assert bars[-1]["to"] == max(sizes)


def test_the_text_is_the_same_in_every_run():
    again = quietly(release().records.source.arrow, **_settings())

    for format in FORMATS:
        for form in FORMS:
            assert render(release(), format, form) == render(again, format, form)


def _settings():
    job = release().job
    return {"k": K, "missing": job.missing, "columns": job.columns, "accept": job.accept} | {
        name: list(value) for name, value in job.roles.model_dump().items() if isinstance(value, tuple) and value
    }
