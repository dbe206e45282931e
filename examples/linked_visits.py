"""A hospital publishes its visits, and a patient stays recognisable as one: patients are linked, k counts patients.

Run it anywhere; it writes visits.csv, the release and its report into the current folder.
"""

import warnings
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa

import shoal
from shoal.sources import read, write

QUASI = ["admitted", "born", "zip", "days"]


def visits(n_patients=600, seed=7):
    """Invent visits of patients who come once to five times; a few come much more often."""
    rng = np.random.default_rng(seed)
    n_visits = rng.integers(1, 6, n_patients)
    n_visits[:6] = [9, 12, 14, 17, 23, 31]
    patient = np.repeat(np.arange(n_patients), n_visits)
    born = np.datetime64("1930-01-01") + rng.integers(0, 30_000, n_patients)
    admitted = np.concatenate([np.sort(rng.choice(365, n, replace=False)) for n in n_visits])
    return pa.table(
        {
            "patient": [f"H-{number:06}" for number in rng.permutation(10**6)[:n_patients][patient]],
            "admitted": np.datetime64("2030-01-01") + admitted,
            "born": born[patient],
            "zip": rng.choice(["4051", "4052", "4056", "4102"], n_patients)[patient],
            "days": rng.geometric(0.2, len(patient)),
            "diagnosis": rng.choice(["fracture", "infection", "birth", "other"], len(patient)),
        }
    )


def main():
    table = visits()
    write(table, "visits.csv", force=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ShoalWarning)  # they are printed below
        release = shoal.anonymize(
            "visits.csv",
            k=5,
            quasi_identifiers=QUASI,
            confidential=["diagnosis"],
            models=[shoal.LDiversity("diagnosis", l=2)],
            subject="patient",
            keep_link="subject",  # a new random number for each patient
            link_order=["admitted"],
            rare_patterns="unlink",  # who came 31 times is not recognisable by that
            columns={"days": {"round": 0}, "zip": {"kind": "nominal"}},
            seed=20310507,
        )
        release.write("release.csv", report="report.html", force=True)
    linking = release.linking
    print(
        f"{linking.n_linked:,} of {linking.n_persons:,} patients stay linked, {linking.n_cut} with their first visits"
    )
    print(f"{linking.n_unlinked_records} of {linking.n_records:,} visits are published without the link")
    print(f"{release.loss.il:.1%} lost, {release.measures['linking']['il_without_link']:.1%} without the link")
    for text in release.warnings:
        print("Warning:", text)

    # Anybody who has only the file can recount it: with shoal, or by hand.
    verdict = shoal.audit("release.csv", quasi_identifiers=QUASI, k=5, subject="patient", keep_link="subject")
    verdict.require()
    histories = defaultdict(list)
    for row in read("release.csv").arrow.to_pylist():
        if row["patient"] is not None:
            histories[row["patient"]].append(tuple(row[name] for name in QUASI))
    alike = Counter(tuple(sorted(history)) for history in histories.values())
    print(f"every history is that of at least {verdict.linked.smallest} patients; by hand, {min(alike.values())}")


if __name__ == "__main__":
    main()
