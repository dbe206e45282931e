import json
import sys

import numpy as np
import pytest
from papers_shell import papers_command

from papers import tfrp
from papers.claims import NOT_MEASURED, as_text
from papers.data_and_results import Missing, agreement
from papers.paper import Run
from papers.tfrp.claims import claims, exponent, growth
from papers.tfrp.images import block_sets, blocks, picture
from papers.tfrp.methods import BASES, METHODS, SCATTERED, Limit, Result, measure
from papers.tfrp.pictures import figures
from papers.tfrp.plain import PLAIN, phase_two
from papers.tfrp.printed import SIZES, TABLE_2, table_2
from shoal import datasets, partition
from shoal.arrays import standardize
from shoal.datasets import Dataset
from shoal.errors import ParameterError
from shoal.measures import loss

TINY = tfrp.Scale(32, (5, 10), (50, 100))


def tiny_sets():
    rng = np.random.default_rng(0)
    named = {"astronaut-2x2": 4, "astronaut-4x4": 16, "camera-2x2": 4, "camera-4x4": 16}
    pictures = [Dataset(name, ("pixel",) * m, rng.integers(0, 256, (90, m)) * 1.0, "") for name, m in named.items()]
    references = [Dataset(data.name, data.columns, data.X[:150], data.note) for data in tfrp.reference_sets()]
    return [*references, *pictures]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    run = Run(tmp_path_factory.mktemp("tfrp") / "tfrp.json", tfrp.PAPER.rows)
    tfrp.fill(run, tiny_sets(), TINY, 3, sizes=(5, 9, 45))
    return run


def test_the_six_methods_are_those_of_the_registry():
    X = standardize(datasets.tarragona().X)[:200]
    losses = {result.method: result.il for result in measure("some", X, 6)}

    assert list(losses) == list(METHODS)
    assert losses["TFRP_I"] == 100 * loss(X, partition(X, 6, "tfrp", phases=1)).il
    assert losses["Diameter+"] == 100 * loss(X, partition(X, 6, "diameter+")).il
    assert losses["Centroid+"] == 100 * loss(X, partition(X, 6, "centroid+")).il


def test_table_2_is_complete():
    assert len(table_2()) == 96
    assert SIZES == (3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 35, 40, 45, 50)
    assert {len(row) for row in TABLE_2.values()} == {6}


def test_all_is_printed_with_the_papers_numbers_beside(report):
    text = tfrp.tables(report.content) + as_text(claims(report.content))

    assert "of 18 entries agree" in text
    assert "33.66" in text
    assert "k=5,7,9,20,35,40,45,50" in text
    assert "Figure 13" in text
    assert NOT_MEASURED in text  # no k=80 here
    assert "section 2.3" in text


def test_the_whole_table_agrees_where_the_data_are_whole(tmp_path):
    run = Run(tmp_path / "tfrp.json", tfrp.PAPER.rows)
    tfrp.fill(run, [datasets.census()], TINY, 0, sizes=(10, 45))

    assert "4 of 4 entries agree" in tfrp.tables(run.content)
    assert "Figure 13" not in tfrp.tables(run.content)


def test_the_pictures_of_all_figures_are_drawn(report):
    drawn = dict(figures(report.content))
    drawn["figure-5"].savefig(report.file.with_name("some.png"))

    assert set(drawn) == {f"figure-{number}" for number in range(5, 14)}


def test_the_numbers_are_saved_with_versions_and_without_paths(report):
    saved = report.file.read_text()

    assert json.loads(saved)["seed"] == 3
    assert len(json.loads(saved)["results"]) == 6 * (4 * 3 + 4 * 2)
    assert len(json.loads(saved)["trees"]) == 4 * 3
    assert str(report.file.parent) not in saved


def test_what_was_not_measured_is_said():
    results = measure("tarragona", np.random.default_rng(0).normal(size=(60, 2)), 5)
    found = claims({"results": results, "scalability": [], "trees": []})

    assert {claim.holds for claim in found if claim.where.startswith(("figure 8", "figure 11", "figure 13"))} == {None}
    assert {claim.why for claim in growth([])} == {NOT_MEASURED}


def test_claims_of_figures_9_and_12_are_listed(report):
    places = {claim.where for claim in claims(report.content)}

    assert {"figure 9a", "figure 9b", "figure 12", "figure 12b"} <= places


def test_the_exponent_of_a_quadratic_time_is_two():
    times = [Result("any", n, 4, 50, "TFRP", 1.0, 1e-6 * n**2, 1e-5 * n**2) for n in (100, 200, 400)]

    assert exponent([(result.n, result.seconds) for result in times]) == pytest.approx(2)
    assert [claim.holds for claim in growth(times) if "TFRP is quadratic" in claim.says] == [True]


@pytest.mark.parametrize("base", PLAIN)
@pytest.mark.parametrize("k", [3, 10])
def test_the_plain_twins_make_the_cells_of_the_kernels(base, k):
    X = np.random.default_rng(k).normal(size=(157, 3))
    name, options = BASES[base]
    plus = {"Diameter": "diameter+", "Centroid": "centroid+", "TFRP_I": "tfrp"}[base]
    labels = PLAIN[base](X, k)

    assert agreement(labels, partition(X, k, name, **options)) == 1.0
    assert agreement(phase_two(X, labels, k, PLAIN[base]), partition(X, k, plus)) == 1.0


def test_plain_twins_that_take_too_long_are_left_out():
    X = np.random.default_rng(0).normal(size=(60, 2))
    found = {result.method: result.plain_seconds for result in measure("some", X, 5, Limit(pairs=1, records=60))}

    assert {method for method, seconds in found.items() if seconds is None} == {"Diameter", SCATTERED["Diameter"]}


def test_blocks_are_cut_row_by_row_and_the_rest_is_left():
    pixels = np.arange(30.0).reshape(5, 6)

    assert blocks(pixels, 2).shape == (6, 4)
    assert blocks(pixels, 2)[3].tolist() == [12, 13, 18, 19]


def test_pictures_are_left_out_where_scikit_image_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage", None)

    assert isinstance(picture("camera"), Missing)
    assert all("pip install scikit-image" in data.reason for data in block_sets(32))


def test_pictures_are_grey_and_of_the_size_asked_for():
    pytest.importorskip("skimage")
    sets = {data.name: data.X for data in block_sets(64)}

    assert {name: X.shape for name, X in sets.items()} == {
        "astronaut-2x2": (1024, 4),
        "astronaut-4x4": (256, 16),
        "camera-2x2": (1024, 4),
        "camera-4x4": (256, 16),
    }
    assert all(set(np.unique(X)) <= set(range(256)) for X in sets.values())


def test_the_command_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(tfrp, "reference_sets", lambda: [Dataset("census", ("x",) * 13, datasets.census().X[:120], "")])
    result = papers_command("tfrp", "--without-images", "--output", str(tmp_path / "new"))

    assert result.exit_code == 0
    assert "Table 2" in result.output


def test_an_output_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="cannot be created"):
        Run(tmp_path / "file" / "folder" / "tfrp.json", tfrp.PAPER.rows)
