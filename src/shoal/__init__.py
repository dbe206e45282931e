"""shoal: k-anonymous microaggregation. A fish is safe in its shoal."""

from importlib.metadata import version

from shoal.errors import FileError, GuaranteeError, ParameterError, SchemaError, ShoalError
from shoal.partition import partition

__version__ = version("shoal")

__all__ = ["FileError", "GuaranteeError", "ParameterError", "SchemaError", "ShoalError", "__version__", "partition"]
