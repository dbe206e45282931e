"""Method options: the keyword-only arguments of a registered function."""

import inspect
from collections.abc import Callable
from typing import Any

from shoal.errors import ParameterError


def options_of(function: Callable[..., Any]) -> list[str]:
    """Return the names of a function's options."""
    parameters = inspect.signature(function).parameters.items()
    return [name for name, parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]


def check_options(function: Callable[..., Any], what: str, options: dict[str, Any]) -> None:
    """Refuse options that are not keyword-only arguments of a function; `what` names it in the message."""
    known = options_of(function)
    for name in options:
        if name not in known:
            takes = f"It takes: {', '.join(known)}." if known else "It takes no options of its own."
            raise ParameterError(f"{what} has no option {name!r}. {takes}")
