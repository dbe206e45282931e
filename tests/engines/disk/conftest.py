import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "engines" / "blocks"))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make blocks small, so that small tables have several."""
    monkeypatch.setattr("shoal.engines.blocks.blueprint.BLOCK_RECORDS", 200)
