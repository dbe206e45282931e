"""Totals among the records, notes below them and doubles are found by number, asked about, and left out on request."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import datasets
from shoal.findings import QuestionError
from shoal.findings.rows import DOUBLES, HEADINGS, ODD, TOTALS, row_findings
from shoal.sources import Receipt, read, write

pytestmark = pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
WORDS = [
    "Summe",
    "Standardabweichung",
    "Übertrag",
    "Gesamt 2024",
    "TOTAL:",
    "Subtotal",
    "Insgesamt",
    "Durchschnitt",
    "Razem",
    "Somme",
    "  Total  ",
]


def office_lines(rng, n=40, label="Summe"):
    """Return the lines of an office: sub-totals inside, a total below, numbers of records 21, 42 and 43."""
    lines, total = ["name;town;age;income"], 0
    for half in range(2):
        pay = rng.integers(1000, 9000, n // 2)
        for number, one in enumerate(pay):
            lines.append(f"P{half}{number:03d};{rng.choice(['Reus', 'Valls'])};{rng.integers(20, 80)};{one}")
        lines.append(f"Zwischensumme;;;{pay.sum()}")
        total += pay.sum()
    return [*lines, f"{label};;;{total}"], total


SETTINGS = {
    "k": 5,
    "seed": 1,
    "quasi_identifiers": ["age", "income"],
    "identifiers": ["name"],
    "other": ["town"],
    "missing": "own-value",
}


def test_a_total_in_a_release_is_a_question_that_its_own_answer_settles(tmp_path):
    lines, total = office_lines(np.random.default_rng(1))
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(QuestionError) as caught:
        shoal.anonymize(path, **SETTINGS)
    found = next(finding for finding in caught.value.findings if finding.name == TOTALS)

    assert "records 21, 42, 43 with a word for a total in 'name'" in found.what
    assert "records 21, 42, 43 with the sum of others in 'income'" in found.what
    assert "Summe" not in str(caught.value)
    assert str(total) not in str(caught.value)
    assert found.remedies[0].settings == {"skip_rows": "21,42-43"}
    assert found.remedies[0].argument == 'reading={"skip_rows": "21,42-43"}'
    release = shoal.anonymize(path, reading=found.remedies[0].settings, **SETTINGS)
    release.write(tmp_path / "release.csv", report=tmp_path / "report.html", form="public")
    public = "".join((tmp_path / f"release.csv{end}").read_text() for end in ("", ".public.json"))
    assert str(total) not in public + (tmp_path / "report.html").read_text()
    assert release.verdict.n_records == 40
    assert release.verdict.smallest >= 5


def test_numbers_are_those_of_the_file_whatever_is_left_out_already(tmp_path):
    lines, _ = office_lines(np.random.default_rng(1))
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(QuestionError) as caught:
        shoal.anonymize(path, reading={"skip_rows": "1,21,42"}, **SETTINGS)

    assert caught.value.findings[0].remedies[0].settings == {"skip_rows": "1,21,42-43"}


def test_a_total_without_a_word_is_found_by_adding(tmp_path):
    rng = np.random.default_rng(2)
    pay = np.round(rng.lognormal(8, 1, 60), 2)
    for place, values in ((61, [*pay, pay.sum()]), (1, [pay.sum(), *pay])):
        table = pa.table({"age": rng.integers(20, 80, 61), "pay": np.round(values, 2)})
        (found,) = rows_of(table)
        assert (found.name, found.column, found.question) == (TOTALS, "pay", True)
        assert found.remedies[0].settings == {"skip_rows": str(place)}


def test_a_note_below_the_records_is_found(tmp_path):
    path = tmp_path / "people.csv"
    body = [f"P{i};{20 + i * 7 % 60};{1000 + i * 37 % 900};x" for i in range(60)]
    path.write_text("\n".join(["name;age;pay;town", *body, "Quelle: Amt, Stand 2024;;;", ";;;"]) + "\n")
    (found,) = rows_of(read(path).arrow)

    assert (found.name, found.question) == (ODD, True)
    assert found.remedies[0].settings == {"skip_rows": "61-62"}
    with pytest.raises(QuestionError, match="records 61, 62 lack at least half"):
        shoal.anonymize(
            path, k=5, quasi_identifiers=["age", "pay"], identifiers=["name"], other=["town"], missing="own-value"
        )


def rows_of(table):
    return row_findings(table.column_names, lambda name: table[name], table.num_rows, Receipt())


@pytest.mark.parametrize("word", WORDS)
def test_words_for_totals_are_known(word):
    table = pa.table({"town": [*(f"t{i % 7}" for i in range(30)), word], "age": [*(i * 7 % 31 for i in range(30)), 17]})
    (found,) = rows_of(table)

    assert (found.name, found.column, found.question) == (TOTALS, "town", True)
    assert rows_of(pa.table({"town": table["town"].combine_chunks().dictionary_encode(), "age": table["age"]})) == [
        found
    ]


SHORT = [["Max"], ["Min"], ["Mittelwert", "SD"], ["Min", "Max"], ["MW", "SD"]]


@pytest.mark.parametrize("words", SHORT)
def test_short_words_count_where_a_table_ends_with_numbers_to_match(words):
    names = [*(f"P{i}" for i in range(38)), "Max", *words]
    ages = [*(20 + i * 7 % 39 for i in range(39)), *(99 if word == "Max" else 1 for word in words)]
    (found,) = rows_of(pa.table({"name": names, "age": ages}))

    assert (found.name, found.column, found.question) == (TOTALS, "name", True)
    assert found.remedies[0].settings["skip_rows"].endswith(str(39 + len(words)))
    assert rows_of(pa.table({"name": [*names[:39], "Ben", "Max"], "age": [*ages[:39], 40, 41]})) == []


def test_headings_among_the_records_are_one_question_and_asked_first(tmp_path):
    rng = np.random.default_rng(9)
    people = [f"{rng.integers(18, 90)};{rng.integers(900, 9000)};{rng.choice(['Reus', 'Valls'])}" for _ in range(60)]
    headings = {0: "Jahre;in EUR;", 20: "---;---;---", 30: "AGE;pay ;town", 50: "age;pay;town"}
    lines = [line for i, one in enumerate(people) for line in (*([headings[i]] if i in headings else ()), one)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["age;pay;town", *lines]) + "\n")
    settings = {"k": 5, "seed": 1, "quasi_identifiers": ["age", "pay"], "other": ["town"]}
    with pytest.raises(QuestionError) as caught:
        shoal.anonymize(path, **settings)
    (found,) = caught.value.findings

    assert (found.name, found.question) == (HEADINGS, True)
    assert found.remedies[0].settings == {"skip_rows": "1,22,33,54"}
    assert [finding.name for finding in shoal.inspect(path).findings] == [HEADINGS]
    with shoal.anonymize(path, reading=found.remedies[0].settings, **settings) as release:
        assert release.verdict.n_records == 60


def test_answers_that_say_that_there_is_none_are_no_headings():
    rng = np.random.default_rng(10)
    columns = {f"q{i}": list(map(str, rng.integers(1, 60, 100))) for i in range(4)}
    for values in columns.values():
        values[7] = values[40] = "k. A."
        values[8] = "--"

    assert HEADINGS not in [finding.name for finding in rows_of(pa.table(columns)) if 7 in finding.remedies]
    assert all("8," not in finding.what for finding in rows_of(pa.table(columns)))


def test_words_that_only_begin_so_are_not():
    texts = ["Gesamtschule", "Summer", "Totally", "Sumatra", "Meaning", "Total S.A.", "sum of parts", "Sumo"] * 4
    assert rows_of(pa.table({"town": texts, "age": list(range(32))})) == []


def test_a_category_of_many_records_is_no_total_unless_its_numbers_are_larger():
    rng = np.random.default_rng(4)
    extent = rng.choice(["total", "partial"], 400)
    kept = pa.table({"extent": extent, "age": rng.integers(20, 80, 400)})
    summed = pa.table(
        {"sex": ["f", "m", "Total"] * 100, "pay": [v for a, b in rng.integers(9, 90, (100, 2)) for v in (a, b, a + b)]}
    )

    assert rows_of(kept) == []
    (found,) = rows_of(summed)
    assert found.column == "sex"
    assert found.remedies[0].settings == {"skip_where": ["sex=VALUE"]}


def clean_tables():
    for name in ("census", "tarragona", "eia"):
        yield read(datasets.path(name)).arrow
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 200))
        yield pa.table(
            {
                "kids": rng.integers(0, 6, n),
                "flag": rng.integers(0, 2, n),
                "pay": np.round(rng.lognormal(7, 1.5, n), int(rng.integers(0, 3))),
                "zero": np.where(rng.random(n) < 0.7, 0, rng.integers(1, 9, n)),
                "town": rng.choice(["Reus", "Valls", "Flix"], n),
                "answer": pa.array(np.where(rng.random(n) < 0.3, None, rng.integers(1, 6, n))),
            }
        )


def test_clean_tables_have_no_such_records():
    assert [number for number, table in enumerate(clean_tables()) if rows_of(table)] == []


def test_headings_of_groups_are_found_however_many_there_are(tmp_path):
    rng = np.random.default_rng(12)
    lines = ["name;age;pay"]
    for group in range(6):
        lines += [
            f"Group {group};;",
            *(f"P{group}{i};{rng.integers(18, 66)};{rng.integers(900, 6000)}" for i in range(30)),
        ]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    (found,) = rows_of(read(tmp_path / "people.csv").arrow)

    assert (found.name, found.question) == (ODD, True)
    assert found.remedies[0].settings == {"skip_rows": "1,32,63,94,125,156"}


@pytest.mark.parametrize("place", [0, 60])
def test_means_without_a_word_are_found_and_other_records_are_not(place):
    rng = np.random.default_rng(13)
    columns = {name: list(map(float, rng.integers(18, 900, 60))) for name in ("age", "pay")}
    others = {name: [*values[:place], 77.0, *values[place:]] for name, values in columns.items()}
    means = {name: [*values[:place], round(np.mean(values), 2), *values[place:]] for name, values in columns.items()}
    (found,) = rows_of(pa.table(means))

    assert (found.name, found.remedies[0].settings) == (TOTALS, {"skip_rows": str(place + 1)})
    assert "with the mean of all others in 'age'" in found.what
    assert rows_of(pa.table(others)) == []


def test_unanswered_questionnaires_are_not_notes():
    rng = np.random.default_rng(5)
    silent = rng.random(300) < 0.06
    columns = {f"q{i}": pa.array(np.where(silent, None, rng.integers(1, 6, 300))) for i in range(6)}

    assert rows_of(pa.table({"age": rng.integers(18, 80, 300), **columns})) == []


def test_doubles_are_noted_by_inspect_where_a_column_tells_the_others_apart(tmp_path):
    rng = np.random.default_rng(6)
    table = pa.table({"age": rng.integers(20, 80, 100), "pay": rng.permutation(10_000)[:100]})
    doubled = pa.concat_tables([table, table.slice(3, 2)])
    path = tmp_path / "people.csv"
    write(doubled, path)
    (found,) = [finding for finding in shoal.inspect(path).findings if finding.name == DOUBLES]

    assert "records 101, 102 repeat a record above" in found.what
    assert found.remedies[0].settings == {"skip_rows": "101-102"}
    assert not found.question
    assert DOUBLES not in [finding.name for finding in shoal.inspect(table).findings]


def test_doubles_are_a_warning_of_a_release_unless_it_knows_who_is_who():
    rng = np.random.default_rng(6)
    table = pa.table({"id": range(100), "age": rng.integers(20, 80, 100), "pay": rng.permutation(10_000)[:100]})
    doubled = pa.concat_tables([table, table.slice(3, 2)])
    settings = {"k": 5, "seed": 1, "quasi_identifiers": ["age", "pay"]}

    def told(table, **roles):
        return " ".join(shoal.anonymize(table, **settings, **roles).warnings)

    assert "records 101, 102 repeat a record above" in told(doubled, identifiers=["id"])
    assert "repeat a record" not in told(table, identifiers=["id"])
    assert "repeat a record" not in told(doubled, subject="id")
    with pytest.raises(QuestionError, match="repeat a record above"):
        told(doubled, identifiers=["id"], strict=True)
    assert told(doubled, identifiers=["id"], strict=True, accept=DOUBLES)


def disk_file(folder, n=2000):
    rng = np.random.default_rng(11)
    towns = rng.choice(["Reus", "Valls", "Salou"], n)
    ages, pays = rng.integers(20, 80, n), rng.permutation(90_000)[:n]
    lines = [f"{town};{age};{pay}" for town, age, pay in zip(towns, ages, pays, strict=True)]
    return lines, folder / "people.csv"


ON_DISK = {"k": 5, "seed": 1, "quasi_identifiers": ["town", "age", "pay"], "engine": "disk", "missing": "own-value"}


@pytest.mark.parametrize(
    ("stray", "name", "answer"),
    [
        ("Valls (2)", "other-forms", {"fields": {"town": {"null_values": ["form:a (9)"]}}}),
        ("#REF!", "other-forms", {"fields": {"town": {"null_values": ["form:#a!"]}}}),
    ],
)
def test_the_engine_disk_counts_the_forms_of_all_records(stray, name, answer, tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.engines.blocks.sample.SAMPLE", 100)
    lines, path = disk_file(tmp_path)
    path.write_text("\n".join(["town;age;pay", *lines, f"{stray};33;4"]) + "\n")
    with shoal.anonymize(path, **ON_DISK) as release:
        told = " ".join(release.warnings)

    assert "'town': 1 of 2,001 records have another form" in told
    assert "in a sample of 100 of 2,001 for what may be misread in 'age', 'pay'" in told
    with pytest.raises(QuestionError) as caught:
        shoal.anonymize(path, strict=True, **ON_DISK)
    (finding,) = [each for each in caught.value.findings if each.name == name]
    assert finding.remedies[0].settings == answer["fields"]["town"]
    with shoal.anonymize(path, reading=answer, **ON_DISK) as release:
        assert "another form" not in " ".join(release.warnings)


def test_headings_and_blank_lines_are_asked_about_by_the_engine_disk_with_answers_that_it_takes(tmp_path):
    lines, path = disk_file(tmp_path, 300)
    path.write_text("\n".join(["town;age;pay", *lines[:90], "town;age;pay", *lines[90:]]) + "\n")
    with pytest.raises(
        QuestionError, match="records hold the names of columns, in 'town' and 'age' and 'pay'"
    ) as caught:
        shoal.anonymize(path, **ON_DISK)
    with shoal.anonymize(path, reading=caught.value.findings[0].remedies[0].settings, **ON_DISK) as release:
        assert release.verdict.n_records == 300

    path.write_text("\n".join(["town;age;pay", *lines, ";;"]) + "\n")
    with pytest.raises(QuestionError, match="1 of 301 records lacks at least half") as caught:
        shoal.anonymize(path, **ON_DISK)
    with shoal.anonymize(path, reading=caught.value.findings[0].remedies[0].settings, **ON_DISK) as release:
        assert release.verdict.n_records == 300


def test_codes_are_named_by_their_value_where_an_engine_takes_no_position(tmp_path):
    lines, path = disk_file(tmp_path, 300)
    path.write_text("\n".join(["town;age;pay", *lines, *["Reus;-9;7", "Valls;-9;8"] * 9]) + "\n")
    with pytest.raises(QuestionError) as caught:
        shoal.anonymize(path, **ON_DISK)
    (finding,) = caught.value.findings

    assert finding.remedies[0].option == "--missing-codes age=VALUE"
    with shoal.anonymize(path, columns={"age": {"missing_codes": [-9]}}, **ON_DISK) as release:
        assert release.verdict.holds


def test_a_total_is_asked_about_by_the_engine_disk_too(tmp_path):
    rng = np.random.default_rng(7)
    town = [*rng.choice(["Reus", "Valls"], 60), "Gesamt"]
    path = tmp_path / "people.csv"
    write(pa.table({"town": town, "age": rng.integers(20, 80, 61), "pay": rng.integers(1000, 9000, 61)}), path)
    settings = {"k": 5, "seed": 1, "quasi_identifiers": ["age", "pay"], "confidential": ["town"], "engine": "disk"}

    with pytest.raises(QuestionError, match="word for a total"):
        shoal.anonymize(path, **settings)
    with shoal.anonymize(path, reading={"skip_where": {"town": "Gesamt"}}, **settings) as release:
        assert release.verdict.n_records == 60


def test_accepted_totals_are_warnings():
    rng = np.random.default_rng(8)
    table = pa.table({"town": [*rng.choice(["Reus", "Valls"], 60), "Gesamt"], "age": rng.integers(20, 80, 61)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shoal.anonymize(table, k=5, seed=1, quasi_identifiers=["age"], other=["town"], accept=TOTALS)
    assert any("record 61 with a word for a total" in str(each.message) for each in caught)


@pytest.mark.parametrize(("label", "asked"), [("Alle", True), ("Reus", False)])
def test_the_sum_of_all_others_is_asked_about_by_the_engine_disk_without_a_word(label, asked, tmp_path):
    pay = np.random.default_rng(4).integers(1000, 9000, 60)
    last = pay.sum() if asked else pay.sum() - 1
    lines = ["town;pay", *(f"Valls;{one}" for one in pay), f"{label};{last}"]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    settings = {"k": 5, "seed": 1, "quasi_identifiers": ["pay"], "confidential": ["town"], "engine": "disk"}

    if not asked:
        with shoal.anonymize(tmp_path / "people.csv", **settings) as release:
            assert release.verdict.n_records == 61
        return
    with pytest.raises(QuestionError) as caught:
        shoal.anonymize(tmp_path / "people.csv", **settings)
    assert [(found.column, found.name) for found in caught.value.findings] == [("pay", TOTALS)]
    assert str(last) not in str(caught.value)
