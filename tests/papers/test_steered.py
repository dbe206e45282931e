"""The paper on steering: its numbers on perfectly correlated data, and what it does not keep."""

import json

import numpy as np
import pytest
from papers_shell import papers_command

from papers import steered
from papers.paper import read
from papers.steered import (
    Data,
    K,
    bound,
    claims,
    in_orders,
    kept_from,
    kept_from_weight,
    perfectly_correlated,
    procedure,
    strict,
)
from papers.steered.baselines import BASELINES
from shoal.constraints.bucket_steering import bucket_attribute, n_buckets
from shoal.models import Codes, TCloseness


def at(n, t, weights):
    data = perfectly_correlated(n)
    attribute = bucket_attribute(data.X, data.column.codes, n_buckets(n, K, t))
    return [procedure(data, t, weight, attribute) for weight in weights]


def test_t_is_reached_at_weight_99_and_not_at_98():
    below, reached = at(1000, 0.05, [98, 99])

    assert (round(below.max_emd, 4), round(reached.max_emd, 4)) == (0.0999, 0.0495)


def test_one_record_more_breaks_the_procedure_at_any_weight_but_not_the_strict_model():
    results = at(1001, 0.1, [200, 300, 1000])

    assert min(result.max_emd for result in results) > 0.15
    assert "does not keep" in kept_from(results)
    assert strict(perfectly_correlated(1001), 0.1, 1).max_emd <= 0.1


def test_the_strict_model_loses_less_than_the_procedure_where_that_keeps_t():
    (result,) = at(1000, 0.05, [101])
    ours = strict(perfectly_correlated(1000), 0.05, 1)

    assert ours.max_emd <= 0.05
    assert ours.mse < result.mse


@pytest.mark.parametrize(("n", "t", "expected"), [(1000, 0.1, 200), (1000, 0.05, 100), (1001, 0.1, 201)])
def test_the_bound_is_the_largest_bucket(n, t, expected):
    assert bound(perfectly_correlated(n), t) == expected


def test_the_command_prints_and_saves_the_numbers(tmp_path, monkeypatch):
    census = steered.moderately_correlated()
    few = Data("MCD", census.X[:60], Codes(np.arange(60), 60, True))
    monkeypatch.setattr(steered, "figures", lambda: [(perfectly_correlated(1000), 0.05), (few, 0.1)])
    said = papers_command("steered", "--output", tmp_path)
    saved = json.loads((tmp_path / "steered.json").read_text())

    assert "keeps t=0.05 from weight 99 on (the paper: 99)" in said.output
    assert len([r for r in saved["results"] if r["weight"] is None]) == 5
    assert (tmp_path / "steered-mcd-t0.1.png").exists()
    assert {line["baseline"] for line in saved["baselines"]} == set(BASELINES)
    assert "from 99 on in record order" in " ".join(said.output.split())
    content = read(tmp_path / "steered.json", steered.PAPER.rows)
    assert [claim.holds for claim in claims(content) if "weight 99" in claim.says] == [True]


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize(("n", "t"), [(60, 0.2), (61, 0.1), (67, 0.15)])
def test_the_baselines_make_cells_of_k_that_keep_t(name, n, t):
    rng = np.random.default_rng(n)
    data = Data("random", rng.random((n, 2)), Codes(rng.permutation(n), n, True))
    labels = BASELINES[name](data.X, data.column, K, t)

    assert np.bincount(labels).min() >= K
    assert len(labels) == n
    if name != "t-closeness first":  # its parts need not divide the records: it promises t for equal parts only
        assert TCloseness("confidential", t=t).measure(labels, data.column).value <= t


def test_the_order_of_the_records_moves_the_weight_from_which_t_is_kept():
    data = perfectly_correlated(200)
    orders = [order.kept_from for order in in_orders(data, 0.1, 3, 0)]

    assert orders[0] == kept_from_weight(data, 0.1)
    assert len(set(orders)) > 1
