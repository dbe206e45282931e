"""Release warnings: what somebody should look at before a release is published."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from shoal.columns.equivalence import value_codes, value_counts
from shoal.columns.schema import Role, Schema
from shoal.findings.questions import by_sort, common
from shoal.job import Job
from shoal.measures.linked import Histories
from shoal.output.report.sentences import persons_without_records, rest_in_words

if TYPE_CHECKING:
    from shoal.output.release import Release

SMALL_SEED = 2**32
"""Smaller seeds can be found by brute force."""

_MOSTLY = 0.5  # of the records


def warnings_of(release: "Release") -> list[str]:
    """Return warnings to review before publishing."""
    found = (
        []
        if release.verdict.withdrawn is None
        else ["Random aggregation was requested, so the release is not k-anonymous; the verdict explains the reason."]
    )
    found += release.notes
    found += [] if release.series is None else release.series.warnings
    if release.job.rho and (release.job.seed or 0) < SMALL_SEED:
        found.append(
            f"The seed is below {SMALL_SEED:,} and can be found by brute force; it reveals the random part of every "
            "published value. Leave the seed out: then one of 63 bits is drawn and stored in the job."
        )
    found += [
        f"Column {name!r} has the same value in all records: it does not affect distances."
        for name in release.space.constant
    ]
    found += list(map(common, by_sort(finding for finding in release.findings if finding.name != "constant")))
    found += [one.sentence for one in release.contributions if one.is_telling]
    found += [
        f"The step of column {column.name!r} is as fine as its values: ends of its intervals may be values that fewer "
        f"than {release.job.k} records share. Give a larger step, or leave it out."
        for column in release.schema.quasi
        if column.grid is not None and column.grid.shows_values
    ]
    found += _linked(release)
    found += _rare(release)
    found += _gone(release)
    found += [each.note for each in release.verdict.models if each.note]
    weights = release.schema.roles.weights
    found += [
        f"Column {column!r} is published unchanged, and {alone:.0%} of the records have a unique value: whoever knows "
        "the value can identify the record."
        for column, _, alone in release.verdict.unchanged
        if alone > _MOSTLY
    ]
    if weights in [column.name for column in release.schema.having(Role.CONFIDENTIAL, Role.OTHER)]:
        found.append(f"The survey weights in column {weights!r} are published: they can reveal rare groups.")
    return found


def _linked(release: "Release") -> list[str]:
    """Return warnings about linked records: those withheld, and persons who can be found by what is not grouped."""
    link, linking = release.schema.link, release.linking
    if link is None or linking is None:
        return []
    found = []
    if linking.n_withheld_records or linking.n_unlinked_records:
        found.append(f"Too few share the pattern of some histories. {rest_in_words(linking)}")
    elif linking.n_without:
        found.append(f"Not everybody is published: {persons_without_records(linking)}")
    for column in release.schema.having(Role.CONFIDENTIAL, Role.OTHER):
        histories = Histories.of(
            link.name, release.columns[link.name], pa.table({"values": release.columns[column.name]})
        )
        alone = int(np.count_nonzero(np.bincount(histories.classes) == 1))
        if alone:
            found.append(
                f"Column {column.name!r} is published unchanged in linked records, and {alone:,} of "
                f"{linking.n_linked:,} histories have a combination of its values that no other has: whoever knows "
                "these values finds the history, and with it everything else in it."
            )
    confidential = release.schema.having(Role.CONFIDENTIAL)
    if confidential:
        quasi = release.columns.select(release.schema.quasi_names)
        histories = Histories.of(link.name, release.columns[link.name], quasi)
    for column in confidential:
        n_sharing = histories.n_sharing(value_codes(release.columns[column.name]))
        if n_sharing:
            found.append(
                f"All persons with one history have a value of column {column.name!r} in common, for {n_sharing:,} of "
                f"{linking.n_linked:,} persons: whoever finds the history learns that they have it somewhere."
            )
    return found


def _rare(release: "Release") -> list[str]:
    """Return warnings about columns whose sets list values that fewer than k records have."""
    found = []
    for column in release.schema.quasi:
        if column.form != "set":
            continue
        counts = value_counts(release.original[column.name].drop_null())[1]
        rare = np.count_nonzero(counts < release.job.k)
        if rare:
            found.append(
                f"The sets of column {column.name!r} list {rare:,} of {len(counts):,} values that fewer than "
                f"{release.job.k} records have: everybody sees that somebody in the class has one of them. Where that "
                "says too much, publish ancestors or intervals, or join rare values first."
            )
    return found


def _gone(release: "Release") -> list[str]:
    """Return warnings about columns that are suppressed or lose more than half of their variation."""
    constant = set(release.space.constant)
    varying = [column.name for column in release.schema.quasi if column.name not in constant]
    wiped = [name for name in varying if release.replaced[name].null_count == len(release.replaced[name])]
    most = [name for name in varying if release.loss.columns[name].il > 0.5 and name not in wiped]
    listed = ", ".join(f"{name!r} ({100 * release.loss.columns[name].il:.0f} %)" for name in most)
    found = [
        f"Column {name!r} is published entirely as missing: it is missing in most records of every cell."
        for name in wiped
    ]
    return found + ([f"More than half of the differences between records are lost in {listed}."] if most else [])


def accepted_columns(job: Job, name: str, schema: Schema) -> list[str]:
    """Return the quasi-identifiers for which a finding is accepted."""
    return [column for column in schema.quasi_names if {name, f"{column}={name}"} & set(job.accept)]
