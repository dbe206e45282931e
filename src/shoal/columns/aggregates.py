"""Aggregates: how the records of a cell become one value, and what each of these ways fits and states.

An aggregate is a file of `shoal.aggregate` with a function ``(values, column, members) -> one value for each cell`` and
an entry here. A mean, median, mode or medoid is close to the values of a cell; one that publishes a coarse form (an
interval, a set, an ancestor, a period) is true of every one of them.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from shoal.settings import OneOf

Form = Literal["interval", "set", "ancestor", "period"]
"""What a coarse value is: how it is made from all records, read back, recounted and weighed (`shoal.columns.coarse`).
An ancestor needs a hierarchy, a period dates; intervals are open where values were top or bottom coded."""

NUMERIC, ORDINAL, NOMINAL, DATE = "numeric", "ordinal", "nominal", "date"
ANY = (NUMERIC, ORDINAL, NOMINAL, DATE)
"""The values of `shoal.columns.schema.Kind`."""


@dataclass(frozen=True)
class Aggregate:
    """A way in which the records of a cell become one value.

    Attributes
    ----------
    publish : str
        File and function in `shoal.aggregate`. The function takes the values that are not missing, the column and the
        members of the cells.
    sentence, words, choice : str
        What the value is: in a sentence and in a table of reports, and among the choices of the app.
    kinds : tuple of str
        Kinds of columns that it fits.
    unfit : str
        What a message says about columns of other kinds.
    default_of, default_of_trees : tuple of str
        Kinds of columns for which it is the default, among those that are true or those that are close; of columns
        without and with a hierarchy.
    form : str, optional
        The form of its values, where they are true of every record; None where they are close to them.
    setting : str, optional
        The setting of columns that no other aggregate uses.
    picks : bool
        Whether it publishes a value that records of the cell have, in the type of the column.
    counts : bool
        Whether it looks at the values of the whole table, which engines by blocks then count first.
    by_blocks : bool
        Whether engines can make it block by block, where it is close to the values.
    note : str
        What the description of the setting ``aggregate`` adds.
    """

    publish: str
    sentence: str
    words: str
    choice: str
    kinds: tuple[str, ...] = ANY
    unfit: str = ""
    default_of: tuple[str, ...] = ()
    default_of_trees: tuple[str, ...] = ()
    form: Form | None = None
    setting: str | None = None
    picks: bool = False
    counts: bool = False
    by_blocks: bool = True
    note: str = ""

    @property
    def is_true(self) -> bool:
        """Whether its values are true of every record of their cell."""
        return self.form is not None


AGGREGATES: dict[str, Aggregate] = {
    "mean": Aggregate(
        "mean.means",
        "the mean of the group",
        "mean of the group",
        "the mean",
        kinds=(NUMERIC, DATE),
        unfit="has no mean. Use median or mode.",
        default_of=(NUMERIC, DATE),
    ),
    "median": Aggregate(
        "median.medians",
        "the median of the group",
        "median of the group",
        "the median",
        kinds=(NUMERIC, ORDINAL, DATE),
        unfit="has no median. Use mode, or declare it ordinal.",
        default_of=(ORDINAL,),
    ),
    "mode": Aggregate(
        "mode.modes",
        "the most frequent value of the group",
        "most frequent in the group",
        "the most frequent value",
        default_of=(NOMINAL,),
        picks=True,
        counts=True,
    ),
    "withhold": Aggregate(
        "mode.shared_modes",
        "the most frequent value of the group, or none where only one record has it",
        "most frequent in the group, if two records have it",
        "the most frequent value, or missing where only one record has it",
        kinds=(NOMINAL,),
        unfit="has no values to withhold. Use median or mode, or declare it nominal.",
        picks=True,
        counts=True,
        note="missing where one record has the mode",
    ),
    "medoid": Aggregate(
        "medoid.medoids",
        "the value of the group that is nearest to all others",
        "medoid of the group",
        "the values of the record in its middle",
        default_of_trees=(NOMINAL,),
        picks=True,
    ),
    "interval": Aggregate(
        "interval.intervals",
        "an interval that holds every value of the group",
        "interval, true of every record",
        "the range of its values",
        kinds=(NUMERIC,),
        unfit="has no intervals. Use set, or period for dates.",
        default_of=(NUMERIC,),
        form="interval",
        setting="step",
    ),
    "set": Aggregate(
        "value_set.value_sets",
        "the set of the values of the group",
        "set, true of every record",
        "the set of its values",
        default_of=(ORDINAL, NOMINAL),
        form="set",
    ),
    "ancestor": Aggregate(
        "ancestor.ancestors",
        "the lowest group of the hierarchy that holds every value of the group",
        "common ancestor in the hierarchy, true of every record",
        "the smallest group of the hierarchy that holds them all",
        default_of_trees=ANY,
        form="ancestor",
        setting="level",
    ),
    "period": Aggregate(
        "period.periods",
        "a period that holds every date of the group",
        "period, true of every record",
        "the period of its dates",
        default_of=(DATE,),
        form="period",
        setting="precision",
    ),
}
"""Every aggregate, by the name that a user gives."""


def default_aggregate(kind: str, truthful: bool, has_tree: bool) -> str:
    """Return the aggregate of columns of a kind for which none is set."""
    of_kind = {name: entry for name, entry in AGGREGATES.items() if entry.is_true == truthful}
    with_tree = [name for name, entry in of_kind.items() if has_tree and kind in entry.default_of_trees]
    return [*with_tree, *(name for name, entry in of_kind.items() if kind in entry.default_of)][0]


def described() -> str:
    """Return the choices in words, for help."""
    close = [name + (f" ({entry.note})" if entry.note else "") for name, entry in AGGREGATES.items() if not entry.form]
    true = [name for name, entry in AGGREGATES.items() if entry.form]
    return f"{', '.join(close)}, or, true of every record, {', '.join(true)}; by default by kind"


AggregateName = Annotated[str, OneOf(AGGREGATES)]
"""The name of an aggregate, as a user gives it."""
