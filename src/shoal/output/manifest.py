"""Manifest: the files written beside a release, one for internal use and one for the public.

The internal manifest reproduces the release. The public one may be published with the data: it contains neither the
seed, which would reproduce the noise of random aggregation, nor a hash of the input, which would confirm a guess of the
last unknown record.
"""

import base64
import json
import os
import platform
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.distribution import versions
from shoal.errors import FileError, ParameterError
from shoal.job import Job
from shoal.measures.recount import Verdict
from shoal.series.part_of_series import PartOfSeries
from shoal.sources import Table
from shoal.sources.clean import as_permutation
from shoal.spelling import setting
from shoal.typing import Labels


def internal_manifest(
    job: Job,
    input_sha256: str,
    output_sha256: str,
    labels: Labels | None,
    rows: NDArray[np.int64] | None,
    verdict: Verdict,
    measures: dict[str, Any],
    n_left_out: int = 0,
    taken: NDArray[np.int64] | None = None,
    series: PartOfSeries | None = None,
) -> dict[str, Any]:
    """Return everything needed to reproduce and to justify a release.

    `rows` holds the record of each row of the table, None if they are in the same order; `taken` the input record of
    each record, where some were withheld. A release made in blocks has no numbered records, so that labels and rows are
    left out.
    """
    by_number = labels is not None
    return {
        **_common(output_sha256, verdict, n_left_out),
        "for": "internal use: do not publish",
        "job": job.to_dict(),
        "input_sha256": input_sha256,
        "labels": None if labels is None else _packed(labels),
        "order": "keep" if rows is None and by_number else "shuffle",
        "rows": None if rows is None else _packed(rows),
        **({} if taken is None else {"taken": _packed(taken)}),
        **({} if series is None else {"series": series.to_dict()}),
        **measures,
    }


def public_manifest(
    job: Job, output_sha256: str, verdict: Verdict, codebook: Sequence[Mapping[str, Any]], n_left_out: int = 0
) -> dict[str, Any]:
    """Return the manifest that may be published with the data."""
    settings = job.for_public().to_dict(with_seed=False)
    kept = {key: value for key, value in settings.items() if key not in ("input", "output")}
    return {**_common(output_sha256, verdict, n_left_out), "job": kept, "codebook": list(codebook)}


def _common(output_sha256: str, verdict: Verdict, n_left_out: int) -> dict[str, Any]:
    return {
        "versions": versions("numpy", "pyarrow") | {"python": platform.python_version()},
        "output_sha256": output_sha256,
        "verdict": verdict.to_dict(),
        **({"n_left_out": n_left_out} if n_left_out else {}),
    }


def _packed(numbers: NDArray[np.int64]) -> dict[str, str]:
    """Return numbers as text: little-endian 32-bit integers, compressed by zlib, in base 64."""
    packed = zlib.compress(numbers.astype("<i4").tobytes(), 1)
    return {"encoding": "base64, zlib, int32 little-endian", "data": base64.b64encode(packed).decode()}


def unpacked(packed: dict[str, str]) -> NDArray[np.int64]:
    """Return the numbers stored in a manifest: labels, or rows.

    Examples
    --------
    >>> unpacked(_packed(np.array([0, 1, 0])))
    array([0, 1, 0])
    """
    return np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), dtype="<i4").astype(np.int64)


class Internal(NamedTuple):
    """The mapping of records and the job stored in an internal manifest."""

    labels: Labels
    rows: NDArray[np.int64] | None
    """The record of each row; None if they are in the order of the input."""
    rho: float
    job: Job
    taken: NDArray[np.int64] | None = None
    """The input record of each record, if some were withheld."""

    def of_input(self, table: Table) -> Table:
        """Return the records of the input that were released."""
        if self.taken is None:
            return table
        if len(self.taken) and self.taken.max() >= table.n_records:
            raise ParameterError(
                f"The manifest describes a release of a table with more than the {table.n_records:,} records of the "
                "original. Give the originals of this release."
            )
        return table.of_rows(self.taken)

    def rows_of(self, records: Labels) -> Labels:
        """Return the row of each input record in the released table, or -1 for one that was withheld."""
        rows = np.arange(len(self.labels)) if self.rows is None else np.argsort(self.rows)
        if self.taken is None:
            return rows[records]
        at = np.searchsorted(self.taken, records)
        there = np.minimum(at, len(self.taken) - 1)
        found: Labels = np.where(self.taken[there] == records, rows[there], -1)
        return found


def read_internal(manifest: str | os.PathLike[str], *, beside: Table | None = None) -> Internal:
    """Read the internal manifest of a release; raise if it was found beside a file that it does not describe."""
    try:
        content = json.loads(Path(manifest).read_text(encoding="utf-8"))
        if content["labels"] is None:
            raise ParameterError(
                f"{os.fspath(manifest)!r} belongs to a release that was made in blocks, which does not keep the number "
                "of each record. Leave the manifest out."
            )
        labels = unpacked(content["labels"])
        job = Job.from_toml(Job.of(**content["job"]).to_toml())  # without the defaults, which nobody has set
        rows = None if content["rows"] is None else as_permutation(unpacked(content["rows"]), len(labels))
        taken = unpacked(content["taken"]) if "taken" in content else None
        is_odd = taken is not None and (len(taken) != len(labels) or (np.diff(taken, prepend=-1) <= 0).any())
        if (labels < 0).any() or is_odd:
            raise ValueError
    except OSError as error:
        raise FileError(f"The manifest {os.fspath(manifest)!r} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error):
        raise ParameterError(f"{os.fspath(manifest)!r} is not the internal manifest of a release.") from None
    if beside is not None and beside.path is not None and beside.sha256 != content.get("output_sha256"):
        raise ParameterError(
            f"The manifest {os.fspath(manifest)!r} describes another file: its output_sha256 is not the SHA-256 of "
            f"{beside.path.name!r}, which was changed, or not replaced by a run that was killed. Give the manifest of "
            f"this file with {setting('manifest')}, or make the release again."
        )
    return Internal(labels, rows, job.rho or 0.0, job, taken)


def manifest_of(
    release: Any, manifest: str | os.PathLike[str] | None, same_order: bool
) -> str | os.PathLike[str] | None:
    """Return the internal manifest that maps records to originals: the given one, or the one beside the release.

    None if there is none, or if both are in the same order; raise if both ways are given.
    """
    if manifest is not None and same_order:
        raise ParameterError(
            f"A manifest says which original each record is, and {setting('same_order', True)} that the order is that "
            "of the originals. Give one of them."
        )
    if manifest is not None or same_order or not isinstance(release, str | os.PathLike):
        return manifest
    beside = Path(f"{os.fspath(release)}.internal.json")
    return beside if beside.is_file() else None


def internal_of(
    release: Any, table: Table, manifest: str | os.PathLike[str] | None, same_order: bool
) -> Internal | None:
    """Return what the internal manifest of a release says, which was read as `table`; None as in `manifest_of`."""
    found = manifest_of(release, manifest, same_order)
    return None if found is None else read_internal(found, beside=table if manifest is None else None)


def as_text(manifest: dict[str, Any]) -> str:
    """Return a manifest as the text of its file."""
    return json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
