"""Records in classes that are too small are named by number, never by value."""

import pyarrow as pa
import pytest

from shoal import ParameterError, audit

PEOPLE = pa.table({"age": [30, 30, 50, 60, 30], "zip": [1, 1, 2, 2, 1], "who": ["a", "a", "b", "c", "a"]})


def test_each_record_has_the_size_of_its_class_and_the_risk_of_a_guess():
    found = audit(PEOPLE, quasi_identifiers=["age", "zip"], records=True).records.to_pydict()

    assert found["record"] == [1, 2, 3, 4, 5]
    assert found["class"] == [0, 0, 1, 2, 0]
    assert found["size"] == [3, 3, 1, 1, 3]
    assert found["risk"] == pytest.approx([1 / 3, 1 / 3, 1, 1, 1 / 3])


def test_with_a_subject_classes_are_counted_in_persons():
    verdict = audit(PEOPLE, quasi_identifiers="zip", subject="who", records=True)

    assert verdict.records["size"].to_pylist() == [1, 1, 2, 2, 1]


def test_records_below_k_come_smallest_class_first():
    ages = pa.table({"age": [30, 30, 50, 60, 30, 70, 70]})

    assert audit(ages, quasi_identifiers="age", k=3, records=True).below_k == [
        {"record": 3, "size": 1},
        {"record": 4, "size": 1},
        {"record": 6, "size": 2},
        {"record": 7, "size": 2},
    ]


def test_records_are_only_returned_where_they_are_asked_for():
    verdict = audit(PEOPLE, quasi_identifiers="age", k=3)

    assert verdict.records is None
    assert verdict.below_k == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"records": True, "memory": "1GB"}, "need all records in memory"),
        ({"original": PEOPLE, "memory": "1GB"}, "need all records in memory"),
        ({"same_order": True}, "there are no originals"),
        ({"manifest": "a.json"}, "there are no originals"),
    ],
)
def test_what_does_not_go_together_is_refused(asked, words):
    with pytest.raises(ParameterError, match=words):
        audit(PEOPLE, quasi_identifiers="age", **asked)
