"""The measures of ARX, against numbers worked out by hand and against its definitions, written out slowly."""

import json
from collections import Counter
from math import log2

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.columns.schema import Roles, Schema
from shoal.measures.quality import QUALITIES, Compared, non_uniform_entropy, table_quality

pytestmark = pytest.mark.filterwarnings("ignore:(The sets of column|More than half):shoal.ShoalWarning")

PEOPLE = pa.table({"age": [20, 22, 30, 34, 50, 60], "town": list("aabbcd")})


CLASSES = np.array([0, 0, 1, 1, 2, 2])
AS_CLASSES = pa.table(
    {"age": ["20-22"] * 2 + ["30-34"] * 2 + ["50-60"] * 2, "town": ["a", "a", "b", "b", "c d", "c d"]}
)


@pytest.fixture
def release():
    settings = {"age": {"aggregate": "interval"}, "town": {"aggregate": "set"}}
    return shoal.anonymize(PEOPLE, k=2, seed=1, quasi_identifiers=["age", "town"], columns=settings, method="mdav")


def test_the_measures_are_those_worked_out_by_hand():
    schema = Schema.of(PEOPLE.schema, Roles(quasi_identifiers=("age", "town")))
    found = table_quality(Compared(PEOPLE, AS_CLASSES, schema, {"age": CLASSES, "town": CLASSES}, CLASSES))

    # Three classes of two: 3 * 2^2 = 12, between 6 for the original, six classes of one, and 36 for one class.
    assert (found["discernibility"].value, found["discernibility"].loss) == (12, (12 - 6) / (36 - 6))
    assert (found["average_class_size"].value, found["average_class_size"].loss) == (2, (2 - 1) / (6 - 1))
    # Ranges of 2, 4 and 10 in one of 40; of four towns the classes show 1, 1 and 2.
    assert found["granularity"].columns["age"] == pytest.approx((2 + 4 + 10) / 3 / 40)
    assert found["granularity"].columns["town"] == pytest.approx((0 + 0 + 1 / 3) / 3)
    assert found["granularity"].value == pytest.approx(((2 + 4 + 10) / 3 / 40 + (1 + 1 + 2) / 3 / 4) / 2)
    # Of six ages one bit each is lost, of towns that of two records.
    assert found["non_uniform_entropy"].columns["age"] == pytest.approx(6 / (6 * log2(6)))
    town = 2 * 2 * log2(6 / 2) + 2 * log2(6)
    assert found["non_uniform_entropy"].columns["town"] == pytest.approx(2 / town)
    assert found["non_uniform_entropy"].value == pytest.approx(8)


def test_granularity_is_the_certainty_penalty(release):
    assert release.quality["granularity"].loss == pytest.approx(release.certainty.ncp)
    assert release.quality["granularity"].columns == pytest.approx(release.certainty.columns)


def arx_non_uniform_entropy(values, published):
    """Return the measure of ARX where each value is published in one way: log2 of the frequencies, record by record."""
    before, after = Counter(values), Counter(published)
    lost = -sum(log2(before[value] / after[shown]) for value, shown in zip(values, published, strict=True))
    return lost / -sum(log2(before[value] / len(values)) for value in values)


def test_non_uniform_entropy_is_that_of_arx_where_a_value_is_always_published_in_the_same_way():
    town = np.random.default_rng(0).choice(list("aaabbcdd"), 60).tolist()
    published = ["north" if each in "ab" else "south" for each in town]
    before, after = pa.table({"town": town}), pa.table({"town": published})
    cells = np.unique(published, return_inverse=True)[1]
    schema = Schema.of(before.schema, Roles(quasi_identifiers=("town",)))
    found = non_uniform_entropy(Compared(before, after, schema, {"town": cells}, cells))

    assert found.loss == found.columns["town"] == pytest.approx(arx_non_uniform_entropy(town, published))


def test_one_class_of_everybody_loses_everything_and_single_records_nothing():
    columns = {"age": {"aggregate": "interval"}}
    k_all = shoal.anonymize(PEOPLE, k=6, seed=1, quasi_identifiers=["age"], other=["town"], columns=columns)
    equal = pa.table({"age": [1, 1, 5, 5]})
    nothing = shoal.anonymize(equal, k=2, seed=1, quasi_identifiers=["age"])

    assert {name: one.loss for name, one in k_all.quality.items()} == pytest.approx(dict.fromkeys(QUALITIES, 1.0))
    assert {name: one.loss for name, one in nothing.quality.items()} == pytest.approx(dict.fromkeys(QUALITIES, 0.0))


def test_they_stand_in_the_measures_the_manifest_and_the_report(release, tmp_path):
    release.write(tmp_path / "r.parquet", report=tmp_path / "r.html", json=tmp_path / "r.json")
    told = {name: one.to_dict() for name, one in release.quality.items()}
    internal = json.loads((tmp_path / "r.parquet.internal.json").read_text())

    assert list(told) == list(QUALITIES)
    assert json.loads((tmp_path / "r.json").read_text())["quality"] == internal["quality"] == told
    assert "Discernibility" in (tmp_path / "r.html").read_text()
    assert "quality" not in json.loads((tmp_path / "r.parquet.public.json").read_text())


def test_records_that_differ_within_their_cells_have_no_classes_to_measure():
    numbers = pa.table({"age": list(range(20))})
    with pytest.warns(shoal.ShoalWarning):
        noisy = shoal.anonymize(numbers, k=4, seed=1, rho=0.5, quasi_identifiers="age")

    assert noisy.quality is None
