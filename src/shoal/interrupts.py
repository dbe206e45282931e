"""Interrupts: Ctrl-C ends the command with a message and a code, also while Python still imports what it needs.

Only `shoal.cli` can catch what happens in a command, and it is imported last. So the package looks first whether it is
imported by the command; in a program of somebody else nothing changes.
"""

import sys
from pathlib import Path
from types import TracebackType

STOPPED, MESSAGE = 130, "Stopped."


def end_imports_quietly() -> None:
    """Let Ctrl-C during imports end the process as it does later, if this is the command `shoal`."""
    # While Python looks for the module of `python -m shoal`, the first word is "-m".
    if Path(sys.argv[0] if sys.argv else "").name in ("-m", "shoal"):
        sys.excepthook = _end


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    print(f"\n{MESSAGE}", file=sys.stderr)  # below the ^C on a terminal, as click does
    sys.exit(STOPPED)
