"""Recount: the guarantees of published records that do not fit into memory, counted part by part.

Records that agree in all quasi-identifiers have the same key, so that a class lies in one part whatever blocks its
records come from. Each part is recounted as a table is, against the distributions of the whole table.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from shoal.columns.distribution import Distributions
from shoal.columns.prepare import decoded
from shoal.columns.schema import Schema
from shoal.columns.value_hashes import record_hashes
from shoal.engines.blocks.block_records import SUBJECT
from shoal.measures.recount import Diversity, Verdict, recount
from shoal.models import Model, Reached
from shoal.typing import Labels


def class_parts(table: pa.Table, quasi_identifiers: Sequence[str], n_parts: int) -> Labels:
    """Return the part of each record, from 0: the same for all records of a class; shape (n_records,)."""
    exact = record_hashes((decoded(table[name]) for name in quasi_identifiers), table.num_rows)[1]
    return np.asarray(exact % np.uint64(n_parts), dtype=np.int64)


def recount_part(
    part: pa.Table, schema: Schema, k: int | None, models: Sequence[Model], whole: Distributions
) -> Verdict:
    """Recount whole classes of a table; they may have a column `SUBJECT` that is the same for records of a person."""
    subjects = part[SUBJECT] if SUBJECT in part.column_names else None
    return recount(part, schema, k, subjects, models, whole=whole)


def merged_verdicts(parts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on all parts of a table, no class of which lies in two parts."""
    first, sizes = parts[0], Counter[int]()
    for part in parts:
        sizes.update(part.sizes)
    return replace(
        first,
        n_records=sum(part.n_records for part in parts),
        n_classes=sum(part.n_classes for part in parts),
        smallest=min(part.smallest for part in parts),
        sizes=dict(sorted(sizes.items())),
        n_below=sum(part.n_below for part in parts),
        subjects=None if first.subjects is None else min(part.subjects or 0 for part in parts),
        confidential={
            name: _diversity([part.confidential[name] for part in parts], [part.n_records for part in parts])
            for name in first.confidential
        },
        models=tuple(_reached(found) for found in zip(*(part.models for part in parts), strict=True)),
    )


def _diversity(parts: Sequence[Diversity], sizes: Sequence[int]) -> Diversity:
    """Return the worst of all parts, and the mean over their records."""
    worst = parts[0]
    for part in parts[1:]:
        worst = worst.or_worse(part)
    total = sum((part.exact_mean_t * size for part, size in zip(parts, sizes, strict=True)), Fraction(0))
    return replace(worst, exact_mean_t=total / sum(sizes))


def _reached(parts: Sequence[Reached]) -> Reached:
    """Return the recount of a model in all parts together."""
    first, n_classes = parts[0], sum(part.n_classes for part in parts)
    values = np.concatenate([part.values for part in parts])
    best = min if first.model.best == "high" else max
    return replace(
        first,
        value=best(part.value for part in parts),
        mean=math.fsum(values) / n_classes,
        n_classes=n_classes,
        n_failing=sum(part.n_failing for part in parts),
        holds=all(part.holds for part in parts),
        values=values,
    )
