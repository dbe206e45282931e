"""What may be misread in a column is found, without showing a value, and with the settings that settle it."""

import json

import numpy as np
import pyarrow as pa
import pytest

from shoal import FileError, ParameterError, SchemaError, inspect
from shoal.findings import FINDINGS, ColumnView, QuestionError, ask, check_accepted, findings_of
from shoal.findings.finding import Finding, Remedy
from shoal.sources import read

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
        *(("perhaps-codes", RNG.integers(1, most + 1, 400)) for most in (9, 12, 24)),
        ("perhaps-codes", RNG.choice(RNG.choice(np.arange(100, 999), 35, replace=False), 400)),
        ("perhaps-codes", RNG.choice([1.1, 1.2, 2.1, 2.2, 3.1, 4.3], 400)),
        ("perhaps-codes", RNG.integers(1, 10, 400) + RNG.integers(1, 5, 400) / 10),
        ("dates-as-numbers", RNG.integers(33_000, 46_000, 400)),
        ("two-scales", [year if RNG.random() < 0.8 else year % 100 for year in RNG.integers(1950, 2000, 400)]),
        ("outliers", [*RNG.integers(18, 91, 400), 1999]),
        ("outliers", [*RNG.integers(18, 91, 400), 230, 230]),
        ("outliers", [*RNG.lognormal(10, 0.6, 400), 9.9e9]),
        ("outliers", [*RNG.uniform(2000, 9000, 400).round(2), 3.2]),
        ("outliers", [*RNG.normal(170, 9, 400), 1.71]),
        ("outliers", pa.array([*RNG.integers(0, 18_000, 400), 2_900_000], pa.int32()).cast(pa.date32())),
        ("two-forms", RNG.choice(["ja", "nein", "1", "0"], 400)),
        ("two-forms", RNG.choice(["WAHR", "FALSCH", "0", "1"], 400, p=[0.4, 0.4, 0.1, 0.1])),
        ("two-forms", RNG.choice(["ja", "j", "nein"], 400)),
        ("two-forms", RNG.choice(["m", "w", "weiblich"], 400)),
        ("two-forms", RNG.choice(["1", "2", "3", "1/2"], 400, p=[0.4, 0.3, 0.2, 0.1])),
        *(("two-forms", [*[f"{i % 24}:{i % 4 * 15:02d}" for i in range(400)], odd]) for odd in ("12,45", "12h30")),
        ("two-forms", [*[f"{110 + i % 7}/{70 + i % 5}" for i in range(400)], "120x80"]),
        ("two-forms", RNG.choice(["1-9", "10-49", "50-249", "09. Jan", "Okt 49"], 400, p=[0.4, 0.3, 0.2, 0.06, 0.04])),
        ("two-forms", RNG.choice(["1", "2", "2-", "3+", "3"], 400)),
        ("two-forms", RNG.choice(["1", "2", "1,3", "1,3,5", "2,5"], 400)),
        ("two-forms", RNG.choice(["J45", "E11", "I10", "J45;E11", "I10; E11;J45"], 400)),
        ("two-forms", RNG.choice(["male", "female", "femal", "mael"], 400, p=[0.48, 0.48, 0.02, 0.02])),
        ("two-forms", [f"{i % 4}:{i % 6}0" if i % 5 else f"{i % 4}:{i % 6}0:30" for i in range(400)]),
        ("numbers-with-unit", [f"{60 + i % 50}kg" if i % 8 else f"{120 + i % 90}lb" for i in range(400)]),
        ("outliers", np.where(RNG.random(400) < 0.06, 0, RNG.integers(8, 20, 400))),
        ("outliers", [*RNG.integers(18, 91, 400), -3]),
        ("two-scales", [n if i % 5 else n / 100 for i, n in enumerate(RNG.integers(2, 100, 400))]),
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
        ("debt", [*np.zeros(20), *RNG.lognormal(8, 1, 280)]),
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
        *((name, RNG.integers(1, 25, 400)) for name in ("hours", "age", "rooms")),
        ("weight", RNG.integers(45, 120, 400)),
        ("price", RNG.integers(1, 30, 400) * 50),
        ("rate", RNG.integers(2, 20, 400) / 2),
        ("dose", RNG.choice([0.25, 0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9], 400)),
        ("share", RNG.integers(0, 101, 400) / 100),
        ("month", RNG.choice(["Jan 24", "Feb 24", "Mar 24"], 400)),
        ("acidity", RNG.normal(7, 0.4, 400).round(1)),
        ("income", RNG.lognormal(8, 2, 400)),
        ("time", [f"{i % 24}:{i % 4 * 15:02d}" for i in range(400)]),
        ("name", RNG.choice(["Max", "Mia", "Ben"], 400)),
        ("sex", RNG.choice(["m", "f", "x"], 400)),
        ("x", []),
        ("x", [1.5]),
        ("x", [float("inf"), 2.0] * 20),
    ],
)
def test_a_clean_column_raises_no_alarm(name, values):
    assert found(values, name) == {}


def test_a_name_makes_numbers_codes_or_dates_of_a_sheet():
    days = RNG.integers(18_000, 40_000, 400)

    assert found(RNG.integers(1, 25, 400), "merkmal")["codes"].question
    assert found(days, "Geburtsdatum")["dates-as-numbers"].question
    assert "dates-as-numbers" not in found(days, "rent")


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
        "--kind born=nominal --aggregate born=withhold",
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


def fields_of(finding):
    return {finding.column: finding.remedies[0].settings}


def test_three_digits_after_a_point_beside_decimal_commas_may_be_thousands(tmp_path):
    pay, rate = RNG.integers(1000, 99_999, 200), RNG.lognormal(3, 1, 200).round(2)
    lines = [
        f"{one:,}".replace(",", ".") + ";" + f"{two:.2f}".replace(".", ",") for one, two in zip(pay, rate, strict=True)
    ]
    path = tmp_path / "pay.csv"
    path.write_text("\n".join(["pay;rate", *lines]) + "\n")
    with pytest.raises(
        FileError, match=r"marks in 'pay' separate thousands: fields=\{\"pay\": \{\"thousands\": \"\.\"\}\}"
    ):
        inspect(path)
    (finding,) = inspect(path, decimal=",").findings

    assert [remedy.option for remedy in finding.remedies[:2]] == [
        "--thousands pay=. --decimal pay=,",
        "--decimal pay=.",
    ]
    assert read(path, fields=fields_of(finding)).arrow["pay"].to_pylist() == pay.tolist()


AGES = [str(age) for age in RNG.integers(18, 90, 400)]
STRAYS = ("Gesamt 2024", "n = 400", "unter 18", "ca. 40", "18-25", "26 %", "12 Jahre", "(17)", "30*", "~25")


@pytest.mark.parametrize("stray", STRAYS)
def test_a_stray_text_with_a_digit_among_numbers_is_a_question(stray):
    finding = found([*AGES, stray, stray], "age")["numbers-as-text"]

    assert finding.question
    assert "2 of 402 hold one other text" in finding.what
    assert [remedy.place for remedy in finding.remedies] == ["field", "rows", "column"]
    assert stray not in json.dumps(finding.to_dict())


@pytest.mark.parametrize(
    "form", ["{} %", "{}%", "€ {}", "{} kg", "{}kg", "{} Jahre", "USD {}", "ca. {}", "{} €", "{}*"]
)
def test_numbers_with_a_unit_are_a_question_that_one_setting_answers(form, tmp_path):
    texts = [form.format(age) for age in AGES]
    finding = found(texts, "size")["numbers-with-unit"]
    (tmp_path / "sizes.csv").write_text("\n".join(["size", *texts]) + "\n", encoding="utf-8")
    table = read(tmp_path / "sizes.csv", fields={"size": finding.remedies[0].settings})

    assert finding.question
    assert table.arrow["size"].to_pylist() == list(map(int, AGES))


def test_numbers_with_several_units_are_a_question_and_no_setting_reads_them(tmp_path):
    texts = [f"{age} {'kg' if row % 2 else 'lb'}" for row, age in enumerate(AGES)]
    (tmp_path / "sizes.csv").write_text("\n".join(["size", *texts]) + "\n")

    assert "2 different units after them" in found(texts, "size")["numbers-with-unit"].what
    with pytest.raises(FileError, match="several units"):
        read(tmp_path / "sizes.csv", fields={"size": {"unit": "after"}})


@pytest.mark.parametrize(
    "values",
    [
        [f"{number}{'a' if number % 19 == 0 else ''}" for number in RNG.integers(1, 120, 400)],
        RNG.choice(["722Z", "23", "611M1", "6111", "92MP", "44", "5417"], 400),
        RNG.choice(["J45.1", "E11", "I10", "F32.9", "Z00"], 400),
        [f"{'AB'[row % 2]}{row % 60:04d}" for row in range(400)],
        RNG.choice(["St. Gallen", "Bad Homburg v.d.H.", "Bonn", "L'Aquila"], 400),
        RNG.choice(["A+", "A-", "B+", "0-"], 400),
        RNG.choice(["Class 1", "Class 2", "Class 3"], 400),
        RNG.choice(["<=50K", ">50K"], 400),
    ],
)
def test_codes_and_names_have_forms_of_their_own_and_raise_no_alarm(values):
    assert found(values, "kind_of_thing") == {}


@pytest.mark.parametrize("stray", ["Total 2024", "-", "?", "NA", "k. A.", "North*", "North (2)", "53111", "#REF!"])
def test_a_text_of_another_form_among_words_is_a_note(stray):
    finding = found([*RNG.choice(["North", "South", "East"], 400), stray], "plant")["other-forms"]

    assert not finding.question
    assert "1 of 401 records" in finding.what
    assert stray == "-" or stray == "?" or stray not in json.dumps(finding.to_dict())


def test_dates_of_two_formats_are_a_question():
    days = [f"{1940 + i % 60}-{1 + i % 12:02d}-{1 + i % 28:02d}" if i % 3 else DAYS[i] for i in range(100)]

    assert "66 % of the records hold a date (year, month, day), and 34 % one (day, month, year)" in (
        found(days, "born")["dates-as-text"].what
    )


@pytest.mark.parametrize("values", [[2, 4, 5, 6, 9], [2, 3, 9], [1, 2, 4], [11, 12, 31, 42, 93]])
def test_few_whole_numbers_with_gaps_are_a_question(values):
    assert found(RNG.choice(values, 300))["codes"].question


@pytest.mark.parametrize("values", [[0, 1, 2, 3], [10, 20, 30], [0, 5, 10, 40]])
def test_few_whole_numbers_that_may_be_amounts_are_a_note(values):
    assert not found(RNG.choice(values, 300))["codes"].question


def test_postcodes_are_codes_however_many_there_are():
    postcodes = RNG.choice(RNG.integers(10_000, 99_999, 90), 300)

    assert found(postcodes, "zip")["codes"].question
    assert found([*map(float, postcodes), None], "postcode")["codes"].question


@pytest.mark.parametrize(
    ("values", "question"),
    [
        ([(1 + i % 28) * 1_000_000 + (1 + i % 12) * 10_000 + 1990 + i % 30 for i in range(100)], True),
        ([(1990 + i % 30) * 100 + 1 + i % 12 for i in range(100)], True),
        ([100 * (6 + i % 16) + i * 7 % 60 for i in range(100)], False),
    ],
)
def test_days_months_and_times_written_as_numbers_are_asked_about(values, question):
    assert found(values)["dates-as-numbers"].question is question


@pytest.mark.parametrize("values", [range(1905, 1955), range(100, 2300, 50), RNG.integers(0, 2400, 100)])
def test_years_steps_and_amounts_are_no_times(values):
    assert "dates-as-numbers" not in found([int(value) for value in values])


def test_long_numbers_of_one_length_are_a_note_but_not_amounts():
    assert "repeats-of-identifiers" in found(RNG.integers(10**8, 10**9, 100))
    assert "repeats-of-identifiers" not in found(RNG.lognormal(17, 1, 100).astype(int))


def test_many_nines_at_the_end_of_ages_are_a_note_but_not_other_ages():
    ages = RNG.integers(18, 91, 275).tolist()

    assert found([*ages, *[99] * 25], "age")["missing-code"].remedies[0].settings == {"missing_codes": ["largest"]}
    assert "missing-code" not in found([*ages, *[95] * 25], "age")
    assert "missing-code" not in found([*ages, 99], "age")


@pytest.mark.parametrize("odd", ["non renseigné", "refused", "weiß nicht", "K\u00c3\u00b6ln", "K\ufffdln"])
def test_words_for_missing_in_three_languages_and_broken_letters_are_notes(odd):
    assert "other-forms" in found(["Bonn", "Kiel", "Ulm"] * 30 + [odd] * 3)


@pytest.mark.parametrize("stray", ["01.02.1950", "3/4/61"])
def test_a_stray_date_among_years_is_a_question(stray):
    assert found([*(str(year) for year in RNG.integers(1930, 2000, 100)), stray])["numbers-as-text"].question


def test_a_sign_before_every_number_is_a_question_but_not_before_telephone_numbers(tmp_path):
    for numbers in (RNG.integers(-90, 90, 200), RNG.integers(0, 900, 200)):
        finding = found([f"{number:+d}" for number in numbers], "change")["numbers-as-text"]
        (tmp_path / "changes.csv").write_text("\n".join(["change", *(f"{number:+d}" for number in numbers)]) + "\n")
        assert finding.question
        assert finding.remedies[0].option == "--decimal change=."
        assert read(tmp_path / "changes.csv", fields=fields_of(finding)).arrow["change"].to_pylist() == numbers.tolist()
    assert "numbers-as-text" not in found([f"+{number}" for number in range(4900, 5000)] * 2)


@pytest.mark.parametrize("mark", ["0", "9", "-9", "99"])
def test_a_number_among_words_is_a_note_however_often_it_occurs(mark):
    assert "other-forms" in found(["Bonn", "Kiel"] * 145 + [mark] * 10)
    assert "other-forms" not in found(["yes", "0"] * 100)


def test_two_masses_of_numbers_a_power_of_ten_apart_are_a_question():
    heights = [*RNG.normal(175, 9, 280).round(), *RNG.normal(1.75, 0.09, 20).round(2)]

    assert "20 of 300 records hold numbers 100 times as small" in found(heights, "height")["two-scales"].what
    assert "two-scales" not in found(RNG.lognormal(8, 2, 300), "income")


def test_values_that_repeat_as_identifiers_do_are_a_note():
    numbers = RNG.permutation(np.repeat(RNG.choice(90_000, 100, replace=False), 3))

    assert "repeats-of-identifiers" in found(numbers)
    assert "repeats-of-identifiers" not in found(RNG.integers(0, 100, 300))


def test_zeros_for_measurements_and_nines_among_amounts_are_notes():
    pressure = [*RNG.normal(80, 9, 280).round(), *[0] * 20]
    incomes = [*RNG.lognormal(9, 1, 280).round(2), *[9999] * 20]

    assert found(pressure)["missing-code"].remedies[0].settings == {"missing_codes": ["smallest"]}
    assert not found(incomes, "income")["missing-code"].question
    assert "zeros" in found([*np.zeros(200), *(RNG.lognormal(8, 1, 100) + 2000)], "debt")


@pytest.mark.parametrize(("delimiter", "asked"), [(";", True), ("\t", False), (",", None)])
def test_numbers_with_three_decimals_in_every_row_are_asked_about_by_the_delimiter(delimiter, asked, tmp_path):
    amounts = [
        f"{whole}.{rest:03d}" for whole, rest in zip(RNG.integers(1, 999, 99), RNG.integers(0, 999, 99), strict=True)
    ]
    (tmp_path / "amounts.csv").write_text("\n".join([f"n{delimiter}amount", *(f"1{delimiter}{a}" for a in amounts)]))
    findings = {one.name: one for one in inspect(tmp_path / "amounts.csv").findings}

    assert ("thousands-as-decimals" in findings) is (asked is not None)
    assert asked is None or findings["thousands-as-decimals"].question is asked


def test_a_column_with_points_in_a_file_with_commas_gets_a_remedy_that_reads_it(tmp_path):
    rows = [f"{age},5;{age}.25" for age in AGES]
    (tmp_path / "both.csv").write_text("\n".join(["one;other", *rows]) + "\n")
    (finding,) = inspect(tmp_path / "both.csv", decimal=",").findings
    remedy = finding.remedies[0]

    assert (finding.column, remedy.settings) == ("other", {"decimal": "."})
    assert (
        read(tmp_path / "both.csv", decimal=",", fields={"other": remedy.settings}).types.field("other").type
        == pa.float64()
    )
