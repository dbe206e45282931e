"""Take the pictures of docs/app.md: the bundled sample, below two titles, goes through the app in Chromium.

``python tools/app_pictures.py`` writes docs/img/app-*.png anew, each in light and in dark.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from shoal import datasets

TARGET = Path(__file__).parents[1] / "docs" / "img"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SIZE = {"width": 1180, "height": 820}


def main() -> None:
    """Make a release of the sample, and take a picture of each step."""
    if BROWSER is None:
        sys.exit("There is no Chromium to take pictures with.")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = Path(scratch) / "office"
        folder.mkdir()
        sample = datasets.path("office").read_text(encoding="utf-8")
        (folder / "office.csv").write_text(f"Office of statistics\nSurvey of 2024\n\n{sample}", encoding="utf-8")
        server = subprocess.Popen(
            [sys.executable, "-m", "shoal.cli", "app", "--no-browser", "office.csv"],
            cwd=folder,
            env={**os.environ, "XDG_STATE_HOME": scratch},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(120_000)
        try:
            page.goto(server.stdout.readline().split()[-1])
            walk(page)
        finally:
            browser.close()
            server.send_signal(signal.SIGINT)
            server.communicate()


def walk(page: Page) -> None:
    """Go through the steps as docs/app.md tells them."""
    page.get_by_role("button", name="Show values").click()
    page.wait_for_selector("text=Office of statistics")
    base = re.match(r"http://[^/]+/work/\w+", page.url)[0]  # type: ignore[index]
    taken(page, "file")
    page.get_by_role("button", name="Use line 4").click()
    page.wait_for_selector("text=What was read")
    page.get_by_role("button", name="Hide values").click()
    page.goto(f"{base}/columns")
    page.get_by_role("button", name="Take all proposals").click()
    page.wait_for_selector("text=All 10 columns have a role.")
    taken(page, "columns")
    for remedy in ("Read it as dates", "Take 1 value as missing", "between thousands", "Ignore case and blanks"):
        page.get_by_role("button", name=remedy).first.click()
        page.wait_for_selector("text=Next: protection")
    page.goto(f"{base}/protection")
    page.fill("#k", "5")
    page.select_option("#missing", "own-value")
    page.get_by_text("Method, scaling, seed").click()
    page.fill("#seed", "1")
    page.get_by_role("button", name="Save").click()
    page.fill("#bound", "2")
    page.check("input[value=l-diversity]")
    page.get_by_role("button", name="Add the promise").click()
    page.wait_for_selector("text=This can be done.")
    page.evaluate("scrollTo(0, 0)")
    taken(page, "protection")
    page.goto(f"{base}/try")
    page.get_by_role("button", name="Try them").click()
    page.wait_for_selector("text=Recommended")
    taken(page, "try", below=".note.good")
    page.goto(f"{base}/release")
    page.fill("#title", "Office survey")
    page.get_by_role("button", name="Make the release").click()
    page.wait_for_selector("#verdict")
    taken(page, "release")
    page.goto(f"{base}/closer")
    taken(page, "closer")


def taken(page: Page, name: str, below: str | None = None) -> None:
    """Take a picture of what the screen shows, in light and in dark."""
    if below is not None:
        page.locator(below).first.evaluate("element => { element.scrollIntoView(); scrollBy(0, -24) }")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.screenshot(path=TARGET / f"app-{name}-{scheme}.png")
    page.emulate_media(color_scheme="light")


if __name__ == "__main__":
    main()
