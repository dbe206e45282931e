"""Settings for all tests."""

from hypothesis import settings

# Machines that run tests are busy: how long an example takes says nothing. The examples are the same in every run.
settings.register_profile("shoal", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("shoal")
