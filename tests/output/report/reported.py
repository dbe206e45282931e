"""Releases to report on: one with everything in it, and one whose column names mean harm."""

import warnings
from functools import cache
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

import shoal

K = 5
SECRET = "SENTINEL"
SECRET_NUMBER = 987654.25
HOSTILE_NAMES = [
    "</script><script>document.title='owned'</script>",
    "</title></style><img src=x onerror=\"document.title='owned'\">",
    "\"><svg/onload='document.title=1'>",
    "{{ 7 * 7 }} {% for %} ${7}",
    "]]> <!-- comment",
    "שם העמודה",
    "العمر الحالي",
    "👩‍👩‍👧 family 🐟",
    "a name \u202eturned around",
    "tab\tline\nescape\x1b[31m",
    "x" * 600,
    "=cmd|' /C calc'!A0",
]
RISK = {
    "linkage": {"dld": 0.031, "dld_within_2": 0.05, "linked": 0.17, "within": {"2": 0.3}, "median_rank": 17.0},
    "classes": {
        "prosecutor_max": 0.2,
        "journalist_max": 0.2,
        "marketer": 0.19,
        "threshold": 0.1,
        "population": "sample",
    },
    "uniqueness": {"sample": 0.83, "population": None},
    "intervals": {"age": {"by_rank": 0.8, "by_sd": 0.5}},
    "matching": None,
    "new": {"</script>": 0.5},
}


def people(n=300):
    """Return a table of every kind of column, with values that no report may show."""
    rng = np.random.default_rng(3)
    age = rng.integers(18, 90, n)
    pay = np.round(np.exp(rng.normal(8, 1, n)) + 1e-7 * rng.random(n), 9)
    pay[17] = SECRET_NUMBER
    dose = rng.normal(100, 15, n)
    dose[4] = SECRET_NUMBER + 1
    town = rng.choice(["Reus", "Valls", "Salou", "Flix"], n, p=[0.5, 0.3, 0.15, 0.05]).astype(object)
    town[:3] = f"{SECRET} village"
    town[20:40] = None
    level = rng.choice(["low", "middle", "high"], n)
    disease = rng.choice(["flu", "cold", "gout"], n).astype(object)
    disease[9] = f"{SECRET} disease"
    born = pa.array((365.25 * (50 - age + rng.random(n))).astype("int32"), pa.int32()).cast(pa.date32())
    return pa.table(
        {
            "name": [f"{SECRET} person {i}" for i in range(n)],
            "age": age,
            "pay": pay,
            "town": pa.array(town.tolist(), pa.string()),
            "level": level,
            "born": born,
            "disease": disease.tolist(),
            "dose": dose,
            "note": [f"{SECRET} note {i}" for i in range(n)],
        }
    )


def quietly(table, **settings):
    """Return a release with a seed that no public report may show."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ShoalWarning)
        return shoal.anonymize(table, seed=987654321, **settings)


@cache
def release():
    """Return a release of every kind of column."""
    return quietly(
        people(),
        k=K,
        identifiers=["name"],
        quasi_identifiers=["age", "pay", "town", "level", "born"],
        confidential=["disease", "dose"],
        other=["note"],
        accept=["published-identifier"],  # the notes, which no report may show
        missing="own-value",
        columns={"level": {"categories": ["low", "middle", "high"]}, "age": {"round": 0}},
    )


@cache
def hostile():
    """Return a release of 60 columns, some of whose names mean harm."""
    rng = np.random.default_rng(1)
    names = [*HOSTILE_NAMES, *(f"column_{i}" for i in range(60 - len(HOSTILE_NAMES)))]
    words = np.array(["<b>one</b>", "two & 'two'", "a very long category name that goes on and on", "四"])
    base = rng.normal(size=(200, 5))
    columns = {
        name: words[rng.integers(0, 4, 200)] if i % 4 == 3 else base[:, i % 5] + 0.2 * rng.normal(size=200)
        for i, name in enumerate(names)
    }
    return quietly(pa.table(columns), k=K, quasi_identifiers=names[:40], confidential=names[40:], method="mdav")


def changed(release, **fields):
    """Return what a report needs of a release, some of it replaced."""
    names = ("job", "schema", "original", "columns", "plain_columns", "verdict", "measures", "warnings", "codebook")
    names = (*names, "records", "linking", "receipts", "series")
    fields.setdefault("plain_columns", fields.get("columns", release.plain_columns))
    return SimpleNamespace(**{name: fields[name] if name in fields else getattr(release, name) for name in names})


def at_risk(release):
    """Return a release whose risk has all that a report knows to tell, and something that it does not."""
    return changed(release, measures={**release.measures, "risk": RISK})
