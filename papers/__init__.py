"""Reproductions: the papers' tables and figures, measured again and printed beside the published values.

Each paper is one file or folder with a click command called ``command``, a function ``claims`` that checks the paper's
statements against a result file of that command, and one line in the registry below, which feeds ``python -m papers``.
A file is imported only when its command is run.
"""

from importlib import import_module
from typing import NamedTuple, cast

import click


class Paper(NamedTuple):
    """A line of ``python -m papers --list``."""

    title: str
    covers: str
    takes: str
    full: str
    """Running time at the paper's own sizes; empty where they are the default."""


PAPERS = {
    "fmdav": Paper(
        "The fast maximum distance to average vector (F-MDAV), Rodriguez-Hoyos et al. 2020",
        "figures 6 to 11",
        "about 2 minutes",
        "--full: about 80 minutes, 7 with --jobs 16",
    ),
    "tfrp": Paper(
        "TFRP: an efficient microaggregation algorithm for statistical disclosure control, Chang, Li, Huang 2007",
        "table 2, figures 5 to 13, section 2.3",
        "about 4 minutes",
        "--full: about 30 minutes",
    ),
    "incremental": Paper(
        "Incremental k-anonymous microaggregation, the thesis behind Rebollo-Monedero et al. 2018",
        "table 5.2, figures 3.3, 4.1 to 4.5, 5.1 to 5.10 and 6.3",
        "about a minute",
        "--full: about 30 minutes",
    ),
    "random": Paper(
        "Random aggregation: differential privacy in k-anonymity, Yang",
        "figures 4 to 7, and the attack of section 1",
        "about 2 minutes",
        "",
    ),
    "steered": Paper(
        "Steered microaggregation, Domingo-Ferrer, Soria-Comas 2017: t-closeness",
        "figures 1 and 2, proposition 1, the baselines of section VI-C",
        "about a minute",
        "--full: about 5 minutes",
    ),
    "streams": Paper(
        "Steered microaggregation, Domingo-Ferrer, Soria-Comas 2017: streams",
        "figure 3, proposition 2",
        "seconds",
        "",
    ),
    "records": Paper(
        "The literature's reference sets: Census, Tarragona, EIA",
        "losses of MDAV as published, of TFRP as printed, and the lowest of ours",
        "about 2 minutes",
        "",
    ),
}
"""Reproductions by name; each is the module of the same name in this folder."""


def command(paper: str) -> click.Command:
    """Import the paper's file and return its command."""
    return cast(click.Command, import_module(f"papers.{paper}").command)
