"""Algorithm: an entry of the registry, with the facts about a method that other packages use, and its options."""

import inspect
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

from shoal.errors import ParameterError
from shoal.typing import Labels


@dataclass(frozen=True)
class Algorithm:
    """A function ``(X, k, seed, *, its own options) -> labels`` and its properties."""

    function: Callable[..., Labels]

    largest: int | None = None
    """Maximum number of records for which ``shoal compare`` tries the method by default: ten seconds to a minute for
    each k on one core. None for no limit."""

    not_promised: Set[str] = frozenset()
    """Properties that the contract tests do not check for it: "order" (the cells do not depend on the order of the
    records), "shift" (the cells do not depend on a common translation of the records)."""

    in_blocks: bool = False
    """Whether engines that make cells block by block take the method. They refine its cells across the borders of
    blocks (`shoal.engines.blocks`), so that it is no method that is chosen for exactly its own cells."""

    def __call__(self, *arguments: Any, **options: Any) -> Labels:
        """Partition records."""
        return self.function(*arguments, **options)

    @property
    def summary(self) -> str:
        """The first line of the docstring, for docs and help."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]


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
