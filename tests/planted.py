"""Secrets planted into a table wherever a file or a frame can hold them, and the search for them in public bytes.

Nobody has the right to see them in a release: values of columns that are dropped, the one outlier and the one rare
category of a quasi-identifier, categories and values that no record has, and notes beside the table. Those of
confidential and other columns are published in the table, but nowhere beside it.
"""

import gzip
import io
import struct
import warnings
import zipfile
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import shoal

NAME, SUBJECT, RARE, HIDDEN, NOTED = "SecretPerson", "SecretSubject", "SecretTown", "SecretHidden", "SecretNote"
# Digits that no short fraction repeats, as 1 / 81 does 987654320.
PAY, WHEN, DAY = 74209583.125, "1901-03-18", -25126
ILLNESS, REMARK = "SecretIllness", "SecretRemark"

DROPPED = ["name", "who"]
QUASI = ["age", "pay", "born", "town"]
SETTINGS = {
    "quasi_identifiers": QUASI,
    "confidential": ["illness"],
    "other": ["remark"],
    "identifiers": ["name"],
    "subject": "who",
    "missing": "own-value",
    "accept": ["near-unique-text"],
}


class Secret(NamedTuple):
    """What is searched for, and whether the table itself may show it."""

    text: str
    numbers: tuple[bytes, ...] = ()
    is_published: bool = False


SECRETS = [
    *(Secret(text) for text in (NAME, SUBJECT, RARE, HIDDEN, NOTED)),
    # The last number is that of SAS, to base 16.
    Secret("74209583", (struct.pack("<d", PAY), struct.pack(">d", PAY), bytes.fromhex("4746C592F2"))),
    Secret(WHEN, (struct.pack("<d", float(DAY)),)),
    *(Secret(text, (), True) for text in (ILLNESS, REMARK)),
]


def people(rng, n):
    """Return a table with secrets in all columns."""
    pay = np.round(rng.lognormal(8, 1, n), 2)
    born = rng.integers(0, 20_000, n)
    town = rng.choice(["Reus", "Valls", "Salou", "Flix"], n).astype(object)
    at = rng.permutation(n)
    illness = rng.choice(["flu", "cold", "gout"], n).astype(object)
    pay[at[0]], born[at[1]], town[at[2]], illness[at[3]] = PAY, DAY, RARE, ILLNESS
    return pa.table(
        {
            "name": [f"{NAME} {i}" for i in range(n)],
            "who": [f"{SUBJECT} {i}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "pay": pay,
            "born": pa.array(born.astype(np.int32)).cast(pa.date32()),
            "town": town.tolist(),
            "illness": illness.tolist(),
            "remark": [f"{REMARK} {i // 2}" for i in range(n)],
        }
    )


def with_hidden(table):
    """Return an Arrow table with secrets that none of its records has: categories, values behind gaps, notes."""
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    for name in ("town", "illness", "remark"):
        texts = columns[name].dictionary_encode()
        listed = pa.concat_arrays([texts.dictionary, pa.array([f"{HIDDEN} {name}"])])
        columns[name] = pa.DictionaryArray.from_arrays(texts.indices, listed)
    columns["gap"] = behind_gaps(table.num_rows)
    fields = [pa.field(name, values.type, metadata={"by": NOTED}) for name, values in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields, metadata={"author": NOTED}))


def behind_gaps(n):
    """Return texts of which every other one is missing, but still in the memory of the array."""
    _, *texts = pa.array([HIDDEN if i % 2 else "seen" for i in range(n)]).buffers()
    gaps = pa.array([None if i % 2 else 0 for i in range(n)]).buffers()[0]
    return pa.StringArray.from_buffers(n, *texts, gaps)


def released(source, **settings):
    """Make a release of people, their columns in their roles."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return shoal.anonymize(source, **{"k": 4, "seed": 1, **SETTINGS, **settings})


def columns_of(*others, truthful):
    """Return the settings of columns of which no cell shows an outlier, and roles that have other columns too."""
    town = {"aggregate": "withhold"} if not truthful else {"hierarchy": "prefix:2"}
    return {"columns": {"town": town}, "other": [*SETTINGS["other"], *others], "truthful": truthful}


def exposed(files):
    """Return which secrets the bytes of public files show: name of the file and text of the secret."""
    found = []
    for name, content in files.items():
        is_table = name.startswith("release.") and not name.endswith(".json")
        searched = [content, *unpacked(name, content)]
        for secret in SECRETS:
            if secret.is_published and is_table:
                continue
            forms = [secret.text.encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be")]
            if any(form in part for part in searched for form in (*forms, *secret.numbers)):
                found.append((name, secret.text))
    return found


def unpacked(name, content):
    """Return what a file holds in packed form."""
    if name.endswith(".gz"):
        return [gzip.decompress(content)]
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return [archive.read(member) for member in archive.namelist()]
    if name.endswith(".parquet"):
        names = pq.read_schema(io.BytesIO(content)).names
        return in_memory(pq.read_table(io.BytesIO(content), read_dictionary=names))
    if name.endswith(".arrow"):
        return in_memory(pa.ipc.open_file(io.BytesIO(content)).read_all())
    return []


def in_memory(table):
    """Return all memory of a table, also that which no record uses."""
    return [buffer.to_pybytes() for column in table.columns for chunk in column.chunks for buffer in buffers_of(chunk)]


def buffers_of(array):
    own = [buffer for buffer in array.buffers() if buffer is not None]
    return own + (buffers_of(array.dictionary) if pa.types.is_dictionary(array.type) else [])
