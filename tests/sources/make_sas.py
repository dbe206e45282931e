"""Writes tests/sources/data/people.sas7bdat and its catalogue: `python tests/sources/make_sas.py`.

No Python package writes these formats. ReadStat does, the C library inside pyreadstat, whose functions are called here.
The files are kept, so that the tests need neither this script nor a library that exports these functions.
"""

import ctypes
from datetime import date
from pathlib import Path

from pyreadstat import _readstat_writer

from sources import PEOPLE

FOLDER = Path(__file__).parent / "data"
STRING, DOUBLE = 0, 5
WRITER = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p)
SEX = {1.0: "female", 2.0: "male"}

library = ctypes.CDLL(_readstat_writer.__file__)


def write(path, what, fill):
    """Have ReadStat write a file; `fill` declares its content, and returns what comes after the header."""
    with open(path, "wb") as file:

        @WRITER
        def take(data, length, _):
            file.write(data[:length])
            return length

        writer = ctypes.c_void_p(library.readstat_writer_init())
        library.readstat_set_data_writer(writer, take)
        library.readstat_writer_set_file_timestamp(writer, ctypes.c_long(0))
        rows = fill(writer)
        begin = getattr(library, f"readstat_begin_writing_{what}")
        check(begin(writer, None, *([ctypes.c_long(len(rows))] if what == "sas7bdat" else [])))
        for row in rows:
            check(library.readstat_begin_row(writer))
            for insert, variable, value in row:
                check(insert(writer, ctypes.c_void_p(variable), *value))
            check(library.readstat_end_row(writer))
        check(library.readstat_end_writing(writer))
        library.readstat_writer_free(writer)


def check(code):
    assert code == 0, code


def fill_people(writer):
    formats = {"born": b"DATE9", "sex": b"SEXF"}
    labels = {"age": b"Age in years", "sex": b"Sex of the person"}
    variables = {}
    for field in PEOPLE.schema:
        kind, width = (STRING, 20) if str(field.type) == "string" else (DOUBLE, 0)
        variable = library.readstat_add_variable(
            writer, field.name.encode(), ctypes.c_int(kind), ctypes.c_size_t(width)
        )
        if field.name in labels:
            library.readstat_variable_set_label(ctypes.c_void_p(variable), labels[field.name])
        if field.name in formats:
            library.readstat_variable_set_format(ctypes.c_void_p(variable), formats[field.name])
        variables[field.name] = (variable, kind)
    return [[_value(*variables[name], value) for name, value in record.items()] for record in PEOPLE.to_pylist()]


def fill_special(writer):
    """Two columns: one with .A and an ordinary missing value, one without."""
    pay = library.readstat_add_variable(writer, b"pay", ctypes.c_int(DOUBLE), ctypes.c_size_t(0))
    age = library.readstat_add_variable(writer, b"age", ctypes.c_int(DOUBLE), ctypes.c_size_t(0))
    missing = {10: (library.readstat_insert_tagged_missing_value, pay, (ctypes.c_char(b"A"),))}
    return [
        [
            missing.get(i, (library.readstat_insert_double_value, pay, (ctypes.c_double(1000.0 + i),))),
            (library.readstat_insert_double_value, age, (ctypes.c_double(20.0 + i // 4),)),
        ]
        for i in range(24)
    ]


def fill_catalogue(writer):
    labels = ctypes.c_void_p(library.readstat_add_label_set(writer, ctypes.c_int(DOUBLE), b"SEXF"))
    for value, label in SEX.items():
        library.readstat_label_double_value(labels, ctypes.c_double(value), label.encode())
    return []


def _value(variable, kind, value):
    if kind == STRING:
        return library.readstat_insert_string_value, variable, (value.encode(),)
    number = (value - date(1960, 1, 1)).days if isinstance(value, date) else value
    return library.readstat_insert_double_value, variable, (ctypes.c_double(number),)


if __name__ == "__main__":
    for name in ("writer_init", "add_variable", "add_label_set"):
        getattr(library, f"readstat_{name}").restype = ctypes.c_void_p
    FOLDER.mkdir(exist_ok=True)
    write(FOLDER / "people.sas7bdat", "sas7bdat", fill_people)
    write(FOLDER / "special.sas7bdat", "sas7bdat", fill_special)
    write(FOLDER / "people.sas7bcat", "sas7bcat", fill_catalogue)
