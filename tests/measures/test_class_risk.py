from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import ParameterError
from shoal.measures import class_risk, uniqueness

CLASSES = st.lists(st.integers(-3, 12), min_size=1, max_size=40)


@given(CLASSES, st.randoms(use_true_random=False), st.booleans())
def test_every_risk_is_its_definition(classes, random, weighted):
    weights = [random.choice([1.0, 2.5, 40.0]) for _ in classes] if weighted else None
    sizes, population = Counter(classes), defaultdict(float)
    for label, weight in zip(classes, weights or [1] * len(classes), strict=True):
        population[label] += weight
    prosecutor = [1 / sizes[label] for label in classes]
    journalist = [1 / population[label] for label in classes]
    found = class_risk(classes, weights, threshold=0.2)

    assert found.prosecutor_max == max(prosecutor)
    assert found.prosecutor_mean == pytest.approx(np.mean(prosecutor))
    assert found.prosecutor_above == pytest.approx(np.mean([risk > 0.2 for risk in prosecutor]))
    assert found.n_highest == prosecutor.count(max(prosecutor))
    assert found.journalist_max == pytest.approx(max(journalist))
    assert found.journalist_mean == pytest.approx(np.mean(journalist))
    assert found.journalist_above == pytest.approx(np.mean([risk > 0.2 for risk in journalist]))
    assert found.marketer == pytest.approx(sum(sizes[c] / population[c] for c in sizes) / len(classes))
    assert found.population == ("weights" if weighted else "sample")


@given(CLASSES)
def test_without_weights_the_journalist_knows_what_the_prosecutor_knows(classes):
    found = class_risk(classes)

    assert found.journalist_max == found.prosecutor_max
    assert found.marketer == pytest.approx(len(set(classes)) / len(classes))


def test_cells_of_k_have_a_risk_of_one_in_k():
    found = class_risk(np.arange(100) // 10, threshold=0.1)

    assert found.prosecutor_max == 0.1
    assert found.prosecutor_above == 0
    assert found.n_highest == 100


def test_weights_below_1_do_not_make_the_population_smaller_than_the_sample():
    assert class_risk([0, 0], weights=[0.1, 0.1]).journalist_max == 0.5


@given(CLASSES, st.randoms(use_true_random=False))
def test_uniqueness_counts_those_alone_and_estimates_those_alone_in_the_population(classes, random):
    weights = [random.choice([0.5, 1.0, 8.0]) for _ in classes]
    alone = [Counter(classes)[label] == 1 for label in classes]
    found = uniqueness(classes, weights)

    assert found.sample == pytest.approx(np.mean(alone))
    assert found.population == pytest.approx(np.mean([a / max(w, 1) for a, w in zip(alone, weights, strict=True)]))
    assert uniqueness(classes).population is None


@pytest.mark.parametrize("measure", [class_risk, uniqueness])
@pytest.mark.parametrize(
    ("classes", "weights", "message"),
    [
        ([], None, "no records"),
        ([0.5, 1.0], None, "whole numbers"),
        ([[0, 1]], None, r"shape found is \(1, 2\)"),
        ([0, 1], [1.0], "each of the 2 records"),
        ([0, 1], [1.0, -1.0], "not negative; 1 are not, the first at index 1"),
        ([0, 1], [1.0, np.nan], "not negative; 1 are not, the first at index 1"),
        ([0, 1], [1.0, 0.0], "1 records have a weight of 0"),
        ([0, 1], ["a", "b"], "a number"),
    ],
)
def test_what_does_not_fit_is_refused(measure, classes, weights, message):
    with pytest.raises(ParameterError, match=message):
        measure(classes, weights)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, np.nan])
def test_a_threshold_that_is_no_probability_is_refused(threshold):
    with pytest.raises(ParameterError, match="threshold"):
        class_risk([0, 1], threshold=threshold)
