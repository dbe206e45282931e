import re

import numpy as np
import pyarrow as pa
import pytest

import shoal

HARM = '<script>alert("x")</script>\u202e'


@pytest.fixture
def release():
    rng = np.random.default_rng(1)
    people = pa.table({"age": rng.integers(18, 80, 60), HARM: np.arange(60) / 8})
    with pytest.warns(shoal.ShoalWarning):
        return shoal.anonymize(people, k=5, seed=1, quasi_identifiers=["age"], other=[HARM])


def rows(html):
    return dict(re.findall(r"<tr><th>(.*?)</th><td>(.*?)</td></tr>", html))


def test_a_notebook_shows_verdict_loss_and_risk(release):
    html = release._repr_html_()
    shown = rows(html)

    assert "<caption>Every record hides among at least 5, but the unchanged column &lt;script&gt;" in html
    assert shown["records"] == f"60 in {release.verdict.n_classes} groups, the smallest of {release.verdict.smallest}"
    assert float(shown["information loss"].rstrip("%")) == pytest.approx(100 * release.loss.il, abs=0.01)
    assert shown["somebody known to be in the data"].endswith(f"{1 / release.verdict.smallest:.1%} published")


def test_names_of_columns_are_text_in_a_notebook(release):
    html = release._repr_html_()

    assert "&lt;script&gt;" in rows(html)["warning"]
    assert "<script" not in html
    assert "\u202e" not in html
