"""A survey every year, of people who come, leave and change: a research file and a public file in three editions.

Each research file is made after the earlier ones, each public file of the research file of its year and after the
public files before it. Run it anywhere; it writes tables, releases and reports into the current folder.
"""

import numpy as np
import pyarrow as pa

import shoal
from shoal.sources import write

YEARS = (2030, 2031, 2032)
COLUMNS = ["born", "region", "children", "income"]


def survey(year, seed=4):
    """Invent the people who take part in a year: one in twenty leaves each year, and others come."""
    rng = np.random.default_rng(seed)
    n, later = 2_000, year - YEARS[0]
    born, region = rng.integers(1940, 2012, 2 * n), rng.integers(0, 4, 2 * n)
    children, income = rng.poisson(1.2, 2 * n), rng.lognormal(8, 0.4, 2 * n)
    first_year = np.where(np.arange(2 * n) < n, 0, 1 + np.arange(2 * n) // 150 - n // 150)
    last_year = first_year + rng.geometric(0.05, 2 * n) - 1
    people = np.flatnonzero((first_year <= later) & (later <= last_year))
    return pa.table(
        {
            "person": people + 500_000,
            "born": born[people],
            "region": np.array(["north", "east", "south", "west"])[region[people]],
            "children": children[people],
            "income": (income * 1.03**later)[people].round(-1),  # everybody's, so that it is published anew
        }
    )


def main():
    research, public = [], []
    for year in YEARS:
        write(survey(year), f"survey{year}.parquet", force=True)
        earlier = {"after": research, "leavers": "state", "may_withhold": 0.05} if research else {}
        release = shoal.anonymize(
            f"survey{year}.parquet",
            k=5,
            key="person",  # the same person in all years; not published
            quasi_identifiers=COLUMNS,
            columns={"born": {"round": 0}, "children": {"round": 1}, "income": {"round": -1}},
            reserve=0.1,  # two years in which one in twenty leaves
            seed=year,
            **earlier,
        )
        release.write(f"research{year}.parquet", report=f"research{year}.html", force=True)
        research.append(f"research{year}.parquet.cells")

        # Of the file as it was published, so that it tells nothing that the research file does not tell.
        earlier = {"leavers": "state", "may_withhold": 0.05} if public else {}
        version = shoal.anonymize(
            f"research{year}.parquet",
            k=20,
            quasi_identifiers=COLUMNS,
            columns={"born": {"round": -1}, "children": {"round": 0}, "income": {"round": -2}},  # coarser
            after=[research[-1], *public],
            reserve=0.1,
            seed=year,
            **earlier,
        )
        version.write(f"public{year}.parquet", force=True)
        public.append(f"public{year}.parquet.cells")
        for name, made in (("research", release), ("public", version)):
            print(f"{year} {name}: {made.verdict.n_records:,} people, {made.loss.il:.1%} lost. {made.series.sentence}")


if __name__ == "__main__":
    main()
