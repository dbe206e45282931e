"""Records in classes that are too small are named by number, never by value."""

import pyarrow as pa
import pytest

from shoal import SchemaError
from shoal.auditing.record_risk import below, record_risk

PEOPLE = pa.table({"age": [30, 30, 50, 60, 30], "zip": [1, 1, 2, 2, 1], "who": ["a", "a", "b", "c", "a"]})


def test_each_record_has_the_size_of_its_class_and_the_risk_of_a_guess():
    found = record_risk(PEOPLE, quasi_identifiers=["age", "zip"]).to_pydict()

    assert found["size"] == [3, 3, 1, 1, 3]
    assert found["risk"] == pytest.approx([1 / 3, 1 / 3, 1, 1, 1 / 3])


def test_with_a_subject_classes_are_counted_in_persons():
    assert record_risk(PEOPLE, quasi_identifiers="zip", subject="who")["size"].to_pylist() == [1, 1, 2, 2, 1]


def test_records_below_k_come_smallest_class_first():
    found = below(record_risk(PEOPLE, quasi_identifiers="age"), 3)

    assert found["record"].to_pylist() == [2, 3]


def test_without_quasi_identifiers_there_is_nothing_to_count():
    with pytest.raises(SchemaError, match="nothing to count by"):
        record_risk(PEOPLE, quasi_identifiers=[])
