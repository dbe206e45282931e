"""Child process: does what takes time, through the same functions as the command line.

It reads one line of JSON from standard input, which names a file, and appends lines of JSON to that file: stages,
parts, and in the end what was found or why it was refused. It ends when standard input does.
"""

import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TextIO

import numpy as np
import pyarrow as pa

from shoal.app.draft import Draft
from shoal.app.messages import message_of
from shoal.app.record_view import look_closer
from shoal.app.repeat import arguments_of
from shoal.app.runs import stamp_of
from shoal.auditing import audit
from shoal.columns.equivalence import class_ids, value_codes
from shoal.columns.prepare import decoded, one_missing
from shoal.comparison import Choice, compare
from shoal.errors import ShoalError, fault_in_words
from shoal.files import check_free, replacing, sha256, write_text
from shoal.files.locks import hold
from shoal.findings import QuestionError
from shoal.inspection import Inspection, inspect
from shoal.inspection.combinations import MOST, revealing
from shoal.measures.recount import Verdict
from shoal.models.serialization import as_models
from shoal.output.destination import Destination
from shoal.output.manifest import read_internal
from shoal.output.other_releases import warnings_of_others
from shoal.output.report import render
from shoal.output.report.sentences import explanation, headline, reached_in_words, what_was_done
from shoal.release import Assignment, outlook
from shoal.sources import Reading, Table, format_of, read
from shoal.sources.clean import different_names
from shoal.sources.csv_dialect import could_name
from shoal.sources.format import Format
from shoal.sources.reading import OF_ANY_SOURCE
from shoal.sources.source_stamps import Stamp
from shoal.spelling import settings_in
from shoal.system import system
from shoal.typing import Labels

Result = dict[str, Any]

_PATIENCE = 2.0  # seconds in which to remove what was begun
_BETWEEN = 0.2  # seconds between two lines of progress
_SHOWN, _AT_END = 10, 5  # records of a preview, at the beginning and at the end
_MOST_VALUES = 200  # categories of one column that are offered for its order
_COMBINED = 12  # quasi-identifiers among which combinations are sought


class JsonLines:
    """Writes lines of JSON, those of progress only a few times a second."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last = 0.0
        self._stage = ""

    def write(self, **entry: Any) -> None:
        """Write one line."""
        self._out.write(json.dumps(entry, allow_nan=False, default=str) + "\n")
        self._out.flush()

    def stage(self, name: str) -> None:
        """Begin a stage."""
        self._stage = name
        self.write(stage=name, share=None)

    def progress(self, done: int, total: int) -> None:
        """Report how far the stage is."""
        now = monotonic()
        if now >= self._last + _BETWEEN:
            self._last = now
            self.write(stage=self._stage, share=min(done / max(total, 1), 1.0))


def inspected(draft: Draft, lines: JsonLines, **_: Any) -> Result:
    """Read the file, count its columns, and look for what may be misread."""
    path, reading = _input(draft)
    kind = format_of(path)[1]
    sheets = [] if kind.sheets is None else kind.sheets(Path(path), Reading(**reading))
    lines.write(part={"sheets": sheets})
    lines.stage("the file is read and its columns are counted")
    try:
        found = inspect(path, show_values=True, progress=lines.progress, **reading)  # values stay on this machine
    except ShoalError as error:
        lines.write(part={"proposals": _proposals(error, path, kind, reading, sheets)})
        raise
    stamp = Stamp.of(Path(path))
    return {
        **found.to_dict(),
        "proposed_k": found.proposed_k,
        "stamp": list(stamp),
        "read_as": _read_as(found),
    }


def _proposals(
    error: ShoalError, path: str, kind: Format, reading: dict[str, Any], sheets: list[str]
) -> list[dict[str, Any]]:
    """Return what would settle a refusal to read the file: what its message proposes, sheets, and other names."""
    named = {name: values[0] if values else None for name, values in settings_in(error.marked) if values is not None}
    found = [
        {name: value}
        for name, value in named.items()
        if name in kind.options | OF_ANY_SOURCE and value not in (None, ["..."], False, reading.get(name))
    ]
    if "header_row" in named:
        found = [each for each in found if "header" not in each]
    found += [{"sheet": sheet} for sheet in sheets if "sheet" in named and sheet != reading.get("sheet")]
    if (
        kind.glimpse is None
        or "names" not in kind.options
        or {"names", "sheet", "header_row"} & named.keys() - {"names"}
    ):
        return found
    return [
        *found,
        *_other_names(kind, kind.glimpse(Path(path), Reading(**reading)).header, reading, "header" in named),
    ]


def _other_names(kind: Format, header: list[str], reading: dict[str, Any], may_be_record: bool) -> list[dict[str, Any]]:
    """Propose names of columns, where some in the header are alike or empty, or where it may be a record."""
    names = different_names(header)
    if reading.get("names") or sum(map(bool, header)) < len(header) / 2:
        return []
    if may_be_record and not could_name(names):
        return [{"names": [f"column_{number + 1}" for number in range(len(header))]}]
    if names == header:
        return []
    by_row = "header" not in kind.options or reading.get("header_row")
    return [{"names": names, **({"header_row": reading.get("header_row", 1)} if by_row else {"header": True})}]


_DETECTED = ("sheet", "header_row", "delimiter", "encoding", "decimal")


def _read_as(found: Inspection) -> dict[str, Any]:
    """Return how a file was read, also what was detected."""
    return {"kind": found.kind, "n_columns": len(found.columns)} | {
        name: value for name in _DETECTED if (value := getattr(found.receipt.found, name)) is not None
    }


def checked(draft: Draft, lines: JsonLines, **_: Any) -> Result:
    """Count what is unique now, and find out whether the job can be carried out, before anything heavy runs."""
    table = _table(draft, lines)
    lines.stage("records that are alike are counted")
    names = [name for name in (*draft.roles.quasi_identifiers, *draft.roles.by) if name in table.names]
    found: Result = {"n_records": table.n_records, "n_columns": len(table.names), **_unique(table, names, draft.k)}
    try:
        job = draft.job()
        schema, n_groups, linking = outlook(job, table)[:3]
    except ShoalError as error:
        about = [finding.column for finding in error.findings] if isinstance(error, QuestionError) else []
        return {**found, "impossible": message_of(error), "columns": about}
    verdict = Verdict(job.k, table.n_records, 0, job.k, {}, 0, tuple(schema.quasi_names))
    n_classes = table.n_records // job.k
    return {
        **found,
        "impossible": None,
        "n_strata": n_groups,
        "steps": what_was_done(job, schema, replace(verdict, n_classes=n_classes), table.n_left_out, linking),
    }


def _unique(table: Table, names: list[str], k: int | None) -> Result:
    """Count the records that the columns make unique, and the few columns that do so."""
    if not names:
        return {"unique": None}
    arrow = table.load(names)
    codes = {name: value_codes(one_missing(decoded(arrow[name]))).astype(np.int32) for name in names}
    sizes = np.bincount(class_ids(pa.table(dict(codes.items()))))
    alone = {name: int(np.count_nonzero(np.bincount(column) == 1)) for name, column in codes.items()}
    telling = [name for name in codes if alone[name] < MOST * table.n_records]  # others identify by themselves
    most = sorted(telling, key=lambda name: -int(codes[name].max(initial=0)))[:_COMBINED]
    combinations, _ = revealing({name: codes[name] for name in names if name in most})
    return {
        "unique": int(np.count_nonzero(sizes == 1)),
        "below_k": None if k is None else int(sizes[sizes < k].sum()),
        "alone": [{"column": name, "unique": n} for name, n in sorted(alone.items(), key=lambda one: -one[1])[:8]],
        "together": [{"columns": list(each.columns), "share": each.unique} for each in combinations[:6]],
    }


def compared(draft: Draft, lines: JsonLines, *, k: list[int], methods: Any, **_: Any) -> Result:
    """Try several k and methods."""
    job = draft.job()
    path, _reading = _input(draft)
    lines.stage("a release is made in memory for each k and method")
    arguments = {name: value for name, value in arguments_of(job).items() if name not in ("rho", *job.options)}

    def tell(choice: Choice) -> None:
        lines.write(part=vars(choice))

    found = compare(path, k=k, methods=methods, progress=lines.progress, on_choice=tell, **arguments)
    return found.to_dict()


def released(draft: Draft, lines: JsonLines, *, force: bool = False, job_file: str, public: str, **_: Any) -> Result:
    """Make the release and write its files; then the public report."""
    job = draft.job()
    assert job.input is not None
    check_free([public], force, [job.input.path, *job.files])
    assignment = Assignment.of(job, force=force, save_job=job_file)
    destination = assignment.destination
    assert destination is not None
    assert isinstance(destination.table, Path)
    lines.write(writes={str(path): stamp_of(path) for path in (*destination.paths, Path(public))})
    lines.stage("the file is read and its records are grouped")
    release = assignment.carry_out(progress=lines.progress)
    lines.stage("the public report is written")
    page = {**destination.asked.title_page(), "file": destination.title, "sha256": sha256(destination.table)}
    with replacing(public, force) as temporary:
        text = render(release, "html", "public", **page)
        write_text(temporary, text)
    return {
        **_told(release.verdict),
        "warnings": [*release.warnings, *warnings_of_others(release, destination)],
        "k": job.k,
        "method": job.method,
        "loss": release.loss.il,
        "linked": release.risk.linkage.dld,
        "columns": {name: found.il for name, found in release.loss.columns.items()},
        "files": _files(destination, public),
        "closer": look_closer(release),
    }


def _files(destination: Destination, public: str) -> list[Result]:
    """Name the files that were written, with their hashes; those for the public first."""
    assert isinstance(destination.table, Path)
    named = {
        "release": destination.table,
        "public report": Path(public),
        "public manifest": destination.public_manifest,
        "internal report": destination.reports.get("html"),
        "report as JSON": destination.reports.get("json"),
        "internal manifest": destination.internal_manifest,
        "cells, for later releases of the same people": destination.cells,
        "job": destination.job,
    }
    private = set(destination.private)
    return [
        {
            "what": what,
            "path": str(path),
            "private": path in private,
            "size": path.stat().st_size,
            "sha256": sha256(path),
        }
        for what, path in named.items()
        if path is not None
    ]


def previewed(draft: Draft, lines: JsonLines, *, column: str | None = None, **_: Any) -> Result:
    """Return the file as it is and its records, or the values of one column: after somebody asked to see values."""
    if column is not None:
        table = _table(draft, lines)
        values = table.load([column])[column].unique().drop_null()
        labels = _labels(table).get(column, {})
        return {"values": [_labelled(value, labels) for value in islice(values.to_pylist(), _MOST_VALUES)]}
    path, reading = _input(draft)
    glimpse = format_of(path)[1].glimpse
    if glimpse is not None:
        lines.write(part={"glimpse": vars(glimpse(Path(path), Reading(**reading)))})
    table = _table(draft, lines)
    names, number_of = list(table.names[:40]), table.receipt.number_of
    places = [*range(min(_SHOWN, table.n_records)), *range(max(_SHOWN, table.n_records - _AT_END), table.n_records)]
    records = _texts(table.load(names).take(pa.array(places, pa.int64())), _labels(table))
    return {"names": names, "numbers": [number_of(place) for place in places], "records": records}


def _labels(table: Table) -> Mapping[str, Mapping[Any, str]]:
    """Return the labels of the values of each column, where the file has some."""
    return {} if table.labels is None else table.labels.values


def _texts(records: pa.Table, labels: Mapping[str, Mapping[Any, str]]) -> list[list[str | None]]:
    return [
        [None if value is None else _labelled(value, labels.get(name, {})) for name, value in row.items()]
        for row in records.to_pylist()
    ]


def _labelled(value: object, labels: Mapping[Any, str]) -> str:
    return f"{_text(value)} = {labels[value]}" if value in labels else _text(value)


def _text(value: object) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def listed(draft: Draft, lines: JsonLines, *, records: list[int], files: dict[str, str], **_: Any) -> Result:
    """Return single records as they were and as they are published: only after somebody asked to see values."""
    table = _table(draft, lines)
    names = [*draft.roles.quasi_identifiers][:40]
    published = read(files["release"])
    numbers = np.array([record - 1 for record in records if 0 < record <= table.n_records], dtype=np.int64)
    places = read_internal(files["internal manifest"]).rows_of(numbers)
    numbers, places = numbers[places >= 0], places[places >= 0]  # without those that were withheld
    return {
        "names": names,
        "records": (numbers + 1).tolist(),
        "before": _texts(table.load(names).take(pa.array(numbers)), _labels(table)),
        "after": _published(published, names, places, _labels(table)),
    }


def _published(
    table: Table, names: list[str], places: Labels, labels: Mapping[str, Mapping[Any, str]]
) -> list[list[str | None]]:
    """Return what is published of columns; the two ends of an interval may have columns of their own."""
    shown = [[name] if name in table.names else [f"{name}.low", f"{name}.high"] for name in names]
    rows = _texts(table.load([part for parts in shown for part in parts]).take(pa.array(places)), labels)
    found = []
    for row in rows:
        entries = iter(row)
        ends = [[next(entries) for _ in parts] for parts in shown]
        found.append([each[0] if len(each) == 1 or None in each else f"{each[0]} to {each[1]}" for each in ends])
    return found


def audited(draft: Draft, lines: JsonLines, *, path: str, k: int | None, names: list[str], **options: Any) -> Result:
    """Recount what another file keeps."""
    lines.stage("the file is read and counted")
    confidential, models = list(options.get("confidential", ())), as_models(options.get("models", []))
    kinds = {name: draft.columns[name] for name in (*names, *confidential) if name in draft.columns}
    settings = {
        name: {key: value for key, value in (("kind", kind.kind), ("categories", kind.categories)) if value is not None}
        for name, kind in kinds.items()
    }
    verdict = audit(path, quasi_identifiers=names, k=k, confidential=confidential, models=models, columns=settings)
    return {**_told(verdict), "path": path}


def _told(verdict: Verdict) -> Result:
    """Return a verdict, in numbers and in words."""
    return {
        "verdict": verdict.to_dict(),
        "headline": headline(verdict),
        "explanation": explanation(verdict),
        "models": [f"{found.model.promise} {reached_in_words(found.to_dict())}" for found in verdict.models],
    }


VERBS: dict[str, Callable[..., Result]] = {
    "inspect": inspected,
    "check": checked,
    "compare": compared,
    "release": released,
    "preview": previewed,
    "records": listed,
    "audit": audited,
}
"""What a child process can do."""


def _input(draft: Draft) -> tuple[str, dict[str, Any]]:
    if draft.input is None:
        raise ShoalError("No file is chosen yet.")
    return draft.input.path, draft.input.reading()


def _table(draft: Draft, lines: JsonLines) -> Table:
    path, reading = _input(draft)
    lines.stage("the file is read")
    return read(path, **reading)


def main() -> None:
    """Do what one line of standard input asks for."""
    signal.signal(system.TERMINATION, lambda *_: sys.exit(1))
    system.yield_to_others()  # the pages come first
    line = sys.stdin.readline()
    if not line:
        return
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    asked = json.loads(line)
    hold(Path(asked["file"]))  # until this process ends
    with open(asked["file"], "a", encoding="utf-8", newline="\n") as out:
        perform(asked, out)


def perform(asked: dict[str, Any], out: TextIO) -> None:
    """Do what is asked for, and write the lines of it."""
    lines = JsonLines(out)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the result holds what a release warns of
            lines.write(done=VERBS[asked["verb"]](Draft.read(asked["job"]), lines, **asked["options"]))
    except QuestionError as error:
        lines.write(refused=message_of(error), findings=[finding.to_dict() for finding in error.findings])
    except ShoalError as error:
        lines.write(refused=message_of(error))
    except MemoryError:
        lines.write(refused="There is not enough memory for this table. Nothing was written.")
    except Exception as error:
        lines.write(failed=fault_in_words(error))


def _end_with_the_server() -> None:
    """Wait for the end of standard input, and end as if cancelled; soon, also where nothing listens to that."""
    while sys.stdin.read(1):
        pass
    system.terminate_this_process()
    sleep(_PATIENCE)
    os._exit(1)


if __name__ == "__main__":
    main()
