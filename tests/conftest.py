"""Settings for all tests."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from systems import reason_to_skip

TESTS = Path(__file__).parent

# Without it, scikit-learn leaves two of its checks of an estimator out. SciPy reads it when it is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# Machines that run tests are busy: how long an example takes says nothing. The examples are the same in every run.
settings.register_profile("shoal", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("shoal")

# A shell has what it starts in the background ignore Ctrl-C, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Many tests write releases of one table into one folder; tests/output/test_other_releases.py is about that.
ELSEWHERE = "The same (table was released|quasi-identifiers were published)"


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", f"ignore:{ELSEWHERE}:shoal.errors.ShoalWarning")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(TESTS):
            test = getattr(item, "originalname", item.name)
            reason = reason_to_skip(item.path.relative_to(TESTS).as_posix(), test)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))
