"""Options that commands share. They are generated from the models that make up a job, so that none is missing here."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from pydantic.fields import FieldInfo

from shoal.cli import parsing as typed
from shoal.cli.printing import print_json, quieten
from shoal.columns.schema import ColumnSettings, Roles
from shoal.errors import ShoalError
from shoal.job import Job, Output, RedisSettings, StreamSettings
from shoal.methods import ALGORITHMS
from shoal.models import MODELS, Model
from shoal.models.serialization import accepts, model_of, settings_in
from shoal.settings import Settings, choices, holds_settings
from shoal.sources import FieldReading, Reading
from shoal.spelling import number, option_name
from shoal.typing import holds

F = TypeVar("F", bound=Callable[..., Any])

_NEUTER = (None, (), False)
_READING = [name for name in Reading.model_fields if name != "fields"]


def roles(*wanted: str) -> Callable[[F], F]:
    """Add the options that say what columns are for, all of them or those that are wanted."""
    return _from_model(Roles, "role", wanted or tuple(Roles.model_fields))


def reading(function: F) -> F:
    """Add the options that say how a file is read."""
    for name in reversed(_READING):
        if name in FieldReading.model_fields:
            function = click.option(
                option_name(name),
                f"reading__{name}",
                multiple=True,
                metavar="[COLUMN=]VALUE",
                help=_sentence(f"{Reading.model_fields[name].description}, of all columns or of one"),
            )(function)
        else:
            function = _from_model(Reading, "reading", [name])(function)
    return function


def reading_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the reading options given, as `shoal.sources.read` and a job take them."""
    found = with_prefix(given, "reading")
    found |= {name: number(value) for name, value in found.items() if _is_number(name)}
    fields: dict[str, dict[str, Any]] = {}
    for name in [name for name in found if name in FieldReading.model_fields]:
        for entry in found.pop(name):
            column, value = typed.perhaps_column(entry)
            where = found if column is None else fields.setdefault(column, {})
            if name == "null_values":
                where[name] = (*where.get(name, ()), *typed.split(value))
            elif name in where:
                raise click.BadParameter("it is given twice.", param_hint=option_name(name))
            else:
                where[name] = value
    return found | ({"fields": fields} if fields else {})


def reading_of_another(name: str, help_: str) -> Callable[[F], F]:
    """Add the option that says how a second file is read, as ``NAME=VALUE``."""

    def parsed(context: click.Context, parameter: click.Parameter, given: Iterable[str]) -> dict[str, Any]:
        found = each_once((typed.option(text, parameter.opts[0]) for text in given), parameter.opts[0], "")
        unknown = sorted(set(found) - set(_READING))
        if unknown:
            raise click.BadParameter(f"{unknown[0]!r} is not a reading option.")
        return {
            name: typed.split(str(value)) if holds(Reading.model_fields[name].annotation, tuple) else value
            for name, value in found.items()
        }

    return click.option(
        option_name(name), multiple=True, metavar="NAME=VALUE", callback=parsed, help=f"{help_}: encoding=cp1252."
    )


def _is_number(name: str) -> bool:
    annotation = Reading.model_fields[name].annotation
    return holds(annotation, int) or holds(annotation, float)


def columns(*wanted: str) -> Callable[[F], F]:
    """Add the options that set single columns."""
    return _from_model(ColumnSettings, "column", wanted or tuple(ColumnSettings.model_fields), of_columns=True)


def models(function: F) -> F:
    """Add an option for each privacy model: ``--t-closeness COLUMN=T``, with optional settings after a comma."""
    for name, model in reversed(MODELS.items()):
        column, bound, *others = settings_in(model)
        further = f"[,{others[0].name}=..]" if others else ""
        function = click.option(
            f"--{name}",
            f"model__{_identifier(name)}",
            multiple=True,
            metavar=f"{column.name.upper()}={bound.name.upper()}{further}",
            help=_promise(model),
        )(function)
    return function


def _promise(model: type[Model]) -> str:
    """Return the help of a model: the first line of its description, and its optional settings."""
    sentence = (model.__doc__ or "").strip().splitlines()[0].replace("`", "").split(". ")[0].rstrip(".")
    others = ", ".join(setting.name for setting in settings_in(model)[2:])
    return f"{sentence}." + (f" Further settings: {others}." if others else "")


def models_of(given: dict[str, Any]) -> list[Model]:
    """Return the privacy models that were asked for."""
    asked = with_prefix(given, "model")
    return [_model(name, text) for name in MODELS for text in asked.get(_identifier(name), ())]


def _identifier(name: str) -> str:
    return name.replace("-", "_")


def _model(name: str, text: str) -> Model:
    """Return the model of ``COLUMN=BOUND,NAME=VALUE``."""
    flag, known = f"--{name}", {setting.name: setting for setting in settings_in(MODELS[name])}
    column, values = typed.column_and_value(text, flag)
    bound, *others = typed.split(values) or [""]
    settings = {"column": column, list(known)[1]: bound}
    for key, value in (typed.column_and_value(other, flag) for other in others):
        if key in settings:
            raise click.BadParameter(f"{key!r} is given twice.", param_hint=flag)
        settings[key] = value
    texts = {key for key, setting in known.items() if str in accepts(setting)}
    found = {key: value if key in texts else number(value) for key, value in settings.items()}
    return model_of({"model": name, **found})


threads = click.option("--threads", type=click.IntRange(min=1), help="Number of threads; all cores by default.")
"""The number of threads, which changes no release."""

force = click.option("--force", is_flag=True, help="Replace existing files.")
dry_run = click.option("--dry-run", is_flag=True, help="Check everything and say what would be done; write nothing.")
_quiet = partial(click.option, "-q", "--quiet", is_flag=True, expose_value=False, callback=quieten)
quiet = _quiet(help="Print nothing but warnings and errors.")
no_progress = _quiet(help="Show no progress.")
"""The same, for commands that print what they were asked for."""


def as_json(function: F) -> F:
    """Add the option to print JSON, and the one that prints its schema."""
    schema = click.option(
        "--json-schema",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_schema,
        help="Print the schema of the JSON, and do nothing else.",
    )
    return click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/json.md).")(schema(function))


def _print_schema(context: click.Context, parameter: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        from shoal.cli.json_schemas import SCHEMAS

        print_json(SCHEMAS[context.command.name or ""].json_schema())
        context.exit()


job_file = click.option(
    "--job", metavar="JOB.toml", help="Take k, roles, models and all other settings from a job file."
)


def settings(model: type[Settings], *wanted: str) -> Callable[[F], F]:
    """Add the options of a part of a job, as `settings_of` returns them: those that are wanted, or all plain ones."""
    apart = ("k", "models", "path", "ranges", "url") if not wanted else ()
    names = wanted or [
        name for name, about in model.model_fields.items() if name not in apart and not holds_settings(about.annotation)
    ]
    return _from_model(model, _PREFIX[model], names)


def settings_of(given: dict[str, Any], model: type[Settings]) -> dict[str, Any]:
    """Return the settings of a part of a job that were given; what does not fit is left for the job to refuse."""
    fields = {about.alias or name: about.annotation for name, about in model.model_fields.items()}
    return {key: _of_job(key, fields[key], value) for key, value in with_prefix(given, _PREFIX[model]).items()}


def _of_job(key: str, annotation: Any, value: Any) -> Any:
    if holds(annotation, dict):
        pairs = (typed.option(text, option_name(key)) for text in value)
        return each_once(pairs, option_name(key), "column " if key == "steer" else "")
    return number(value) if holds(annotation, int) or holds(annotation, float) else value


_PREFIX: dict[type[Settings], str] = {Job: "job", Output: "output", StreamSettings: "stream", RedisSettings: "redis"}
_METAVAR = {
    **dict.fromkeys(("report", "manifest", "json", "kinds"), "FILE"),
    **dict.fromkeys(("lease", "patience", "max_age"), "SECONDS"),
    "to_table": "TABLE",
    "hierarchies": "FOLDER",
    "memory": "SIZE",
    "rho": "NUMBER|song",
    "accept": "[COLUMN=]FINDING",
    "skip_rows": "1-3,812",
    "skip_where": "COLUMN=VALUE",
    "steer": "COLUMN=WEIGHT",
    "after": "FILE",
    "options": "NAME=VALUE",
}
_FEW = 6
"""Number of choices that are shown in place of a value."""


def _from_model(
    model: type[Settings], prefix: str, wanted: Iterable[str], of_columns: bool = False
) -> Callable[[F], F]:
    def add(function: F) -> F:
        for name in reversed(list(wanted)):
            field = model.model_fields[name]
            key = field.alias or name
            how = _of_columns(field) if of_columns else _plain(key, field)
            function = click.option(option_name(key), f"{prefix}__{key}", **how)(function)
        return function

    return add


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _plain(name: str, field: FieldInfo) -> dict[str, Any]:
    """Return how click parses and describes a setting: as a list, a flag, one of some choices, or a text."""
    help_ = _sentence(field.description or "")
    if holds(field.annotation, tuple) or holds(field.annotation, dict):
        listed = {} if name in _METAVAR else {"callback": typed.names}
        return {"multiple": True, "metavar": _METAVAR.get(name, "A,B,.."), "help": help_, **listed}
    if holds(field.annotation, bool):
        return {"is_flag": True, "default": None, "help": help_}
    if not field.is_required() and field.default is not None:
        shown = f"{field.default:g}" if isinstance(field.default, float) else field.default
        help_ += f"  [default: {shown}]"
    known = list(ALGORITHMS) if name == "method" else choices(field.annotation)
    if known:
        few = {} if len(known) <= _FEW else {"metavar": name.upper()}
        help_ = help_.replace(".", f": {', '.join(known)}.", 1) if few else help_
        return {"type": click.Choice(known), "help": help_, **few}
    is_number = holds(field.annotation, int) or holds(field.annotation, float)
    return {"metavar": _METAVAR.get(name, "NUMBER" if is_number else "TEXT"), "help": help_}


def _of_columns(field: FieldInfo) -> dict[str, Any]:
    """Return how click parses a setting of columns: as a list of names for a flag, or as ``COLUMN=VALUE``."""
    help_ = _sentence(field.description or "")
    if holds(field.annotation, bool):
        return {"multiple": True, "callback": typed.names, "metavar": "A,B,..", "help": help_}
    metavar = "COLUMN=A,B,.." if holds(field.annotation, tuple) else "COLUMN=VALUE"
    return {"multiple": True, "metavar": metavar, "help": help_}


def with_prefix(given: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the options with a prefix, without the prefix."""
    mine = {name.removeprefix(f"{prefix}__"): value for name, value in given.items() if name.startswith(f"{prefix}__")}
    return {name: value for name, value in mine.items() if value not in _NEUTER}


def column_settings(given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of single columns, as a job holds them."""
    settings: dict[str, dict[str, Any]] = {}
    for name, entries in with_prefix(given, "column").items():
        annotation = ColumnSettings.model_fields[name].annotation
        flag = option_name(name)
        for entry in entries:
            column, value = (entry, "") if holds(annotation, bool) else typed.column_and_value(entry, flag)
            if name in settings.setdefault(column, {}):
                raise click.BadParameter(f"column {column!r} is given twice.", param_hint=flag)
            settings[column][name] = _setting(annotation, value)
    return settings


def _setting(annotation: Any, value: str) -> Any:
    """Return a value in the type of the setting; one that does not fit is left for the job to refuse."""
    if holds(annotation, bool):
        return True
    if holds(annotation, tuple):
        return typed.values(value)
    return number(value) if holds(annotation, int) or holds(annotation, float) else value


def each_once(entries: Iterable[tuple[str, Any]], flag: str, kind: str = "column ") -> dict[str, Any]:
    """Return the entries of a repeated option by name; raise if a name is given twice."""
    found: dict[str, Any] = {}
    for name, value in entries:
        if name in found:
            raise click.BadParameter(f"{kind}{name!r} is given twice.", param_hint=flag)
        found[name] = value
    return found


class JobCommand(click.Command):
    """A command that takes a job file: messages then name settings as the job does."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except ShoalError as error:
            if ctx.params.get("job") is not None:
                error.dialect = "key"
            raise


def job_of(given: dict[str, Any], beside: tuple[str, ...] = (), **further: Any) -> Job:
    """Return the job of ``--job``, or the one that the options describe.

    Raises
    ------
    click.UsageError
        If options set what the job file sets too; those in `beside` and reading options are allowed.
    """
    if given.get("job") is not None:
        context = click.get_current_context()
        mine = {
            parameter.opts[-1]
            for parameter in context.command.params
            if isinstance(parameter, click.Option)
            and context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
            and parameter.name not in ("job", *beside)
            and not (parameter.name or "").startswith("reading__")
        }
        if mine:
            raise click.UsageError(f"--job is given, and {', '.join(sorted(mine))} beside it. Use one or the other.")
        return Job.load(given["job"])
    if given["k"] is None:
        raise click.UsageError("Give the smallest cell size, -k 10, or name a job file: --job job.toml")
    return Job.of(
        k=given["k"],
        **settings_of(given, Job),
        roles=with_prefix(given, "role"),
        columns=column_settings(given),
        models=models_of(given),
        **further,
    )
