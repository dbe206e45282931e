"""One release for every engine: the same attributes, and one refusal of what needs all records in memory."""

import warnings

import pyarrow as pa
import pytest

import shoal
from block_tables import people
from shoal.output.release import Release

ROLES = {"quasi_identifiers": ["age", "income"], "confidential": ["illness"], "other": ["region"]}
NEEDING_ALL = {
    "table": lambda release: release.table,
    "published": lambda release: release.published,
    "labels": lambda release: release.labels,
    "X": lambda release: release.X,
    "bound": lambda release: release.bound(),
}


@pytest.fixture(params=["memory", "disk"])
def release(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = people(300).select(["age", "income", "illness", "region"])
        return shoal.anonymize(table, k=3, seed=1, missing="own-value", engine=request.param, **ROLES)


def test_every_engine_gives_the_same_release_with_the_same_attributes(release, tmp_path):
    with release:
        assert type(release) is Release
        assert release.verdict.holds
        assert repr(release).startswith("Release(k=3, holds: 300 records x 4 columns in ")
        assert 0 < release.loss.il < 1
        assert list(release.measures)[:5] == ["reading", "loss", "risk", "utility", "attacks"]
        assert [entry["name"] for entry in release.codebook] == ["age", "income", "illness", "region"]
        assert len(release.original) == len(release.replaced["age"]) == len(release.columns["region"]) == 300
        assert release.certainty is None
        assert {one.column for one in release.contributions} <= {"age", "income"}
        assert "<table>" in release._repr_html_()
        assert release.write(tmp_path / "r.parquet")[0] == tmp_path / "r.parquet"


def test_batches_are_what_is_written(release, tmp_path):
    with release:
        found = pa.concat_tables(release.batches())
        release.write(tmp_path / "r.arrow")

    assert pa.ipc.open_file(tmp_path / "r.arrow").read_all().to_pydict() == found.to_pydict()


@pytest.mark.parametrize("what", NEEDING_ALL)
def test_what_needs_all_records_in_memory_is_refused_with_the_engine_that_has_it(release, what):
    with release:
        if release.records.engine == "memory":
            assert NEEDING_ALL[what](release) is not None
            return
        with pytest.raises(shoal.ParameterError, match=r'The engine \'disk\' cannot do this: .* engine="memory"'):
            NEEDING_ALL[what](release)
