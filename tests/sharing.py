"""For tests: every piece of work is shared, however small."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from shoal import _kernels

# `Pace::least_share` of the kernels, which nothing but tests changes.
LEAST_SHARE = ctypes.c_double.in_dll(ctypes.CDLL(_kernels.__file__), "_ZN5shoal4Pace11least_shareE")


@contextmanager
def everything_shared() -> Iterator[None]:
    """Have all threads called for all work: the problems of tests are too small for that otherwise."""
    before, LEAST_SHARE.value = LEAST_SHARE.value, 0.0
    try:
        yield
    finally:
        LEAST_SHARE.value = before
