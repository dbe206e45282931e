"""Disclosure risk: how well an intruder who holds the original values re-identifies people in the release.

Some measures use distances (`linkage`, `matching`), some a single column (`interval_disclosure`), some only the
equivalence classes (`class_risk`, `uniqueness`). ``docs/risk.md`` describes the intruder of each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.measures.class_risk import ClassRisk, Uniqueness, class_risk, uniqueness
from shoal.measures.interval import Interval, interval_disclosure
from shoal.measures.linkage import Linkage, linkage
from shoal.measures.matching import Matching, matching

__all__ = [
    "ClassRisk",
    "Interval",
    "Linkage",
    "Matching",
    "Risk",
    "Uniqueness",
    "class_risk",
    "interval_disclosure",
    "linkage",
    "matching",
    "uniqueness",
]


@dataclass(frozen=True, eq=False)
class Risk:
    """The risks of a release that were measured.

    Attributes
    ----------
    linkage : Linkage
        By distance, in both directions.
    classes : ClassRisk
        Prosecutor, journalist and marketer, on the released table.
    uniqueness : Uniqueness or None
        Of the original table, if its classes were given.
    intervals : dict of str to Interval
        For each column that was given before and after.
    matching : Matching or None
        In blocks, if requested.
    """

    linkage: Linkage
    classes: ClassRisk
    uniqueness: Uniqueness | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    matching: Matching | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain dicts of numbers and words, for a report."""
        return {
            "linkage": self.linkage.to_dict(),
            "classes": self.classes.to_dict(),
            "uniqueness": self.uniqueness.to_dict() if self.uniqueness else None,
            "intervals": {name: interval._asdict() for name, interval in self.intervals.items()},
            "matching": self.matching.to_dict() if self.matching else None,
        }
