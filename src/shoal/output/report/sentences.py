"""Sentences: what was done and what was found, for readers without statistics.

Everything here follows from the job and from the released table, so that both forms of the report may contain it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.columns.aggregates import AGGREGATES
from shoal.columns.schema import Column, Kind, Role, Schema
from shoal.constraints.linked_histories import Linking
from shoal.job import Job
from shoal.measures.recount import Verdict
from shoal.output.report.formatting import counted, listed, lost, number, percent, shown

_SCALING = {
    "zscore": "every column was first scaled to the same standard deviation, so that its unit does not matter",
    "minmax": "every column was first scaled to the same range, so that its unit does not matter",
    "none": "columns were compared in their own units",
}


def headline(verdict: Verdict) -> str:
    """Return the verdict in one line; it names columns that are published unchanged and nearly identify.

    Examples
    --------
    >>> headline(Verdict(10, 100, 8, 11, {11: 4, 14: 4}, 0, ("age",)))
    'Every record hides among at least 11'
    >>> headline(Verdict(10, 20, 2, 9, {9: 1, 11: 1}, 9, ("age",)))
    '9 of 20 records hide among fewer than 10'
    >>> from shoal.measures.unchanged import Unchanged
    >>> headline(Verdict(10, 100, 8, 11, {11: 4, 14: 4}, 0, ("age",), unchanged=(Unchanged("pay", 0.9, 0.7),)))
    'Every record hides among at least 11, but the unchanged column pay nearly identifies'
    """
    told = _guarantee_in_one_line(verdict)
    if verdict.withdrawn is not None or not verdict.unchanged:
        return told
    names = [found.column for found in verdict.unchanged]
    one = len(names) == 1
    return f"{told}, but the unchanged column{'' if one else 's'} {listed(names)} nearly identif{'ies' if one else 'y'}"


def _guarantee_in_one_line(verdict: Verdict) -> str:
    if verdict.withdrawn is not None:
        return "Not k-anonymous: every record has values of its own"
    if verdict.linked is not None and verdict.history_below(verdict.k):
        few = f"{verdict.linked.n_below:,} of {verdict.linked.n_persons:,}"
        return f"{few} have a history that fewer than {verdict.k:,} share"
    if verdict.n_below:
        return f"{verdict.n_below:,} of {verdict.n_records:,} records hide among fewer than {verdict.k:,}"
    if not verdict.k_holds:
        return f"Some groups hold fewer than {verdict.k:,} people"
    if verdict.broken:
        columns = listed(list(dict.fromkeys(found.model.column for found in verdict.broken)))
        return f"Some groups reveal more about {columns} than was promised"
    if verdict.linked is not None:
        return f"Every linked history is shared by at least {verdict.linked.smallest:,}"
    if verdict.subject_asked and verdict.subjects is not None:
        return f"Every person hides among at least {verdict.subjects:,}"
    if verdict.k is None:
        return f"The smallest group has {counted(verdict.smallest, 'record')}"
    return f"Every record hides among at least {verdict.smallest:,}"


def explanation(verdict: Verdict) -> str:
    """Explain the verdict in a few sentences."""
    if not verdict.unchanged:
        return _explained(verdict)
    found = ", ".join(f"{listed([column])} ({percent(share)})" for column, share, _ in verdict.unchanged)
    return (
        f"{_explained(verdict)} Published unchanged and nearly identifying, with the share of the records whose value "
        f"fewer than {verdict.k or 2:,} records have: {found}. Who knows such a value finds the record, whatever its "
        "group."
    )


def _explained(verdict: Verdict) -> str:
    if verdict.withdrawn is not None or not verdict.models:
        return _counted(verdict) + _linked(verdict)
    if verdict.broken and verdict.k_holds:
        return f"{_counted(verdict)} {_broken(verdict)} Do not publish this table."
    n_kept = sum(found.model.promised for found in verdict.models) - len(verdict.broken)
    kept = f" {counted(n_kept, 'promise')} about confidential columns {'was' if n_kept == 1 else 'were'} kept as well."
    return _counted(verdict) + (kept if n_kept else "") + _linked(verdict)


def _linked(verdict: Verdict) -> str:
    """Say what was counted of whole histories, if records are linked."""
    if verdict.linked is None:
        return ""
    found = verdict.linked
    return (
        f" {shown(found.column)} links records as histories, {found.n_persons:,} in all. "
        f"Whole histories were compared: each agrees in all its records with at least {found.smallest - 1:,} others."
    )


def _broken(verdict: Verdict) -> str:
    told = [f"{found.model.name} of {listed([found.model.column])} by {found.n_failing:,}" for found in verdict.broken]
    return f"But of {counted(verdict.n_classes, 'group')} some break a promise: {', '.join(told)}."


def _counted(verdict: Verdict) -> str:
    """Say what was counted, without the models."""
    if verdict.withdrawn is not None:
        return f"{verdict.withdrawn[:1].upper()}{verdict.withdrawn[1:]}"
    found = (
        f"The published table was recounted from scratch: its {counted(verdict.n_records, 'record')} fall into "
        f"{counted(verdict.n_classes, 'group')} that agree in everything somebody could know about a person"
    )
    if verdict.k is None:
        return f"{found}. The smallest group has {counted(verdict.smallest, 'record')}."
    asked = f"{verdict.k:,} were asked for"
    if verdict.subject_asked and verdict.subjects is not None:
        found += f", and each group holds records of at least {verdict.subjects:,} different people"
        return f"{found}; {asked}." + ("" if verdict.k_holds else " Do not publish this table.")
    if verdict.smallest >= verdict.k:
        return f"{found}. The smallest group has {counted(verdict.smallest, 'record')}; {asked}."
    return (
        f"{found}. The smallest group has {counted(verdict.smallest, 'record')} where {asked}, and "
        f"{counted(verdict.n_below, 'record')} are in groups that are too small. Do not publish this table."
    )


def series_in_sentences(found: Mapping[str, Any]) -> str:
    """Say what all releases of a series tell together, who was withheld, and what the history costs.

    Parameters
    ----------
    found : mapping
        As `PartOfSeries.to_dict` returns it, with ``il`` and ``il_without_history``.
    """
    told = str(found["sentence"])
    if not found["after"]:
        return told
    told += (
        f" {counted(found['kept'], 'person')} kept the values published before, {found['new']:,} are new, "
        f"{found['left']:,} of the release before left, and {found['withheld']:,} were withheld."
    )
    if found["il_without_history"] is None:
        return told
    return told + f" The loss is {lost(found['il'])}; without history it would be {lost(found['il_without_history'])}."


def what_was_done(
    job: Job, schema: Schema, verdict: Verdict, n_left_out: int = 0, linking: Linking | None = None
) -> list[str]:
    """Return the steps, one or two sentences each; `linking` says what became of linked records.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from shoal.columns.schema import Roles
    >>> roles = Roles(identifiers=("name",), quasi_identifiers=("age",))
    >>> schema = Schema.of(pa.schema({"name": pa.string(), "age": pa.int64()}), roles)
    >>> verdict = Verdict(2, 4, 2, 2, {2: 2}, 0, ("age",))
    >>> what_was_done(Job(k=2, roles=roles), schema, verdict)[0]
    'Removed: name. These columns are not in the published table.'
    """
    left_out = f"Left out: {counted(n_left_out, 'record')} of the table, on request, before anything else."
    return [*([left_out] if n_left_out else []), *_steps(job, schema, verdict, linking)]


def _steps(job: Job, schema: Schema, verdict: Verdict, linking: Linking | None) -> Iterable[str]:
    yield from _removed(schema)
    yield from _prepared(job, schema)
    yield from _grouped(job, schema)
    yield from _kept_together(schema)
    yield from _kept_linked(schema, linking)
    yield from _replaced(job, schema)
    yield from _as_they_are(schema)
    yield from _promised(job)
    yield (
        f"Counted again: the groups were recounted on the published table alone, as an outsider would, over "
        f"{counted(len(verdict.quasi_identifiers), 'column')}, a missing value counting as a value."
    )


def _removed(schema: Schema) -> Iterable[str]:
    dropped = [column.name for column in schema.having(Role.IDENTIFIER)]
    if dropped:
        yield f"Removed: {listed(dropped)}. These columns are not in the published table."


def _prepared(job: Job, schema: Schema) -> Iterable[str]:
    folded = [column.name for column in schema.quasi if column.settings.fold]
    if folded:
        yield f"Texts that differ only in case or blanks were taken for one in {listed(folded)}."
    coded = [column.name for column in schema.quasi if column.settings.missing_codes]
    if coded:
        yield f"Codes that stand for a missing value were read as missing in {listed(coded)}."
    for column in schema.quasi:
        limits = [
            f"{word} {number(limit, 12)} became {number(limit, 12)}"
            for word, limit in (("above", column.settings.top), ("below", column.settings.bottom))
            if limit is not None
        ]
        if limits:
            yield f"Extremes of {listed([column.name])} were cut: values {' and those '.join(limits)}."
    for entry in job.accept:
        where, _, finding = entry.rpartition("=")
        told = f" in {listed([where])}" if where else ""
        yield f"Accepted as it is, although it may be misread: {listed([finding])}{told}."
    if job.missing == "own-value":
        yield "A missing value counted as a value of its own when records were compared."


def _grouped(job: Job, schema: Schema) -> Iterable[str]:
    quasi = [column.name for column in schema.quasi]
    yield (
        f"Grouped: records that are alike in {listed(quasi)} were put together in groups of at least {job.k:,} "
        f"(method {listed([job.method])}; {_SCALING.get(job.scaling, job.scaling)})."
    )
    if job.objective == "ncp":
        yield "Groups were made so that their ranges are narrow, their sets small and their common ancestors low."
    by = [column.name for column in schema.having(Role.BY)]
    if by:
        yield f"No group mixes records that differ in {listed(by)}; that is published as it is."
    zeros = [column.name for column in schema.quasi if column.settings.keep_zeros]
    if zeros:
        yield f"Records with a zero share no group with others in {listed(zeros)}."
    weighted = [column.name for column in schema.quasi if column.settings.weight != 1]
    if weighted:
        yield f"Some columns counted more or less than others in the comparison: {listed(weighted)}."
    for words, names in (
        ("steered into the same groups if they agree in", [name for name, weight in job.steer.items() if weight > 0]),
        ("steered into different groups if they agree in", [name for name, weight in job.steer.items() if weight < 0]),
    ):
        if names:
            yield f"Records were {words} {listed(names)}, where possible. This is not guaranteed."


def _kept_linked(schema: Schema, linking: Linking | None) -> Iterable[str]:
    """Say which records stay linked."""
    roles = schema.roles
    if roles.link is None:
        return
    whom = "person" if roles.keep_link == "subject" else "household"
    yield (
        f"Linked: the records of one {whom} show the same new random identifier in {listed([roles.link])}. Whole "
        f"histories were put together, record by record in the order of {listed(roles.link_order)}."
    )
    if linking is not None:
        yield f"Patterns that too few share: {linking.policy}. {rest_in_words(linking)}"


def price_of_link(il: float, without: float) -> str:
    """Say what the link costs.

    Examples
    --------
    >>> price_of_link(36.5, 9.8)
    'The link has a price: 36.5 % of the information is lost, and 9.8 % where the same records are grouped one by one.'
    """
    return (
        f"The link has a price: {number(il)} % of the information is lost, and {number(without)} % where the same "
        "records are grouped one by one."
    )


def rest_in_words(linking: Linking) -> str:
    """Say what became of the records whose pattern too few share.

    Examples
    --------
    >>> print(rest_in_words(Linking("cut", 9, 8, 0, 99, 0, 1, 2, 1)))
    8 of 9 histories stay linked, in 2 patterns; 0 of 100 records are published without the link, 1 (1.00 %) withheld.
    """
    cut = f" ({linking.n_cut:,} cut to their first records)" if linking.n_cut else ""
    without = f" {persons_without_records(linking)}" if linking.n_without else ""
    share = 100 * linking.n_withheld_records / linking.n_records
    return (
        f"{linking.n_linked:,} of {linking.n_persons:,} histories stay linked{cut}, in "
        f"{counted(linking.n_patterns, 'pattern')}; {linking.n_unlinked_records:,} of {linking.n_records:,} records "
        f"are published without the link, {linking.n_withheld_records:,} ({share:.2f} %) withheld.{without}"
    )


def persons_without_records(linking: Linking) -> str:
    """Say how many persons of a table of their own have no record, and are left out."""
    are = "person without records is" if linking.n_without == 1 else "persons without records are"
    return f"{linking.n_without:,} {are} left out."


def _kept_together(schema: Schema) -> Iterable[str]:
    roles = schema.roles
    if roles.keep_link is not None:
        roles = roles.model_copy(update={roles.keep_link: None})
    if roles.subject is not None:
        yield f"Several records can belong to one person ({listed([roles.subject])}): groups were counted in people."
    if roles.household is not None:
        yield f"Records of one household ({listed([roles.household])}) keep the same values in household-level columns."
    if roles.weights is not None:
        changed = [
            column.name
            for column in schema.quasi
            if column.is_true
            or column.settings.model_fields_set & {"round", "top", "bottom", "missing_codes", "aggregate"}
        ]
        but = f", except where values were rounded, cut or counted as missing: {listed(changed)}" if changed else ""
        yield f"Survey weights ({listed([roles.weights])}) were used, so weighted totals of numbers are kept{but}."


def _replaced(job: Job, schema: Schema) -> Iterable[str]:
    if job.rho:
        yield (
            "Scattered: within a group every record now shows values of its own, drawn at random around the mean of "
            f"the group; rho = {number(job.rho)} sets how far, where 1 is the whole range of the group."
        )
        return
    ways = {way: [column.name for column in schema.quasi if column.aggregate == way] for way in AGGREGATES}
    told = [f"{AGGREGATES[way].sentence} in {listed(names)}" for way, names in ways.items() if names]
    yield f"Replaced: within a group every record now shows the same value: {'; '.join(told)}."
    yield from _true(schema)
    rounded = [column.name for column in schema.quasi if column.settings.round is not None]
    if rounded:
        yield f"Rounded: the published values of {listed(rounded)}."


def _true(schema: Schema) -> Iterable[str]:
    true = [column.name for column in schema.quasi if column.is_true]
    if not true:
        return
    yield (
        f"True of every record: the published values of {listed(true)}. Each was compared with the values that it "
        "stands for, of every record of its group."
    )
    stepped = [f"{listed([column.name])} {column.grid.step}" for column in schema.quasi if column.grid is not None]
    if stepped:
        yield (
            f"The ends of intervals are multiples of a step: {', '.join(stepped)}. Steps that fewer people share than "
            "the smallest group may have are joined, so that an end does not show the extreme of a single person."
        )
    yield (
        "People are linked to the records whose published values hold theirs. Loss, utility and pictures need plain "
        "numbers and categories: where a value is an interval or a period they use its middle; where it is a set or a "
        "group of a hierarchy, the middle of its values or, without an order, the one that most records of the release "
        "may have."
    )


def _as_they_are(schema: Schema) -> Iterable[str]:
    confidential = [column.name for column in schema.having(Role.CONFIDENTIAL)]
    if confidential:
        yield (
            f"Published unchanged, as confidential: {listed(confidential)}. Nobody should learn these about a person; "
            "the groups stand in the way."
        )
    other = [column.name for column in schema.having(Role.OTHER)]
    if other:
        yield f"Published unchanged, as requested: {listed(other)}."


def _promised(job: Job) -> Iterable[str]:
    for model in job.models:
        head = "Promised" if model.promised else "Aimed at, not promised"
        yield f"{head}: {shown(model.promise)}"


def reached_in_words(found: Mapping[str, Any], noun: str = "group") -> str:
    """Describe what a model reaches, from `Reached.to_dict`.

    Examples
    --------
    >>> from shoal.models import TCloseness, measure
    >>> import numpy as np
    >>> found = measure(TCloseness("salary", t=0.2), np.array([0, 0, 1, 1]), np.array([0, 3, 1, 2]), 4, ordered=True)
    >>> reached_in_words(found.to_dict())
    't = 0.1667 in the worst of 2 groups, 0.2 asked for: kept'
    """
    unit, reached = found["unit"], found["value"]
    asked = f"{number(found[unit])} {'asked for' if found['promised'] else 'aimed at, nothing promised'}"
    told = f"{unit} = {'infinite' if reached is None else number(reached)} in the worst of "
    told += f"{counted(found['n_classes'], noun)}, {asked}"
    if not found["promised"]:
        return told
    return told + (": kept" if found["holds"] else f": broken by {counted(found['n_failing'], noun)}")


def treatment(column: Column, scattered: bool = False) -> str:
    """Describe in a few words how a column was treated."""
    if column.role is Role.IDENTIFIER:
        return "removed"
    if column.role is Role.LINK:
        return "a new random identifier, the same for all records that belong together"
    if column.role is not Role.QUASI:
        return "published as it is" + (", never mixed in a group" if column.role is Role.BY else "")
    rounded = column.settings.round
    told = "at random around the mean of the group" if scattered else AGGREGATES[column.aggregate].words
    if rounded is None:
        return told
    return f"{told}, rounded to {counted(rounded, 'decimal') if rounded else 'whole numbers'}"


def kind_in_words(kind: Kind) -> str:
    """Return the name of a kind."""
    return {
        Kind.NUMERIC: "number",
        Kind.ORDINAL: "ordered category",
        Kind.NOMINAL: "category",
        Kind.DATE: "date or time",
    }[kind]
