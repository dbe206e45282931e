"""The compiled loops, met by the rest of shoal only here: arrays in, arrays out.

Callers have checked everything: matrices are C-contiguous float64 and finite, labels run from 0 without gaps.
Threads and progress travel in a context, so that an algorithm's signature stays ``(X, k, seed)``.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from shoal import _kernels
from shoal.errors import ParameterError
from shoal.typing import Labels, Matrix, Progress


class _Setting(NamedTuple):
    threads: int
    progress: Progress | None


_setting: ContextVar[_Setting | None] = ContextVar("shoal_kernel_setting", default=None)


@contextmanager
def using(threads: int | None = None, progress: Progress | None = None) -> Iterator[None]:
    """Run what is inside with so many threads and this progress callback."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ParameterError(f"threads must be a whole number of at least 1, or None for all cores; got {threads!r}.")
    token = _setting.set(_Setting(threads or _n_cores(), progress))
    try:
        yield
    finally:
        _setting.reset(token)


def _n_cores() -> int:
    """Count the cores this process may use, which in a container is fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _current() -> _Setting:
    return _setting.get() or _Setting(_n_cores(), None)


def mdav(X: Matrix, k: int) -> Labels:
    """Partition by MDAV; see `shoal.partition.mdav`."""
    threads, progress = _current()
    return _kernels.mdav(X, k, threads, progress)
