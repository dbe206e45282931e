"""Make src/shoal/data/office.csv: six hundred invented people as an office would export them, with its usual traps.

``python tools/office_sample.py`` writes the file anew, always the same. Nobody in it exists.
"""

from datetime import date, timedelta
from pathlib import Path

import numpy as np

N_RECORDS = 600
TARGET = Path(__file__).parents[1] / "src" / "shoal" / "data" / "office.csv"


def grouped(value: float) -> str:
    """Write an amount as in 2.345,50."""
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def main() -> None:
    """Write the file."""
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
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
