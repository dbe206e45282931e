"""Tables whose cells do not depend on the order of the records, and the bytes of all that is public in a release.

Each stratum has k records, so that it is a cell. Every kind of column is there, also as categories that are listed in
the order of the people, as pandas, polars and Arrow list them.
"""

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa

import shoal

K = 5
ORDER = ["low", "mid", "high"]
QUASI = ["age", "height", "children", "born", "city", "grade"]
CONFIDENTIAL = ["salary", "income", "illness", "pain"]
SETTINGS = {
    "k": K,
    "seed": 1,
    "by": ["town"],
    "accept": ["near-unique-text", "published-identifier", "numbers-with-unit"],
}


def people(n=200, seed=0):
    """Return people with a salary of their own, in a random order that must not be published."""
    rng = np.random.default_rng(seed)
    table = pa.table(
        {
            "town": np.repeat([f"town {i:03}" for i in range(n // K)], K),
            "age": rng.uniform(18, 90, n),
            "height": np.round(rng.normal(170, 9, n), 1) + 1e-7 * rng.random(n),
            "children": rng.integers(0, 9, n),
            "born": pa.array(rng.integers(0, 20_000, n).astype(np.int32)).cast(pa.date32()),
            "city": rng.choice(["Turin", "Bari", "Como", "Pisa"], n),
            "grade": rng.choice(ORDER, n),
            "salary": [f"{salary} EUR" for salary in rng.permutation(10_000 + 37 * np.arange(n))],
            "income": np.exp(rng.normal(10, 1, n)),
            "illness": rng.choice(["flu", "cold", "none", "gout"], n),
            "pain": rng.choice(ORDER, n),
            "note": [f"note {i}" for i in rng.permutation(n)],
            "weight": rng.uniform(0.5, 3, n),
        }
    )
    return permuted(table, seed)


def permuted(table, seed):
    """Return the records in another order."""
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))


def with_categories(table):
    """Return texts as categories that are listed by first occurrence; grades and pain in their own order."""
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    for name in ("city", "salary", "illness", "note"):
        columns[name] = columns[name].dictionary_encode()
    for name in ("grade", "pain"):
        codes = pa.array([ORDER.index(grade) for grade in columns[name].to_pylist()], pa.int8())
        columns[name] = pa.DictionaryArray.from_arrays(codes, ["none", *ORDER][1:], ordered=True)
    return pa.table(columns)


def with_nested(table):
    """Return a table with categories, also inside lists, structs and maps."""
    notes, ends = table["note"].combine_chunks().dictionary_encode(), list(range(table.num_rows + 1))
    incomes = table["income"].combine_chunks().dictionary_encode()
    nested = {
        "list": pa.ListArray.from_arrays(ends, notes),
        "struct": pa.StructArray.from_arrays([notes, incomes], ["note", "income"]),
        "map": pa.MapArray.from_arrays(ends, ["key"] * table.num_rows, notes),
        "number": table["children"].combine_chunks().dictionary_encode(),
    }
    listed = with_categories(table)
    return pa.table({**{name: listed[name] for name in listed.column_names}, **nested})


def released(source, names, **settings):
    """Make a release in which every column has its role."""
    given = {**SETTINGS, "columns": {"grade": {"categories": ORDER}, "pain": {"categories": ORDER}}, **settings}
    taken = {*QUASI, *CONFIDENTIAL, *given["by"], given.get("weights")}
    roles = {"quasi_identifiers": QUASI, "confidential": CONFIDENTIAL, "other": [n for n in names if n not in taken]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return shoal.anonymize(source, **roles, **given)


def public_bytes(release, folder, ending, **writing):
    """Write a release with its public report and return the bytes of everything public."""
    folder.mkdir()
    report = {"report": folder / "r.html", "json": folder / "r.json", "form": "public"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release.write(folder / f"release{ending}", **report, **writing)
    return public_files(folder)


def public_files(folder):
    """Return the content of the files in a folder that are not internal."""
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if ".internal." not in path.name}
