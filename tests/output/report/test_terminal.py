from reported import at_risk, hostile, release

from shoal.output.report import render


def test_a_few_lines_tell_verdict_loss_risk_and_warnings():
    text = render(at_risk(release()), "terminal")

    assert text.startswith(
        "verdict           Every record hides among at least 5, but the unchanged columns dose and note nearly identify"
    )
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
