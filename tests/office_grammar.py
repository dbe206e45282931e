"""Office files drawn from a grammar: clean ones, and ones with traps drawn at random; the same file for a seed.

``python tests/office_grammar.py --files 300`` inspects so many files with traps, and fails if a trap is silent: if no
question, warning or note names its column.
"""

import argparse
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from office_files import LOCALES, Locale
from shoal.findings.rows import OF_RECORDS

N_RECORDS = (120, 600)
_WORDS = ("North", "South", "East", "West", "Centre", "Lower Town", "Bad Orb", "St. Gallen", "L'Aquila", "Neu-Ulm")
_MARKS = ("NA", "n/a", "k. A.", "-", ".", "?", "NULL", "#N/A", "unknown", "--", "#DIV/0!")
_UNITS = (
    "{} %",
    "{}%",
    "€ {}",
    "{} €",
    "{} kg",
    "{}kg",
    "{} years",
    "USD {}",
    "ca. {}",
    "{}*",
    "({})",
    "~{}",
    "{} Std.",
)
_STRAYS = ("Total {}", "n = {}", "under {}", "ca. {}", "{}-25", "{} %", "{} years", "{}*", "({})", "<{}", "{}?", "{}p")
Rng = np.random.Generator
Texts = list[str]


def written(locale: Locale, value: float, decimals: int = 0, grouped: bool = False) -> str:
    """Write a number as a country does."""
    text = f"{value:,.{decimals}f}" if grouped else f"{value:.{decimals}f}"
    return text.replace(",", "\0").replace(".", locale.decimal).replace("\0", locale.thousands)


def ages(rng: Rng, n: int, locale: Locale) -> Texts:
    """Write ages of adults."""
    return [str(age) for age in rng.integers(18, 91, n)]


def incomes(rng: Rng, n: int, locale: Locale) -> Texts:
    """Write incomes with cents."""
    return [written(locale, value, 2) for value in rng.lognormal(10, 0.6, n)]


def lengths(rng: Rng, n: int, locale: Locale) -> Texts:
    """Write lengths with one decimal, with the same spread."""
    return [written(locale, value, 1) for value in rng.normal(170, 12, n)]


def shares(rng: Rng, n: int, locale: Locale) -> Texts:
    """Write shares with three decimals, below and above 1."""
    return [written(locale, value, 3) for value in rng.uniform(0, 2, n)]


def places(rng: Rng, n: int, locale: Locale) -> Texts:
    """Write some of ten places."""
    return list(map(str, rng.choice(_WORDS[: rng.integers(3, len(_WORDS))], n)))


def sexes(rng: Rng, n: int, locale: Locale) -> Texts:
    """Write one of two or three letters."""
    return list(map(str, rng.choice(["f", "m", "x"][: rng.integers(2, 4)], n)))


def children(rng: Rng, n: int, locale: Locale) -> Texts:
    """Write numbers of children."""
    return [str(value) for value in rng.poisson(1.4, n).clip(0, 6)]


def groups(rng: Rng, n: int, locale: Locale) -> Texts:
    """Write groups of ages."""
    return list(map(str, rng.choice(["0-17", "18-39", "40-64", "65+"], n)))


def icd(rng: Rng, n: int, locale: Locale) -> Texts:
    """Write codes of diagnoses."""
    return list(map(str, rng.choice(["J45.1", "E11", "I10", "F32.9", "Z00", "M54.5"], n)))


def days(rng: Rng, n: int, locale: Locale) -> Texts:
    """Write days in ISO 8601."""
    return list(map(str, np.datetime64("2015-01-01") + rng.integers(0, 3000, n)))


def flags(rng: Rng, n: int, locale: Locale) -> Texts:
    """Write 0 or 1."""
    return [str(value) for value in rng.integers(0, 2, n)]


CLEAN: dict[str, Callable[[Rng, int, Locale], Texts]] = {
    "age": ages,
    "income": incomes,
    "body_length": lengths,
    "ratio": shares,
    "place": places,
    "sex": sexes,
    "children": children,
    "age_group": groups,
    "diagnosis": icd,
    "entered": days,
    "smoker": flags,
}


def _some(rng: Rng, n: int, share: float) -> np.ndarray:
    return np.sort(rng.choice(n, max(1, int(share * n)), replace=False))


def marks(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Let a text stand for missing values."""
    mark, odd = str(rng.choice(_MARKS)), set(_some(rng, len(texts), rng.uniform(0.01, 0.4)))
    return [mark if row in odd else text for row, text in enumerate(texts)]


def units(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Write a unit beside each number, or beside most."""
    form, share = str(rng.choice(_UNITS)), rng.choice([1.0, 1.0, 0.7])
    bare = set(_some(rng, len(texts), 1 - share)) if share < 1 else set()
    return [text if row in bare else form.format(text) for row, text in enumerate(texts)]


def strays(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Let a few remarks with digits stand among numbers."""
    texts = list(texts)
    for row in _some(rng, len(texts), rng.uniform(0, 0.02)):
        texts[row] = str(rng.choice(_STRAYS)).format(rng.integers(10, 99))
    return texts


def labels(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Let the label of a total or a footnote stand among words."""
    texts = list(texts)
    texts[-1] = str(rng.choice(["Total 2024", "Sum (12)", "n = 400", "North*", "12345", "#REF!", "-"]))
    return texts


def grouped(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Set thousands apart."""
    return [written(locale, value, 2, grouped=True) for value in rng.lognormal(10, 0.8, len(texts))]


def dates(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Write days as the country does, or in two forms."""
    born = (np.datetime64("1940-01-01") + rng.integers(0, 22_000, len(texts))).astype(object)
    share = rng.choice([0.0, 0.0, 0.3])
    iso = set(_some(rng, len(texts), share)) if share else set()
    return [day.isoformat() if row in iso else day.strftime(locale.date_format) for row, day in enumerate(born)]


def codes(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Number categories, with gaps or not."""
    values = rng.choice(
        [[1, 2], [1, 2, 3], [2, 3, 9], [2, 4, 5, 6, 9], [11, 12, 31, 42], [0, 1, 2, 9]][rng.integers(6)], len(texts)
    )
    return [str(value) for value in values]


def spikes(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Let a number stand for missing values."""
    code, odd = (
        str(rng.choice(["-9", "-1", "999", "9999", "-99", "99999"])),
        set(_some(rng, len(texts), rng.uniform(0.03, 0.2))),
    )
    return [code if row in odd else text for row, text in enumerate(texts)]


def scales(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Write some lengths in another unit."""
    odd = set(_some(rng, len(texts), rng.uniform(0.06, 0.4)))
    values = rng.normal(170, 9, len(texts))
    return [
        written(locale, value / 100, 2) if row in odd else written(locale, value) for row, value in enumerate(values)
    ]


def numbers_of_persons(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Number courses of two or three records each."""
    n, each = len(texts), int(rng.integers(2, 4))
    return [str(value) for value in (rng.permutation(n) + 4000)[np.arange(n) // each]]


def more_codes(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Number many categories, without gaps, with large ones, or in two levels."""
    some = [
        np.arange(1, rng.integers(9, 25)).astype(str),
        rng.choice(np.arange(100, 999), int(rng.integers(12, 40)), replace=False).astype(str),
        np.array([f"{a}.{b}" for a in range(1, 5) for b in range(1, 4)]),
    ][rng.integers(3)]
    return list(map(str, rng.choice(some, len(texts))))


def far_away(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Let one to three numbers be impossible."""
    texts = list(texts)
    for row in rng.choice(len(texts), int(rng.integers(1, 4)), replace=False):
        texts[row] = str(rng.choice(["1950", "2024", "-410", "7200"]))
    return texts


def answers(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Write answers in two ways."""
    ways = [["ja", "nein", "1", "0"], ["WAHR", "FALSCH", "0", "1"], ["oui", "non", "o", "n"], ["yes", "no", "Y", "N"]]
    return list(map(str, rng.choice(ways[rng.integers(len(ways))], len(texts), p=[0.35, 0.35, 0.15, 0.15])))


def days_of_sheets(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Write dates as the numbers that a sheet stores."""
    return [str(day) for day in rng.integers(35_000, 45_500, len(texts))]


def short_years(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Write some years with two digits."""
    odd = set(_some(rng, len(texts), rng.uniform(0.05, 0.4)))
    return [str(y % 100 if row in odd else y) for row, y in enumerate(rng.integers(1940, 2000, len(texts)))]


def times(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Write times with two marks."""
    odd, mark = set(_some(rng, len(texts), rng.uniform(0.01, 0.4))), str(rng.choice([".", ",", "h"]))
    return [
        f"{rng.integers(6, 20)}{mark if row in odd else ':'}{rng.integers(0, 4) * 15:02d}" for row in range(len(texts))
    ]


def pressures(rng: Rng, locale: Locale, texts: Texts) -> Texts:
    """Write two pressures where one is expected."""
    odd, form = set(_some(rng, len(texts), 0.02)), str(rng.choice(["{}/{}", "{}x{}", "{} / {}"]))
    pairs = rng.integers([100, 60], [160, 95], (len(texts), 2))
    return [form.format(*pair) if row in odd else str(pair[0]) for row, pair in enumerate(pairs)]


TRAPS: dict[str, tuple[str, Callable[[Rng, Locale, Texts], Texts]]] = {
    "marks among ages": ("age", marks),
    "marks among incomes": ("income", marks),
    "marks among places": ("place", marks),
    "units": ("age", units),
    "strays": ("age", strays),
    "labels": ("place", labels),
    "grouped": ("income", grouped),
    "dates": ("entered", dates),
    "codes": ("smoker", codes),
    "spikes": ("age", spikes),
    "scales": ("body_length", scales),
    "numbers of persons": ("ratio", numbers_of_persons),
    "more codes": ("part", more_codes),
    "far away": ("age", far_away),
    "answers": ("smoker", answers),
    "days of sheets": ("entered", days_of_sheets),
    "short years": ("year", short_years),
    "times": ("arrives", times),
    "pressures": ("pressure", pressures),
}
"""The traps of the grammar: the column that each is set in, and how its texts are changed."""


def _value(locale: Locale, text: str) -> float | None:
    try:
        return float(text.replace(locale.decimal, "."))
    except ValueError:
        return None


_WORDS_OF_TOTALS = {
    np.sum: ["Total", "Summe", "Somme", "Gesamt 2024", "Grand Total", "Insgesamt:", "Zwischensumme", ""],
    np.mean: ["Mean", "Average", "Mittelwert", "Durchschnitt", "Moyenne"],
    np.max: ["Max", "Maximum"],
    np.min: ["Min", "Minimum"],
    np.std: ["Std. Dev.", "StdDev", "Standardabweichung", "STABW"],
}


def total_rows(rng: Rng, locale: Locale, rows: list[Texts]) -> list[Texts]:
    """Add up or average the numbers at the end, or after each of some parts."""
    figure = list(_WORDS_OF_TOTALS)[rng.choice(5, p=[0.5, 0.3, 0.05, 0.05, 0.1])]
    word = str(rng.choice(_WORDS_OF_TOTALS[figure]))

    def row_of(part: list[Texts]) -> Texts:
        numbers = [[_value(locale, text) for text in column] for column in zip(*part, strict=True)]
        row = ["" if None in values else written(locale, figure(values), 2) for values in numbers]
        place = next((place for place, text in enumerate(row) if not text), 0)
        return [*row[:place], word, *row[place + 1 :]]

    n_parts = int(rng.integers(1, 4)) if figure is np.sum else 1
    parts = np.array_split(np.arange(len(rows)), n_parts)
    of_parts = [[rows[row] for row in part] for part in parts]
    return [row for part in of_parts for row in (*part, row_of(part))]


def heading_rows(rng: Rng, locale: Locale, rows: list[Texts]) -> list[Texts]:
    """Repeat the header, draw a line, or write a line of units below the header."""
    n_columns = len(rows[0])
    sort = rng.integers(3)
    if sort == 2:
        return [[f"({rng.choice(['EUR', 'cm', 'years', 'code'])})"] * n_columns, *rows]
    row = HEADER if sort == 0 else ["---"] * n_columns
    places = set(_some(rng, len(rows), 0.01))
    return [line for place, each in enumerate(rows) for line in ([row, each] if place in places else [each])]


def note_rows(rng: Rng, locale: Locale, rows: list[Texts]) -> list[Texts]:
    """Write a note below the records."""
    return [*rows, ["Source: register, 2024"] + [""] * (len(rows[0]) - 1)]


HEADER: Texts = []
"""Stands for the header in rows."""

ROWS: dict[str, Callable[[Rng, Locale, list[Texts]], list[Texts]]] = {
    "totals": total_rows,
    "headings": heading_rows,
    "notes": note_rows,
}
"""The traps of whole rows."""

RECORDS = "(records)"
"""Where a trap of rows is, in place of a column."""


def office_file(folder: Path, seed: int, n_traps: int = 0) -> tuple[Path, dict[str, str]]:
    """Write a file; return its path and the columns with traps, each with the name of the trap."""
    rng = np.random.default_rng([32, seed])
    locale, n = LOCALES[seed % len(LOCALES)], int(rng.integers(*N_RECORDS))
    order = rng.permutation(list(TRAPS))[: rng.integers(1, n_traps + 1) if n_traps else 0]
    held = {column: str(name) for name in order for column in [TRAPS[str(name)][0]]}
    others = rng.permutation([name for name in CLEAN if name not in held])[: rng.integers(3, 8)]
    empty = [""] * n
    columns = {
        str(name): CLEAN[name](rng, n, locale) if name in CLEAN else empty for name in map(str, [*held, *others])
    }
    for column, name in held.items():
        columns[column] = TRAPS[name][1](rng, locale, columns[column])
    body = list(map(list, zip(*columns.values(), strict=True)))
    if n_traps and rng.random() < 0.3:
        held[RECORDS] = str(rng.choice(list(ROWS)))
        body = [row or list(columns) for row in ROWS[held[RECORDS]](rng, locale, body)]
    rows = [list(columns), *body]
    quoted = [[f'"{text}"' if locale.delimiter in text else text for text in row] for row in rows]
    path = folder / f"{seed:04d}-{locale.name}.csv"
    path.write_text("".join(locale.delimiter.join(row) + "\n" for row in quoted), encoding="utf-8")
    return path, held


def named(found: Any) -> set[str]:
    """Return the columns that a question or a note of an inspection names."""
    of_records = {RECORDS for finding in found.findings if finding.name in OF_RECORDS and finding.question}
    told = " ".join(finding.what for finding in found.findings)
    also = {column.facts.name for column in found.columns if repr(column.facts.name) in told}
    return {finding.column for finding in found.findings} | of_records | also


def n_questions(found: Any) -> int:
    """Return the number of questions of an inspection: doubts of one sort are one question."""
    return len({finding.name for finding in found.findings if finding.question})


def silent(folder: Path, seeds: range, n_traps: int) -> list[tuple[int, str, str]]:
    """Return the traps that nothing names: seed of the file, column and trap."""
    import shoal

    found = []
    for seed in seeds:
        path, held = office_file(folder, seed, n_traps)
        told: set[str] = set()
        for reading in ({}, {"decimal": LOCALES[seed % len(LOCALES)].decimal}):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    told |= named(shoal.inspect(path, **reading))
                break
            except shoal.ShoalError as refusal:  # of two decimal marks, which names columns and the setting
                told |= {column for column in held if repr(column) in str(refusal)}
        found += [(seed, column, name) for column, name in held.items() if column not in told]
    return found


def main() -> int:
    """Inspect files with traps; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        left = silent(Path(folder), range(given.first, given.first + given.files), 3)
    for seed, column, name in left:
        print(f"silent: {name} in column {column} of file {seed}")
    print(f"{given.files} files with traps, {len(left)} of them silent: {dict(Counter(name for *_, name in left))}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
