"""shoal: k-anonymous microaggregation. A fish is safe in its shoal.

The main functions, in the order of use:

inspect
    Describe a table: its contents, values that may be misread, and the roles its columns may have.
anonymize
    Make a table k-anonymous: a `Release`, with its verdict, loss, risk and report.
compare
    Try several k and methods, and compare risk and loss.
audit
    Recount the guarantees of a published table, from shoal or from another tool, and compare it with the originals.
audit_series
    Recount what several releases of overlapping people tell together.
attack
    Try attacks on a published table whose originals are at hand.
read_published
    Read a published column of intervals, periods, sets or ancestors for analysis.
run
    Execute a job file, as ``shoal run`` does.
partition
    Split a matrix into cells of at least k similar records: the algorithms alone.

`Stream` anonymizes streams of records, `Microaggregator` is a scikit-learn transformer; `TCloseness`, `LDiversity` and
other models guarantee more than k. Modules that handle tables are imported on first use, so that ``import shoal`` stays
fast.
"""

from shoal import interrupts  # noqa: F401 - catches Ctrl-C while the rest is imported

# isort: split
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from shoal.distribution import DISTRIBUTION
from shoal.errors import (
    DatabaseError,
    FileError,
    GuaranteeError,
    ParameterError,
    SchemaError,
    ShoalError,
    ShoalWarning,
)
from shoal.methods import partition
from shoal.methods.steer import steer

if TYPE_CHECKING:
    from shoal import datasets as datasets
    from shoal import dp as dp
    from shoal import measures as measures
    from shoal import models as models
    from shoal import sources as sources
    from shoal import spark as spark
    from shoal.auditing import audit
    from shoal.auditing.attacks import attack
    from shoal.auditing.series import audit_series
    from shoal.columns.coarse import read_published
    from shoal.comparison import Comparison, compare
    from shoal.estimator import Microaggregator
    from shoal.inspection import Inspection, inspect
    from shoal.job import Job
    from shoal.models import AlphaK, BetaLikeness, DeltaDisclosure, LDiversity, PSensitive, TCloseness
    from shoal.output.release import Release
    from shoal.release import anonymize, run
    from shoal.stream import Stream

__version__ = version(DISTRIBUTION)

__all__ = [
    "AlphaK",
    "BetaLikeness",
    "Comparison",
    "DatabaseError",
    "DeltaDisclosure",
    "FileError",
    "GuaranteeError",
    "Inspection",
    "Job",
    "LDiversity",
    "Microaggregator",
    "PSensitive",
    "ParameterError",
    "Release",
    "SchemaError",
    "ShoalError",
    "ShoalWarning",
    "Stream",
    "TCloseness",
    "__version__",
    "anonymize",
    "attack",
    "audit",
    "audit_series",
    "compare",
    "inspect",
    "partition",
    "read_published",
    "run",
    "steer",
]

_HOMES = {
    "AlphaK": "models",
    "BetaLikeness": "models",
    "Comparison": "comparison",
    "DeltaDisclosure": "models",
    "Inspection": "inspection",
    "Job": "job",
    "LDiversity": "models",
    "Microaggregator": "estimator",
    "PSensitive": "models",
    "Release": "output.release",
    "Stream": "stream",
    "TCloseness": "models",
    "anonymize": "release",
    "attack": "auditing.attacks",
    "audit": "auditing",
    "audit_series": "auditing.series",
    "compare": "comparison",
    "inspect": "inspection",
    "read_published": "columns.coarse",
    "run": "release",
}


_ROOMS = ("datasets", "dp", "measures", "models", "sources", "spark")
"""Modules with functions for users, imported on first use too."""


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"shoal.{name}")
    if name in _HOMES:
        return getattr(import_module(f"shoal.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'shoal' has no attribute {name!r}")
