from time import sleep

import pytest

from shoal.cli import progress
from shoal.cli.progress import Bar, Lines


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_BETWEEN_LINES", 0.0)


def shown(meter):
    """Wait until the meter has begun to show something."""
    while not meter._shown:
        sleep(0.001)


def test_quick_work_shows_nothing(capsys):
    with Lines("reading", "grouping", "writing") as meter:
        meter(1, 2)

    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("kind", [Lines, Bar])
def test_a_timer_that_goes_off_while_the_work_ends_shows_nothing(kind, capsys):
    with kind("reading", "grouping", "writing") as meter:
        pass
    meter._begin()

    assert capsys.readouterr() == ("", "")
    assert not meter._shown


def test_long_work_is_told_in_lines_on_standard_error(impatient, capsys):
    with Lines("reading", "grouping", "writing") as meter:
        shown(meter)
        meter(1, 4)
        meter(3, 4)
        meter(4, 4)

    assert capsys.readouterr() == ("", "reading ...\ngrouping: 25% ...\ngrouping: 75% ...\nwriting ...\n")


def test_it_never_goes_backwards(impatient, capsys):
    with Lines("reading", "grouping", "writing") as meter:
        shown(meter)
        meter(3, 4)
        meter(1, 4)

    assert capsys.readouterr().err == "reading ...\ngrouping: 75% ...\ngrouping: 75% ...\n"


def test_a_terminal_gets_a_bar(impatient, capsys):
    with Bar("reading", "grouping", "writing") as meter:
        shown(meter)
        meter(1, 4)
        described = meter._bar.tasks[0].description, meter._bar.tasks[0].percentage
        meter(4, 4)

    assert described == ("grouping", 25)
    assert meter._bar.finished is False
    assert capsys.readouterr().out == ""
