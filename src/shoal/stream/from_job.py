"""The stream that a job file, or the options of a command, describe."""

from typing import Any

from shoal.errors import ParameterError
from shoal.job import Job
from shoal.spelling import setting
from shoal.stream.stream import Stream

_OF_A_RELEASE = (
    *("method", "objective", "scaling", "rho", "steer", "truthful", "intervals", "options"),
    *("input", "output", "late", "engine", "memory", "rare_patterns", "strict", "tables"),
    *("after", "may_withhold", "leavers", "reserve"),
)
_NOT_HERE = ("by", "household", "household_level", "keep_link", "link_order", "weights", "key")


SPARK = "spark"
"""The engine of a job whose stream is a query of Spark."""


def stream_of(job: Job, tracked: str) -> Stream:
    """Return the stream of a job that has a table ``[stream]``.

    Parameters
    ----------
    job : Job
        With k, roles, columns, models and missing as for a release.
    tracked : str
        The column that gives the origin of a tuple.

    Raises
    ------
    ParameterError
        If the job has no such table, or sets a key that a stream does not support.
    """
    options = options_of(job)
    if job.engine == SPARK:
        raise ParameterError(
            "The job runs on Spark, where a stream is a part of a query that a script starts: released = "
            "shoal.spark.stream(events, job='JOB.toml'), then released.writeStream. Submit that script with "
            f"spark-submit; or leave out {setting('engine', SPARK)}."
        )
    if job.stream is not None and job.stream.spark is not None:
        raise ParameterError(
            f"stream.spark is set in the job, which only {setting('engine', SPARK)} uses. Leave it out."
        )
    return Stream(**options, tracked=[tracked])


def options_of(job: Job) -> dict[str, Any]:
    """Return the options of the stream of a job, by the names of the arguments of `Stream`."""
    if job.stream is None:
        raise ParameterError(
            "The job has no table [stream], so it is one for `shoal run`. Say when a tuple is due there."
        )
    unused = [name for name in _OF_A_RELEASE if getattr(job, name) not in (Job.model_fields[name].default, SPARK)]
    unused += [f"roles.{name}" for name in _NOT_HERE if getattr(job.roles, name)]
    if unused:
        raise ParameterError(f"{', '.join(unused)} is set in the job, but streams do not support it. Leave it out.")
    if not job.roles.quasi_identifiers:
        raise ParameterError("Say which columns are quasi-identifiers: --quasi-identifiers age,zip.")
    return {
        "k": job.k,
        "quasi_identifiers": job.roles.quasi_identifiers,
        "identifiers": job.roles.identifiers,
        "confidential": job.roles.confidential,
        "other": job.roles.other,
        "subject": job.roles.subject,
        "columns": job.columns,
        "models": job.models,
        "missing": job.missing,
        "seed": job.seed,
        **job.stream.model_dump(exclude={"redis", "spark"}),
    }
