"""What may be misread in a column is found, without showing a value, and with the settings that settle it."""

import json

import numpy as np
import pyarrow as pa
import pytest

from shoal import ParameterError, SchemaError
from shoal.findings import FINDINGS, ColumnView, QuestionError, ask, check_accepted, findings_of
from shoal.findings.finding import Finding, Remedy

RNG = np.random.default_rng(5)


def view(values, name="x", **settings):
    return ColumnView(name, pa.chunked_array([pa.array(values)]), has_fields=True, **settings)


def found(values, name="x"):
    return {finding.name: finding for finding in findings_of(view(values, name))}


NUMBERS = [f"{value:.2f}" for value in RNG.lognormal(10, 1, 100)]
AMOUNTS = RNG.lognormal(8, 1.5, 300).astype(int).clip(1, 999_999)
GROUPED = [f"{float(value):,.2f}" for value in NUMBERS]
DAYS = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.{1930 + i % 60}" for i in range(100)]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *(("numbers-as-text", [*NUMBERS, *[null] * 5]) for null in ("NA", ".", "NULL", "n/a", "k. A.", " -")),
        *(("numbers-as-text", [*NUMBERS, *[text] * 5]) for text in ("#DIV/0!", "<5", "> 90000", "90+")),
        ("numbers-as-text", GROUPED),
        ("numbers-as-text", [text.translate(str.maketrans(",.", ".,")) for text in GROUPED]),
        ("numbers-as-text", [text.replace(",", "\u202f").replace(".", ",") for text in GROUPED]),
        ("numbers-as-text", [*GROUPED, "NA", "NULL", "."]),
        ("dates-as-text", DAYS),
        ("dates-as-text", [*DAYS, "NA", "unknown"]),
        ("dates-as-text", [day.replace(".", "/") for day in DAYS]),
        ("dates-as-text", [f"{day} 12:30" for day in DAYS]),
        ("dates-as-text", [f"{1 + i % 28}-Mar-{1930 + i % 60}" for i in range(100)]),
        ("near-unique-text", [f"Street {i}" for i in range(100)]),
        ("spelling-variants", ["m", "M", "f", "f "] * 25),
        ("codes", [1, 2, 3, 4, 5] * 20),
        ("codes", [1.0, 2.0] * 50),
        ("dates-as-numbers", [19_300_000 + 10_000 * (i % 60) + 100 * (1 + i % 12) + 1 + i % 28 for i in range(100)]),
        ("dates-as-numbers", [19_300_101.0 + 10_000 * (i % 60) for i in range(100)] + [20.0] * 2),
        ("thousands-as-decimals", [float(f"{value:,}".replace(",", ".")) for value in AMOUNTS]),
        ("missing-code", [*RNG.integers(0, 90, 95), *[-9] * 5]),
        ("missing-code", [*RNG.integers(0, 90, 95), *[-999] * 5]),
        ("missing-code", [*RNG.integers(0, 90, 95), *[999] * 5]),
        ("missing-code", [*RNG.lognormal(10, 1, 95).round(), *[99999999.0] * 5]),
        ("missing-code", [*RNG.integers(0, 90, 85), *[-7] * 5, *[-8] * 5, *[-9] * 5]),
        ("missing-code", [*RNG.integers(0, 80, 85), *[99] * 15]),
        ("mostly-missing", [None] * 92 + [1, 2, 3, 4] * 2),
        ("constant", ["x"] * 100),
        ("constant", [7] * 100),
    ],
)
def test_a_trap_is_found(name, values):
    assert list(found(values)) == [name]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("age", RNG.integers(0, 99, 300)),
        ("income", RNG.lognormal(10, 1, 300)),
        ("balance", RNG.normal(0, 100, 300)),
        ("debt", [*np.zeros(200), *RNG.lognormal(8, 1, 100)]),
        ("children", RNG.integers(0, 5, 300)),
        ("household_size", RNG.integers(1, 7, 300)),
        ("smoker", [0, 1] * 150),
        ("sex", ["f", "m"] * 150),
        ("zip", [f"{i:05d}" for i in range(100, 400)] * 2),
        ("industry", [*"1234", "12A4", "9P", "77B", "6231", "11X", "8Q", "9Z"] * 20),
        ("age_group", ["0-17", "18-64", "65+"] * 100),
        ("rooms", ["1", "2", "3", "4", "5+"] * 60),
        ("turnover", RNG.integers(18_000_000, 22_000_000, 300)),
        ("phone", [f"+49{i}" for i in range(100)] * 3),
        ("temperature", [*RNG.normal(-5, 4, 300).round(1)]),
        ("share", [*RNG.random(290).round(3), *[1.0] * 10]),
        ("length", [*RNG.uniform(1, 99, 300).round(3)]),
        ("score", RNG.integers(3, 30, 300) / 3),
        ("mean_score", (RNG.integers(3, 30, 300) / 3).round(3)),
        ("price", [*RNG.uniform(1, 900, 200).round(2), *RNG.integers(1, 900, 100)]),
        ("born", pa.array(RNG.integers(0, 20000, 300).astype(np.int32)).cast(pa.date32())),
        ("x", []),
        ("x", [1.5]),
        ("x", [float("inf"), 2.0] * 20),
    ],
)
def test_a_clean_column_raises_no_alarm(name, values):
    assert found(values, name) == {}


def test_a_finding_counts_and_never_shows_a_value():
    told = json.dumps([finding.to_dict() for finding in findings_of(view([*NUMBERS, *["NA"] * 5], "income"))])

    assert "95 %" in told
    assert "one other text" in told
    assert '"NA"' not in told
    assert not any(number in told for number in NUMBERS)


def test_the_values_that_a_finding_is_about_are_shown_to_those_who_ask():
    (finding,) = findings_of(view([*RNG.integers(0, 90, 95), *[-9] * 5], "age", show_values=True))

    assert finding.remedies[0].option == "--missing-codes age=-9"


def test_dates_that_leave_open_what_comes_first_propose_both():
    (finding,) = findings_of(view([f"{1 + i % 12:02d}/{1 + i % 11:02d}/{1930 + i % 60}" for i in range(100)], "born"))

    assert [remedy.option for remedy in finding.remedies] == [
        "--date-format born=%d/%m/%Y",
        "--date-format born=%m/%d/%Y",
        "--kind born=nominal",
    ]


@pytest.mark.parametrize(
    ("remedy", "option", "key", "argument", "r"),
    [
        (
            Remedy("field", "pay", {"thousands": ".", "decimal": ","}),
            "--thousands pay=. --decimal pay=,",
            '[input.fields.pay] thousands = ".", decimal = ","',
            'reading={"fields": {"pay": {"thousands": ".", "decimal": ","}}}',
            'reading = list(fields = list(pay = list(thousands = ".", decimal = ",")))',
        ),
        (
            Remedy("column", "last job", {"missing_codes": [-9, -8]}),
            "--missing-codes 'last job=-9,-8'",
            '[columns."last job"] missing_codes = [-9, -8]',
            'columns={"last job": {"missing_codes": [-9, -8]}}',
            "columns = list(`last job` = list(missing_codes = c(-9, -8)))",
        ),
        (
            Remedy("column", "level", {"fold": True}),
            "--fold level",
            "[columns.level] fold = true",
            'columns={"level": {"fold": True}}',
            "columns = list(level = list(fold = TRUE))",
        ),
        (Remedy("role", "w", {"weights": "w"}), "--weights w", '[roles] weights = "w"', 'weights="w"', 'weights = "w"'),
        (
            Remedy("role", "id", {"identifiers": ["id"]}),
            "--identifiers id",
            '[roles] identifiers = ["id"]',
            'identifiers=["id"]',
            'identifiers = "id"',
        ),
    ],
)
def test_a_remedy_is_told_as_option_as_key_and_as_argument(remedy, option, key, argument, r):
    assert (remedy.option, remedy.key, remedy.argument, remedy.r) == (option, key, argument, r)


def test_only_findings_can_be_accepted():
    check_accepted([*FINDINGS, "age=codes"], ["age"])
    with pytest.raises(ParameterError, match="Did you mean 'missing-code'"):
        check_accepted(["missing-codes"], ["age"])
    with pytest.raises(SchemaError, match=r"'aeg' is accepted, which is not in the table. Did you mean 'age'\?"):
        check_accepted(["aeg=codes"], ["age"])


@pytest.mark.parametrize("accept", [["codes"], ["job=codes"]])
def test_a_question_waits_until_it_is_accepted_for_its_column_or_for_all(accept):
    question = Finding("codes", "job", "it looks like codes", "Codes are averaged", question=True)
    note = Finding("constant", "job", "it is constant", "It says nothing")

    ask([question, note], accept)
    with pytest.raises(QuestionError) as caught:
        ask([question, note], ["age=codes", "constant"])
    assert caught.value.findings == (question,)
