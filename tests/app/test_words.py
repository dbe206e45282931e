"""What the pages say: their own words, the labels of files, sentences in the history, numbers without noise."""

import re

import numpy as np
import pytest
from steward import text_of

STEPS = ("file", "columns", "columns/1", "protection", "try", "release", "closer", "history")

# The words of the command line, of job files and of other doors.
FOREIGN = re.compile(
    r"TOML|--[a-z]|[Qq]uasi-identifier|\bsurely\b|not beaten|Trying trying|Reading reading|shoal inspect|"
    r"\b[a-z_]+ = [\[\"{]"
)


def test_no_page_of_a_release_speaks_of_options_or_toml(ready, folder):
    lines = [f"{20 + i % 30},{'common' if i % 5 > 1 else f'rare{i}'},{i % 3},{900 + i * 37 % 700}" for i in range(60)]
    (folder / "jobs.csv").write_text("age,job,codes,income\n" + "\n".join(lines) + "\nx,y\n", encoding="utf-8")
    ready.open("jobs.csv")
    pages = [ready.settle("file")]
    ready.post("file/settle", take="0")
    ready.settle("file")
    pages += [ready.settle(step) for step in STEPS]
    ready.roles(age="quasi-identifier", job="quasi-identifier", codes="quasi-identifier", income="confidential")
    pages += [ready.settle(step) for step in STEPS]
    pages.append(ready.post("protection", k="1").text)
    ready.post("protection", k="2", method="mdav")
    ready.post("try", k="2, 40", method=["auto", "mdav"])
    pages.append(ready.release())  # refused: questions are open
    ready.roles(job="identifier")
    ready.post("columns", remedy=f"{ready.column('codes')}.0.0")
    pages.append(ready.release())
    pages.append(ready.release())  # the files are there already
    pages += [ready.settle(step) for step in STEPS]
    found = [(FOREIGN.findall(text_of(page)), text_of(page)[:60]) for page in pages]

    assert "Every record hides" in "".join(pages)
    assert [each for each in found if each[0]] == []


def test_the_history_is_told_in_sentences(ready):
    ready.post(f"columns/{ready.column('income')}", role="quasi-identifier", missing_codes="-9", round="1")
    ready.post("protection", k="6", missing="own-value")
    ready.post("protection/model", column="0", model="l-diversity", bound="2")
    ready.roles(zip="other", sex="other")
    page = text_of(ready.page("history"))

    assert "income: codes for a missing value 1 set" in page
    assert "k: 6; Missing values of protected columns: are a value of their own" in page
    assert "Promises: Every " in page
    assert "zip and sex: Publish as it is" in page
    assert "missing_codes" not in page


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_labels_stand_wherever_a_column_or_value_is_named(steward, folder, ending):
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    frame = pandas.DataFrame(
        {"v1": rng.integers(1, 3, 80).astype(float), "v2": rng.integers(18, 60, 80).astype(float), "v3": "no"}
    )
    frame.loc[::3, "v3"] = "yes"
    labels = {"v1": "Geschlecht", "v2": "Alter in Jahren", "v3": "Krankheit"}
    values = {"v1": {1: "Mann", 2: "Frau"}}
    write = pyreadstat.write_sav if ending == "sav" else pyreadstat.write_dta
    write(frame, folder / f"survey.{ending}", column_labels=labels, variable_value_labels=values)
    steward.open(f"survey.{ending}")
    steward.roles(v1="quasi-identifier", v2="quasi-identifier", v3="confidential")
    steward.post("protection", k="4")
    steward.post("protection/model", column="0", model="l-diversity", bound="2")
    steward.release()
    steward.post("values", show="yes", back="file")
    steward.post("closer/records", which="lost")
    pages = {step: text_of(steward.settle(step)) for step in ("file", "columns", "columns/0", "protection", "closer")}

    assert [step for step, page in pages.items() if "Geschlecht" not in page] == []
    assert "v2 Alter in Jahren" in pages["columns"]
    assert "v3 (Krankheit)" in pages["protection"]
    assert "2 different values of 'v3' (Krankheit)" in pages["protection"]  # also in a sentence
    assert all("2 = Frau" in pages[step] for step in ("file", "columns/0", "closer"))


def test_methods_are_explained_and_the_map_is_there_for_narrow_screens(ready):
    ready.post("try", k="3, 10", method=["auto", "mdav"])
    page = ready.settle("try")
    shown = page[page.index("Methods to try") : page.index("Further methods")]

    assert re.findall(r'name="method" value="([^"]*)"', shown) == ["auto", "mdav", "mdav+", "topdown"]
    assert shown.count(".</label>") == 4
    assert re.findall(r'viewBox="0 0 (\d+) ', page)[1:] == ["820", "360"]  # after the mark of shoal
    assert "Loss, %" in page
    assert re.search(r'<td class="n">[\d.]+</td><td class="n">[\d.]+</td>', page)


def test_decimals_that_suit_the_values_are_proposed_for_means(ready, folder):
    page = text_of(ready.page("columns"))
    ready.post("columns", round="yes")
    rounded = ready.work.draft.columns
    ready.release()
    published = (folder / "release.csv").read_text(encoding="utf-8").splitlines()[1:]

    assert "Round them as the file does: age to 1 decimal, income to 1 decimal" in page
    assert (rounded["age"].round, rounded["income"].round) == (1, 1)
    assert "Round them" not in ready.page("columns")
    assert all(re.fullmatch(r"\d+[.,]\d", line.split(";")[0]) for line in published)


def test_the_proposals_for_all_columns_round_too(steward, folder):
    rows = [f"{i % 40}.5;{i * 7 % 60};{i % 2}" for i in range(80)]
    (folder / "weights.csv").write_text("weight;size;sex\n" + "\n".join(rows) + "\n")
    steward.open("weights.csv")
    steward.post("columns", propose="yes", **{f"role-{number}": "" for number in range(3)})

    assert steward.work.draft.columns["weight"].round == 1
    assert steward.work.draft.columns["sex"].round is None
