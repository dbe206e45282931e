"""Claims: yes, no or not testable, the same in the shipped files, on the page and from the result files."""

import importlib.util
import json
from pathlib import Path

import pytest
from papers_shell import papers_command

from papers import PAPERS
from papers.claims import Claim, as_table, as_text, counted, kept, untested

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "keep_claims.py"
THREE = [
    Claim("figure 1", "it is fast", "2 times", True),
    Claim("figure 2", "it is small", "3 times as large", False, "other data"),
    untested("table 1", "it is nice", "nobody measured it"),
]
needs_results = pytest.mark.skipif(not SCRIPT.exists(), reason="a source distribution comes without results")


def keep_claims():
    """Import the script that writes the page."""
    spec = importlib.util.spec_from_file_location("keep_claims", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_answer_is_printed_with_its_reason():
    text = as_text(THREE)

    for words in ("yes", "no ", "not testable", "2 times", "other data", "nobody measured it"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 120


def test_what_does_not_hold_stands_out_in_a_table():
    assert "| **no** |" in as_table(THREE)
    assert "| **not testable** |" in as_table(THREE)
    assert counted(THREE) == "1 yes, 1 no, 1 not testable"


@pytest.mark.parametrize("paper", PAPERS)
def test_every_paper_prints_its_claims_without_measuring(paper):
    done = papers_command(paper, "--claims")

    assert done.exit_code == 0, done.output
    assert PAPERS[paper].title in done.stdout
    assert counted(kept(paper).claims) in done.stdout


@pytest.mark.parametrize("paper", PAPERS)
def test_a_no_has_a_finding_and_an_untested_claim_a_reason(paper):
    for claim in kept(paper).claims:
        assert claim.found or claim.holds is None
        assert claim.why or claim.holds is not None


def test_the_list_names_each_paper_its_figures_and_its_time():
    done = papers_command("--list")

    assert done.exit_code == 0
    for name, paper in PAPERS.items():
        assert name in done.stdout
        assert paper.title in done.stdout
        assert paper.covers in done.stdout
        assert paper.takes in done.stdout


@needs_results
@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_shipped_is_what_the_result_files_say(paper):
    shipped = (ROOT / "papers" / "kept" / f"{paper}.json").read_text(encoding="utf-8")

    assert json.loads(shipped) == json.loads(keep_claims().kept(paper))


@needs_results
def test_the_page_is_what_the_result_files_say():
    assert (ROOT / "docs" / "claims.md").read_text(encoding="utf-8") == keep_claims().page()


@needs_results
def test_of_several_files_the_first_answer_counts():
    merged = keep_claims().merged([[THREE[0], untested("figure 2", "it is small")], [*THREE]])

    assert [claim.holds for claim in merged] == [True, False, None]
