"""The papers' tables and figures, measured again and printed side by side with ours.

Each paper is one file with a click command called ``command`` and one line in the registry below, which feeds
``shoal reproduce``. A file is imported only when its command is asked for.
"""

from importlib import import_module
from typing import cast

import click

PAPERS = {
    "fmdav": "shoal.reproduce.fmdav",
    "tfrp": "shoal.reproduce.tfrp",
    "incremental": "shoal.reproduce.incremental",
    "records": "shoal.reproduce.records",
    "random": "shoal.reproduce.random",
    "streams": "shoal.reproduce.streams",
    "steered": "shoal.reproduce.steered",
}


def command(paper: str) -> click.Command:
    """Import the paper's file and return its command."""
    return cast(click.Command, import_module(PAPERS[paper]).command)
