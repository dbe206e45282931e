import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.shell import shoal_command, write_csv
from shoal import ParameterError, SchemaError, ShoalWarning, anonymize, audit
from shoal.aggregate import Cells, RandomAggregation, aggregate
from shoal.columns.schema import ColumnSettings, Roles, Schema

COLUMNS = ("age", "income")


def people(n=120, seed=3):
    rng = np.random.default_rng(seed)
    return pa.table(
        {"age": rng.integers(18, 90, n), "income": rng.lognormal(10, 1, n), "disease": rng.choice(["flu", "cold"], n)}
    )


def released(table=None, rho=0.5, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return anonymize(
            people() if table is None else table,
            **{"k": 5, "quasi_identifiers": COLUMNS, "confidential": ["disease"], "seed": 1, **settings},
            rho=rho,
        )


def numbers(table, name):
    return np.asarray(table[name].cast(pa.float64()))


def song(values, rng):
    """Random k-anonymity, equation 6: the own value plus noise of half the range, wrapped around into the range."""
    low, high = values.min(), values.max()
    moved = values + rng.uniform(-(high - low) / 2, (high - low) / 2, len(values))
    return np.where(moved > high, moved - (high - low), np.where(moved < low, moved + (high - low), moved))


@given(st.floats(0, 1), st.integers(0, 5))
def test_records_stay_within_rho_of_the_way_from_the_mean_to_the_ends_of_their_cell(rho, seed):
    release = released(rho=rho, seed=seed)

    for name in COLUMNS:
        before, after = numbers(release.original, name), numbers(release.published, name)
        for cell in range(release.labels.max() + 1):
            here = release.labels == cell
            m, low, high = before[here].mean(), before[here].min(), before[here].max()
            room = 1e-9 * (1 + abs(high))
            assert after[here].min() >= m + rho * (low - m) - room
            assert after[here].max() <= m + rho * (high - m) + room


def test_rho_0_is_microaggregation_and_keeps_k():
    plain, zero = released(rho=None), released(rho=0)

    assert zero.published == plain.published
    assert zero.verdict == plain.verdict
    assert zero.verdict.holds


def test_rho_1_and_songs_form_agree_in_distribution():
    rng = np.random.default_rng(0)
    values = np.sort(rng.lognormal(0, 1, 7))
    n_cells = 4000
    table = pa.table({"x": np.tile(values, n_cells)})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("x",)))
    labels = np.repeat(np.arange(n_cells), 7)
    ours = np.asarray(aggregate(table, schema, Cells(labels), randomized=RandomAggregation(1.0, 5))["x"])
    theirs = np.concatenate([song(values, rng) for _ in range(n_cells)])
    # Both are uniform between the ends, whichever record of the cell: the two-sample Kolmogorov-Smirnov distance.
    grid = np.linspace(values.min(), values.max(), 200)
    for record in (slice(None), slice(0, None, 7), slice(6, None, 7)):
        shares = [np.searchsorted(np.sort(side[record]), grid) / len(side[record]) for side in (ours, theirs)]

        assert np.abs(shares[0] - shares[1]).max() < 1.95 * np.sqrt(2 / len(ours[record]))


def test_song_is_another_name_for_rho_1():
    assert released(rho="song").published == released(rho=1).published


def test_a_seed_repeats_the_noise_and_another_one_does_not():
    assert released(seed=4).published == released(seed=4).published
    assert released(seed=4).published != released(seed=5).published


def test_the_mean_of_a_cell_moves_towards_its_midrange():
    values = np.array([0.0, 0.0, 0.0, 10.0])
    table = pa.table({"x": np.tile(values, 5000)})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("x",)))
    cells = Cells(np.repeat(np.arange(5000), 4))
    found = np.asarray(aggregate(table, schema, cells, randomized=RandomAggregation(0.8, 0))["x"]).mean()

    assert found == pytest.approx(2.5 + 0.8 * (5 - 2.5), abs=0.1)


def test_whole_numbers_and_missing_values_are_treated_as_in_microaggregation():
    table = pa.table({"x": pa.array([2**60, 2**60 + 4, None, None, None, 2**60 + 9], pa.int64())})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("x",)), {"x": ColumnSettings(round=0)})
    found = aggregate(table, schema, Cells(np.array([0, 0, 0, 1, 1, 1])), randomized=RandomAggregation(1.0, 2))["x"]

    assert found.type == pa.int64()
    assert all(2**60 <= value <= 2**60 + 4 for value in found.to_pylist()[:3])
    assert found.to_pylist()[3:] == [None, None, None]


def test_the_verdict_withdraws_k_and_says_why():
    verdict = released().verdict

    assert not verdict.holds
    assert "k is not claimed" in verdict.withdrawn
    assert "not differential privacy" in verdict.withdrawn
    verdict.require()


def test_files_report_and_manifests_say_that_k_is_not_claimed(tmp_path):
    release = released()
    release.write(tmp_path / "r.csv", report=tmp_path / "r.html", form="public", json=tmp_path / "r.json")

    for name in ("r.csv.public.json", "r.csv.internal.json", "r.json"):
        assert json.loads((tmp_path / name).read_text())["verdict"]["withdrawn"] == release.verdict.withdrawn
    page = (tmp_path / "r.html").read_text()
    assert "Not k-anonymous" in page
    assert "not differential privacy" in page
    assert "No guarantee" in page
    assert "every record now shows the same value" not in page
    assert not audit(tmp_path / "r.csv", quasi_identifiers=COLUMNS, k=5).holds


def test_loss_is_that_of_what_is_published():
    release = released(rho=1, scaling="zscore")
    X, Y = release.space.encode(release.original), release.space.encode(release.replaced)

    assert release.loss.sse == pytest.approx(np.square(X - Y).sum())
    assert release.loss.il > released(rho=0).loss.il


def test_a_warning_says_that_the_release_is_not_k_anonymous():
    with pytest.warns(ShoalWarning, match="not k-anonymous"):
        anonymize(people(), k=5, quasi_identifiers=COLUMNS, confidential=["disease"], rho=0.5)


def test_columns_that_are_not_numbers_are_named():
    with pytest.raises(SchemaError, match="'disease'"):
        released(quasi_identifiers=[*COLUMNS, "disease"], confidential=())


def test_households_are_refused():
    table = people().append_column("home", pa.array(np.arange(120) // 2))
    with pytest.raises(SchemaError, match="household"):
        released(table, household="home", household_level=[])


@pytest.mark.parametrize("rho", [-0.1, 1.1, float("nan"), "0.5", True, "wrap"])
def test_a_rho_that_cannot_be_is_refused(rho):
    with pytest.raises(ParameterError, match="rho"):
        released(rho=rho)


def test_the_command_takes_rho_and_says_what_it_means(tmp_path):
    rows = [["age", "income"], *([20 + i % 50, 1000 + i * 37 % 900] for i in range(60))]
    file = write_csv(tmp_path / "people.csv", rows)
    out = tmp_path / "release.csv"
    result = shoal_command("anonymize", file, "-k", 5, "--quasi-identifiers", "age,income", "--rho", "song", "-o", out)

    assert result.exit_code == 0, result.output
    assert "not k-anonymous: k is not claimed" in result.stdout
    assert json.loads((tmp_path / "release.csv.public.json").read_text())["job"]["rho"] == 1.0
    assert (
        shoal_command(
            "anonymize", file, "-k", 5, "--quasi-identifiers", "age,income", "--rho", "2", "-o", out
        ).exit_code
        == 2
    )
