"""Make the invented samples in src/shoal/data: people, and office.csv as an office would export it, with its traps.

``python tools/samples.py`` writes the files anew, always the same. Nobody in them exists.
"""

from datetime import date, timedelta
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[1] / "src" / "shoal" / "data"
N_RECORDS, N_PEOPLE = 600, 1000


def grouped(value: float) -> str:
    """Write an amount as in 2.345,50."""
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def office() -> None:
    """Write office.csv."""
    rng = np.random.default_rng(1980)
    age = np.clip(rng.normal(47, 16, N_RECORDS), 18, 92)
    school = np.clip(np.rint(rng.normal(1.2, 0.7, N_RECORDS) - (age > 65) * 0.3), 0, 2).astype(int)
    hours = np.where(age > 66, rng.integers(0, 12, N_RECORDS), rng.choice([0, 20, 30, 38, 40, 42, 45], N_RECORDS))
    income = np.exp(7.1 + 0.25 * school + 0.012 * hours + 0.004 * age + rng.normal(0, 0.35, N_RECORDS))
    spelled = rng.choice(
        ["Harbour", "Old Town", "Hill", "Mill", "hill", "Mill "], N_RECORDS, p=[0.3, 0.25, 0.2, 0.2, 0.03, 0.02]
    )
    lines = ["person_id;born;sex;district;school;household_size;hours;income;pweight;diagnosis"]
    for i in range(N_RECORDS):
        born = date(2024, 6, 30) - timedelta(days=int(365.25 * age[i]) + int(rng.integers(365)))
        fields = [
            str(10_000 + i),
            "NA" if rng.random() < 0.03 else born.strftime("%d.%m.%Y"),
            str(rng.integers(1, 3)),
            spelled[i],
            ["lower", "middle", "higher"][school[i]],
            str(min(1 + rng.poisson(1.3), 7)),
            "-9" if rng.random() < 0.04 else str(hours[i]),
            grouped(income[i]),
            f"{rng.uniform(0.4, 3.2):.3f}".replace(".", ","),
            rng.choice(["none", "back pain", "diabetes", "asthma", "depression"], p=[0.55, 0.2, 0.1, 0.08, 0.07]),
        ]
        lines.append(";".join(fields))
    _write("office", lines)


_GIVEN = [
    "Ada",
    "Ben",
    "Cleo",
    "Dora",
    "Emil",
    "Finn",
    "Greta",
    "Hugo",
    "Irma",
    "Jonas",
    "Karla",
    "Luca",
    "Mia",
    "Nils",
    "Olga",
    "Paul",
    "Rosa",
    "Sven",
    "Tara",
    "Willi",
]
_FAMILY = [
    "Abel",
    "Bauer",
    "Conti",
    "Dahl",
    "Ebner",
    "Fabre",
    "Gruber",
    "Holm",
    "Ivers",
    "Jung",
    "Keller",
    "Lund",
    "Moser",
    "Novak",
    "Orsini",
    "Pohl",
    "Roth",
    "Sato",
]


def people() -> None:
    """Write people.csv: no traps but postcodes that read like amounts."""
    rng = np.random.default_rng(2026)
    age = np.clip(rng.gamma(7, 6.6, N_PEOPLE), 18, 95).astype(int)
    income = np.rint(np.exp(7.4 + 0.006 * age - 0.012 * np.maximum(age - 60, 0) + rng.normal(0, 0.4, N_PEOPLE)))
    names = [f"{given} {middle}. {family}" for given in _GIVEN for middle in "ABCDE" for family in _FAMILY]
    rng.shuffle(names)
    lines = ["name,age,sex,zip,income,diagnosis"]
    for i in range(N_PEOPLE):
        fields = [
            names[i],
            str(age[i]),
            str(rng.choice(["f", "m"])),
            str(10115 + 100 * rng.integers(0, 8) + rng.integers(0, 3)),
            str(int(income[i])),
            str(rng.choice(["none", "back pain", "diabetes", "asthma", "depression"], p=[0.5, 0.2, 0.12, 0.1, 0.08])),
        ]
        lines.append(",".join(fields))
    _write("people", lines)


def _write(name: str, lines: list[str]) -> None:
    (DATA / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    office()
    people()
