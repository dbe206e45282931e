"""shoal: k-anonymous microaggregation. A fish is safe in its shoal.

What a table needs is imported when it is first used, so that `import shoal` stays quick.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from shoal.errors import FileError, GuaranteeError, ParameterError, SchemaError, ShoalError, ShoalWarning
from shoal.partition import partition

if TYPE_CHECKING:
    from shoal.auditing import audit
    from shoal.comparison import Comparison, compare
    from shoal.estimator import Microaggregator
    from shoal.inspection import Inspection, inspect
    from shoal.job import Job
    from shoal.release import Release, anonymize, run
    from shoal.stream import Stream

__version__ = version("shoal")

__all__ = [
    "Comparison",
    "FileError",
    "GuaranteeError",
    "Inspection",
    "Job",
    "Microaggregator",
    "ParameterError",
    "Release",
    "SchemaError",
    "ShoalError",
    "ShoalWarning",
    "Stream",
    "__version__",
    "anonymize",
    "audit",
    "compare",
    "inspect",
    "partition",
    "run",
]

_HOMES = {
    "Comparison": "comparison",
    "Inspection": "inspection",
    "Job": "job",
    "Microaggregator": "estimator",
    "Release": "release",
    "Stream": "stream",
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
