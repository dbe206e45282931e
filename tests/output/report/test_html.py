import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from reported import HOSTILE_NAMES, at_risk, changed, hostile, quietly, release

from shoal.measures.recount import Verdict
from shoal.output.report import render

FORMS = ["internal", "public"]
VOID = {"meta", "br", "img", "input", "link", "hr", "wbr"}


class Page(HTMLParser):
    """The elements of a page, in order, with their attributes; and whether all are closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.text, self.scripts = [], [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.scripts.append(data)
        elif self.open[-1:] != ["style"]:
            self.text += data


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", [release, hostile])
def test_the_page_needs_nothing_but_itself(source, form):
    page = Page(render(at_risk(source()), "html", form, bound=0.03, title=HOSTILE_NAMES[0]))
    attributes = [(name, value) for _, given in page.elements for name, value in given.items()]

    assert page.open == []
    assert {tag for tag, _ in page.elements} & {"link", "img", "iframe", "object", "embed", "base", "form"} == set()
    assert [value for name, value in attributes if name == "href" and not value.startswith("#")] == []
    assert [name for name, _ in attributes if name == "src" or name.startswith("on")] == []
    assert len(page.scripts) == 1


@pytest.mark.parametrize("form", FORMS)
def test_names_that_mean_harm_are_text(form):
    page = Page(render(at_risk(hostile()), "html", form, title=HOSTILE_NAMES[1]))

    assert "</script><script>document.title='owned'</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text


def test_styles_and_scripts_are_those_of_the_package():
    text = render(at_risk(hostile()))
    variables, css, figures, js = (
        resources.files("shoal.output.report").joinpath("page", name).read_text("utf-8")
        for name in ("variables.css", "report.css", "figures.css", "report.js")
    )
    digest = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()

    assert f"<style>{variables}{css}{figures}</style>" in text
    assert f"<script>{js}</script>" in text
    assert f"script-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text
    assert re.findall(r"url\(|@import|https?:", variables + css + figures + js) == []


def test_every_column_is_named_once_in_the_table_of_columns():
    text = render(hostile(), "html", "public")
    shown, folded = re.findall(r"What happened to it.*?</table>", text, re.DOTALL)

    assert (shown.count("<tr>"), folded.count("<tr>")) == (12, 48)


def test_the_first_page_says_whose_release_it_is_and_which_file(tmp_path):
    made = release()
    path = tmp_path / "release.csv"
    given = {"title": "Survey of wages", "author": "A. Steward", "date": "2031-05-06"}
    made.write(path, report=tmp_path / "report.html", json=tmp_path / "report.json", **given)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    facts = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()

    assert [word for word in (*given.values(), "release.<wbr>csv", digest, "Approved by") if word not in text] == []
    assert (facts["file"], facts["sha256"], facts["author"]) == ("release.csv", digest, "A. Steward")
    assert 'href="#attacks"' in text


def test_the_report_of_three_hundred_columns_is_small_and_folds_what_changed_least():
    rng = np.random.default_rng(1)
    wide = pa.table({f"measurement_{i}": rng.normal(i, 1 + i, 200) for i in range(300)})
    text = render(quietly(wide, k=5, quasi_identifiers=wide.column_names), "html")
    open_text = re.sub(r"<details class=\"more\">.*?</details>", "", text, flags=re.DOTALL)

    assert len(text.encode()) < 2_000_000
    assert open_text.count("<svg") < 80
    assert "measurement_<wbr>299" in text


def test_the_internal_page_compares_and_the_public_one_does_not():
    internal, public = (render(at_risk(release()), "html", form, bound=0.03) for form in FORMS)

    for part in ("Before and after", 'id="correlations"', 'id="loss"', 'id="risk"', 'id="warnings"', 'class="before"'):
        assert part in internal
        assert part not in public
    assert "not for publication" in internal
    assert "may accompany the data" in public


def test_a_verdict_that_fails_says_so_in_red_and_first():
    verdict = Verdict(10, 30, 3, 8, {8: 1, 11: 2}, 8, ("age",))
    text = render(changed(release(), verdict=verdict))

    assert '<section class="verdict bad"' in text
    assert "8 of 30 records hide among fewer than 10" in text
    assert "Do not publish this table." in text
    assert "The guarantee holds" not in text


def test_people_are_counted_where_records_belong_to_people():
    verdict = Verdict(5, 30, 3, 10, {10: 3}, 0, ("age",), subjects=6, subject_asked=True)

    assert "Every person hides among at least 6" in render(changed(release(), verdict=verdict))


def test_a_table_without_a_k_to_keep_gets_no_stamp():
    verdict = Verdict(None, 30, 3, 10, {10: 3}, 0, ("age",))
    text = render(changed(release(), verdict=verdict))

    assert "The smallest group has 10 records" in text
    assert "The guarantee holds" not in text


def test_there_is_a_date_only_if_one_is_given():
    assert "2031-05-06" in render(release(), date="2031-05-06")
    assert re.findall(r"\b20[2-9]\d-\d\d-\d\d\b", render(release(), "html", "public")) == []


def test_the_bytes_do_not_depend_on_the_process():
    code = (
        "import sys, hashlib; sys.path.insert(0, sys.argv[1]); from reported import *;"
        "from shoal.output.report import render;"
        "print(*[hashlib.sha256(render(at_risk(hostile()), f, m).encode()).hexdigest() for f in ('html', 'json')"
        " for m in ('internal', 'public')])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(printed) == 1
