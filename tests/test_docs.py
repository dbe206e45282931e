import shutil
from pathlib import Path

import pytest

from pages import needed, run
from shoal.reproduce.data_and_results import data_folder

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "howto").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_prints_what_stands_below_it(page, tmp_path, monkeypatch):
    fetch(needed(page), tmp_path)
    monkeypatch.chdir(tmp_path)
    blocks = list(run(page))

    assert blocks
    for block in blocks:
        assert block.printed == block.shown


def fetch(file, folder):
    """Put the data file that a page starts from into its folder, or skip the page."""
    if file is None:
        return
    data = data_folder()
    if data is None or not (data / file).is_file():
        pytest.skip(f"{file} not found; SHOAL_DATA may name the folder that has it")
    shutil.copy(data / file, folder)
