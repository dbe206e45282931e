"""Memory: how much the disk engine may use, and what follows from it. It does not change the release."""

import re
from typing import NamedTuple

from shoal import kernels
from shoal.engines.blocks.blueprint import Blueprint
from shoal.errors import ParameterError
from shoal.spelling import setting

UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
DEFAULT = "1GB"
LEAST = 256 * 10**6
"""Bytes, beside what the interpreter takes."""

_COPIES = 4
"""How often the records of a block are in memory while it is solved: read, sorted, in the space, published."""

_WORK = 10
"""Numbers that the search keeps for each coordinate of a record, about."""


def as_bytes(memory: str) -> int:
    """Return a size like 2GB in bytes.

    Examples
    --------
    >>> as_bytes("2GB"), as_bytes("1.5 GiB")
    (2000000000, 1610612736)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B)\s*", memory)
    if found is None or found[2] not in UNITS:
        raise ParameterError(
            f"{setting('memory', memory)} is not a size. Write it like 2GB; units: {', '.join(UNITS)}."
        )
    size = int(float(found[1]) * UNITS[found[2]])
    if size < LEAST:
        raise ParameterError(
            f"{setting('memory', memory)} is too little: the engine needs at least {LEAST // 10**6} MB."
        )
    return size


class MemoryBudget(NamedTuple):
    """How the memory is used."""

    total: int
    """Bytes."""

    threads: int

    @staticmethod
    def of(memory: str | None, threads: int | None) -> "MemoryBudget":
        """Return the budget for a size like 2GB and a number of threads, all cores by default."""
        return MemoryBudget(as_bytes(DEFAULT if memory is None else memory), threads or kernels.n_threads())

    @property
    def buffer(self) -> int:
        """Bytes of records that are gathered before they are written, or sorted at a time."""
        return self.total // 8

    def workers(self, blueprint: Blueprint) -> int:
        """Return how many blocks may be in memory at a time."""
        n_dims = sum(axis.n_dims for axis in blueprint.space.axes)
        of_record = _COPIES * blueprint.n_bytes // max(blueprint.n_records, 1) + 8 * _WORK * n_dims
        block = min(blueprint.size, blueprint.n_records) * of_record
        return max(1, min(self.threads, self.total // 2 // block))
