"""Inspection: what is in a table, column by column, and which roles the columns may have. Never a value.

The counts show how identifying each column is; the proposals are a first draft for a person to correct.
"""

import os
import shlex
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.column_counts import Facts, count
from shoal.columns.schema import ROLE_KEYS, Kind, Role
from shoal.errors import ParameterError
from shoal.findings import ColumnView, Finding, Remedy, findings_of
from shoal.findings.column_receipt import ColumnReceipt, receipt_of
from shoal.findings.finding import HIDDEN
from shoal.findings.metadata import described_kind, without_declared
from shoal.findings.questions import by_sort, common, ways
from shoal.findings.roles import Proposal, finding_of, propose
from shoal.findings.rows import OF_RECORDS, double_findings, record_findings
from shoal.inspection.combinations import MOST, Combination, joined, revealing, unique_share
from shoal.job import Job
from shoal.sources import Reading, Receipt, Table, read
from shoal.sources.clean import printable
from shoal.sources.left_out import all_skipped
from shoal.sources.standard_input import DASH
from shoal.spelling import as_listed, option_name
from shoal.typing import Labels, Progress
from shoal.views import Frame, as_frame, as_html

_SIZES = {10: 50, 5: 25, 3: 12, 2: 4}
"""The proposed k, by the minimum number of records."""

_OUTPUT = {"path": "release.parquet", "report": "report.html"}

_KEPT = 16
"""Number of columns among which combinations are searched: those with most different values."""

_RARE = 0.1  # of the records: categories that so many have alone would be published of single records
_FEW = 20  # up to this number of different values they are codes or counts rather than amounts


@dataclass(frozen=True)
class InspectedColumn:
    """A column: what was counted, and the role that is proposed for it.

    Attributes
    ----------
    facts : Facts
        Kind, records, missing and different values.
    proposal : Proposal
        The role and the reason for it.
    findings : tuple of Finding
        What may have been misread.
    receipt : ColumnReceipt
        How it was read.
    """

    facts: Facts
    proposal: Proposal
    findings: tuple[Finding, ...]
    receipt: ColumnReceipt
    described: Kind | None = None
    """The kind that the file gives it."""

    @property
    def kind(self) -> Kind | None:
        """The kind that it has in a release as proposed."""
        return self.proposal.kind or self.described or self.facts.kind

    @property
    def proposed_round(self) -> int | None:
        """Decimals for published means: those of the values, and one where they are whole; None if none suit."""
        decimals = self.receipt.n_decimals
        return None if decimals is None or self.kind is not Kind.NUMERIC else max(decimals, 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the column as plain values, for JSON."""
        facts, proposal = self.facts, self.proposal
        return {
            "name": facts.name,
            "type": str(facts.type),
            "kind": (kind := self.described or facts.kind) and str(kind),
            "is_number": facts.kind is Kind.NUMERIC,
            "label": self.receipt.label,
            "read": self.receipt.to_dict(),
            "missing": facts.missing,
            "distinct": facts.distinct if facts.kind else None,
            "unique": facts.unique if facts.kind else None,
            "role": str(proposal.role),
            "used_for": proposal.helper,
            "proposed_kind": proposal.kind and str(proposal.kind),
            "proposed_round": self.proposed_round,
            "reason": proposal.reason,
            "findings": [finding.to_dict() for finding in self.findings],
        }


@dataclass(frozen=True)
class Inspection:
    """What is in a table.

    Attributes
    ----------
    n_records : int
    columns : tuple of InspectedColumn
    together : float
        Share of the records that the proposed quasi-identifiers make unique, all together.
    combinations : tuple of Combination
        Pairs and triples of columns that make most records unique, though none of them does so alone.
    complete : bool
        Whether all such pairs were examined, and the triples that extend the worst of them.
    path : str or None
        The file that was inspected.
    reading : dict
        The reading options given.
    kind : str
        The kind of the source: its format, its database or its library.
    receipt : Receipt
        How it was read.
    """

    n_records: int
    columns: tuple[InspectedColumn, ...]
    together: float
    combinations: tuple[Combination, ...]
    complete: bool
    path: str | None
    reading: dict[str, Any]
    kind: str
    receipt: Receipt

    def roles(self) -> dict[str, Any]:
        """Return the proposed roles, as `shoal.anonymize` takes them."""
        roles: dict[str, Any] = {}
        for column in self.columns:
            if column.proposal.helper and column.proposal.helper not in roles:
                roles[column.proposal.helper] = column.facts.name
            else:
                roles.setdefault(ROLE_KEYS[column.proposal.role], []).append(column.facts.name)
        return roles

    def settings(self) -> dict[str, dict[str, Any]]:
        """Return what is proposed for single columns, as `shoal.anonymize` takes it."""
        found: dict[str, dict[str, Any]] = {
            column.facts.name: {"kind": str(column.proposal.kind)} for column in self.columns if column.proposal.kind
        }
        for answer in self.answers:
            if answer.place == "column":
                found[answer.column] = {**answer.settings, **found.get(answer.column, {})}
        read_otherwise = {answer.column for answer in self.answers if answer.place == "field"}
        for column in self.columns:
            kind = column.proposal.kind or column.facts.kind
            may_be_single = kind is Kind.NOMINAL and column.facts.unique > _RARE
            if column.proposal.role is Role.QUASI and may_be_single and column.facts.name not in read_otherwise:
                found.setdefault(column.facts.name, {})["aggregate"] = "withhold"
        return found

    @property
    def answers(self) -> tuple[Remedy, ...]:
        """An answer to each question that a release with the proposed roles would ask.

        It is the likeliest that shows no value; what has none is accepted as it is.
        """
        return tuple(
            _answer(finding)
            for column in self.columns
            for finding in column.findings
            if finding.question and (column.proposal.role is Role.QUASI or finding.name in OF_RECORDS)
        )

    @property
    def accepted(self) -> tuple[str, ...]:
        """The findings that the proposed release accepts."""
        return tuple(
            entry for answer in self.answers if answer.place == "accept" for entry in answer.settings["accept"]
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What may have been misread, column by column."""
        return tuple(finding for column in self.columns for finding in column.findings)

    @property
    def proposed_k(self) -> int:
        """A k that suits the number of records: 10, or less for small tables; 0 if there are too few records."""
        return next((k for k, least in _SIZES.items() if self.n_records >= least), 0)

    def reads(self) -> dict[str, Any]:
        """Return the reading options: those given, and those that findings propose."""
        fields = {name: dict(settings) for name, settings in self.reading.get("fields", {}).items()}
        rows: dict[str, Any] = {}
        for answer in (*self._certain, *self.answers):
            if answer.place == "field":
                fields[answer.column] = fields.get(answer.column, {}) | answer.settings
            elif "skip_rows" in answer.settings:
                rows["skip_rows"] = all_skipped(rows.get("skip_rows"), [answer.settings["skip_rows"]])
            elif "skip_where" in answer.settings:
                given = rows.get("skip_where", Reading(skip_where=self.reading.get("skip_where")).skip_where or ())
                rows["skip_where"] = [*dict.fromkeys([*given, *answer.settings["skip_where"]])]
        return {**self.reading, **({"fields": fields} if fields else {}), **rows}

    @property
    def _certain(self) -> list[Remedy]:
        """The only way to read a column that a finding is about, whatever its role."""
        found = []
        for finding in self.findings:
            ways = [remedy for remedy in finding.remedies if remedy.place == "field"]
            if len(ways) == 1 and ways[0] == finding.remedies[0] and HIDDEN not in str(ways[0].settings):
                found += ways
        return found

    def job(self, k: int | None = None) -> Job:
        """Return a job with the proposed roles, to correct and run.

        Raises
        ------
        ParameterError
            If there are too few records for a release.
        """
        k = self._k(k)
        extra: dict[str, Any] = {}
        if self.path:
            extra = {"input": {"path": self.path, **self.reads()}, "output": _OUTPUT}
        if self._has_missing:
            extra["missing"] = "own-value"
        return Job.of(k=k, roles=self.roles(), columns=self.settings(), accept=self.accepted, **extra)

    def _k(self, k: int | None) -> int:
        k = k or self.proposed_k
        if not k:
            raise ParameterError(
                f"The table has {self.n_records:,} records, and a release takes at least {min(_SIZES.values())}. There "
                "is nothing to propose."
            )
        return k

    @property
    def _has_missing(self) -> bool:
        quasi = {column.facts.name: column.facts for column in self.columns if column.proposal.role is Role.QUASI}
        by_text = {name for name, settings in self.reads().get("fields", {}).items() if settings.get("null_values")}
        by_code = {name for name, settings in self.settings().items() if "missing_codes" in settings}
        return any(facts.missing or name in by_text | by_code for name, facts in quasi.items())

    def command(self, k: int | None = None) -> str:
        """Return a command line with the proposed roles, to correct and run.

        Raises
        ------
        ParameterError
            If there are too few records for a release.
        """
        words = ["shoal", "anonymize", self.path or "FILE", "-k", str(self._k(k)), *reading_options(self.reads())]
        roles = self.roles()
        for key in ROLE_KEYS.values():
            if roles.get(key):
                words += [option_name(key), ",".join(map(as_listed, roles[key]))]
        for helper in ("household", "weights"):
            if helper in roles:
                words += [f"--{helper}", roles[helper]]
        words += kind_options(self.settings())
        words += [word for entry in self.accepted for word in ("--accept", entry)]
        if self._has_missing:
            words += ["--missing", "own-value"]
        return shlex.join([*words, "-o", _OUTPUT["path"], "--report", _OUTPUT["report"]])

    def models(self) -> list[str]:
        """Return options that protect the proposed confidential columns beyond k, with weak settings to start from."""
        words: list[str] = []
        for column in self.columns:
            facts, proposal = column.facts, column.proposal
            if proposal.role is Role.CONFIDENTIAL and facts.distinct > 1:
                is_amount = (proposal.kind or facts.kind) in (Kind.NUMERIC, Kind.DATE) and facts.distinct > _FEW
                words += ["--t-closeness" if is_amount else "--l-diversity"]
                words += [f"{as_listed(facts.name)}={0.2 if is_amount else 2}"]
        return words

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "n_records": self.n_records,
            "columns": [column.to_dict() for column in self.columns],
            "together": self.together,
            "combinations": [{"columns": list(c.columns), "unique": c.unique} for c in self.combinations],
            "complete": self.complete,
            "notes": list(self.receipt.notes),
            "command": self.command() if self.proposed_k else None,
        }

    def to_frame(self) -> Frame:
        """Return a row for each column, without its findings."""
        return as_frame(
            {name: value for name, value in column.to_dict().items() if name not in ("read", "findings")}
            | {"read": column.receipt.public}
            for column in self.columns
        )

    def _repr_html_(self) -> str:
        """Return the columns as a table for notebooks, with what may be misread below it."""
        heads, *rows = _cells(self)
        notes = [line.strip() for line in (*_sentences(self), *_findings(self)) if line.strip()]
        return as_html(f"{self.n_records:,} records", heads, rows, notes)

    def to_text(self, k: int | None = None) -> str:
        """Return everything as text, with the command that makes a release."""
        told = [*_table(self), "", *_sentences(self), "", *_findings(self)]
        if not self.proposed_k:
            return "\n".join([*told, "There are too few records for a release, so none is proposed."])
        advice = ["To make a release of it, correct this and run it:", "", f"  {printable(self.command(k))}"]
        if self.models():
            more = printable(shlex.join(self.models()))
            advice += ["", f"With k alone, a class may share one confidential value. To guarantee more, add: {more}"]
        return "\n".join([*told, *advice])

    def __str__(self) -> str:
        return self.to_text()


def inspect(
    table: Any, /, *, show_values: bool = False, progress: Progress | None = None, **reading: Any
) -> Inspection:
    """Count what is in a table, list what may be misread, and propose a role for each column.

    Parameters
    ----------
    table : path or frame
        Any table that `shoal.sources.read` takes. A Parquet file is read one column at a time.
    show_values : bool
        Name the values that findings are about, such as a code for missing values. They are values of the table.
    progress : callable, optional
        Called after each column as ``progress(columns_done, n_columns)``.
    **reading
        How to read a file; see `shoal.sources.read`.

    Returns
    -------
    Inspection
        Prints as a table; holds counts and names of columns, and no value unless `show_values` asks for some.

    Raises
    ------
    FileError
        If the file cannot be read.

    Notes
    -----
    Takes O(n log n) time in records for each column and for each pair of columns; see `Inspection.complete`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = {"name": ["Ann", "Bo", "Cy", "Di"], "age": [30, 30, 40, 50], "diagnosis": ["a", "b", "a", "b"]}
    >>> found = inspect(pa.table(people))
    >>> [str(column.proposal.role) for column in found.columns]
    ['identifier', 'quasi-identifier', 'confidential']
    >>> found.columns[1].facts.unique
    0.5
    """
    whole = read(table, **reading)
    odd = record_findings(whole, whole.names, show_values)
    source = _without(whole, table, reading, odd)
    found: list[InspectedColumn] = []
    varied: tuple[float, Labels | None] = (0.0, None)
    kept: dict[str, tuple[int, NDArray[np.int32]]] = {}
    together: Labels | None = None
    for name in source.names:
        values = source.load([name])[name]
        read_view = ColumnView.of(source, name, values, show_values)
        values = without_declared(values, read_view.description)
        facts, codes = count(name, values)
        view, kind = replace(read_view, values=values), described_kind(read_view)
        findings = findings_of(view)
        proposal = _proposal(facts, view, findings)
        proposal = proposal if kind is None else replace(proposal, kind=None)
        if name in source.index:
            proposal = replace(proposal, reason=f"the index of the data frame; {proposal.reason}")
        of_records = [finding for finding in odd if finding.column == name]
        told = (*of_records, *_with_role(findings, finding_of(facts, proposal)))
        found.append(InspectedColumn(facts, proposal, told, receipt_of(view, kind=kind), kind))
        if codes is not None and varied[0] < facts.variety and facts.distinct < facts.n_records:
            varied = (facts.variety, codes)
        if codes is not None and proposal.role is Role.QUASI:
            together = codes if together is None else joined([together, codes])
        if codes is not None and proposal.role is not Role.IDENTIFIER and facts.distinct > 1 and facts.unique < MOST:
            _keep(kept, name, facts.distinct, codes.astype(np.int32))
        if progress:
            progress(len(found), len(source.names))
    if found and varied[1] is not None:
        doubles = double_findings(
            source.names, source.column, varied[1], varied[0], source.receipt, source.origin is None
        )
        found[0] = replace(found[0], findings=(*found[0].findings, *doubles))
    combinations, complete = revealing({name: codes for name, (_, codes) in kept.items()})
    return Inspection(
        n_records=found[0].facts.n_records if found else 0,
        columns=tuple(found),
        together=0.0 if together is None else unique_share(together),
        combinations=tuple(combinations),
        complete=complete,
        path=os.fspath(table) if isinstance(table, str | os.PathLike) else None,
        reading=dict(reading),
        kind=source.kind,
        receipt=source.receipt,
    )


def _without(table: Table, source: Any, reading: dict[str, Any], findings: list[Finding]) -> Table:
    """Return the table without the records that a release would ask about, so that its columns are described alone."""
    skipped = [_answer(finding).settings.get("skip_rows") for finding in findings if finding.question]
    if not any(skipped):
        return table
    rows = all_skipped(None, [each for each in skipped if each])
    if isinstance(source, str | os.PathLike) and os.fspath(source) != DASH:
        return read(source, **{**reading, "skip_rows": rows})
    return table if reading.get("skip_rows") else read(table, skip_rows=rows)


def _answer(finding: Finding) -> Remedy:
    """Return the likeliest answer to a question that shows no value."""
    shown = [remedy for remedy in finding.remedies if HIDDEN not in str(remedy.settings) and remedy.place != "role"]
    return shown[0] if shown else Remedy("accept", finding.column, {"accept": [f"{finding.column}={finding.name}"]})


def _with_role(findings: list[Finding], about_role: Finding | None) -> list[Finding]:
    """Add findings about the role. An identifier is dropped, so findings about its reading do not matter."""
    is_explained = any(finding.name == "near-unique-text" for finding in findings)
    if about_role is None or (is_explained and about_role.name == "identifier"):
        return findings
    left = [finding for finding in findings if not finding.question and finding.name not in _OF_AMOUNTS]
    return [about_role, *left]


_OF_AMOUNTS = {"repeats-of-identifiers", "perhaps-codes", "outliers"}
_MISREAD = {"mixed-types", "numbers-as-text", "numbers-with-unit", "dates-as-text"}


def _proposal(facts: Facts, view: ColumnView, findings: list[Finding]) -> Proposal:
    """Return the role of a column, and its kind where the file or a finding gives it."""
    names = {finding.name for finding in findings}
    proposal = propose(facts, misread=bool(names & _MISREAD))
    kind = described_kind(view) or (Kind.NOMINAL if "codes" in names else None)
    is_quasi = proposal.role is Role.QUASI and proposal.kind is None
    return replace(proposal, kind=kind) if is_quasi and kind and not view.description else proposal


def reading_options(reading: dict[str, Any]) -> list[str]:
    """Return reading options as options of the command line.

    Examples
    --------
    >>> reading_options({"encoding": "cp1252", "fields": {"born": {"date_format": "%d.%m.%Y"}}})
    ['--encoding', 'cp1252', '--date-format', 'born=%d.%m.%Y']
    """
    words: list[str] = []
    for name, value in reading.items():
        flag = option_name(name)
        if name == "fields":
            words += [word for column, settings in value.items() for word in _field_options(column, settings)]
        elif isinstance(value, bool):
            words += [flag] if value else []
        elif name == "skip_where":
            words += [word for condition in value for word in (flag, condition)]
        else:
            words += [flag, ",".join(map(as_listed, value)) if isinstance(value, list | tuple) else str(value)]
    return words


def kind_options(settings: dict[str, dict[str, Any]]) -> list[str]:
    """Return the settings of columns as options of the command line, the kinds of several together.

    Examples
    --------
    >>> kind_options({"sex": {"kind": "nominal"}, "roof": {"kind": "nominal"}, "age": {"kind": "ordinal", "weight": 2}})
    ['--codes', 'sex,roof', '--kind', 'age=ordinal', '--weight', 'age=2']
    """
    words: list[str] = []
    together = {"nominal": "--codes", "numeric": "--numbers"}
    for kind, option in together.items():
        listed = [as_listed(name) for name, given in settings.items() if given.get("kind") == kind]
        words += [option, ",".join(listed)] if listed else []
    for name, given in settings.items():
        rest = {key: value for key, value in given.items() if key != "kind" or value not in together}
        words += column_options(name, rest)
    return words


def column_options(column: str, settings: dict[str, Any]) -> list[str]:
    """Return the settings of one column as options of the command line.

    Examples
    --------
    >>> column_options("hours", {"missing_codes": [-9], "fold": True})
    ['--missing-codes', 'hours=-9', '--fold', 'hours']
    """
    words: list[str] = []
    for name, value in settings.items():
        listed = ",".join(as_listed(str(entry)) for entry in value) if isinstance(value, list | tuple) else value
        words += [option_name(name), as_listed(column) if value is True else f"{as_listed(column)}={listed}"]
    return words


def _field_options(column: str, settings: dict[str, Any]) -> list[str]:
    """Return how the fields of one column are read as options of the command line."""
    found = ((reading_options({name: value}), name) for name, value in settings.items())
    return [word for (flag, value), _ in found for word in (flag, f"{as_listed(column)}={value}")]


def _keep(kept: dict[str, tuple[int, NDArray[np.int32]]], name: str, distinct: int, codes: NDArray[np.int32]) -> None:
    """Keep the codes of a column while it is among those with most different values."""
    kept[name] = (distinct, codes)
    if len(kept) > _KEPT:
        del kept[min(kept, key=lambda other: kept[other][0])]


def _cells(inspection: Inspection) -> list[tuple[str, ...]]:
    """Return the heads, and the texts of each column."""
    heads = ("column", "kind", "read as", "missing", "distinct", "unique", "proposed role", "because")
    rows = [
        (
            printable(column.facts.name),
            str(column.kind or "-"),
            printable(column.receipt.public),
            f"{column.facts.missing:,}",
            f"{column.facts.distinct:,}" if column.facts.kind else "-",
            f"{column.facts.unique:.1%}" if column.facts.kind else "-",
            column.proposal.helper or str(column.proposal.role),
            column.proposal.reason,
        )
        for column in inspection.columns
    ]
    return [heads, *rows]


def _table(inspection: Inspection) -> list[str]:
    """Return the columns as lines of text."""
    rows = _cells(inspection)
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    numbers = {3, 4, 5}
    return [
        "  ".join(
            text.rjust(width) if place in numbers else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _sentences(inspection: Inspection) -> list[str]:
    n_quasi = sum(column.proposal.role is Role.QUASI for column in inspection.columns)
    lines = [
        f"{inspection.n_records:,} records. 'unique' is the share of records that the column alone makes unique.",
        f"The {n_quasi} proposed quasi-identifiers together make {inspection.together:.1%} of the records unique.",
    ]
    for columns, unique in inspection.combinations:
        lines.append(f"{' and '.join(map(printable, columns))} alone make {unique:.1%} unique.")
    lines += map(printable, inspection.receipt.notes)
    if not inspection.complete:
        lines.append("Not all pairs and triples of columns were examined: there are too many records.")
    return lines


def _findings(inspection: Inspection) -> list[str]:
    """Return what may be misread as lines of text: first what a release would refuse, then what to check."""
    asked = [finding for finding in inspection.findings if finding.question]
    noted = [finding for finding in inspection.findings if not finding.question]
    lines: list[str] = []
    for title, group in (("To settle before a release", asked), ("Worth a look", noted)):
        if group:
            lines.append(f"{title}:")
        for sort in by_sort(group):
            lines += [f"  {printable(common(sort))}  [{sort[0].name}]"]
            if len(sort) > 1:
                lines += [f"    {printable(finding.column)}: {printable(finding.what)}" for finding in sort]
            lines += [f"      {printable(way)}" for way in ways(sort, "option")]
        if group:
            lines.append("")
    return lines
