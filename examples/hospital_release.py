"""A hospital publishes its stays: numbers, categories, dates, missing values, several stays per patient.

Run it anywhere; it writes stays.parquet, the release and its report into the current folder.
"""

import numpy as np
import pyarrow as pa

import shoal
from shoal.sources import write

WARDS = ["surgery", "medicine", "children", "maternity"]
LEVELS = ["none", "mild", "moderate", "severe"]


def stays(n_patients=400, seed=3):
    """Invent stays of patients who come once to four times."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), rng.integers(1, 5, n_patients))
    n = len(patient)
    born = np.datetime64("1930-01-01") + rng.integers(0, 30_000, n_patients)
    days = rng.geometric(0.2, n)
    return pa.table(
        {
            "patient": patient + 70_000,
            "born": born[patient],
            "zip": rng.choice(["4051", "4052", "4056", "4102"], n_patients)[patient],
            "ward": rng.choice(WARDS, n),
            "admitted": np.datetime64("2030-01-01") + rng.integers(0, 365, n),
            "days": days,
            "pain": pa.array(np.where(rng.random(n) < 0.06, None, rng.choice(LEVELS, n))),
            "cost": (900 * days + rng.normal(3000, 800, n)).round(2),
            "diagnosis": rng.choice(["fracture", "infection", "birth", "other"], n),
        }
    )


def main():
    write(stays(), "stays.parquet", force=True)
    release = shoal.anonymize(
        "stays.parquet",
        k=5,
        subject="patient",  # five patients, not five stays of one
        quasi_identifiers=["born", "zip", "admitted", "days", "pain", "cost"],
        by=["ward"],  # wards are compared, so cells do not mix them
        confidential=["diagnosis"],
        missing="own-value",  # a pain score that was not recorded counts as a value
        columns={"pain": {"categories": LEVELS}, "days": {"round": 0, "top": 30}, "cost": {"round": -2}},
        seed=20310506,
    )
    release.write("release.parquet", report="report.html", force=True)
    print(f"{release.verdict.n_records:,} stays, {100 * release.loss.il:.1f} % lost")

    # Anybody who has only the file can recount it.
    quasi = [*release.job.roles.quasi_identifiers, "ward"]
    verdict = shoal.audit("release.parquet", quasi_identifiers=quasi, confidential=["diagnosis"], k=5)
    verdict.require()
    print(f"{verdict.n_classes} classes of at least {verdict.smallest} stays and {release.verdict.subjects} patients")
    print("fewest different diagnoses in a class:", verdict.confidential["diagnosis"].distinct)


if __name__ == "__main__":
    main()
