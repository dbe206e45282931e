import numpy as np
import pyarrow as pa
import pytest

import shoal
from block_tables import ROLES, batches, job, multiset, people
from shoal import LDiversity, PSensitive, TCloseness
from shoal.engines.blocks import blueprint, driver
from shoal.errors import GuaranteeError, ParameterError
from shoal.measures.recount import recount
from shoal.methods import ALGORITHMS
from shoal.methods.algorithm import Algorithm
from shoal.models import table_columns
from toy_engine import toy_release


def test_order_and_batches_do_not_matter():
    table = people()
    one = toy_release(job(), [table], size=200)
    seven = toy_release(job(), batches(table, 7, shuffled=3), size=200)

    assert multiset(seven.published) == multiset(one.published)
    assert seven.measures.loss == one.measures.loss
    assert seven.verdict == one.verdict


def test_the_loss_is_near_that_in_memory():
    rng = np.random.default_rng(1)
    table = pa.table(dict(zip("abcd", rng.normal(size=(4, 6_000)), strict=True)))
    roles = {"quasi_identifiers": tuple("abcd")}
    whole = shoal.anonymize(table, k=5, seed=1, **roles)
    blocks = toy_release(job(roles=roles, columns={}), [table], size=2_000)

    assert blocks.measures.loss.il < 1.05 * whole.loss.il
    assert blocks.measures.loss.sst == pytest.approx(whole.loss.sst, rel=1e-12)


def test_numbers_may_be_as_large_as_floats_are():
    rng = np.random.default_rng(1)
    table = pa.table({"a": np.r_[rng.normal(size=498), 1e308, -1e308], "b": rng.normal(size=500)})
    roles = {"quasi_identifiers": ("a", "b")}
    found = toy_release(job(roles=roles, columns={}), [table], size=200)

    assert found.measures.loss.sst == pytest.approx(2 * 500)


@pytest.mark.parametrize("model", [LDiversity("illness", l=2), TCloseness("illness", t=0.3)], ids=str)
def test_models_hold_against_the_whole_table(model):
    found = toy_release(job(models=[model]), batches(people(), 3), size=300)

    assert found.verdict.holds
    assert found.verdict.models[0].holds


def test_cells_count_persons_where_there_is_a_subject():
    found = toy_release(job(roles={**ROLES, "subject": "name", "identifiers": ()}), batches(people(), 2), size=300)

    assert found.verdict.subject_asked
    assert found.verdict.subjects >= 5


def test_half_of_all_records_may_be_equal():
    table = people(800)
    table = pa.concat_tables([table, pa.concat_tables([table.slice(0, 1)] * 800)])
    found = toy_release(job(), batches(table, 4, shuffled=1), size=150)

    assert found.verdict.holds
    assert found.published.num_rows == 1_600


def test_one_column_may_be_constant_and_blocks_smaller_than_k_are_joined():
    rng = np.random.default_rng(2)
    table = pa.table({"a": np.zeros(500), "b": rng.choice([0.0, 1.0, 50.0], 500, p=[0.495, 0.5, 0.005])})
    found = toy_release(job(roles={"quasi_identifiers": ("a", "b")}, columns={}), batches(table, 3), size=40)

    assert found.verdict.holds


def test_weighted_totals_are_kept():
    table = people().append_column("w", pa.array(np.random.default_rng(0).uniform(1, 9, 1_200)))
    roles = {**ROLES, "weights": "w", "other": ("note", "w")}
    found = toy_release(job(roles=roles), batches(table, 2), size=300)
    weights = np.asarray(found.published["w"])

    before = (np.asarray(table["age"]) * np.asarray(table["w"])).sum()
    assert (np.asarray(found.published["age"]) * weights).sum() == pytest.approx(before, rel=1e-9)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rho": 0.5, "roles": {"quasi_identifiers": ("age", "income")}}, "random aggregation"),
        ({"method": "mdav"}, "another method"),
        ({"truthful": True}, "true of every record"),
        ({"objective": "ncp"}, "another objective"),
        ({"steer": {"note": 1.0}}, "steering"),
        ({"roles": {**ROLES, "household": "name", "identifiers": ()}}, "household"),
    ],
)
def test_what_blocks_cannot_do_is_refused_by_name(given, words):
    table = people(100).select(["age", "income"]) if "rho" in given else people(100)
    columns = {} if "rho" in given else {"grade": {"categories": ("low", "mid", "high")}}
    with pytest.raises(ParameterError, match=words):
        toy_release(job(columns=columns, **given), [table])


def test_an_empty_table_is_refused():
    with pytest.raises(ParameterError, match="no records"):
        toy_release(job(), [people(10).slice(0, 0)])


def test_small_strata_are_refused_before_any_cell_is_made():
    table = people(200).set_column(6, "region", pa.array(["north"] * 198 + ["south"] * 2))
    with pytest.raises(GuaranteeError, match="strata"):
        toy_release(job(), [table])


@pytest.mark.parametrize(
    "model",
    [LDiversity("illness", l=4), LDiversity("illness", l=3, kind="entropy"), PSensitive("illness", p=4)],
    ids=str,
)
def test_models_that_the_whole_table_violates_are_refused_before_any_cell_is_made(model, monkeypatch):
    monkeypatch.setattr(driver, "solve", lambda *_: pytest.fail("a block was solved"))
    words = r"cannot be satisfied: not even by all 1,200 records in one class, which have 3 different values in"
    with pytest.raises(GuaranteeError, match=words):
        toy_release(job(models=[model]), batches(people(), 3), size=300)


def test_models_without_frequencies_are_checked_in_tables_of_any_size(monkeypatch):
    monkeypatch.setattr(table_columns, "EXPANDED", 100)
    with pytest.raises(GuaranteeError, match="not even by all 1,200 records"):
        toy_release(job(models=[LDiversity("illness", l=4)]), batches(people(), 3), size=300)


def test_blocks_of_long_records_are_smaller(monkeypatch):
    monkeypatch.setattr(blueprint, "BLOCK_BYTES", 400 * 2_000)
    table = people(1_200)
    long = table.set_column(8, "note", pa.array([f"{i:>2000}" for i in range(1_200)]))
    sizes = {
        toy_release(job(accept=["published-identifier"]), batches(long, n), None).measures._blueprint.size
        for n in (1, 5)
    }

    assert len(sizes) == 1
    assert 320 <= sizes.pop() < 400
    assert toy_release(job(), [table]).measures._blueprint.size > 1_200


def test_the_recount_of_parts_is_that_of_the_whole():
    from shoal.engines.blocks.recount import class_parts, merged_verdicts

    found = toy_release(job(models=[TCloseness("illness", t=0.4)]), [people()], size=300)
    fixed = found.measures._blueprint
    parts = class_parts(found.published, fixed.schema.quasi_names, 4)
    verdicts = [
        recount(
            found.published.filter(pa.array(parts == part)),
            fixed.schema,
            5,
            models=fixed.job.models,
            whole=fixed.whole,
        )
        for part in range(4)
    ]
    merged = merged_verdicts(verdicts)

    assert merged.sizes == found.verdict.sizes
    assert merged.n_classes == found.verdict.n_classes
    assert merged.models[0].value == found.verdict.models[0].value
    assert merged.confidential["illness"].t == found.verdict.confidential["illness"].t


def test_a_method_runs_in_blocks_by_its_line_in_the_registry(monkeypatch):
    calls = []

    def chain(X, k, seed):
        calls.append(len(X))
        labels = np.empty(len(X), dtype=np.int64)
        labels[np.argsort(X[:, 0], kind="stable")] = np.minimum(np.arange(len(X)) // k, len(X) // k - 1)
        return labels

    monkeypatch.setitem(ALGORITHMS, "chain", Algorithm(chain, in_blocks=True))
    found = toy_release(job(method="chain"), batches(people(), 3), size=320)

    assert found.verdict.holds
    assert sum(calls) == 1_200
    assert max(calls) < 1_200
