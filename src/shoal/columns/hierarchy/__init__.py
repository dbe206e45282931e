"""Hierarchies of values: read from a file, or built by a rule. One rule per file, and the registry."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.hierarchy.calendar import calendar
from shoal.columns.hierarchy.hierarchy_files import read_hierarchy
from shoal.columns.hierarchy.prefix import prefix
from shoal.columns.hierarchy.steps import steps
from shoal.columns.hierarchy.tree import Hierarchy, leaf_texts
from shoal.columns.schema import Outside
from shoal.errors import SchemaError, did_you_mean
from shoal.spelling import setting

__all__ = ["RULES", "Coverage", "Hierarchy", "coverage", "hierarchy_of", "read_hierarchy", "rule_of"]

RULES: dict[str, Callable[[pa.ChunkedArray, list[str], str], Hierarchy]] = {
    "prefix": prefix,
    "steps": steps,
    "calendar": calendar,
}
"""How a hierarchy follows from the values themselves; written ``NAME:A,B,..``."""


def rule_of(given: str) -> str | None:
    """Return the name of the rule in ``prefix:1,3``; None for the path of a file.

    Examples
    --------
    >>> rule_of("prefix:1,3"), rule_of("calendar"), rule_of("isco.csv")
    ('prefix', 'calendar', None)
    """
    name, colon, _ = given.partition(":")
    if name in RULES:
        return name
    if colon and (hint := did_you_mean(name, known=RULES)):
        raise SchemaError(f"There is no rule {name!r} for a hierarchy.{hint} Rules: {', '.join(RULES)}.")
    return None


def hierarchy_of(given: str, values: pa.ChunkedArray, name: str, outside: Outside = "error") -> Hierarchy:
    """Return the hierarchy of a column: every value of it is a leaf.

    Parameters
    ----------
    given : str
        Path of a file, or a rule such as ``prefix:1,3``.
    values : pyarrow.ChunkedArray
        The prepared values.
    name : str
        Name of the column, for messages.
    outside : {"error", "root"}
        What to do with values that a file does not list.

    Raises
    ------
    SchemaError
        If the file is not a hierarchy, or values of the column are missing from it.
    """
    rule = rule_of(given)
    if rule is not None:
        arguments = [part.strip() for part in given.partition(":")[2].split(",") if part.strip()]
        return RULES[rule](values, arguments, f"The hierarchy {given!r} of column {name!r}")
    found = read_hierarchy(given)
    covered = coverage(found, values)
    if covered.absent and outside == "root":
        _refuse_ambiguous(covered.absent, found, given, name)
        return found.with_leaves(covered.absent)
    if covered.absent:
        raise SchemaError(
            f"{covered.n_records:,} of {len(values):,} records have values in column {name!r} that the hierarchy in "
            f"{given!r} does not list ({len(covered.absent):,} different).{covered.hint} Add them to the file, correct "
            f"their spelling, or put them directly under the root: {setting('outside', 'root', column=name)}. To see "
            "them, use `shoal hierarchy --show-values`."
        )
    return found


def _refuse_ambiguous(absent: tuple[str, ...], hierarchy: Hierarchy, given: str, name: str) -> None:
    """Refuse values that under the root would be written like something else."""
    groups = set(hierarchy.labels) - {hierarchy.labels[hierarchy.root]}
    n_ambiguous = sum(text in groups or text.endswith(" or missing") for text in absent)
    if n_ambiguous:
        raise SchemaError(
            f"{n_ambiguous:,} of the values in column {name!r} that the hierarchy in {given!r} does not list are "
            "called like one of its groups, or end with ' or missing', so that directly under the root a published "
            "label would be ambiguous. Add them to the file as values of their groups, or declare them as missing "
            "codes."
        )


class Coverage:
    """Which values of a column a hierarchy does not list.

    Attributes
    ----------
    absent : tuple of str
        The values, in ascending order. They are values of the table: not for messages.
    n_records : int
        Number of records that have them.
    n_respelled : int
        How many of `absent` equal a leaf apart from case, blanks, hyphens and underscores.
    """

    def __init__(self, absent: tuple[str, ...], n_records: int, n_respelled: int) -> None:
        self.absent, self.n_records, self.n_respelled = absent, n_records, n_respelled

    @property
    def hint(self) -> str:
        """A sentence, after a space, if spelling explains some of them; or an empty string."""
        if not self.n_respelled:
            return ""
        return f" {self.n_respelled:,} of them would be listed but for spelling (case, blanks, hyphens)."


def coverage(hierarchy: Hierarchy, values: pa.ChunkedArray) -> Coverage:
    """Find the values of a column that are not leaves of a hierarchy."""
    texts = leaf_texts(values)
    is_absent = (hierarchy.leaf_codes(values) < 0) & np.asarray(texts.is_valid())
    absent = tuple(sorted(pc.unique(texts.filter(pa.array(is_absent))).to_pylist()))
    plain = {_plainly(leaf) for leaf in hierarchy.leaves}
    return Coverage(absent, int(is_absent.sum()), sum(_plainly(text) in plain for text in absent))


def _plainly(text: str) -> str:
    """Return a text without what spellings of one value differ in."""
    return "".join(character for character in text.lower() if character.isalnum())
