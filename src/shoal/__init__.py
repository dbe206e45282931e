"""shoal: k-anonymous microaggregation. A fish is safe in its shoal.

Modules that handle tables are imported on first use, so that `import shoal` stays fast.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from shoal.errors import FileError, GuaranteeError, ParameterError, SchemaError, ShoalError, ShoalWarning
from shoal.extras import DISTRIBUTION
from shoal.partition import partition
from shoal.partition.steer import steer

if TYPE_CHECKING:
    from shoal.auditing import audit
    from shoal.comparison import Comparison, compare
    from shoal.estimator import Microaggregator
    from shoal.inspection import Inspection, inspect
    from shoal.job import Job
    from shoal.models import DeltaDisclosure, LDiversity, PSensitive, TCloseness
    from shoal.release import Release, anonymize, run
    from shoal.stream import Stream

__version__ = version(DISTRIBUTION)

__all__ = [
    "Comparison",
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
    "audit",
    "compare",
    "inspect",
    "partition",
    "run",
    "steer",
]

_HOMES = {
    "Comparison": "comparison",
    "DeltaDisclosure": "models",
    "Inspection": "inspection",
    "Job": "job",
    "LDiversity": "models",
    "Microaggregator": "estimator",
    "PSensitive": "models",
    "Release": "release",
    "Stream": "stream",
    "TCloseness": "models",
    "anonymize": "release",
    "audit": "auditing",
    "compare": "comparison",
    "inspect": "inspection",
    "run": "release",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"shoal.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'shoal' has no attribute {name!r}")
