"""System: what Windows and POSIX do in different ways: locks, private files, renaming, signals, processes, pipes.

`posix.py` and `windows.py` define the same names, and `system` is the one of this machine. Everything else in shoal is
written once and does not ask where it runs.
"""

import sys

if sys.platform == "win32":
    from shoal.system import windows as system
else:
    from shoal.system import posix as system

__all__ = ["system"]
