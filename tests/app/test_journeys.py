"""Whole ways through the app in a real browser, from the address that is printed to the files that are written."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from shoal import datasets
from shoal.job import Job
from shoal.release import run
from systems import KILL
from waits import LIMIT

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
STEPS = ("file", "columns", "protection", "try", "release", "closer", "history")

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no chromium to walk through the app with")


class Served:
    """`shoal app` as a user starts it."""

    def __init__(self, folder, *arguments):
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "shoal.cli", "app", "--no-browser", *arguments],
            cwd=folder,
            env={**os.environ, "XDG_STATE_HOME": str(folder.parent / "state")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        assert found, self.process.communicate()
        self.address = found[0]

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        return self.process.communicate(timeout=LIMIT)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS, timeout=1000 * LIMIT)
        yield found
        found.close()


@pytest.fixture
def walk(browser, tmp_path):
    """Start the app with some arguments, and return a page that shows it; nothing may complain on the way."""
    folder = tmp_path / "data"
    folder.mkdir()
    served, contexts, complaints = [], [], []

    def begin(*arguments):
        served.append(Served(folder, *arguments))
        context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * LIMIT)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(served[-1].address)
        return page

    begin.folder = folder
    begin.served = served
    begin.complaints = complaints
    yield begin
    for context in contexts:
        context.close()
    told = [one.end() for one in served if one.process.poll() is None]
    assert all(err.strip() in ("", "Stopped.") for _, err in told)
    assert [text for text in complaints if "net::ERR" not in text] == []


# Read by Python when it starts: has a child stop before it makes cells, as long as there is a file.
SITE = """
import os, sys, time

if "shoal.app.child_process" in sys.orig_argv:
    from shoal.constraints import constrained_cells

    partition = constrained_cells.partition

    def held(*arguments, **settings):
        while os.path.exists(os.environ["HELD_BY"]):
            time.sleep(0.01)
        return partition(*arguments, **settings)

    constrained_cells.partition = held

    # The last file of a release: those that are for the public too are written by then.
    from shoal.output import report

    render = report.render

    def held_at_the_end(release, form, *arguments, **settings):
        while arguments[:1] == ("public",) and os.path.exists(os.environ["HELD_BY"] + "-at-the-end"):
            time.sleep(0.01)
        return render(release, form, *arguments, **settings)

    report.render = held_at_the_end
"""


@pytest.fixture
def hold(tmp_path, monkeypatch):
    """Return a file that holds every release of an app that is started from now on, until it is removed."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SITE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    monkeypatch.setenv("HELD_BY", str(tmp_path / "hold"))
    (tmp_path / "hold").touch()
    return tmp_path / "hold"


def base_of(page):
    return re.match(r"http://[^/]+/work/\w+", page.url)[0]


def to(page, step):
    page.goto(f"{base_of(page)}/{step}")


def protect(page, k):
    to(page, "protection")
    page.fill("#k", str(k))
    page.get_by_role("button", name="Save").click()


def make(page):
    to(page, "release")
    page.get_by_role("button", name="Make the release").click()
    page.wait_for_selector("#verdict")
    return page.inner_text("#verdict")


def is_same_as_its_job(page, folder):
    """Download the job and the release, carry out the job, and compare."""
    with page.expect_download() as job:
        page.get_by_role("link", name="the job", exact=True).click()
    with page.expect_download() as release:
        page.locator("table.files a").first.click()
    made = Path(release.value.path()).read_bytes()
    downloaded = Job.load(job.value.path())
    before = Path.cwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(downloaded, force=True)
    finally:
        os.chdir(before)
    return (folder / downloaded.output.path).read_bytes() == made


def serious(page):
    """Return what axe-core finds serious on a page."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        (page.url.rpartition("/")[2], each["id"], [node["html"][:120] for node in each["nodes"]][:3])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_messy_csv_file_with_traps_on_every_screen(walk):
    from playwright.sync_api import expect

    # As an office exports it: titles above, a note below, written by Windows.
    sample = datasets.path("office").read_text(encoding="utf-8")
    (walk.folder / "Büro.csv").write_bytes(f"Büro\nStand: 2024\n\n{sample}Quelle: Büro\n".encode("cp1252"))
    page = walk()
    page.get_by_role("button", name="Büro.csv").click()
    page.get_by_role("button", name="Read it as Western European (Windows)").click()
    page.get_by_role("button", name="Use line 4 as the header").click()
    page.get_by_role("button", name="Leave out record 601").click()
    page.get_by_role("link", name="Next: columns").click()
    page.get_by_role("button", name="Take all proposals").click()
    for remedy in ("Read it as dates", "Take 1 value as missing", "between thousands"):
        page.get_by_role("button", name=remedy).first.click()
        page.wait_for_selector("text=Next: protection")
    # Saved at once, without a button.
    page.get_by_label("Role of school").select_option("other")
    page.wait_for_selector("text=Saved.")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Role of school")).to_have_value("quasi-identifier", timeout=1000 * LIMIT)
    to(page, "protection")
    page.select_option("#missing", "own-value")
    page.fill("#k", "5")
    page.press("#k", "Enter")
    page.wait_for_selector("text=This can be done.")
    to(page, "try")
    page.fill("#sizes", "3 5")
    page.uncheck("input[value=topdown]")
    page.get_by_role("button", name="Try them").click()
    page.wait_for_selector("text=Recommended")
    page.locator(".map-card.wide a").last.click()
    page.locator("tr.chosen button").click()
    verdict = make(page)
    assert page.frame_locator("iframe").get_by_role("heading", level=1).inner_text() == verdict

    assert re.fullmatch(r"Every record hides among at least [35]", verdict)
    assert is_same_as_its_job(page, walk.folder)
    violations = []
    for step in STEPS:
        to(page, step)
        violations += serious(page)
        for width, zoom in ((400, 1), (1280, 2), (640, 1)):
            page.set_viewport_size({"width": width // zoom, "height": 800})
            assert fits(page), (step, width, zoom)
        page.set_viewport_size({"width": 1280, "height": 900})
    assert violations == []


def test_an_spss_file_with_labels(walk):
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    frame = pandas.DataFrame(
        {"sex": rng.integers(1, 3, 80).astype(float), "age": rng.integers(18, 80, 80).astype(float), "ill": "no"}
    )
    frame.loc[::3, "ill"] = "yes"
    labels = {"sex": {1.0: "Männer", 2.0: "Frauen"}}
    pyreadstat.write_sav(frame, walk.folder / "survey.sav", variable_value_labels=labels)
    page = walk("survey.sav")
    page.wait_for_selector("text=What was read")
    to(page, "columns")
    page.get_by_label("Role of sex").select_option("quasi-identifier")
    page.get_by_label("Role of age").select_option("quasi-identifier")
    page.get_by_label("Role of ill").select_option("confidential")
    page.wait_for_selector("text=All 3 columns have a role.")
    protect(page, 4)
    page.wait_for_selector("text=This can be done.")
    verdict = make(page)
    _, found = pyreadstat.read_sav(walk.folder / "survey.release.sav")

    assert verdict == "Every record hides among at least 4"
    assert found.variable_value_labels["sex"] == labels["sex"]


def test_a_table_of_300_columns_is_filtered_and_edited_in_bulk(walk):
    rng = np.random.default_rng(2)
    names = [f"answer_{i}" for i in range(299)]
    values = rng.integers(1, 60, size=(60, 299))
    lines = [",".join(["code", *names]), *(f"x{i}," + ",".join(map(str, row)) for i, row in enumerate(values))]
    (walk.folder / "wide.csv").write_text("\n".join(lines) + "\n")
    page = walk("wide.csv")
    page.wait_for_selector("text=What was read")
    to(page, "columns")
    page.fill("#find", "answer_12")
    assert page.locator("#columns-table tbody tr:visible").count() == 11
    page.get_by_role("button", name="Show", exact=True).click()
    page.check("text=all shown")
    page.select_option("#bulk-role", "quasi-identifier")
    page.get_by_role("button", name="Change them").click()
    page.wait_for_selector("text=289 columns of 300 have no role yet")
    page.check("text=all shown")
    page.select_option("#bulk-role", "other")
    to(page, "columns?only=undecided")
    page.check("text=all shown")
    page.select_option("#bulk-role", "identifier")
    page.get_by_role("button", name="Change them").click()
    page.wait_for_selector("text=All 300 columns have a role.")
    protect(page, 3)
    page.wait_for_selector("text=This can be done.")

    assert make(page) == "Every record hides among at least 3"


def test_t_closeness_is_promised_and_kept(walk):
    rng = np.random.default_rng(3)
    rows = [f"{age},{height},{salary}" for age, height, salary in rng.integers(20, 90, size=(120, 3))]
    (walk.folder / "people.csv").write_text("\n".join(["age,height,salary", *rows]) + "\n")
    page = walk("people.csv")
    page.wait_for_selector("text=What was read")
    to(page, "columns")
    for name, role in (("age", "quasi-identifier"), ("height", "quasi-identifier"), ("salary", "confidential")):
        page.get_by_label(f"Role of {name}").select_option(role)
    page.wait_for_selector("text=All 3 columns have a role.")
    protect(page, 5)
    page.fill("#bound", "0.01")
    page.get_by_role("button", name="Add the promise").click()
    page.wait_for_selector("text=Every group")
    page.get_by_role("button", name="Remove").click()
    page.fill("#bound", "0.25")
    page.get_by_role("button", name="Add the promise").click()
    page.wait_for_selector("text=This can be done.")
    make(page)

    assert "1 promise about confidential columns was kept as well" in page.inner_text("#made")
    assert "kept" in page.inner_text(".verdict ul")


def large(folder):
    rng = np.random.default_rng(4)
    rows = [",".join(f"{value:.3f}" for value in row) for row in rng.normal(size=(4000, 4))]
    (folder / "large.csv").write_text("\n".join(["a,b,c,d", *rows]) + "\n")


def all_protected(page):
    page.wait_for_selector("text=What was read")
    to(page, "columns")
    page.check("text=all shown")
    page.select_option("#bulk-role", "quasi-identifier")
    page.get_by_role("button", name="Change them").click()
    page.wait_for_selector("text=All 4 columns have a role.")
    protect(page, 3)
    page.wait_for_selector("text=This can be done.")


def test_a_release_is_cancelled_and_made_again(hold, walk):
    large(walk.folder)
    page = walk("large.csv")
    all_protected(page)
    to(page, "release")
    page.get_by_role("button", name="Make the release").click()
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_selector("text=was cancelled. Nothing was written.")
    hold.unlink()

    assert [path.name for path in walk.folder.iterdir()] == ["large.csv"]
    assert make(page) == "Every record hides among at least 3"


def test_work_goes_on_after_the_server_was_killed(hold, walk):
    large(walk.folder)
    page = walk("large.csv")
    all_protected(page)
    to(page, "release")
    page.fill("#title", "Election 2026")
    page.get_by_role("button", name="Make the release").click()
    page.wait_for_selector("progress")
    look = "document.dispatchEvent(new Event('visibilitychange'))"  # as if somebody came back to the page
    walk.served[-1].process.send_signal(signal.SIGSTOP)
    page.evaluate(look)
    page.wait_for_selector("text=does not answer any more")
    walk.served[-1].process.send_signal(signal.SIGCONT)
    page.evaluate(look)
    page.wait_for_selector("text=answers again")
    walk.served[-1].end(KILL)
    page.evaluate(look)
    page.wait_for_selector("text=does not answer any more")
    walk.complaints.clear()  # the first page has lost its server
    page.close()
    again = walk("large.csv")
    to(again, "release")
    again.wait_for_selector("text=was interrupted when the app ended")  # the child may need a moment to end

    assert again.input_value("#title") == "Election 2026"
    assert "Nothing was written" in again.inner_text("#made")

    # Killed again, when all files but the last one are written.
    at_the_end = Path(f"{hold}-at-the-end")
    at_the_end.touch()
    hold.unlink()
    again.get_by_role("button", name="Make the release").click()
    again.wait_for_selector("text=the public report is written")
    walk.served[-1].end(KILL)
    walk.complaints.clear()
    again.close()
    third = walk("large.csv")
    third.goto(f"{base_of(third)}/release")
    third.wait_for_selector("text=was interrupted when the app ended")
    told = third.inner_text("#made")
    written = {path.name for path in walk.folder.iterdir() if not path.name.startswith(".")} - {"large.csv"}

    assert "Nothing was written" not in told
    assert all(name in told for name in written)
    assert "large.release.csv" in written
    assert "large.release.public.html" not in written


def test_no_quick_change_of_a_role_is_lost_when_the_next_page_is_opened(walk):
    (walk.folder / "people.csv").write_text("a,b,c,d\n" + "1,2,3,4\n5,6,7,8\n" * 5)
    page = walk("people.csv")
    page.wait_for_selector("[data-events]", state="detached")
    to(page, "columns")
    page.evaluate(
        """() => {
            for (const field of document.querySelectorAll("[name^=role-]")) {
                field.value = "quasi-identifier";
                field.dispatchEvent(new Event("change", { bubbles: true }));
            }
            document.querySelector(".next a").click();
        }"""
    )  # at once, so that no save has ended when the link is clicked
    page.wait_for_url("**/protection")
    to(page, "columns")

    assert [page.input_value(f"[name=role-{number}]") for number in range(4)] == ["quasi-identifier"] * 4

    # The same on Protection, where a whole form is saved; what cannot be is said at its field.
    to(page, "protection")
    page.fill("#k", "-3")
    page.get_by_role("link", name="Columns", exact=False).first.click()
    page.wait_for_selector("#k[aria-invalid]")
    walk.complaints.clear()  # of the refusal
    assert "at least 2" in page.inner_text("#k-wrong")
    assert page.input_value("#k") == "-3"
    page.fill("#k", "4")
    page.select_option("#missing", "own-value")
    page.get_by_role("link", name="Columns", exact=False).first.click()
    page.wait_for_url("**/columns")
    to(page, "protection")
    page.fill("#k", "3")
    to(page, "columns")  # by its address, while the cursor is in the field: what was typed is sent meanwhile
    until = time.monotonic() + LIMIT
    while page.goto(f"{base_of(page)}/protection") and page.input_value("#k") != "3" and time.monotonic() < until:
        time.sleep(0.1)

    assert (page.input_value("#k"), page.input_value("#missing")) == ("3", "own-value")
