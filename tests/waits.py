"""For tests: waiting for what another thread or process does, however slow the machine is."""

import time

LIMIT = 120.0
"""Seconds after which something that has not happened counts as not happening."""


def wait_until(condition, limit=LIMIT):
    """Return as soon as a condition holds; fail if it does not hold within the limit."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"still waiting after {limit:g} seconds"
        time.sleep(0.005)
