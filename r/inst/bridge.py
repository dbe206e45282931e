"""The Python side of the package for R: read columns from a folder, make a release, and leave it in the folder."""

import contextlib
import json
import os
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa

import shoal
from shoal.errors import fault_in_words
from shoal.files import replacing
from shoal.output.report import render
from shoal.sources import Table, ValueLabels

MILLION = 1_000_000


def main(folder: Path) -> None:
    asked = json.loads((folder / "call.json").read_text(encoding="utf-8"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", shoal.ShoalWarning)
        try:
            outcome = released(folder, asked)
        except shoal.ShoalError as error:
            kinds = [kind.__name__ for kind in type(error).__mro__ if issubclass(kind, shoal.ShoalError)]
            outcome = [error.worded("r"), *kinds[:-1]]
        except Exception as error:
            outcome = [fault_in_words(error), "FaultError"]
    write_texts(
        folder / "warnings", [str(each.message) for each in caught if issubclass(each.category, shoal.ShoalWarning)]
    )
    write_texts(folder / "outcome", outcome)


def released(folder: Path, asked: dict) -> list[str]:
    columns = {each["name"]: column(folder / str(place), each) for place, each in enumerate(asked["columns"], 1)}
    if len(columns) < len(asked["columns"]):
        raise shoal.SchemaError("Several columns have the same name. Rename them, so that each name is unique.")
    for settings in asked["settings"].get("columns", {}).values():
        # R has no scalars: a list of one is a number or a text.
        lists = {name: settings[name] for name in ("missing_codes", "categories") if name in settings}
        settings.update({name: given if isinstance(given, list) else [given] for name, given in lists.items()})
    table = Table.of(pa.table(columns), "pyarrow", labels=labels_of(asked["columns"]))
    release = shoal.anonymize(table, progress=progress, **asked["settings"])
    written = write(release, **asked["writing"])
    published = release.published
    for place, values in enumerate(published.columns, 1):
        write_column(folder / f"released-{place}", values.combine_chunks(), published.column_names[place - 1])
    verdict = release.verdict
    write_texts(folder / "names", published.column_names)
    write_texts(folder / "classes", verdict.quasi_identifiers)
    k = "NA" if verdict.withdrawn else str(release.job.k)
    return ["release", k, str(published.num_rows), repr(release), *(f"Written: {path}" for path in written)]


def write(release: shoal.Release, force: bool, **paths: str) -> list[Path]:
    """Write what is asked for; a report alone too, which `Release.write` makes only beside a table."""
    if set(paths) - {"report"}:
        return release.write(**paths, force=force)
    for path in paths.values():
        with replacing(path, force, private=True) as temporary:
            temporary.write_text(render(release), encoding="utf-8")
    return list(paths.values())


def column(path: Path, about: dict) -> pa.Array:
    missing = np.fromfile(f"{path}.missing", np.bool_)
    if about["type"] == "character":
        return pa.array(
            [None if no else text for text, no in zip(read_texts(f"{path}.values"), missing, strict=True)], pa.string()
        )
    values = np.fromfile(f"{path}.values", "<f8" if about["type"] in ("double", "date", "time") else "<i4")
    values[missing] = 0
    if about["type"] in ("factor", "ordered"):
        codes = pa.array(values - 1, mask=missing)
        return pa.DictionaryArray.from_arrays(
            codes, pa.array(about["levels"], pa.string()), ordered=about["type"] == "ordered"
        )
    if about["type"] == "date":
        return pa.array(np.floor(values).astype("<i4"), pa.int32(), mask=missing).cast(pa.date32())
    if about["type"] == "time":
        return pa.array(np.round(values * MILLION).astype("<i8"), mask=missing).cast(pa.timestamp("us", "UTC"))
    return pa.array(values.astype(bool) if about["type"] == "logical" else values, mask=missing)


def labels_of(columns: list[dict]) -> ValueLabels:
    return ValueLabels(
        variables={each["name"]: each["label"] for each in columns if each["label"]},
        values={
            each["name"]: dict(zip(each["labels"], each["texts"], strict=True)) for each in columns if each["labels"]
        },
        missing={each["name"]: [tuple(ends) for ends in each["missing"]] for each in columns if each["missing"]},
    )


def write_column(path: Path, values: pa.Array, name: str) -> None:
    kind = values.type
    missing = np.asarray(values.is_null())
    if pa.types.is_dictionary(kind):
        write_texts(f"{path}.levels", values.dictionary.cast(pa.string()).to_pylist())
        what, plain = "ordered" if kind.ordered else "factor", np.asarray(values.indices.fill_null(0)).astype("<i4") + 1
    elif pa.types.is_boolean(kind):
        what, plain = "logical", np.asarray(values.fill_null(False)).astype("<i4")
    elif pa.types.is_date(kind):
        what, plain = "date", np.asarray(values.cast(pa.date32()).cast(pa.int32()).fill_null(0)).astype("<f8")
    elif pa.types.is_timestamp(kind):
        what, plain = "time", np.asarray(values.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).fill_null(0)) / MILLION
    elif pa.types.is_integer(kind) and kind.bit_width <= 32 and kind != pa.uint32():
        what, plain = "integer", np.asarray(values.fill_null(0)).astype("<i4")
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        what, plain = "double", np.asarray(values.cast(pa.float64()).fill_null(0)).astype("<f8")
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        what, plain = "character", None
    else:
        raise shoal.SchemaError(f"Column {name!r} is published as {kind}, which a data frame cannot hold.")
    write_texts(f"{path}.type", [what])
    missing.tofile(f"{path}.missing")
    if plain is None:
        write_texts(f"{path}.values", ["" if text is None else text for text in values.to_pylist()])
    else:
        plain.tofile(f"{path}.values")


def read_texts(path: str | Path) -> list[str]:
    return Path(path).read_bytes().decode().split("\0")[:-1]


def write_texts(path: str | Path, texts: list[str]) -> None:
    Path(path).write_bytes("".join(f"{text}\0" for text in texts).encode())


def progress(done: int, total: int) -> None:
    tell(f"{done} {total}")


def tell(line: str) -> None:
    """Write a line at once, so that lines of two threads do not mix."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def heartbeat() -> None:
    """End as soon as nobody reads any more: R was interrupted, or is gone."""
    while True:
        try:
            tell("")
        except OSError:
            os._exit(1)
        time.sleep(0.2)


if __name__ == "__main__":
    work = Path(sys.argv[1])
    with open(work / "log", "w", encoding="utf-8") as log, contextlib.redirect_stderr(log):
        threading.Thread(target=heartbeat, daemon=True).start()
        main(work)
