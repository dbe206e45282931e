import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from papers import data_and_results as material
from papers.data_and_results import agreement
from papers.fmdav import PAPER, numpy_mdav
from papers.fmdav.ablation import STRATEGIES, Result, ablate, ablation_table, variants
from papers.fmdav.sorting import compare_sorting, list_lengths, sorting_table, ways_to_find_smallest
from papers.paper import Run
from shoal import datasets, partition
from shoal.arrays import standardize
from shoal.errors import ParameterError
from shoal.measures import loss

# Information loss in percent at k = 3, 4, 5 and 10, as the literature prints it for plain MDAV.
PUBLISHED = {
    "census": {3: 5.6922, 4: 7.4947, 5: 9.0884, 10: 14.1559},
    "tarragona": {3: 16.9326, 4: 19.5458, 5: 22.4613, 10: 33.1929},
    "eia": {3: 0.4829, 4: 0.6713, 5: 1.6667, 10: 3.8397},
}
DOUBLE = [switch for switch in STRATEGIES if switch != "single"]
IN_DOUBLE = [{}, *({switch: True} for switch in DOUBLE), dict.fromkeys(DOUBLE, True)]
EXACT = ("reuse", "selection")  # the same arithmetic in fewer steps: the same cells even where distances tie


def untied(n: int, n_dims: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, n_dims))


def tied(n: int, n_dims: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, size=(n, n_dims)).astype(float)


@pytest.fixture(scope="module")
def published_sets():
    return {name: standardize(getattr(datasets, name)().X) for name in PUBLISHED}


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("switches", IN_DOUBLE, ids=lambda switches: "+".join(switches) or "traditional")
def test_information_loss_is_the_published_one(name, switches, published_sets):
    X = published_sets[name]
    found = {k: round(100 * loss(X, numpy_mdav(X, k, **switches)).il, 4) for k in PUBLISHED[name]}

    assert found == PUBLISHED[name]


@pytest.mark.parametrize("switches", IN_DOUBLE, ids=lambda switches: "+".join(switches) or "traditional")
@pytest.mark.parametrize(("n", "k"), [(200, 10), (203, 3), (57, 2), (39, 20), (20, 20), (40, 20), (41, 20)])
def test_switches_keep_the_cells_of_untied_records(switches, n, k):
    X = untied(n)

    assert np.array_equal(numpy_mdav(X, k, **switches), numpy_mdav(X, k))


@pytest.mark.parametrize("n", [200, 203])
def test_single_precision_keeps_the_cell_sizes_and_nearly_the_loss(n):
    X = untied(n)
    double, single = numpy_mdav(X, 10), numpy_mdav(X, 10, **dict.fromkeys(STRATEGIES, True))

    assert np.bincount(single).min() >= 10
    assert single.max() == double.max()
    assert loss(X, single).il == pytest.approx(loss(X, double).il, rel=0.01)


@given(seed=st.integers(0, 10**6), n=st.integers(4, 60), k=st.integers(2, 8))
@settings(max_examples=50, deadline=None)
def test_traditional_mdav_is_its_definition_even_with_ties(seed, n, k):
    k = min(k, n)
    X = tied(n, seed=seed)

    assert np.array_equal(numpy_mdav(X, k), reference.mdav(X, k))


@pytest.mark.parametrize("switch", EXACT)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 200), k=st.integers(2, 12))
@settings(max_examples=30, deadline=None)
def test_reuse_and_selection_settle_ties_like_traditional_mdav(switch, seed, n, k):
    k = min(k, n)
    X = tied(n, seed=seed)

    assert np.array_equal(numpy_mdav(X, k, **{switch: True}), numpy_mdav(X, k))


@pytest.mark.parametrize("switches", [{}, *({switch: True} for switch in STRATEGIES)], ids=str)
def test_of_records_all_alike_the_lowest_numbers_go_together(switches):
    assert numpy_mdav(np.ones((9, 2)), 3, **switches).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("switches", [{}, *({switch: True} for switch in STRATEGIES)], ids=str)
def test_every_cell_holds_at_least_k_records_far_from_the_origin(switches):
    X = untied(300) + 1e6

    assert np.bincount(numpy_mdav(X, 7, **switches)).min() >= 7


def test_the_kernel_makes_the_cells_of_traditional_mdav():
    X = untied(1003, 9)

    assert agreement(numpy_mdav(X, 10), partition(X, 10, "mdav", threads=1)) == 1


def test_the_input_is_unchanged():
    X = untied(100)
    before = X.copy()
    numpy_mdav(X, 5, **dict.fromkeys(STRATEGIES, True))

    assert np.array_equal(X, before)


@pytest.mark.parametrize("k", [0, 1, 11])
def test_a_cell_size_that_cannot_be_met_is_refused(k):
    with pytest.raises(ParameterError, match=f"k={k}"):
        numpy_mdav(untied(10), k)


def test_agreement_compares_cells_and_not_their_numbers():
    assert agreement(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])) == 1
    assert agreement(np.array([0, 0, 1, 1, 2, 2]), np.array([5, 5, 3, 4, 3, 4])) == pytest.approx(1 / 3)
    assert agreement(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0])) == 0


def test_the_ablation_measures_every_variant_against_the_first():
    (results,) = ablate([(material.gaussian(), 100)], k=5, seed=3)

    assert [result.variant for result in results] == list(variants())
    assert results[0].speedup == 1
    assert all(result.seconds > 0 for result in results)
    assert all(result.agreement == 1 for result in results if result.variant not in ("single precision", "all five"))
    assert ablation_table(results).count("gaussian") == len(results)


def test_runs_side_by_side_find_the_same_cells():
    tasks = [(material.gaussian(), 60), (material.gaussian(), 80)]
    alone, together = (
        [[r._replace(seconds=0, speedup=0) for r in found] for found in ablate(tasks, k=5, n_samples=1, jobs=jobs)]
        for jobs in (1, 3)
    )

    assert alone == together


def test_a_seed_repeats_the_samples():
    first, again, other = (next(ablate([(material.gaussian(), 60)], k=5, seed=seed))[0].il for seed in (1, 1, 2))

    assert first == again != other


@pytest.mark.parametrize("way", ways_to_find_smallest())
def test_each_way_finds_the_smallest(way):
    _, find = ways_to_find_smallest()[way]
    values = np.random.default_rng(0).random(60)
    found = np.atleast_1d(find(values))

    assert found.tolist() == np.argsort(values)[: len(found)].tolist()


def test_selections_are_timed_only_where_the_list_is_long_enough():
    timings = compare_sorting(10, seconds=0)

    assert [timing.method for timing in timings] == ["sort", "stable sort", "select k=5", "select k=10", "min"]
    assert "10 " in sorting_table(timings)


def test_lists_grow_by_half_powers_of_ten():
    assert list_lengths(1000) == [10, 30, 100, 300, 1000]
    assert list_lengths(10**7)[-1] == 10**7
    assert list_lengths(9) == []


def test_a_missing_data_set_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))

    assert "gov_census.csv.gz" in material.census(100).reason
    assert "covertype_sample.csv.gz" in material.covertype(100).reason


def test_no_data_folder_at_all_is_said(monkeypatch):
    monkeypatch.delenv("SHOAL_DATA", raising=False)
    monkeypatch.setattr(material, "_usual_folders", lambda: iter(()))

    assert "SHOAL_DATA" in material.census(100).reason


def test_a_data_folder_that_is_not_there_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ParameterError, match="SHOAL_DATA"):
        material.data_folder()


def test_a_file_is_read_by_the_names_of_its_columns(tmp_path):
    header = ("kind", *reversed(material.CENSUS_COLUMNS))
    lines = [",".join(header), *(",".join(["text", *map(str, range(i, i + 9))]) for i in range(3))]
    (tmp_path / "some.csv").write_text("\n".join(lines) + "\n")
    records = material.read_columns(tmp_path / "some.csv", material.CENSUS_COLUMNS)

    assert records[0].tolist() == [8, 7, 6, 5, 4, 3, 2, 1, 0]
    with pytest.raises(ParameterError, match="elevation"):
        material.read_columns(tmp_path / "some.csv", material.COVERTYPE_COLUMNS)


def test_a_sample_holds_different_records_of_the_source():
    source = material.Source("numbers", "here", 1, np.arange(50.0).reshape(-1, 1))
    sample = source.sample(50, np.random.default_rng(0))

    assert sorted(sample.ravel()) == list(range(50))
    assert source.holds(50)
    assert not source.holds(51)


def test_the_numbers_are_saved_with_versions_and_seed_and_without_paths(tmp_path):
    run = Run(tmp_path / "new" / "fmdav.json", PAPER.rows)
    run.begin(k=5, seed=9)
    run.add("sorting", compare_sorting(10, seconds=0))
    saved = (tmp_path / "new" / "fmdav.json").read_text()

    assert json.loads(saved)["seed"] == 9
    assert {"shoal", "numpy", "python", "cpu"} <= json.loads(saved)["machine"].keys()
    assert str(tmp_path) not in saved


def test_bars_of_one_size_have_one_colour_also_where_a_data_set_lacks_a_size():
    pictures = pytest.importorskip("papers.fmdav.pictures", reason="needs matplotlib")
    results = [
        result
        for data, n in (("one", 10), ("one", 20), ("two", 20))
        for result in (Result(data, n, title, 1.0, 2.0, 1.0, 0.0) for title in STRATEGIES.values())
    ]
    one, two = pictures.alone(results).axes

    assert one.containers[1].patches[0].get_facecolor() == two.containers[1].patches[0].get_facecolor()
    assert [np.isnan(bars.patches[0].get_height()) for bars in two.containers] == [True, False]
