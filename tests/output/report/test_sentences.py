import pyarrow as pa
import pytest

from shoal.columns.schema import ColumnSettings, Roles, Schema
from shoal.job import Job
from shoal.measures.recount import Verdict
from shoal.output.report.sentences import explanation, headline, treatment, what_was_done

TYPES = pa.schema(
    {name: pa.float64() for name in ("age", "pay", "year", "person", "house", "weight", "illness", "wave")}
)
ROLES = {
    "quasi_identifiers": ("age", "pay"),
    "by": ("year",),
    "subject": "person",
    "household": "house",
    "weights": "weight",
    "confidential": ("illness",),
    "other": ("wave",),
}
VERDICT = Verdict(5, 100, 10, 6, {6: 5, 14: 5}, 0, ("age", "pay", "year"), subjects=5, subject_asked=True)


def told(**settings):
    columns = {name: ColumnSettings(**given) for name, given in settings.pop("columns", {}).items()}
    job = Job(k=5, roles=Roles(**ROLES), columns=columns, **settings)
    return " ".join(what_was_done(job, Schema.of(TYPES, job.roles, columns), VERDICT))


@pytest.mark.parametrize(
    "words",
    [
        "Removed: person, house and weight.",
        "alike in age and pay were put together in groups of at least 5",
        "No group mixes records that differ in year",
        "belong to one person (person)",
        "one household (house)",
        "Survey weights (weight)",
        "confidential: illness",
        "as requested: wave",
        "over 3 columns",
    ],
)
def test_what_was_done_tells_every_role(words):
    assert words in told()


def test_what_was_done_tells_every_setting_that_changes_values():
    text = told(
        missing="own-value",
        scaling="minmax",
        columns={
            "age": {"top": 90, "bottom": 18, "missing_codes": (-9,), "round": 0},
            "pay": {"keep_zeros": True, "weight": 2},
        },
    )

    for words in (
        "A missing value counted as a value of its own",
        "the same range",
        "read as missing in age",
        "values above 90 became 90 and those below 18 became 18",
        "Rounded: the published values of age",
        "zero share no group with others in pay",
        "counted more or less than others in the comparison: pay",
    ):
        assert words in text


def test_the_headline_counts_people_where_people_were_asked_for():
    assert headline(VERDICT) == "Every person hides among at least 5"
    assert "at least 5 different people; 5 were asked for" in explanation(VERDICT)


def test_too_few_people_in_a_group_is_a_failure_in_words_too():
    few = Verdict(5, 100, 10, 6, {6: 5, 14: 5}, 0, ("age",), subjects=3, subject_asked=True)

    assert headline(few) == "Some groups hold fewer than 5 people"
    assert explanation(few).endswith("Do not publish this table.")


def test_every_column_has_a_treatment():
    columns = {"age": ColumnSettings(round=1), "pay": ColumnSettings(aggregate="median")}
    schema = Schema.of(TYPES, Roles(**ROLES), columns)

    assert {column.name: treatment(column) for column in schema.columns} == {
        "age": "mean of the group, rounded to 1 decimal",
        "pay": "median of the group",
        "year": "published as it is, never mixed in a group",
        "person": "removed",
        "house": "removed",
        "weight": "removed",
        "illness": "published as it is",
        "wave": "published as it is",
    }
