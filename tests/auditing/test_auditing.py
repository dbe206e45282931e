import datetime
import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import GuaranteeError, ParameterError, SchemaError, anonymize, audit
from shoal.models import Codes
from shoal.models.t_closeness import earth_movers_distance


def naive_ordered_emd(own, everything, n_values):
    """Equation 1 of seed 002: running shares, value by value."""
    total, running = Fraction(0), Fraction(0)
    for value in range(n_values):
        running += Fraction(own.count(value), len(own)) - Fraction(everything.count(value), len(everything))
        total += abs(running)
    return total / (n_values - 1) if n_values > 1 else Fraction(0)


def naive_equal_emd(own, everything, n_values):
    """Half the sum of the differences of the shares."""
    shares = [
        (Fraction(own.count(v), len(own)), Fraction(everything.count(v), len(everything))) for v in range(n_values)
    ]
    return sum((abs(a - b) for a, b in shares), Fraction(0)) / 2


@st.composite
def classified(draw):
    n = draw(st.integers(1, 40))
    classes = np.unique(draw(st.lists(st.integers(0, 6), min_size=n, max_size=n)), return_inverse=True)[1]
    n_values = draw(st.integers(1, 9))
    return classes, np.array(draw(st.lists(st.integers(0, n_values - 1), min_size=n, max_size=n))), n_values


@pytest.mark.parametrize(("ordered", "naive"), [(True, naive_ordered_emd), (False, naive_equal_emd)])
@given(problem=classified())
def test_distances_to_the_table_equal_their_definition(ordered, naive, problem):
    classes, codes, n_values = problem
    everything = codes.tolist()
    defined = [naive(codes[classes == c].tolist(), everything, n_values) for c in range(classes.max() + 1)]
    mean = sum(distance * int(n) for distance, n in zip(defined, np.bincount(classes), strict=True)) / len(codes)
    found, found_mean = earth_movers_distance(classes, Codes(codes, n_values, ordered))

    np.testing.assert_allclose(found, list(map(float, defined)), atol=1e-12)
    assert found_mean == mean


@given(classified())
def test_diversity_equals_its_definition(problem):
    classes, codes, _ = problem
    table = pa.table({"q": classes, "s": [f"v{code}" for code in codes]})
    found = audit(table, quasi_identifiers="q", confidential="s").confidential["s"]
    counters = [Counter(codes[classes == c].tolist()) for c in range(classes.max() + 1)]

    def entropy(counter):
        return -sum(n / counter.total() * math.log(n / counter.total()) for n in counter.values())

    def recursive(counter):
        most = max(counter.values())
        return most / (counter.total() - most) if counter.total() > most else math.inf

    assert found.distinct == min(map(len, counters))
    assert found.entropy == pytest.approx(math.exp(min(map(entropy, counters))))
    assert found.recursive == pytest.approx(max(map(recursive, counters)))
    assert found.t == pytest.approx(_worst(classes, codes), abs=1e-12)


def _worst(classes, codes):
    return float(
        max(naive_equal_emd(codes[classes == c].tolist(), codes.tolist(), 9) for c in range(classes.max() + 1))
    )


def test_as_many_values_as_records_need_no_table_of_classes_by_values():
    n = 200_000
    classes, codes = np.arange(n) // 10, np.random.default_rng(1).permutation(n)
    found, mean = earth_movers_distance(classes, Codes(codes, n, ordered=True))

    assert 0.05 < found.mean() < 0.3
    assert float(mean) == pytest.approx(found.mean())


def test_a_planted_leak_is_found():
    rng = np.random.default_rng(2)
    table = pa.table({"x": rng.normal(size=60), "y": rng.choice(["a", "b"], 60)})
    published = anonymize(table, k=5, quasi_identifiers=["x", "y"], seed=1).table.to_pandas()
    assert audit(published, quasi_identifiers=["x", "y"], k=5).holds
    published.loc[17, "x"] += 1e-9
    verdict = audit(published, quasi_identifiers=["x", "y"], k=5)

    assert not verdict.holds
    assert verdict.smallest == 1
    assert 1 in verdict.sizes
    assert verdict.n_below >= 1
    with pytest.raises(GuaranteeError, match="a class of 1 records where k=5"):
        verdict.require()


def test_sizes_and_records_below_k_are_counted():
    verdict = audit(pa.table({"q": ["a"] * 3 + ["b"] * 2 + ["c"] * 2 + [None]}), quasi_identifiers="q", k=3)

    assert verdict.sizes == {1: 1, 2: 2, 3: 1}
    assert (verdict.n_records, verdict.n_classes, verdict.n_below) == (8, 4, 5)


@pytest.mark.parametrize(
    ("values", "smallest"),
    [
        ([1.0, 1.0, None, None], 2),
        ([float("nan"), None, 1.0, 1.0], 1),  # a reader of the file can tell them apart
        ([0.0, -0.0, 1.0, 1.0], 1),
        ([None, None, None, None], 4),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 2]), pa.array(["a", "a", "b"])), 2),
        (pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 1]), pa.array([None, "b"])), 2),
        ([datetime.date(2024, 1, 1)] * 2 + [datetime.date(2024, 1, 2)] * 2, 2),
    ],
)
def test_records_are_counted_together_if_they_look_the_same(values, smallest):
    assert audit(pa.table({"q": values}), quasi_identifiers="q").smallest == smallest


def test_pandas_has_one_missing_value():
    assert audit(pd.DataFrame({"q": [np.nan, None, 1.0, 1.0]}), quasi_identifiers="q").smallest == 2


def test_k_may_count_persons_and_a_missing_person_is_one_for_all():
    table = pa.table({"q": ["a"] * 3 + ["b"] * 3, "who": [1.0, 2.0, 3.0, None, float("nan"), 5.0]})
    verdict = audit(table, quasi_identifiers="q", subject="who", k=3)

    assert verdict.smallest == 3
    assert verdict.subjects == 2
    assert not verdict.holds
    with pytest.raises(GuaranteeError, match="a class with 2 different subjects"):
        verdict.require()


def test_ordered_columns_are_measured_by_their_order():
    table = pa.table({"q": [1, 1, 2, 2], "s": ["low", "mid", "mid", "high"]})
    nominal = audit(table, quasi_identifiers="q", confidential="s").confidential["s"]
    order = {"s": {"categories": ["low", "mid", "high"]}}
    ordinal = audit(table, quasi_identifiers="q", confidential="s", columns=order).confidential["s"]

    assert nominal.t == pytest.approx(0.25)
    assert ordinal.t == pytest.approx((0.25 + 0.25) / 2)


def test_a_category_listed_twice_is_one_level():
    once = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 2]), pa.array(["lo", "mid", "hi"]), ordered=True)
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 3, 2]), pa.array(["lo", "mid", "hi", "mid"]), ordered=True)
    found = [
        audit(pa.table({"q": [1, 1, 2, 2], "s": values}), quasi_identifiers="q", confidential="s").confidential["s"]
        for values in (once, twice)
    ]

    assert found[0] == found[1]


def test_missing_confidential_values_are_one_value_after_all_others():
    table = pa.table({"q": [1, 1, 2, 2], "s": [1.0, None, float("nan"), 2.0]})
    found = audit(table, quasi_identifiers="q", confidential="s").confidential["s"]

    assert found.distinct == 2
    assert found.t == pytest.approx(float(naive_ordered_emd([0, 2], [0, 2, 2, 1], 3)))


def test_a_constant_confidential_column_tells_everything_and_is_close():
    found = audit(pa.table({"q": [1, 1], "s": [7, 7]}), quasi_identifiers="q", confidential="s").confidential["s"]

    assert (found.distinct, found.entropy, found.recursive, found.t) == (1, 1.0, math.inf, 0.0)


def test_a_verdict_can_be_written_as_json():
    table = pa.table({"q": [1, 1], "s": [7, 7]})
    verdict = audit(table, quasi_identifiers="q", confidential="s", k=np.int64(2))
    content = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))

    assert content["holds"] is True
    assert content["sizes"] == {"2": 1}
    assert content["confidential"]["s"]["recursive"] is None


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"quasi_identifiers": "z"}, SchemaError, "no column 'z'"),
        ({"quasi_identifiers": []}, SchemaError, "No quasi-identifier"),
        ({"confidential": "q"}, SchemaError, "'q' is named twice: as quasi-identifier and as confidential"),
        ({"subject": "z"}, SchemaError, "no column 'z'"),
        ({"k": True}, ParameterError, "k must be a whole number, not bool"),
        ({"k": "3"}, ParameterError, "k must be a whole number, not str"),
        ({"k": 3.0}, ParameterError, "k must be a whole number, not float"),
        ({"k": 0}, ParameterError, "at least 2"),
        ({"columns": {"q": {"round": 1}}}, ParameterError, "an audit uses only kind and categories"),
        ({"columns": {"q": {"kid": "nominal"}}}, ParameterError, "Did you mean 'kind'"),
        ({"columns": {"z": {"kind": "nominal"}}}, SchemaError, "no column 'z'"),
        ({"delimiter": ";"}, ParameterError, "delimiter cannot be given"),
    ],
)
def test_what_cannot_be_audited_is_refused(settings, error, message):
    with pytest.raises(error, match=message):
        audit(pa.table({"q": [1, 1], "s": [7, 7]}), **{"quasi_identifiers": "q"} | settings)


def test_no_records_are_nothing_to_count():
    with pytest.raises(ParameterError, match="no records"):
        audit(pa.table({"q": pa.array([], pa.int64())}), quasi_identifiers="q")


def test_more_persons_than_records_asked_for_is_a_verdict_not_an_error():
    assert not audit(pa.table({"q": [1, 1]}), quasi_identifiers="q", k=50).holds


def test_a_file_of_another_tool_is_counted_as_it_is(tmp_path):
    path = tmp_path / "ranges.csv"
    path.write_text("age;zip\n[20-30);12*\n[20-30);12*\n*;*\n*;*\n*;*\n", encoding="utf-8")
    verdict = audit(path, quasi_identifiers=["age", "zip"], k=2)

    assert verdict.holds
    assert verdict.sizes == {2: 1, 3: 1}
