"""Options: what a registered function takes beside the arguments that all of its kind share."""

import inspect
from collections.abc import Callable
from typing import Any

from shoal.errors import ParameterError


def check_options(function: Callable[..., Any], what: str, options: dict[str, Any]) -> None:
    """Refuse options that a function does not take by keyword alone; `what` names it in the message."""
    known = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    for name in options:
        if name not in known:
            takes = f"It takes: {', '.join(known)}." if known else "It takes no options of its own."
            raise ParameterError(f"{what} has no option {name!r}. {takes}")
