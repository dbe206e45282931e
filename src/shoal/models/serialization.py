"""Serialization of models as plain values, for job files, the command line and manifests.

Everything is derived from the fields of a model, so a new model needs no line here: the column comes first, then the
bounded quantity, then the settings with a default.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from numbers import Integral, Real
from types import NoneType
from typing import Any, get_args

from shoal.errors import ParameterError, did_you_mean
from shoal.models import MODELS, Model
from shoal.models.model import plain


def settings_of(model: Model) -> dict[str, Any]:
    """Return a model as the table of a job: its name and the settings that differ from the defaults.

    Examples
    --------
    >>> from shoal.models import LDiversity
    >>> settings_of(LDiversity("diagnosis", l=3))
    {'model': 'l-diversity', 'column': 'diagnosis', 'l': 3}
    """
    given = {each.name: plain(getattr(model, each.name)) for each in settings_in(type(model))}
    defaults = {each.name: each.default for each in settings_in(type(model))}
    return {"model": model.name, **{name: value for name, value in given.items() if value != defaults[name]}}


def as_model(given: object) -> Model:
    """Return a model, given as one or as the table of a job.

    Raises
    ------
    ParameterError
        If it is neither.
    """
    if not isinstance(given, Model | Mapping):
        raise ParameterError("Expected a model such as shoal.TCloseness('salary', t=0.1), or its settings.")
    return model_of(settings_of(given) if isinstance(given, Model) else given)


def as_models(given: object) -> tuple[Model, ...]:
    """Return one model or several, in any form that `as_model` accepts, as a tuple."""
    if isinstance(given, Iterable) and not isinstance(given, str | Mapping):
        return tuple(map(as_model, given))
    return (as_model(given),)


def model_of(settings: Mapping[str, Any]) -> Model:
    """Return the model described by plain values.

    Raises
    ------
    ParameterError
        If the model or a setting is unknown, a required setting is missing, or a value is invalid.

    Examples
    --------
    >>> model_of({"model": "t-closeness", "column": "salary", "t": 0.1})
    TCloseness(column='salary', t=0.1, weight=None)
    """
    given = dict(settings)
    name = given.pop("model", None)
    if not isinstance(name, str):
        found = "missing" if name is None else "not a text"
        raise ParameterError(f"The name of a model is {found}. Models: {', '.join(MODELS)}.")
    if name not in MODELS:
        problem = f"Unknown model {name!r}."
        raise ParameterError(f"{problem}{did_you_mean(name, known=MODELS)} Models: {', '.join(MODELS)}.")
    known = {each.name: each for each in settings_in(MODELS[name])}
    for key, value in given.items():
        if key not in known:
            hint = did_you_mean(key, known=known)
            raise ParameterError(f"{name} has no setting {key!r}.{hint} Settings: {', '.join(known)}.")
        _check_type(name, known[key], value)
    lacking = [key for key, each in known.items() if each.default is MISSING and key not in given]
    if lacking:
        raise ParameterError(f"{name} needs {' and '.join(lacking)}.")
    return MODELS[name](**given)


def settings_in(model: type[Model]) -> tuple[Field[Any], ...]:
    """Return the settings of a model, the column first."""
    return fields(model)  # type: ignore[arg-type]


def accepts(setting: Field[Any]) -> tuple[type, ...]:
    """Return the types that a setting accepts.

    Examples
    --------
    >>> from shoal.models import TCloseness
    >>> [accepts(each) for each in settings_in(TCloseness)]
    [(<class 'str'>,), (<class 'float'>,), (<class 'float'>, <class 'NoneType'>)]
    """
    parts = get_args(setting.type) or (setting.type,)
    return tuple(part if isinstance(part, type) else type(part) for part in parts)


def _check_type(name: str, setting: Field[Any], value: Any) -> None:
    types = accepts(setting)
    wanted = "a string" if str in types else "a whole number" if int in types else "a number"
    fits = {"a string": str, "a whole number": Integral, "a number": Real}[wanted]
    if value is None and NoneType in types:
        return
    if isinstance(value, bool) or not isinstance(value, fits):
        raise ParameterError(f"{name}: {setting.name} must be {wanted}.")
