import signal

import click
import pytest
from shell import ROLES

from shoal import cli
from shoal.cli.exit_codes import ended
from shoal.errors import GuaranteeError


def raising(error):
    def work():
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (GuaranteeError("Too few\nrecords."), 2, "Error: Too few records.\n"),
        (click.UsageError("No such thing"), 2, "Error: No such thing. See `shoal --help` for the options.\n"),
        (click.UsageError("Did you mean -k?"), 2, "Error: Did you mean -k? See `shoal --help` for the options.\n"),
        (KeyboardInterrupt(), 130, "Stopped.\n"),
        (click.Abort(), 130, "Stopped.\n"),
        (MemoryError(), 2, "Error: There is not enough memory for this table. Nothing was written.\n"),
    ],
)
def test_every_end_has_a_message_and_a_code(error, code, words, capsys):
    assert ended(raising(error)) == code
    assert capsys.readouterr() == ("", words)


def test_a_fault_names_its_place_but_not_its_text(capsys):
    code = ended(raising(ValueError("could not convert 'Zyxwv1'")))
    text = capsys.readouterr().err

    assert code == 70
    assert "ValueError" in text
    assert "exit_codes.py" in text
    assert "Zyxwv" not in text
    assert "Traceback" not in text


@pytest.mark.parametrize(("number", "code", "words"), [(signal.SIGINT, 130, "Stopped.\n"), (signal.SIGTERM, 143, "")])
def test_a_signal_that_an_extension_turns_into_another_error_stops_the_command_alike(number, code, words, capsys):
    def work():
        try:
            signal.raise_signal(number)
        except BaseException:
            raise SystemError("returned a result with an exception set") from None

    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]

    assert ended(work) == code
    assert capsys.readouterr() == ("", words)
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_the_handler_of_another_library_is_called_as_well():
    called = []

    def interrupted(number, frame):
        called.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        assert ended(lambda: signal.raise_signal(signal.SIGINT)) == 130
        assert signal.getsignal(signal.SIGINT) is interrupted
    finally:
        signal.signal(signal.SIGINT, before)
    assert called == [signal.SIGINT]


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert ended(lambda: signal.raise_signal(signal.SIGINT)) == 0
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("result", "code"), [(None, 0), (0, 0), (1, 1), ("text", 0)])
def test_what_a_command_returns_is_its_exit_code(result, code):
    assert ended(lambda: result) == code


def test_a_command_called_as_a_function_leaves_the_handlers_as_they_were(csv_file, tmp_path):
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    options = [*ROLES, "-k", "3", "-o", str(tmp_path / "release.csv")]
    cli.main(["anonymize", str(csv_file), *options], standalone_mode=False)

    assert (tmp_path / "release.csv").exists()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
