import runpy
from pathlib import Path

import pyarrow as pa

from shoal import audit
from shoal.sources import read

EXAMPLE = Path(__file__).parents[2] / "examples" / "election_evening.py"


def test_the_scripted_evening_ends_in_one_audited_release(tmp_path):
    script = runpy.run_path(str(EXAMPLE))
    release = script["main"](tmp_path)
    published = read(tmp_path / "release.csv").arrow
    verdict = audit(published, quasi_identifiers=["age", "income", "district"], k=10)

    assert verdict.holds
    assert published.num_rows == script["N_BALLOTS"] == release.verdict.n_records
    assert release.verdict.subjects >= 10
    # What was written and what a second finish gives is one release: the same records, in another order.
    order = [(name, "ascending") for name in published.column_names]
    again = release.table.cast(pa.schema([release.table.schema.field(name) for name in published.column_names]))
    assert published.sort_by(order)["vote"].to_pylist() == again.sort_by(order)["vote"].to_pylist()
