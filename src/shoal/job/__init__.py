"""Jobs: the settings of a release as one object, as a file, and the checks that they pass before any work."""

from shoal.job.job import (
    Input,
    IntervalForm,
    Job,
    Late,
    Models,
    Order,
    Output,
    RedisSettings,
    SparkSettings,
    StreamRules,
    StreamSettings,
    TableOfPersons,
    Writing,
)

__all__ = [
    "Input",
    "IntervalForm",
    "Job",
    "Late",
    "Models",
    "Order",
    "Output",
    "RedisSettings",
    "SparkSettings",
    "StreamRules",
    "StreamSettings",
    "TableOfPersons",
    "Writing",
]
