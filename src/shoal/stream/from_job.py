"""The stream that a job file, or the options of a command, describe."""

from shoal.errors import ParameterError
from shoal.job import Job
from shoal.stream.flow import Stream

_OF_A_RELEASE = (
    *("method", "objective", "scaling", "rho", "steer", "truthful", "intervals", "options"),
    *("input", "output", "late", "engine", "memory", "rare_patterns", "strict"),
)
_NOT_HERE = ("by", "household", "household_level", "keep_link", "link_order", "weights")


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
    if job.stream is None:
        raise ParameterError(
            "The job has no table [stream], so it is one for `shoal run`. Say when a tuple is due there."
        )
    unused = [name for name in _OF_A_RELEASE if getattr(job, name) != Job.model_fields[name].default]
    unused += [f"roles.{name}" for name in _NOT_HERE if getattr(job.roles, name)]
    if unused:
        raise ParameterError(f"{', '.join(unused)} is set in the job, but streams do not support it. Leave it out.")
    if not job.roles.quasi_identifiers:
        raise ParameterError("Say which columns are quasi-identifiers: --quasi-identifiers age,zip.")
    return Stream(
        job.k,
        quasi_identifiers=job.roles.quasi_identifiers,
        identifiers=job.roles.identifiers,
        confidential=job.roles.confidential,
        other=job.roles.other,
        subject=job.roles.subject,
        columns=job.columns,
        models=job.models,
        missing=job.missing,
        seed=job.seed,
        tracked=[tracked],
        **job.stream.model_dump(exclude={"redis"}),
    )
