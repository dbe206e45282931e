"""Certainty: cells whose ranges, sets and ancestors say as much as possible, instead of cells with near means.

The objective is the normalised certainty penalty (NCP; Xu et al., KDD 2006). The initial partition is that of ``auto``
in a space scaled as the penalty counts, or one that is cut along hierarchies. Models are enforced there. Then whole
groups of records change cells, where there are hierarchies, and random moves and swaps of single records lower the
penalty further (``docs/ncp.md``).
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal import kernels
from shoal.columns.schema import Schema
from shoal.constraints.constraints import Constraints
from shoal.constraints.enforce import enforce
from shoal.errors import ParameterError
from shoal.methods import ALGORITHMS, partition
from shoal.methods.algorithm import check_options
from shoal.methods.auto import check_effort, entropy_of
from shoal.methods.cell_building import members_of, renumbered
from shoal.methods.within_strata import within
from shoal.models import Model
from shoal.models.model_on_column import vetoes_of
from shoal.progress import OneTotal
from shoal.space.ncp_weights import NcpColumn, Tree, ncp_columns
from shoal.typing import Labels, Matrix, Progress, Seed

METHODS = ("auto",)
"""Methods whose partition can be improved for the certainty penalty."""

# Number of steps per record, and of rounds, at normal effort: more for small tables, where they take no time.
SMALL = 5_000
SMALL_STEPS = 300
STEPS = 48
ROUNDS = 8
# The budget of effort="best" is counted in steps, not in time, so that a seed gives the same result on any machine.
STEPS_PER_SECOND = 1_000_000
BEST_ROUNDS = 32
# The same for steps that change whole groups of records, which are taken where there are hierarchies.
SMALL_RECODINGS = 30
RECODINGS = 3
RECODINGS_PER_SECOND = 50_000
# Share of the progress that the initial partition takes.
START = 0.4
# Share of the search that changes whole groups, where it does.
RECODED = 0.5


def check_objective(
    objective: str,
    method: str,
    schema: Schema,
    models: Sequence[Model] = (),
    steering: Collection[str] = (),
    rho: float | None = None,
) -> None:
    """Refuse an objective that the method does not have, and settings that it would ignore."""
    if objective == "sse":
        return
    if method not in METHODS:
        raise ParameterError(
            f"The objective {objective!r} was asked for with method {method!r}, which has no objective: it makes cells "
            f"by distance alone. Choose method {' or '.join(map(repr, METHODS))}, or leave the objective out."
        )
    contradictions = {
        "households, which are grouped whole": schema.roles.household is not None,
        "random aggregation (rho), which publishes no ranges": bool(rho),
        "steering columns (steer), which lead cells by distance": bool(steering),
        "a model with a weight, which leads cells by distance": not all(model.promised for model in models),
    }
    for reason, holds in contradictions.items():
        if holds:
            raise ParameterError(
                f"The objective {objective!r} cannot be combined with {reason}. Leave one of them out."
            )


def certain_cells(
    table: pa.Table,
    schema: Schema,
    k: int,
    constraints: Constraints,
    seed: Seed = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Labels:
    """Return cells of a low certainty penalty that satisfy every constraint.

    Parameters
    ----------
    table : pyarrow.Table
        As `shoal.columns.prepare.prepare` returns it.
    schema : Schema
        How each quasi-identifier is published, which says how it counts.
    k : int
        Smallest cell size.
    constraints : Constraints
        Strata, persons with several records, and models.
    seed, **options
        As those of `shoal.methods.auto`.

    Notes
    -----
    Near-linear in the records. The result depends on the seed, not on the number of threads.
    """
    check_options(ALGORITHMS["auto"].function, "Objective 'ncp'", options)
    settings = {"effort": "normal", "seconds": None, "interrupt": "raise", **options}
    check_effort(**settings)
    columns = list(ncp_columns(table, schema).values())
    X = np.ascontiguousarray(np.hstack([column.encode() for column in columns]))
    whole = OneTotal(progress, len(X))

    def cut(X: Matrix, threads: int, progress: Progress | None) -> Labels:
        return partition(X, k, "auto", seed, threads=threads, progress=progress)

    labels = within(X, constraints.strata, cut, whole.part(0.0, START))
    if _has_trees(columns):
        labels = _better(columns, labels, _specialised(columns, k, constraints.strata))
    if constraints.models:
        labels = enforce(X, labels, k, constraints.models, strata=constraints.strata)
    recoded = RECODED if _has_trees(columns) else 0.0
    budget = _budget(len(X), k, settings["effort"], settings["seconds"], recoded)
    try:
        labels = _searched(columns, X, labels, constraints, k, budget, entropy_of(seed), whole)
    except kernels.Interrupted as stopped:
        if settings["interrupt"] == "raise":
            raise
        labels = stopped.labels
    whole.finish()
    return renumbered(labels)


def _has_trees(columns: Sequence[NcpColumn]) -> bool:
    """Return whether an ancestor is published: one that many records share cannot be lowered by moving single ones."""
    return any(isinstance(column, Tree) for column in columns)


def _table_of(columns: Sequence[NcpColumn], records: Labels) -> kernels.NcpTable:
    """Return some of the records as the kernels take them."""
    table = kernels.NcpTable(len(records))
    for column in columns:
        column.add_to(table, records)
    return table


def _specialised(columns: Sequence[NcpColumn], k: int, strata: Labels) -> Labels:
    """Return the cells that cuts along hierarchies make in each stratum."""
    labels, n_cells = np.empty_like(strata), 0
    for records in members_of(strata):
        labels[records] = kernels.ncp_specialise(_table_of(columns, records), k) + n_cells
        n_cells = int(labels[records].max()) + 1
    return labels


def _better(columns: Sequence[NcpColumn], one: Labels, other: Labels) -> Labels:
    """Return the cells of the lower penalty."""

    def loss(labels: Labels) -> float:
        sizes = np.bincount(labels)
        return float(sum(column.weight * column.ncp_of(labels, len(sizes)) @ sizes for column in columns))

    return other if loss(other) < loss(one) else one


class SearchLength(NamedTuple):
    """Length of the search."""

    recodings: float  # steps per record that change whole groups
    steps: float  # and single records
    rounds: int
    hot: float
    fall: float


def _budget(n_records: int, k: int, effort: str, seconds: float | None, recoded: float) -> SearchLength:
    """Return the length of the search, of which a share changes whole groups; a long one begins hotter."""
    # A step that is taken recounts all records of two cells.
    ease = min(1.0, 10 / k)
    small = n_records <= SMALL
    recodings = (SMALL_RECODINGS if small else RECODINGS) * float(recoded > 0)
    steps = ease * (SMALL_STEPS if small else STEPS)
    if effort != "best":
        return SearchLength(recodings, steps, ROUNDS, hot=0.3, fall=4)
    given = (60 if seconds is None else seconds) / n_records
    return SearchLength(
        max(recoded * given * RECODINGS_PER_SECOND, recodings),
        max((1 - recoded) * given * ease * STEPS_PER_SECOND, steps),
        BEST_ROUNDS,
        hot=0.5,
        fall=5,
    )


def _searched(
    columns: Sequence[NcpColumn],
    X: Matrix,
    labels: Labels,
    constraints: Constraints,
    k: int,
    budget: SearchLength,
    seed: int,
    whole: OneTotal,
) -> Labels:
    """Lower the penalty within each stratum."""
    vetoes = vetoes_of(constraints.models)
    result, n_done = labels.copy(), 0
    unused = int(labels.max()) + 1  # strata that are not searched yet keep their numbers
    for records in members_of(constraints.strata):
        start = renumbered(labels[records])
        table, kept = _table_of(columns, records), vetoes.part(records)
        schedule = kernels.Schedule(round(budget.steps * len(records)), budget.hot, budget.fall)
        shares = [START + (1 - START) * n / len(X) for n in (n_done, n_done + len(records))]
        recoded = shares[0] + (shares[1] - shares[0]) * (RECODED if budget.recodings else 0.0)
        try:
            with kernels.using(progress=whole.part(shares[0], recoded)):
                start = kernels.ncp_recode(table, start, k, kept, round(budget.recodings * len(records)), seed)
            with kernels.using(progress=whole.part(recoded, shares[1])):
                found = kernels.ncp_search(table, X[records], start, k, kept, budget.rounds, schedule, seed)
        except kernels.Interrupted as stopped:
            result[records] = unused + stopped.labels
            raise kernels.Interrupted(result) from None
        result[records] = unused + found
        unused += int(found.max()) + 1
        n_done += len(records)
    return result
