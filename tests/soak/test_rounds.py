"""A few rounds of each soak about releases, so that `make soak` can be relied on."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "engines" / "disk"))

import containment
import damage
import order
import planted_secrets

pytestmark = pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
MAKEFILE = Path(__file__).parents[2] / "Makefile"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("soak", [containment, damage, order, planted_secrets])
def test_a_round_finds_nothing_wrong(soak, seed, tmp_path, monkeypatch):
    monkeypatch.setattr(damage, "N_TRIALS", 2)
    monkeypatch.setattr("shoal.engines.blocks.blueprint.BLOCK_RECORDS", 200)
    rng = np.random.default_rng(seed)

    assert soak.round_of(rng) if soak is order else soak.round_of(rng, tmp_path)


def test_make_soak_runs_every_soak():
    scripts = {path.name for path in Path(__file__).parent.glob("*.py")} - {Path(__file__).name}

    assert {name for name in scripts if f"tests/soak/{name} " in MAKEFILE.read_text(encoding="utf-8")} == scripts
