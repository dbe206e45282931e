"""Claims: yes, no or not testable, the same on the command line, on the page and from the result files."""

from pathlib import Path

import pytest
from papers_shell import papers_command

from papers import PAPERS, entry_of
from papers.claims import Claim, as_table, as_text, counted, merged, untested
from papers.page import page
from papers.paper import archived_claims

ROOT = Path(__file__).parents[2]
THREE = [
    Claim("figure 1", "it is fast", "2 times", True),
    Claim("figure 2", "it is small", "3 times as large", False, "other data"),
    untested("table 1", "it is nice", "nobody measured it"),
]


def test_every_answer_is_printed_with_its_reason():
    text = as_text(THREE)

    for words in ("yes", "no ", "not testable", "2 times", "other data", "nobody measured it"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 120


def test_what_does_not_hold_stands_out_in_a_table():
    assert "| **no** |" in as_table(THREE)
    assert "| **not testable** |" in as_table(THREE)
    assert counted(THREE) == "1 yes, 1 no, 1 not testable"


@pytest.mark.parametrize("name", PAPERS)
def test_every_paper_prints_its_claims_without_measuring(name):
    done = papers_command(name, "--claims")

    assert done.exit_code == 0, done.output
    assert entry_of(name).title in done.stdout
    assert counted(archived_claims(entry_of(name))) in done.stdout


@pytest.mark.parametrize("name", PAPERS)
def test_a_no_has_a_finding_and_an_untested_claim_a_reason(name):
    for claim in archived_claims(entry_of(name)):
        assert claim.found or claim.holds is None
        assert claim.why or claim.holds is not None


def test_the_list_names_each_paper_its_figures_and_its_time():
    done = papers_command("--list")

    assert done.exit_code == 0
    for name in PAPERS:
        entry = entry_of(name)
        for words in (name, entry.title, entry.covers, entry.takes, entry.quick):
            assert words in done.stdout


def test_the_page_is_what_the_result_files_say():
    assert (ROOT / "docs" / "claims.md").read_text(encoding="utf-8") == page()


def test_of_several_files_the_first_answer_counts():
    found = merged([[THREE[0], untested("figure 2", "it is small")], [*THREE]])

    assert [claim.holds for claim in found] == [True, False, None]
