"""(alpha, k)-anonymity and beta-likeness: by hand, and through every door."""

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import shoal
from model_cases import as_codes
from shoal.cli import main
from shoal.models import AlphaK, BetaLikeness
from shoal.models.share_limits import ShareLimits

TABLE = as_codes(list("aaaaaabbbc"), ordered=False)
"""Shares of 0.6, 0.3 and 0.1."""

CLASSES = np.array([0, 0, 1, 1, 1, 1, 0, 1, 1, 0])
"""a a b c, and a a a a b b."""

ASKED = [AlphaK("illness", alpha=0.7), BetaLikeness("illness", beta=1.0), BetaLikeness("illness", 1.0, "enhanced")]


def test_the_largest_gain_is_that_of_the_rarest_value():
    found = BetaLikeness("c", beta=1.5).measure(CLASSES, TABLE)

    assert found.values == pytest.approx([0.25 / 0.1 - 1, 1 / 9])
    assert found.holds  # at exactly 1.5
    assert not BetaLikeness("c", beta=1.49).measure(CLASSES, TABLE).holds


def test_the_enhanced_kind_keeps_frequent_values_from_filling_a_class():
    classes = np.array([0, 0, 1, 1, 1, 1, 1, 1, 1, 1])  # a a: a gain of 2/3, and -log(0.6) is 0.51
    basic, enhanced = (BetaLikeness("c", beta=1.0, kind=kind).measure(classes, TABLE) for kind in ("basic", "enhanced"))

    assert basic.holds
    assert basic.value == pytest.approx(2 / 3)
    assert enhanced.n_failing == 1
    assert np.isinf(enhanced.value)


def test_the_largest_share_may_be_alpha_itself():
    found = AlphaK("c", alpha=0.5).measure(CLASSES, TABLE)

    assert found.values.tolist() == pytest.approx([0.5, 2 / 3])
    assert found.failing.tolist() == [False, True]


def test_a_limit_with_a_huge_denominator_is_rounded_down_and_never_up():
    limit = Fraction(10**17 + 1, 3 * 10**17)
    over, under = ShareLimits.of([limit])

    assert Fraction(int(over[0]), int(under[0])) <= limit
    assert float(over[0] / under[0]) == pytest.approx(float(limit), abs=1e-9)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    age = rng.integers(18, 80, 400)
    illness = np.where(age > 50, rng.choice(list("abc"), 400, p=[0.7, 0.2, 0.1]), rng.choice(list("abc"), 400))
    return pa.table({"age": age, "height": rng.normal(170, 9, 400).round(), "illness": illness})


ROLES = {"quasi_identifiers": ["age", "height"], "confidential": ["illness"]}


@pytest.mark.parametrize("model", ASKED, ids=str)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_release_keeps_the_model_and_without_it_does_not(model, engine, people):
    alone = shoal.anonymize(people, k=3, seed=1, **ROLES)
    with shoal.anonymize(people, k=3, seed=1, models=model, engine=engine, **ROLES) as release:
        published, holds = pa.concat_tables(release.batches()), release.verdict.holds
    asked = {"k": 3, "models": model, **ROLES}

    assert holds
    assert shoal.audit(published, **asked).holds
    assert not shoal.audit(alone.published, **asked).holds


@pytest.mark.parametrize(("option", "model"), [("--alpha-k", ASKED[0]), ("--beta-likeness", ASKED[2])])
def test_the_command_line_and_a_job_take_it(option, model, people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shoal.sources.write(people, "people.csv")
    told = "illness=0.7" if option == "--alpha-k" else "illness=1,kind=enhanced"
    asked = ["--quasi-identifiers", "age,height", "--confidential", "illness", option, told]
    made = CliRunner().invoke(
        main, ["anonymize", "people.csv", "-k", "3", "--seed", "1", *asked, "-o", "r.csv", "--save-job", "job.toml"]
    )

    assert made.exit_code == 0, made.output
    assert shoal.Job.load("job.toml").models == (model,)
    assert CliRunner().invoke(main, ["audit", "r.csv", "-k", "3", *asked]).exit_code == 0
    assert json.loads((tmp_path / "r.csv.public.json").read_text())["verdict"]["models"][0]["model"] == model.name


def test_a_value_that_is_too_frequent_in_the_table_is_refused_in_counts(people):
    with pytest.raises(shoal.GuaranteeError, match=r"of the 400 records, taken together, \d+ have the same value"):
        shoal.anonymize(people, k=3, models=AlphaK("illness", alpha=0.2), **ROLES)
