"""Containment: truthful releases read as anybody reads them, person by person and record by record.

Each round draws a table, settings and two releases, and reads the texts of the written files. Every record must hold
its own person, every person must be held by k records, and the attacks must find exactly what this reading gives back:
who is linked, and whose confidential value two releases tell together.
"""

import csv
import re
from collections import Counter

import numpy as np
import pyarrow as pa

import shoal
from shoal.auditing.attacks import attack

QUASI = ["age", "pay", "born", "status", "zip"]
ROLES = {"quasi_identifiers": QUASI, "confidential": ["disease"]}
_PERIOD = re.compile(r"(\d{4})(?:-(\d\d)|-Q(\d)|(s)|)")


def draw_table(rng):
    """Draw people, some of whose values are missing, equal or far away."""
    n = int(rng.integers(20, 120))
    age = np.where(rng.random(n) < 0.02, 1_000_000, rng.integers(0, 99, n))
    columns = {
        "age": age.astype(int).tolist(),
        "pay": np.round(rng.lognormal(8, rng.choice([0.1, 1, 3]), n), int(rng.integers(0, 4))).tolist(),
        "born": pa.array(rng.integers(-30_000, 20_000, n), pa.int32()).cast(pa.date32()).to_pylist(),
        "status": rng.choice(["married", "single", "widowed", "divorced"], n, p=[0.5, 0.3, 0.15, 0.05]).tolist(),
        "zip": [str(code) for code in rng.choice([43001, 43002, 50001, 50117], n)],
    }
    gaps = float(rng.choice([0, 0.1]))
    table = {name: [None if rng.random() < gaps else v for v in values] for name, values in columns.items()}
    types = {"age": pa.int64(), "pay": pa.float64(), "born": pa.date32(), "status": pa.string(), "zip": pa.string()}
    disease = [f"d{i}" for i in rng.integers(0, max(2, n // 3), n)]
    return pa.table({**{name: pa.array(table[name], types[name]) for name in QUASI}, "disease": disease})


def draw_settings(rng, hierarchy):
    columns = {"zip": {"hierarchy": hierarchy}}
    if rng.integers(2):
        columns["born"] = {"precision": str(rng.choice(["month", "quarter", "year", "decade"]))}
    method = str(rng.choice(["auto", "mdav"]))
    settings = {"k": int(rng.integers(2, 7)), "method": method, "seed": int(rng.integers(1000))}
    return {**settings, "columns": columns, "accept": ["missing-code", "odd-records"]}


def holds(name, text, value):
    """Return whether a published text stands for a value of a person."""
    if text == "" or value is None:
        return value is None and (text == "" or text.endswith((" or missing", ", missing}")))
    text = text.removesuffix(" or missing")
    if name == "zip":
        return value.startswith(text.rstrip("*"))
    if name == "status":
        return value in text[1:-1].split(", ")
    if name == "born":
        first, last = (_months(part) for part in (text.split("/")[0], text.split("/")[-1]))
        return first[0] <= value.year * 12 + value.month - 1 <= last[1]
    low, high = map(float, text[1:-1].split(", "))
    return low <= value <= high


def _months(text):
    """Return the first and the last month of a period, counted from the year 0."""
    year, month, quarter, decade = _PERIOD.fullmatch(text).groups()
    first = 12 * int(year) + (int(month) - 1 if month else 3 * int(quarter) - 3 if quarter else 0)
    return first, first + (1 if month else 3 if quarter else 120 if decade else 12) - 1


def rows_holding(people, path):
    """Return the numbers of the records of a file that hold each person, and the diseases of the records."""
    with open(path, newline="", encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    rows = [
        {i for i, record in enumerate(records) if all(holds(name, record[name], person[name]) for name in QUASI)}
        for person in people
    ]
    return rows, [record["disease"] for record in records]


def round_of(rng, folder):
    """Attack two releases of one table, and read them; return the numbers of releases and people."""
    table, paths, ks = draw_table(rng), [folder / "one.csv", folder / "two.csv"], []
    hierarchy = f"prefix:{rng.integers(1, 4)}"
    people, orders = table.to_pylist(), [str(rng.choice(["keep", "shuffle"])) for _ in paths]
    for path, order in zip(paths, orders, strict=True):
        settings = draw_settings(rng, hierarchy)
        release = shoal.anonymize(table, **ROLES, truthful=True, missing="own-value", **settings)
        release.write(path, order=order)
        ks.append(settings["k"])
    found = {one.name: one.after for one in attack(paths[0], table, **ROLES, second=paths[1])}
    read = [rows_holding(people, path) for path in paths]
    for (rows, _), k, order in zip(read, ks, orders, strict=True):
        assert min(map(len, rows)) >= k, "a person is held by fewer than k records"
        assert order == "shuffle" or all(i in held for i, held in enumerate(rows)), "a record does not hold its person"
    told = [[{diseases[row] for row in held} for held in rows] for rows, diseases in read]
    linked = np.mean([1 / len(held) for held in read[0][0]])
    both = np.mean([a & b == {own} for a, b, own in zip(*told, table["disease"].to_pylist(), strict=True)])
    assert np.isclose(found["nearest"], linked), ("nearest", found["nearest"], linked)
    assert np.isclose(found["intersection"], both), ("intersection", found["intersection"], both)
    return Counter(releases=2, people=len(people))
