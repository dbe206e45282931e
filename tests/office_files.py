"""Fifty files as offices have them, in three locales, each with the traps that it holds; always the same fifty.

``python tests/office_files.py FOLDER`` writes them.
"""

import sys
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import numpy as np

N_FILES, N_RECORDS = 50, 200


@dataclass(frozen=True)
class Locale:
    """How a country writes numbers and dates."""

    name: str
    delimiter: str
    decimal: str
    thousands: str
    date_format: str
    null: str
    columns: dict[str, str]


LOCALES = (
    Locale("en", ",", ".", ",", "%m/%d/%Y", "NA", {}),
    Locale(
        *("de", ";", ",", ".", "%d.%m.%Y", "k. A."),
        {"born": "Geburtsdatum", "income": "Einkommen", "sex": "Geschlecht", "city": "Wohnort", "age": "Alter"},
    ),
    Locale(
        *("fr", ";", ",", "\u00a0", "%d/%m/%Y", "n/a"),
        {"born": "date_naissance", "income": "revenu", "sex": "sexe", "city": "ville", "age": "age"},
    ),
)


@dataclass
class OfficeFile:
    """A file, and what is to be found in it: the finding of each column that holds a trap."""

    locale: Locale
    rng: np.random.Generator
    columns: dict[str, list[str]] = field(default_factory=dict)
    traps: dict[str, str] = field(default_factory=dict)
    totals: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    path: Path | None = None

    def named(self, column):
        """Return what a column is called here."""
        return self.locale.columns.get(column, column)

    def add(self, column, texts, trap=None):
        """Add a column, with the finding that it should give."""
        self.columns[self.named(column)] = list(texts)
        if trap:
            self.traps[self.named(column)] = trap

    def number(self, value, decimals=0, grouped=False):
        """Write a number."""
        text = f"{value:,.{decimals}f}" if grouped else f"{value:.{decimals}f}"
        return text.replace(",", "\0").replace(".", self.locale.decimal).replace("\0", self.locale.thousands)

    def write(self, folder, number):
        """Write the file."""
        self.path = Path(folder) / f"{number:02d}-{self.locale.name}.csv"
        rows = [list(self.columns), *map(list, zip(*self.columns.values(), strict=True))]
        quoted = [[f'"{text}"' if self.locale.delimiter in text else text for text in row] for row in rows]
        text = "".join(self.locale.delimiter.join(row) + "\n" for row in quoted)
        self.path.write_text(text, encoding="utf-8")
        return self


def clean_columns(file):
    """Add columns that hold no trap."""
    rng, n = file.rng, N_RECORDS
    file.add("age", map(str, rng.integers(18, 91, n)))
    file.add("income", (file.number(value, 2) for value in rng.lognormal(10, 0.6, n)))
    file.add("sex", rng.choice(["f", "m"], n))
    file.add("city", rng.choice(["Bonn", "Lyon", "York", "Graz", "Nice", "Bath"], n))
    file.add("children", map(str, rng.integers(0, 5, n)))
    file.add("entered", ((date(2019, 1, 1) + timedelta(int(days))).isoformat() for days in rng.integers(0, 900, n)))
    file.add("diagnosis", rng.choice(["flu", "cold", "none"], n))


def with_null(file, texts, null, share=0.07):
    """Return texts some of which say in words that there is none."""
    missing = file.rng.random(N_RECORDS) < share
    return [null if gone else text for text, gone in zip(texts, missing, strict=True)]


def null_text(file, null):
    """Let a text stand for a missing income."""
    file.add("income", with_null(file, file.columns[file.named("income")], null), "numbers-as-text")


def grouped_income(file):
    """Set thousands apart."""
    values = file.rng.lognormal(10, 0.6, N_RECORDS)
    file.add("income", (file.number(value, 2, grouped=True) for value in values), "numbers-as-text")


def dates(file):
    """Write dates of birth as the country does."""
    days = file.rng.integers(0, 22_000, N_RECORDS)
    born = ((date(1940, 1, 1) + timedelta(int(day))).strftime(file.locale.date_format) for day in days)
    file.add("born", born, "dates-as-text")


def dates_with_null(file):
    """Write dates of birth, and a text where there is none."""
    dates(file)
    file.add("born", with_null(file, file.columns[file.named("born")], file.locale.null), "dates-as-text")


def sex_codes(file):
    """Number the sexes, with decimals, as a statistics program exports them."""
    file.add("sex", (file.number(value, 1) for value in file.rng.integers(1, 3, N_RECORDS)), "codes")


def wall_codes(file):
    """Number what walls are made of."""
    file.add("walls", map(str, file.rng.integers(1, 6, N_RECORDS)), "codes")


def region_codes(file):
    """Number regions."""
    file.add("region", file.rng.choice(["11", "12", "31", "42", "93"], N_RECORDS), "codes")


def missing_code(code, column="age"):
    """Let a number stand for a missing value."""

    def trap(file):
        file.add(column, with_null(file, file.columns[file.named(column)], file.number(code)), "missing-code")

    return trap


def several_codes(file):
    """Let three numbers stand for missing values."""
    texts = file.columns[file.named("age")]
    for code in ("-7", "-8", "-9"):
        texts = with_null(file, texts, code, 0.07)
    file.add("age", texts, "missing-code")


def mostly_empty(file):
    """Leave most of a column empty."""
    bonus = (file.number(value) for value in file.rng.integers(100, 900, N_RECORDS))
    file.add("bonus", with_null(file, bonus, "", 0.92), "mostly-missing")


def variants(file):
    """Spell words in several ways."""
    file.add("level", file.rng.choice(["low", "Low ", "mid", "MID", "high"], N_RECORDS), "spelling-variants")


def streets(file):
    """Give nearly everybody an employer of their own."""
    file.add("plant", (f"Plant {i} of {file.rng.integers(1e6)}" for i in range(N_RECORDS)), "near-unique-text")


def numbers_of_people(file):
    """Number the people."""
    file.add("person_id", map(str, file.rng.permutation(N_RECORDS) + 1000), "identifier")


def repeated_people(file):
    """Give people several records each."""
    file.add("patient_id", map(str, np.arange(N_RECORDS) // 3), "subject")


def survey_weight(file):
    """Add survey weights."""
    file.add("pweight", (file.number(value, 3) for value in file.rng.uniform(0.5, 9, N_RECORDS)), "weight")


def households(file):
    """Number households."""
    file.add("hhid", map(str, np.arange(N_RECORDS) // 2), "household")


def same_for_all(file):
    """Say the same of everybody."""
    file.add("wave", ["2019"] * N_RECORDS, "constant")


def dates_as_numbers(file):
    """Write days of admission as whole numbers."""
    days = file.rng.integers(0, 7_000, N_RECORDS)
    admitted = ((date(2000, 1, 1) + timedelta(int(day))).strftime("%Y%m%d") for day in days)
    file.add("admitted", admitted, "dates-as-numbers")


def amounts_with_unit(file):
    """Write a weight with its unit."""
    weights = file.rng.integers(40, 120, N_RECORDS)
    file.add("weight_now", (f"{weight} kg" for weight in weights), "numbers-with-unit")


def stray_texts(file):
    """Let remarks stand among numbers of visits."""
    visits = list(map(str, file.rng.integers(1, 60, N_RECORDS)))
    visits[11], visits[60], visits[-1] = "ca. 40", "18-25", "Gesamt 2024"
    file.totals.add("visits")
    file.add("visits", visits, "numbers-as-text")


def labels_among_words(file):
    """Let the label of a total and a footnote stand among words."""
    plants = list(file.rng.choice(["North", "South", "East"], N_RECORDS))
    plants[30], plants[-1] = "North*", "Total 2024"
    file.totals.add("plant_area")
    file.add("plant_area", plants, "other-forms")


def two_scales(file):
    """Write some heights in metres, the others in centimetres."""
    heights = file.rng.normal(170, 9, N_RECORDS)
    height = (file.number(cm / 100, 2) if row % 20 == 0 else file.number(cm, 0) for row, cm in enumerate(heights))
    file.add("height", height, "two-scales")


def zeros(file):
    """Let every third person have no rent."""
    rents = file.rng.lognormal(6, 0.9, N_RECORDS) + 90
    file.add("rent", (file.number(0 if row % 3 == 0 else rent) for row, rent in enumerate(rents)), "zeros")


def repeated_visits(file):
    """Number courses of treatment, of two or three records each."""
    file.add(
        "course",
        map(str, file.rng.permutation(90)[np.arange(N_RECORDS) * 90 // N_RECORDS] + 4000),
        "repeats-of-identifiers",
    )


TRAPS = (
    lambda file: null_text(file, "NA"),
    lambda file: null_text(file, "."),
    lambda file: null_text(file, "NULL"),
    lambda file: null_text(file, "n/a"),
    grouped_income,
    dates,
    dates_with_null,
    sex_codes,
    wall_codes,
    region_codes,
    missing_code(-9),
    missing_code(-999),
    missing_code(999),
    missing_code(99999999, "income"),
    several_codes,
    mostly_empty,
    variants,
    streets,
    numbers_of_people,
    repeated_people,
    survey_weight,
    households,
    same_for_all,
    dates_as_numbers,
    amounts_with_unit,
    stray_texts,
    labels_among_words,
    two_scales,
    zeros,
    repeated_visits,
)
N_CLEAN = 10


def office_files(folder):
    """Write the fifty files: ten without a trap, and forty with up to four each, every trap in every locale."""
    made = []
    for number in range(N_FILES):
        file = OfficeFile(LOCALES[number % len(LOCALES)], np.random.default_rng([13, number]))
        clean_columns(file)
        if number >= N_CLEAN:
            # Neighbouring traps concern different columns, but for those of the income: one of these at a time.
            first = (number - N_CLEAN) // len(LOCALES) * 2
            for place in (first, first + 7, first + 14):
                TRAPS[place % len(TRAPS)](file)
        made.append(file.write(folder, number))
    return made


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    for written in office_files(sys.argv[1]):
        print(written.path, written.traps)
