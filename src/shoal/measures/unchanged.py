"""Unchanged: columns that are published as they are and nearly identify, whatever the classes are."""

from collections.abc import Mapping
from typing import NamedTuple

from shoal.columns.sharing import Sharing

_MOST = 0.5


class Unchanged(NamedTuple):
    """A column that is published unchanged, the share of the records whose value fewer than k have, or no other."""

    column: str
    share: float
    alone: float


def nearly_identifying(sharing: Mapping[str, Sharing], k: int) -> tuple[Unchanged, ...]:
    """Return the columns whose values tell most records apart.

    Examples
    --------
    >>> import pyarrow as pa
    >>> pay, town = pa.chunked_array([[1.5, 2.5, 3.5, 3.5]]), pa.chunked_array([["Reus", "Reus", "Reus", "Ulm"]])
    >>> nearly_identifying({"pay": Sharing.of(pay), "town": Sharing.of(town)}, 2)
    (Unchanged(column='pay', share=0.5, alone=0.5),)
    """
    found = (Unchanged(column, shared.below(k), shared.below(2)) for column, shared in sharing.items())
    return tuple(each for each in found if each.share >= _MOST)
