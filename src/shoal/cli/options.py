"""Options that commands share. They are generated from the models that make up a job, so that none is missing here."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, get_args

import click
from click.core import ParameterSource

from shoal.cli import parsing as typed
from shoal.columns.prepare import Missing
from shoal.columns.schema import ColumnSettings, Roles
from shoal.job import FieldSettings, Input, IntervalForm, Job, Objective
from shoal.methods import ALGORITHMS
from shoal.models import MODELS, Model
from shoal.models.serialization import accepts, model_of, settings_in
from shoal.settings import Settings
from shoal.space.axes import Scaling
from shoal.spelling import number, option_name, option_names
from shoal.typing import holds

F = TypeVar("F", bound=Callable[..., Any])

_NEUTER = (None, (), False)


def roles(*wanted: str) -> Callable[[F], F]:
    """Add the options that say what columns are for, all of them or those that are wanted."""
    return _from_model(Roles, "role", wanted or tuple(Roles.model_fields))


def reading(function: F) -> F:
    """Add the options that say how a file is read."""
    wanted = [name for name in Input.model_fields if name not in ("path", "fields")]
    for name in reversed(wanted):
        if name in FieldSettings.model_fields:
            function = click.option(
                option_name(name),
                f"reading__{name}",
                multiple=True,
                metavar="[COLUMN=]VALUE",
                help=_sentence(f"{Input.model_fields[name].description}, of all columns or of one"),
            )(function)
        else:
            function = _from_model(Input, "reading", [name])(function)
    return function


def reading_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the reading options given, as `shoal.sources.read` and a job take them."""
    said = taken(given, "reading")
    said |= {name: number(said[name]) for name in ("max_unpacked_gb", "header_row") if name in said}
    fields: dict[str, dict[str, Any]] = {}
    for name in [name for name in said if name in FieldSettings.model_fields]:
        for entry in said.pop(name):
            column, value = typed.perhaps_column(entry)
            where = said if column is None else fields.setdefault(column, {})
            if name == "null_values":
                where[name] = (*where.get(name, ()), *typed.split(value))
            elif name in where:
                raise click.BadParameter("it is given twice.", param_hint=option_name(name))
            else:
                where[name] = value
    return said | ({"fields": fields} if fields else {})


def reading_of_another(name: str, help_: str) -> Callable[[F], F]:
    """Add the option that says how a second file is read, as ``NAME=VALUE``."""

    def parsed(context: click.Context, parameter: click.Parameter, given: Iterable[str]) -> dict[str, Any]:
        found = method_options(given)
        unknown = sorted(set(found) - (set(Input.model_fields) - {"path", "fields"}))
        if unknown:
            raise click.BadParameter(f"{unknown[0]!r} is not a reading option.")
        lists = ("null_values", "names")
        return {name: typed.split(str(value)) if name in lists else value for name, value in found.items()}

    return click.option(
        option_name(name), multiple=True, metavar="NAME=VALUE", callback=parsed, help=f"{help_}: encoding=cp1252."
    )


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
    asked = taken(given, "model")
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


def making(function: F) -> F:
    """Add the options that say how cells are made, except the method."""
    for add in (
        click.option(
            "--accept",
            multiple=True,
            metavar="[COLUMN=]FINDING",
            help="Release a column as it is although a finding questions how it was read (docs/howto/findings.md).",
        ),
        click.option(
            "--steer",
            multiple=True,
            metavar="COLUMN=WEIGHT",
            help="Bring equal values of a column into the same cells, or into others if negative. Not guaranteed.",
        ),
        click.option("--threads", type=click.IntRange(min=1), help="Number of threads; all cores by default."),
        click.option("--seed", type=click.IntRange(min=0), help="Repeats the release; by default a random one."),
        click.option(
            "--missing",
            type=click.Choice(get_args(Missing)),
            default="error",
            show_default=True,
            help="What to do with missing quasi-identifiers.",
        ),
        click.option(
            "--scaling",
            type=click.Choice(get_args(Scaling)),
            default="zscore",
            show_default=True,
            help="How columns are scaled.",
        ),
    ):
        function = add(function)
    return function


def truth(function: F) -> F:
    """Add the options of releases whose values are true of every record."""
    for name, how in (
        ("intervals", {"type": click.Choice(get_args(IntervalForm)), "default": "text", "show_default": True}),
        ("truthful", {"is_flag": True}),
    ):
        help_ = _sentence(Job.model_fields[name].description or "")
        function = click.option(f"--{name}", help=help_, **how)(function)
    return function


def method(function: F) -> F:
    """Add the option for the method, and for the method's own options."""
    function = click.option(
        "--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the method: effort=best."
    )(function)
    return click.option(
        "--method",
        type=click.Choice(list(ALGORITHMS)),
        default="auto",
        show_default=True,
        metavar="METHOD",
        help=f"How cells are made: {', '.join(ALGORITHMS)}.",
    )(function)


def objective(function: F) -> F:
    """Add the option for what cells are made for."""
    return click.option(
        "--objective",
        type=click.Choice(get_args(Objective)),
        default="sse",
        show_default=True,
        help="What cells are made for: near means (sse), or narrow ranges, small sets and low ancestors (ncp).",
    )(function)


def _from_model(
    model: type[Settings], prefix: str, wanted: Iterable[str], of_columns: bool = False
) -> Callable[[F], F]:
    def add(function: F) -> F:
        for name in reversed(list(wanted)):
            field = model.model_fields[name]
            function = click.option(
                *option_names(name),
                f"{prefix}__{name}",
                help=_sentence(field.description or ""),
                **(_of_columns(field.annotation) if of_columns else _plain(field.annotation)),
            )(function)
        return function

    return add


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _plain(annotation: Any) -> dict[str, Any]:
    """Return how click parses a setting: as a list of names, a flag or a text."""
    if holds(annotation, tuple):
        return {"multiple": True, "callback": typed.names, "metavar": "A,B,.."}
    if holds(annotation, bool):
        return {"is_flag": True, "default": None}
    return {"metavar": "TEXT"}


def _of_columns(annotation: Any) -> dict[str, Any]:
    """Return how click parses a setting of columns: as a list of names for a flag, or as ``COLUMN=VALUE``."""
    if holds(annotation, bool):
        return {"multiple": True, "callback": typed.names, "metavar": "A,B,.."}
    return {"multiple": True, "metavar": "COLUMN=A,B,.." if holds(annotation, tuple) else "COLUMN=VALUE"}


def taken(given: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the options with a prefix, without the prefix."""
    mine = {name.removeprefix(f"{prefix}__"): value for name, value in given.items() if name.startswith(f"{prefix}__")}
    return {name: value for name, value in mine.items() if value not in _NEUTER}


def column_settings(given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of single columns, as a job holds them."""
    settings: dict[str, dict[str, Any]] = {}
    for name, entries in taken(given, "column").items():
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


def method_options(given: Iterable[str]) -> dict[str, Any]:
    """Return the options of the method."""
    return each_once(map(typed.option, given), "--option", "")


def steering_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the weights of steering columns; one that is not a number is left for the job to refuse."""
    entries = (typed.column_and_value(text, "--steer") for text in given.get("steer", ()))
    return {column: number(weight) for column, weight in each_once(entries, "--steer").items()}


def job_of(given: dict[str, Any], beside: tuple[str, ...] = (), **further: Any) -> Job:
    """Return the job of ``--job``, or the one that the options describe.

    Raises
    ------
    click.UsageError
        If options set what the job file sets too; those in `beside` and reading options are allowed.
    """
    if given["job"] is not None:
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
        **{name: given[name] for name in ("method", "scaling", "missing", "seed") if name in given},
        roles=taken(given, "role"),
        columns=column_settings(given),
        models=models_of(given),
        accept=given.get("accept", ()),
        steer=steering_of(given),
        options=method_options(given.get("options", ())),
        **further,
    )
