import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from shoal import FileError
from shoal.dp import joint, marginals

PUBLIC = {"bounds": {"age": (0, 120)}, "categories": {"sex": ["f", "m"]}}


def people(seed):
    rng = np.random.default_rng(seed)
    return pa.table({"age": rng.integers(0, 300, 100), "sex": rng.choice(["f", "m", "x"], 100)})


@pytest.mark.parametrize("release", [marginals, joint])
def test_the_manifest_is_the_same_for_any_records(release):
    first, second = (release(people(seed), 1.0, **PUBLIC).manifest for seed in (1, 2))

    assert first == second


@pytest.mark.parametrize("release", [marginals, joint])
def test_the_table_and_a_manifest_are_written_and_nothing_else(release, tmp_path):
    made = release(people(1), 1.0, **PUBLIC)
    made.write(tmp_path / "r.csv")

    assert {path.name for path in tmp_path.iterdir()} == {"r.csv", "r.csv.public.json"}
    assert pyarrow.csv.read_csv(tmp_path / "r.csv")["age"].to_pylist() == made.published["age"].to_pylist()
    manifest = json.loads((tmp_path / "r.csv.public.json").read_text())
    assert manifest["epsilon"] == 1.0
    assert manifest["spent"] == made.spent
    assert set(manifest) == {*made.manifest, "output_sha256"}


def test_that_values_are_clamped_is_always_said_and_whether_any_was_never():
    notes = " ".join(marginals(people(1), 1.0, **PUBLIC).manifest["notes"])

    assert "outside the bounds count as the bound" in notes
    assert "whether there were any is not published" in notes


def test_files_that_exist_are_not_replaced_unless_asked(tmp_path):
    release = marginals(people(1), 1.0, **PUBLIC)
    release.write(tmp_path / "r.csv")

    with pytest.raises(FileError, match="exists"):
        release.write(tmp_path / "r.csv")
    release.write(tmp_path / "r.csv", force=True)
