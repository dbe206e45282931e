"""The papers' tables and figures, measured again and printed beside the published values, with the papers' claims.

Each paper is a file or folder with its entry, `PAPER`, and a line in the registry below, which feeds
``python -m papers``. A file is imported only when its paper is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from papers.paper import Paper

PAPERS = ("fmdav", "tfrp", "incremental", "random", "steered", "streams", "records")
"""Names of the papers; each is the module of the same name in this folder."""


def entry_of(name: str) -> "Paper":
    """Import a paper's file and return its entry."""
    return cast("Paper", import_module(f"papers.{name}").PAPER)
