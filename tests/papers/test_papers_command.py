import builtins
import gzip
import json
import sys

import numpy as np
import pytest
from papers_shell import papers_command

from papers import PAPERS, data_and_results, fmdav


@pytest.fixture
def without_data(monkeypatch, tmp_path):
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))


@pytest.mark.parametrize("command", [(), *((name,) for name in PAPERS)])
def test_help_carries_examples(command):
    result = papers_command(*command, "--help")

    assert result.exit_code == 0
    assert "Examples:\n" in result.output
    assert "  python -m papers " in result.output


def test_ctrl_c_ends_quietly_with_130(monkeypatch, tmp_path):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(fmdav, "_forecast", interrupted)
    result = papers_command("fmdav", "--n", "50", "--output", str(tmp_path))

    assert result.exit_code == 130
    assert "Traceback" not in result.output


def test_an_unknown_paper_is_refused():
    result = papers_command("nothing")

    assert result.exit_code == 2
    assert "nothing" in result.stderr


def small_sources(monkeypatch):
    """Stand two small sets in for the large files, so that the run needs no folder of data."""
    for name in ("covertype", "census"):
        X = data_and_results.gaussian().sample(400, np.random.default_rng(0))
        source = data_and_results.Source(name, f"{name}.csv.gz", X.shape[1], X)
        monkeypatch.setattr(fmdav, name, lambda n, source=source: source)


def test_fmdav_prints_one_table_and_writes_pictures_and_numbers(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    small_sources(monkeypatch)
    result = papers_command(
        "fmdav", "--n", "150,300", "-k", "5", "--longest", "100", "--seed", "4", "--output", str(tmp_path)
    )

    assert result.exit_code == 0, result.output
    for word in ("gaussian", "covertype", "census", "traditional", "all five", "shoal", "speed-up", "same cells"):
        assert word in result.stdout
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert pictures == {
        "fmdav-alone.png",
        "fmdav-together.png",
        "fmdav-sorting.png",
        "fmdav-sorting-per-number.png",
    }
    saved = json.loads((tmp_path / "fmdav.json").read_text())
    assert len(saved["ablation"]) == 3 * 2 * 8
    assert saved["seed"] == 4
    assert saved["data"]["census"] == "census.csv.gz"
    assert str(tmp_path) not in json.dumps(saved)


def test_fmdav_says_which_data_are_missing_and_goes_on(without_data, tmp_path):
    result = papers_command("fmdav", "--n", "50", "--longest", "0", "--output", str(tmp_path / "o"))

    assert result.exit_code == 0, result.output
    assert "Without covertype: covertype_sample.csv.gz or covertype_two_class.csv.gz not in" in result.stderr
    assert "Without census: gov_census.csv.gz not in" in result.stderr
    assert "gaussian" in result.stdout


def test_fmdav_leaves_out_sizes_that_a_data_set_cannot_serve(monkeypatch, tmp_path):
    small_sources(monkeypatch)
    result = papers_command("fmdav", "--n", "50,500", "--longest", "0", "--output", str(tmp_path))

    assert result.exit_code == 0, result.output
    assert "Without census at n=500" in result.stderr
    assert len(json.loads((tmp_path / "fmdav.json").read_text())["ablation"]) == (3 + 1) * 8


def test_fmdav_without_matplotlib_says_how_to_get_the_pictures(monkeypatch, without_data, tmp_path):
    original = builtins.__import__

    def without_matplotlib(name, *arguments, **keywords):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name="matplotlib")
        return original(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    monkeypatch.delitem(sys.modules, "papers.fmdav.pictures", raising=False)
    result = papers_command("fmdav", "--n", "50", "--longest", "0", "--output", str(tmp_path / "o"))

    assert result.exit_code == 0, result.output
    assert "traditional" in result.stdout
    assert "pip install matplotlib" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--n", "many"), "not a list of whole numbers"),
        (("--n", "10"), "at least 20 records"),
        (("--n", "-5"), "at least 20 records"),
        (("-k", "1"), "-k"),
    ],
)
def test_fmdav_refuses_what_it_cannot_run(arguments, words, tmp_path):
    result = papers_command("fmdav", *arguments, "--output", str(tmp_path))

    assert result.exit_code == 2
    assert words in result.stderr


def test_fmdav_goes_on_with_what_an_interrupted_run_has_left(without_data, tmp_path):
    arguments = ("fmdav", "--samples", "1", "--longest", "0", "--output", str(tmp_path / "o"))
    first = papers_command(*arguments, "--n", "50")
    saved = json.loads((tmp_path / "o" / "fmdav.json").read_text())["ablation"]
    again = papers_command(*arguments, "--n", "50,80", "--resume")
    other = papers_command(*arguments, "--n", "50", "--resume", "--seed", "5")

    assert first.exit_code == again.exit_code == 0, again.output
    found = json.loads((tmp_path / "o" / "fmdav.json").read_text())["ablation"]
    assert found[:8] == saved
    assert {(line["n"], line["n_samples"]) for line in found} == {(50, 1), (80, 1)}
    assert other.exit_code == 2
    assert "Give the same ones" in other.stderr


def test_fmdav_says_what_holds_and_what_was_not_run(without_data, tmp_path):
    result = papers_command("fmdav", "--n", "50", "--longest", "0", "--output", str(tmp_path / "o"))

    assert "all five together leave the cells as they are" in result.stdout
    assert "not run at this size: hours" in result.stdout


def test_covertype_of_two_types_is_named_so(monkeypatch, tmp_path):
    for file in ("covertype_sample.csv.gz", "covertype_two_class.csv.gz"):
        with gzip.open(tmp_path / file, "wt") as lines:
            lines.write(",".join(data_and_results.COVERTYPE_COLUMNS) + "\n" + ",".join("1" * 10) + "\n")
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))

    assert data_and_results.covertype(92_962).name == "covertype"
    assert data_and_results.covertype(150_000).name == "covertype, types 2 and 4"


def test_fmdav_refuses_an_output_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    result = papers_command("fmdav", "--n", "50", "--output", str(tmp_path / "file" / "o"))

    assert result.exit_code == 2
    assert "cannot be created" in result.stderr
