import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from block_tables import people
from shoal import LDiversity, TCloseness
from shoal.engines.disk.memory import MemoryBudget
from shoal.errors import ParameterError, SchemaError

ASKED = {"quasi_identifiers": ["city", "grade", "region"], "confidential": ["illness", "note"], "k": 2}


@pytest.fixture
def path(tmp_path):
    pq.write_table(people(), tmp_path / "people.parquet", row_group_size=100)
    return tmp_path / "people.parquet"


@pytest.fixture(autouse=True)
def small_buffers(monkeypatch):
    monkeypatch.setattr(MemoryBudget, "buffer", property(lambda self: 20_000))


@pytest.mark.parametrize("subject", [None, "name"])
def test_parts_are_counted_as_the_whole_table_is(path, subject):
    models = [LDiversity("illness", l=2)] if subject else [TCloseness("note", t=0.3), LDiversity("illness", l=2)]
    whole = shoal.audit(path, **ASKED, models=models, subject=subject)
    parts = shoal.audit(path, **ASKED, memory="1GB", models=models, subject=subject)

    assert parts.sizes == whole.sizes
    assert (parts.n_classes, parts.smallest, parts.n_below) == (whole.n_classes, whole.smallest, whole.n_below)
    assert parts.subjects == whole.subjects
    for found, wanted in zip(parts.models, whole.models, strict=True):
        assert (found.value, found.n_failing, found.holds) == (wanted.value, wanted.n_failing, wanted.holds)
    if subject is None:
        for name, found in parts.confidential.items():
            assert vars(found) == pytest.approx(vars(whole.confidential[name]))


def test_a_leak_in_one_class_is_found(path, tmp_path):
    table = pa.table({"a": np.repeat(np.arange(300), 4), "b": np.repeat(["x", "y"], 600)})
    leaking = table.set_column(0, "a", pa.array(np.concatenate([[999], np.repeat(np.arange(300), 4)[1:]])))
    pq.write_table(leaking, tmp_path / "leaking.parquet")
    found = shoal.audit(tmp_path / "leaking.parquet", quasi_identifiers=["a", "b"], k=3, memory="1GB")

    assert not found.holds
    assert (found.smallest, found.n_below) == (1, 1)


def test_what_cannot_be_counted_in_parts_is_refused(path):
    with pytest.raises(ParameterError, match="each person once"):
        shoal.audit(path, **ASKED, models=[TCloseness("note", t=0.3)], subject="name", memory="1GB")
    with pytest.raises(SchemaError, match="no column 'zip'"):
        shoal.audit(path, quasi_identifiers=["zip"], memory="1GB")
