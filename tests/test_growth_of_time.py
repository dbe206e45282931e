"""Work grows no faster than the number of columns and the length of a text, counted in calls and processor time."""

import ast
import cProfile
import pstats
import re
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.columns.coarse.sets import read_set
from shoal.errors import did_you_mean
from shoal.measures import numeric_utility
from shoal.methods.blocks import cut, main_direction
from shoal.sources import write
from shoal.sources.csv_dialect import check_header

PACKAGE = Path(shoal.__file__).parent
LONG = 64_000


def wide(n_columns, n_records=30):
    rng = np.random.default_rng(0)
    texts, numbers = rng.integers(0, 4, (n_columns, n_records)), rng.random((n_columns, n_records))
    values = [pa.array([f"v{code}" for code in codes]) for codes in texts[::2]] + [
        pa.array(row) for row in numbers[::2]
    ]
    return pa.table({f"c{i}": column for i, column in enumerate(values)})


def calls(n_columns, folder):
    """Return how often each function of shoal is called for a release with a report."""
    table = wide(n_columns)
    path = folder / f"{n_columns}.csv"
    write(table, path)
    with cProfile.Profile() as profile:
        release = shoal.anonymize(path, k=3, seed=1, method="mdav", quasi_identifiers=table.column_names)
        release.write(folder / f"{n_columns}.out.csv", report=folder / f"{n_columns}.html")
    return {place: entry[1] for place, entry in pstats.Stats(profile).stats.items() if str(PACKAGE) in place[0]}


@pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
def test_no_function_is_called_more_than_linearly_often_in_the_columns(tmp_path):
    few, many = calls(10, tmp_path), calls(40, tmp_path)
    worse = {place: (few[place], n) for place, n in many.items() if place in few and n > 8 * few[place] and n > 100}

    assert worse == {}


def test_a_direction_takes_cubic_time_in_the_fewer_of_records_and_dimensions(monkeypatch):
    X = np.random.default_rng(0).random((40, 1500)) * np.linspace(3, 1, 1500)
    sizes, eigh = [], np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: sizes.append(len(matrix)) or eigh(matrix))
    found = main_direction(X)
    expected = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][0]

    assert sizes == [40]
    assert abs(found @ expected) == pytest.approx(1)
    assert found[np.argmax(np.abs(found))] > 0
    monkeypatch.setattr(sys.modules[cut.__module__], "_WIDE", 30)
    cut(np.random.default_rng(0).random((300, 50)), 100)
    assert len(sizes) > 3
    assert max(sizes) <= 50


@pytest.mark.parametrize("weights", [None, [1.0, 0.5, 3.0, 1.0, 2.0, 1.0]])
def test_eigenvalues_of_more_columns_than_records_are_those_of_the_covariances(weights, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((6, 20)) + 1e6
    sizes, eigvalsh = [], np.linalg.eigvalsh
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda matrix: sizes.append(len(matrix)) or eigvalsh(matrix))
    found = numeric_utility(X, X[::-1], weights).eigenvalues_before
    expected = eigvalsh(
        np.cov(
            ((X - X.mean(0)) / np.sqrt(np.cov(X.T, aweights=weights, bias=True).diagonal())).T,
            aweights=weights,
            bias=True,
        )
    )

    assert sizes == [6, 6]
    assert found == pytest.approx(expected[::-1], abs=1e-9)


def test_only_a_few_unknown_names_are_compared_with_all_known_ones():
    names = [f"column {i}" for i in range(2000)]

    assert len(did_you_mean(*names, known=names)) < 200


def test_names_that_occur_twice_are_found_in_one_pass():
    class Name(str):
        n_compared = 0

        def __hash__(self):
            return hash(str(self))

        def __eq__(self, other):
            Name.n_compared += 1
            return str(self) == str(other)

    names = [Name(f"c{i}") for i in range(500)]
    with pytest.raises(shoal.FileError, match="column\\(s\\) 501 the name"):
        check_header([*names, Name("c0")], "people.csv", trusted=False)

    assert Name.n_compared < 5_000


def patterns():
    """Yield the regular expressions of shoal with the methods that they are used by."""
    for file in PACKAGE.rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        used = set(re.findall(r"\b(_[A-Z_]+)\.(match|fullmatch|search|sub|findall|split)\(", source))
        if used:
            module = __import__(".".join(("shoal", *file.relative_to(PACKAGE).with_suffix("").parts)), fromlist=["_"])
            for name, method in used:
                if isinstance(getattr(module, name, None), re.Pattern):
                    yield f"{file.stem}.{name}", getattr(module, name), method
        for node in ast.walk(ast.parse(source)):
            if (
                isinstance(node, ast.Call)
                and re.fullmatch(r"re\.[a-z]+", ast.unparse(node.func))
                and isinstance(node.args[0], ast.Constant)
                and node.func.attr != "compile"
            ):
                yield f"{file.stem}:{node.lineno}", re.compile(node.args[0].value), node.func.attr


def applied(pattern, method, text):
    is_bytes = isinstance(pattern.pattern, bytes)
    arguments = (text.encode(),) if is_bytes else (text,)
    started = time.process_time()
    getattr(pattern, method)(*((b"" if is_bytes else "",) if method == "sub" else ()), *arguments)
    return time.process_time() - started


BEGINNINGS = ("", "[", "{", '"', "2000-01-01", "http://", "columns.a.", "header=[")
UNITS = (
    "1",
    " ",
    "a",
    "'",
    '"',
    "[",
    "(",
    ".",
    ":",
    "/",
    "a.",
    "a, ",
    "/*",
    "<row ",
    "<x:col ",
    "order=[",
    "1.",
    "%3A",
)


@pytest.mark.parametrize(
    ("name", "pattern", "method"),
    [
        pytest.param(*found, id=f"{found[0]}.{found[2]}")
        for found in sorted(patterns(), key=lambda found: (found[0], found[2]))
    ],
)
def test_a_pattern_reads_a_long_text_once(name, pattern, method):
    # A linear search of so many letters takes a millisecond or two, a quadratic one seconds or minutes.
    first = [beginning + unit * (2_000 // len(unit)) + "\n!" for beginning in BEGINNINGS for unit in UNITS]
    slow = sorted(first, key=lambda text: applied(pattern, method, text))[-3:]

    assert max(applied(pattern, method, text.removesuffix("\n!") * 32 + "\n!") for text in slow) < 0.5


@pytest.mark.parametrize(
    "text", [" " * LONG, '"' * LONG, "a," * LONG, '"a" ' * LONG, ' "' + "a " * LONG, "1, 2 {" * LONG]
)
def test_a_set_of_any_length_is_read_once(text):
    started = time.process_time()
    with suppress(shoal.ParameterError):
        read_set(f"{{{text}}}")

    assert time.process_time() - started < 5
