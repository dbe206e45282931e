"""TFRP: the paper's examples and its table, and the cells of the naive twin."""

import numpy as np
import pytest

import reference
from papers.tfrp.printed import table_2
from shoal import ParameterError, datasets, partition
from shoal.arrays import standardize
from shoal.measures import loss
from strategies import FAMILIES, draw_problem

NAMES = "ABCDEFHIJ"
POINTS = np.array([[11, 9], [11, 8], [12, 6], [9, 6], [8, 10], [5, 4], [4, 3], [2, 5], [1, 3]], dtype=float)
SETS = {"tarragona": datasets.tarragona, "census": datasets.census, "eia-10": lambda: datasets.eia(10)}


def cells(labels):
    """Name the members of each cell."""
    return sorted("".join(NAMES[i] for i in np.flatnonzero(labels == c)) for c in range(labels.max() + 1))


@pytest.fixture(scope="module")
def sets():
    return {name: standardize(load().X) for name, load in SETS.items()}


def test_example_1_and_2_three_cells_from_two_corners():
    labels = partition(POINTS, 3, "tfrp", phases=1)

    assert (POINTS.min(), POINTS.max()) == (1, 12)
    assert [NAMES[i] for i in np.flatnonzero(labels == 0)] == ["A", "B", "C"]
    assert [NAMES[i] for i in np.flatnonzero(labels == 1)] == ["H", "I", "J"]
    assert [NAMES[i] for i in np.flatnonzero(labels == 2)] == ["D", "E", "F"]


def test_example_3_the_cell_with_the_largest_gse_is_scattered():
    first = loss(POINTS, partition(POINTS, 3, "tfrp", phases=1))
    labels = partition(POINTS, 3, "tfrp")
    second = loss(POINTS, labels)

    assert np.round(first.gse, 2).tolist() == [5.33, 7.33, 27.33]
    assert first.sse == pytest.approx(40)
    assert cells(labels) == ["ABCDE", "FHIJ"]
    assert sorted(second.gse) == pytest.approx([12.75, 23.6])


@pytest.mark.parametrize("entry", table_2(), ids=lambda entry: f"{entry.data}-k{entry.k}-phases{entry.phases}")
def test_table_2_to_the_printed_digits(entry, sets):
    X = sets[entry.data]

    assert round(100 * loss(X, partition(X, entry.k, "tfrp", phases=entry.phases)).il, 3) == entry.il


def test_table_2_has_96_entries():
    assert len(set(table_2())) == 96


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cells_are_those_of_the_naive_twin(family):
    rng = np.random.default_rng(sorted(FAMILIES).index(family))
    for number in range(40):
        X, k = draw_problem(rng, family, n_most=200)
        labels = partition(X, k, "tfrp", phases=1, threads=1 + number % 2)

        np.testing.assert_array_equal(labels, reference.tfrp(X, k), err_msg=f"problem {number}: {X.shape}, k={k}")


@pytest.mark.parametrize("exponent", [-160, 150])
def test_very_small_and_very_large_numbers_do_not_matter(exponent):
    X = np.random.default_rng(0).normal(size=(203, 4))

    np.testing.assert_array_equal(partition(X * 10.0**exponent, 5, "tfrp"), partition(X, 5, "tfrp"))


@pytest.mark.parametrize("phases", [0, 3, "both"])
def test_other_phases_are_refused(phases):
    with pytest.raises(ParameterError, match="phases=1"):
        partition(POINTS, 3, "tfrp", phases=phases)


def test_progress_grows_and_ends_with_all_records():
    seen = []
    X = np.random.default_rng(0).normal(size=(20_000, 10))
    partition(X, 3, "tfrp", progress=lambda done, n_records: seen.append((done, n_records)))

    assert seen == sorted(seen)
    assert seen[-1] == (len(X), len(X))
