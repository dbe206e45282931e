"""Algorithm: an entry of the registry, with what other rooms need to know about a method."""

import inspect
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

from shoal.typing import Labels


@dataclass(frozen=True)
class Algorithm:
    """A function ``(X, k, seed, *, its own options) -> labels``, and what is known about it."""

    function: Callable[..., Labels]

    largest: int | None = None
    """Up to this number of records ``shoal compare`` tries the method by itself: some ten seconds to a minute for each
    k on one core. None where there is no limit."""

    not_promised: Set[str] = frozenset()
    """What the contract tests must not ask of it: "order" (the same cells whatever the order of the records), "shift"
    (the same cells after all records have moved)."""

    def __call__(self, *arguments: Any, **options: Any) -> Labels:
        """Partition records."""
        return self.function(*arguments, **options)

    @property
    def summary(self) -> str:
        """The first line of the docstring, for docs and help."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]
