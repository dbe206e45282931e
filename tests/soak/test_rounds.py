"""A few rounds of each soak about releases and streams, so that `make soak` can be relied on."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from rounds import NAMES

pytestmark = pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
MAKEFILE = Path(__file__).parents[2] / "Makefile"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", NAMES)
def test_a_round_finds_nothing_wrong(name, seed, tmp_path, monkeypatch):
    monkeypatch.setattr("damage.N_TRIALS", 2)
    monkeypatch.setattr("shoal.engines.blocks.blueprint.BLOCK_RECORDS", 200)

    assert import_module(name).round_of(np.random.default_rng(seed), tmp_path)


def test_make_soak_runs_every_soak():
    scripts = {path.stem for path in Path(__file__).parent.glob("*.py")} - {Path(__file__).stem, "conftest"}
    run = {name for name in scripts if f"tests/soak/{name}.py " in MAKEFILE.read_text(encoding="utf-8")}

    assert run | set(NAMES) == scripts
