"""Exit codes: every command ends with an exit code and, if needed, a message of one paragraph, never a traceback.

| code | meaning |
|---|---|
| 0 | done; the audit holds |
| 1 | the audit does not hold |
| 2 | refused: the message says what was asked, what was found and what to do |
| 65 | the input cannot be used: a line, an entry or a tuple, named by its number |
| 70 | a fault of shoal's own |
| 75 | something outside does not answer (a server, a reader); try again later |
| 130 | stopped by Ctrl-C |
| 143 | ended by the system (SIGTERM; on Windows Ctrl-Break, the end of the console, logging off) |
"""

import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from logging import getLogger
from typing import Any

import click

from shoal import interrupts
from shoal.errors import InputError, OutageError, RecountError, ShoalError, fault_in_words
from shoal.spelling import spelled, word_of
from shoal.system import system

REFUSED, INPUT, FAULT, OUTAGE, STOPPED, TERMINATED = 2, 65, 70, 75, interrupts.STOPPED, 143
_CODES = {InputError: INPUT, RecountError: FAULT, OutageError: OUTAGE}


def ended(work: Callable[[], Any], words: Sequence[str] = ()) -> int:
    """Do the work and return the exit code; if it is not 0, print the reason.

    If the words of the command line ask for events as JSON (``--log json``), it is one.
    """
    came: list[int] = []
    say = _log if "--log=json" in words or ("--log", "json") in pairwise(words) else _say
    try:
        with _stopping_at_signals(came):
            code = work()
        return code if isinstance(code, int) else 0
    except ShoalError as error:
        return say(error.worded(error.dialect or "option"), _code_of(error))
    except click.UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # click 8.2 and later: a group without a command shows its help
            error.show()
            return REFUSED
        return say(_usage(error), REFUSED)
    except click.ClickException as error:
        return say(error.format_message(), REFUSED)
    except (click.Abort, KeyboardInterrupt):
        return _stopped(STOPPED)
    except MemoryError:
        return say("There is not enough memory for this table. Nothing was written.", REFUSED)
    except Exception as error:
        # Extension modules may turn an interrupt into another error, such as SystemError while they are imported.
        return _stopped(came[0]) if came else say(fault_in_words(error), FAULT)


def _code_of(error: ShoalError) -> int:
    """Return the exit code of a refusal."""
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), REFUSED)


def _stopped(code: int) -> int:
    return code if code == TERMINATED else _say(interrupts.MESSAGE, code, title="")


@contextmanager
def _stopping_at_signals(came: list[int]) -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does, so that unfinished files are removed; add the exit codes to `came`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def noted(code: int, handler: Callable[..., Any]) -> Callable[..., None]:
        def note(number: int, frame: object) -> None:
            came.append(code)
            handler(number, frame)

        return note

    handlers: dict[int, Callable[..., None]] = {system.TERMINATION: noted(TERMINATED, lambda *_: sys.exit(TERMINATED))}
    on_interrupt = signal.getsignal(signal.SIGINT)
    is_program = on_interrupt is interrupts.end
    if callable(on_interrupt):  # not if it is ignored
        handlers[signal.SIGINT] = noted(STOPPED, signal.default_int_handler if is_program else on_interrupt)
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        with interrupts.command():
            yield
    finally:
        for number, handler in before.items():
            # The exit code is known, and the program ends with it whatever comes.
            signal.signal(number, signal.SIG_IGN if is_program else handler)


def _usage(error: click.UsageError) -> str:
    command = error.ctx.command_path if error.ctx else "shoal"
    if isinstance(error, click.NoSuchOption) and (ours := spelled(word_of(error.option_name), "option")):
        return f"No such option '{error.option_name}'.{ours} See `{command} --help` for the options."
    # click puts some of its suggestions in brackets.
    text = re.sub(r"\((Did you mean [^()]*\?)\)", r"\1", error.format_message()).rstrip(".")
    return f"{text}{'' if text.endswith('?') else '.'} See `{command} --help` for the options."


def _say(text: str, code: int, title: str = "Error: ") -> int:
    click.echo(f"{title}{' '.join(text.split())}", err=True)
    return code


def _log(text: str, code: int) -> int:
    from shoal.stream.logs import logging_to_stderr  # imported late: it loads Arrow

    with logging_to_stderr("json"):
        getLogger("shoal.stream").error(
            "failed", extra={"facts": {"reason": " ".join(text.split()), "exit_code": code}}
        )
    return code
