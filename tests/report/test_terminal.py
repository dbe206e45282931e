import io

from reported import at_risk, hostile, release
from rich.console import Console

from shoal.report import gather, render
from shoal.report.terminal import show, to_text


def test_a_few_lines_tell_verdict_loss_risk_and_warnings():
    text = render(at_risk(release()), "terminal")

    assert text.startswith("verdict           Every record hides among at least 5\n")
    for title in ("k ", "records ", "information loss ", "risk ", "warning "):
        assert f"\n{title}" in text
    assert len(text.splitlines()) < 30


def test_the_public_lines_say_nothing_about_the_original():
    text = render(at_risk(release()), "terminal", "public")

    assert "loss" not in text
    assert "risk" not in text


def test_names_cannot_speak_to_the_terminal():
    text = render(at_risk(hostile()), "terminal")

    assert all(line.isprintable() or "\u200d" in line for line in text.splitlines())


def test_lines_are_plain_unless_on_a_terminal():
    facts = gather(at_risk(release()))
    plain, coloured = io.StringIO(), io.StringIO()
    show(facts, Console(file=plain))
    show(facts, Console(file=coloured, force_terminal=True, color_system="standard", width=60))

    assert plain.getvalue() == to_text(facts)
    assert "\x1b[1;32mEvery record hides" in coloured.getvalue()
