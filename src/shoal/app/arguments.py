"""Arguments: what a job says, as the arguments of `shoal.anonymize` and of `shoal.compare`."""

from typing import Any

from shoal.job import Job


def arguments_of(job: Job) -> dict[str, Any]:
    """Return the settings of a job that differ from the defaults, by the names of arguments; without files and k.

    Examples
    --------
    >>> arguments_of(Job.of(k=5, roles={"quasi_identifiers": ["age"]}, seed=1, input={"path": "a.csv", "decimal": ","}))
    {'seed': 1, 'quasi_identifiers': ['age'], 'reading': {'decimal': ','}}
    """
    content = job.model_dump(by_alias=True, exclude_defaults=True, mode="json")
    for name in ("k", "method", "output", "stream", "late", "input", "models"):
        content.pop(name, None)
    roles, options = content.pop("roles", {}), content.pop("options", {})
    found = {**content, **roles, **options}
    if job.models:
        found["models"] = list(job.models)
    reading = {} if job.input is None else job.input.reading()
    return found | ({"reading": reading} if reading else {})
