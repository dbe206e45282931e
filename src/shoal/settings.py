"""Settings: what a user sets, checked once, whichever door it comes through, and named in messages as it was given."""

import operator
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from shoal.errors import ParameterError, did_you_mean
from shoal.spelling import named, word_of

ALIASES = {
    "keyVars": "quasi_identifiers",
    "numVars": "quasi_identifiers",
    "strataVar": "by",
    "weightVar": "weights",
    "hhId": "household",
}
"""Names of roles in sdcMicro, and ours."""


def _whole(value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise PydanticCustomError("whole_number", "it should be a whole number")
    whole = operator.index(value)
    if abs(whole) >= 2**63:
        raise PydanticCustomError("whole_number", "it should be a whole number that 64 bits can hold")
    return whole


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise PydanticCustomError("number", "it should be a number")
    return _float(value)


def _float(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number or a fraction beyond float64
        raise PydanticCustomError("too_large", "it should be a number that float64 can hold") from None


@dataclass(frozen=True, eq=False)
class OneOf:
    """A name of a registry, as the annotation of a setting."""

    names: Collection[str]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._known, handler(source))

    def _known(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.names:
            *others, last = map(repr, self.names)
            raise PydanticCustomError(
                "literal_error", "input should be {known}", {"known": f"{', '.join(others)} or {last}"}
            )
        return value


def choices(annotation: Any) -> list[str]:
    """Return the values of a type that has few of them, possibly in a union or with checks."""
    if isinstance(annotation, OneOf):
        return list(annotation.names)
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return [str(entry) for entry in annotation]
    return [choice for part in get_args(annotation) for choice in choices(part)]


def _entry(value: object) -> str | int | float:
    """Accept a text or a number unchanged: a code of True or "1" is not the number 1."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise PydanticCustomError("entry", "it should be a text or a number")
    if not hasattr(value, "__index__"):
        return _float(value)
    whole = operator.index(value)
    if not -(2**63) <= whole < 2**64:
        raise PydanticCustomError("entry", "it should be a text, or a number of at most 64 bits")
    return whole


# Integers and floats of Python or NumPy; no texts or booleans that could be converted.
Whole = Annotated[int, BeforeValidator(_whole)]
Number = Annotated[float, BeforeValidator(_number)]
Entry = Annotated[str | int | float, BeforeValidator(_entry)]


class Settings(BaseModel):
    """Base of everything that a user sets: unknown keys are an error, and it is immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def holds_settings(annotation: Any) -> bool:
    """Return whether the type of a setting is other settings, as the tables of a job are."""
    return any(isinstance(part, type) and issubclass(part, Settings) for part in get_args(annotation) or (annotation,))


S = TypeVar("S", bound=Settings)


def validated(model: type[S], content: object, where: str = "") -> S:
    """Return the settings, or raise `ParameterError` for the first error, in our words."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False, include_context=False)
        # A misspelled key may be the one that is missing.
        first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    place = ".".join([*([where] if where else []), *map(str, first["loc"])])
    if first["type"] == "extra_forbidden":
        known = _keys_at(model, first["loc"][:-1])
        key = str(first["loc"][-1])
        hint = word_of(key) or did_you_mean(key, known=known)
        raise ParameterError(f"There is no key {place!r}.{hint} Known here: {', '.join(known)}.")
    if first["type"] == "missing":
        raise ParameterError(f"{place!r} is missing and has no default.")
    raise ParameterError(
        f"{named(place) if place else 'This'} cannot be used: {first['msg'][:1].lower()}{first['msg'][1:]}."
    )


def _keys_at(model: Any, place: tuple[int | str, ...]) -> list[str]:
    """Return the keys that settings know at a place."""
    for key in place:
        if key in model.model_fields:
            annotation = model.model_fields[str(key)].annotation
            nested = [annotation, *get_args(annotation)]
            model = next((a for a in nested if isinstance(a, type) and issubclass(a, BaseModel)), model)
    return [field.alias or name for name, field in model.model_fields.items()]
