"""For tests: every piece of work is shared, however small."""

from collections.abc import Iterator
from contextlib import contextmanager

from shoal import _kernels


@contextmanager
def everything_shared() -> Iterator[None]:
    """Have all threads called for all work: the problems of tests are too small for that otherwise."""
    before = _kernels.share_from(0.0)
    try:
        yield
    finally:
        _kernels.share_from(before)
