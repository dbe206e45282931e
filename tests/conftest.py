"""Settings for all tests."""

import os
import signal

from hypothesis import settings

# Without it, scikit-learn leaves two of its checks of an estimator out. SciPy reads it when it is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# Machines that run tests are busy: how long an example takes says nothing. The examples are the same in every run.
settings.register_profile("shoal", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("shoal")

# A shell has what it starts in the background ignore Ctrl-C, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
