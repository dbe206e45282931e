"""The page in a real browser: it shows, fits, asks for nothing and complains about nothing."""

import html
import json
import re
import shutil
import subprocess

import pytest
from reported import at_risk, hostile, release

from shoal.output.report import render

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (390, 768, 1280)
PAPER = 680  # pixels of an A4 page less its margins

# Stock fonts differ: DejaVu Sans is a fifth wider than Liberation Sans. This makes any font wider than all of them.
WIDE_FONT = "<style>* { letter-spacing: 0.07em !important; }</style></head>"

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no chromium to look at the report with")

# Each page stands in a frame as wide as a screen, where its own rules for that width hold; then it is asked.
ASK = """
function ask(frame) {
  const page = frame.contentDocument, root = page.documentElement, button = page.getElementById("theme");
  const paper = () => frame.contentWindow.getComputedStyle(page.body).backgroundColor;
  const before = paper(), said = button.textContent;
  button.click();
  return {
    width: frame.clientWidth, needs: root.scrollWidth, title: page.title, papers: [before, paper()],
    buttons: [said, button.textContent], hidden: button.hidden, scripts: page.scripts.length,
    requests: frame.contentWindow.performance.getEntriesByType("resource").length,
    scrolling: [...page.querySelectorAll(".card")].filter(card => card.scrollWidth > card.clientWidth).length,
    drawn: [...page.querySelectorAll("svg.figure")].filter(svg => svg.getBoundingClientRect().height > 20).length,
  };
}
addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map(ask);
  document.getElementById("found").textContent = JSON.stringify(found);
});
"""


def looked_at(texts, folder, widths=WIDTHS):
    """Return what the browser found out about pages at these widths, and what it wrote to its log."""
    frames = "".join(
        f'<iframe style="width:{width}px;height:800px;border:0" srcdoc="{html.escape(text)}"></iframe>'
        for text in texts
        for width in widths
    )
    wrapper = folder / "look.html"
    wrapper.write_text(
        f'<!doctype html><meta charset="utf-8">{frames}<pre id="found"></pre><script>{ASK}</script>', "utf-8"
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [BROWSER, *options, f"--user-data-dir={folder / 'profile'}", "--dump-dom", wrapper.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    found = re.findall(r'<pre id="found">(.*?)</pre>', done.stdout)[-1]
    return json.loads(html.unescape(found)), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def looks(tmp_path_factory):
    texts = [
        render(at_risk(source()), "html", form, bound=0.03)
        for source in (release, hostile)
        for form in ("internal", "public")
    ]
    return looked_at(texts, tmp_path_factory.mktemp("browser"))


def test_the_page_fits_every_screen_without_sideways_scrolling(looks):
    found, _ = looks

    assert [page["width"] for page in found] == [*WIDTHS] * 4
    assert [page for page in found if page["needs"] > page["width"] or page["scrolling"]] == []


def test_the_page_fits_with_a_wider_font(tmp_path):
    wide = [
        render(at_risk(source()), "html", "internal").replace("</head>", WIDE_FONT) for source in (release, hostile)
    ]
    found, _ = looked_at(wide, tmp_path)

    assert [page["width"] for page in found] == [*WIDTHS] * 2
    assert [page for page in found if page["needs"] > page["width"] or page["scrolling"]] == []


def test_a_printed_page_cuts_no_table_and_has_no_scroll_bars(tmp_path):
    printed = [
        render(made, "html").replace("@media print", "@media all").replace("@media screen", "@media speech")
        for made in (at_risk(release()), hostile())
    ]
    found, _ = looked_at(printed, tmp_path, [PAPER])

    assert max(page["needs"] for page in found) <= PAPER
    assert [page["scrolling"] for page in found] == [0, 0]


def test_the_page_asks_for_nothing_and_the_browser_complains_about_nothing(looks):
    found, complaints = looks

    assert {page["requests"] for page in found} == {0}
    assert complaints == []


def test_names_run_no_script(looks):
    found, _ = looks

    assert {page["title"] for page in found} == {"Release report · shoal"}
    assert {page["scripts"] for page in found} == {1}


def test_pictures_are_drawn(looks):
    found, _ = looks

    assert min(page["drawn"] for page in found) >= 7


def test_the_button_changes_between_light_and_dark(looks):
    found, _ = looks

    assert not any(page["hidden"] for page in found)
    assert all(sorted(page["buttons"]) == ["Dark", "Light"] for page in found)
    assert all(page["papers"][0] != page["papers"][1] for page in found)
