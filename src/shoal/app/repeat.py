"""Repeat: the Python script and the shell command that make the same release as a job."""

import shlex
from typing import Any

from shoal.inspection import column_options, reading_options
from shoal.job import Job
from shoal.models import Model
from shoal.models.serialization import settings_in, settings_of
from shoal.spelling import as_listed, as_plain_text, option_name

_PLAIN = {
    "method",
    "objective",
    "scaling",
    "missing",
    "rho",
    "truthful",
    "intervals",
    "rare_patterns",
    "seed",
    "strict",
}


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


def script_of(job: Job) -> str:
    """Return a Python program that makes and writes the release of a job.

    Examples
    --------
    >>> roles = {"quasi_identifiers": ["age"]}
    >>> print(script_of(Job.of(k=5, roles=roles, seed=1, input={"path": "a.csv"}, output={"path": "b.csv"})))
    import shoal
    <BLANKLINE>
    release = shoal.anonymize(
        'a.csv',
        k=5,
        seed=1,
        quasi_identifiers=['age'],
    )
    release.write(
        'b.csv',
        force=True,
    )
    print(release)
    <BLANKLINE>
    """
    assert job.input is not None
    assert job.output is not None
    method = {} if job.method == "auto" else {"method": job.method}
    making = _call({"k": job.k, **method, **arguments_of(job)})
    written = job.output.model_dump(by_alias=True, exclude_defaults=True, exclude={"path"})
    writing = _call({**written, "force": True})
    return (
        f"import shoal\n\nrelease = shoal.anonymize(\n    {job.input.path!r},\n{making})\n"
        f"release.write(\n    {job.output.path!r},\n{writing})\nprint(release)\n"
    )


def _call(arguments: dict[str, Any]) -> str:
    return "".join(f"    {name}={_literal(value)},\n" for name, value in arguments.items())


def _literal(value: Any) -> str:
    """Return a value as Python writes it; a model by its name in the package."""
    if isinstance(value, list) and value and isinstance(value[0], Model):
        return f"[{', '.join(f'shoal.{model!r}' for model in value)}]"
    return repr(value)


def command_of(job: Job) -> str:
    """Return a command line that makes the release of a job.

    Examples
    --------
    >>> roles = {"quasi_identifiers": ["age", "zip code"], "identifiers": ["name"]}
    >>> command_of(Job.of(k=5, roles=roles, seed=1, input={"path": "a.csv"}, output={"path": "b.csv"}))
    "shoal anonymize a.csv -k 5 --identifiers name --quasi-identifiers 'age,zip code' --seed 1 -o b.csv --force"
    """
    assert job.input is not None
    assert job.output is not None
    words = ["shoal", "anonymize", job.input.path, "-k", str(job.k)]
    roles = job.roles.model_dump(exclude_defaults=True, exclude_none=True)
    for name, value in roles.items():
        words += [option_name(name), ",".join(map(as_listed, value)) if isinstance(value, tuple | list) else value]
    for name, value in job.model_dump(exclude_defaults=True, include=_PLAIN).items():
        words += [option_name(name)] if value is True else [option_name(name), str(value)]
    for column, settings in job.columns.items():
        words += column_options(column, settings.model_dump(exclude_defaults=True, mode="json"))
    words += [word for model in job.models for word in _of_model(model)]
    words += [word for name in job.accept for word in ("--accept", name)]
    words += [word for name, weight in job.steer.items() for word in ("--steer", f"{as_listed(name)}={weight:g}")]
    words += [word for name, value in job.options.items() for word in ("--options", f"{name}={as_plain_text(value)}")]
    words += reading_options(job.input.reading())
    return shlex.join([*words, *_written(job)])


def _of_model(model: Model) -> list[str]:
    settings = settings_of(model)
    column, bound, *_ = (each.name for each in settings_in(type(model)))
    further = [f"{name}={value}" for name, value in settings.items() if name not in ("model", column, bound)]
    return [f"--{model.name}", ",".join([f"{as_listed(model.column)}={settings[bound]}", *further])]


def _written(job: Job) -> list[str]:
    assert job.output is not None
    output = job.output.model_dump(by_alias=True, exclude_defaults=True)
    words = ["-o", output.pop("path")]
    return [
        *words,
        *(word for name, value in output.items() for word in (f"--{name.replace('_', '-')}", str(value))),
        "--force",
    ]
