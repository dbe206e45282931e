"""Plot files: a figure of the report, or a map, as a file of its own: SVG, or PNG and PDF by matplotlib."""

import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from shoal.errors import FileError, ParameterError, did_you_mean
from shoal.files import replacing, write_text
from shoal.output.report import figures
from shoal.output.report.facts import Form, class_sizes, distribution_of

if TYPE_CHECKING:
    from shoal.measures.recount import Verdict
    from shoal.output.release import Release

ENDINGS = (".svg", ".png", ".pdf")
"""What plots are written as."""


def plot_format(path: str | os.PathLike[str]) -> str:
    """Return the ending of the file of a plot; raise if it is not one of those that are written."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise FileError(
            f"{Path(path).name!r} does not say its format. Choose a name that ends in {', '.join(ENDINGS)}."
        )
    return ending


def write_plot(picture: str, path: str | os.PathLike[str], force: bool = False) -> None:
    """Write the text of an SVG file in the format of a path, atomically, readable by its owner only."""
    ending = plot_format(path)
    with replacing(path, force, private=True) as temporary:
        if ending == ".svg":
            write_text(temporary, picture)
        else:
            from shoal.output.report.matplotlib_plots import save

            save(picture, temporary, ending.removeprefix("."))


def plot_sizes(verdict: "Verdict", path: str | os.PathLike[str], force: bool = False) -> None:
    """Draw how many classes have how many records."""
    plot_format(path)
    write_plot(_alone(figures.class_size_figure(class_sizes(verdict), verdict.k)), path, force)


def plot_distribution(
    release: "Release", name: str, path: str | os.PathLike[str], form: Form = "internal", force: bool = False
) -> None:
    """Draw the values of a published column, in the internal form with those of the original."""
    plot_format(path)
    column = next((column for column in release.schema.published if column.name == name), None)
    if column is None:
        known = [each.name for each in release.schema.published]
        raise ParameterError(
            f"Column {name!r} is not published.{did_you_mean(name, known=known)} Published are: {', '.join(known)}."
        )
    drawn = figures.distribution_figure(distribution_of(release, column, form))
    if drawn is None:
        raise ParameterError(
            f"Column {name!r} has no picture, since its values cannot be shown in groups of at least k records."
        )
    write_plot(_alone(drawn), path, force)


def _alone(drawn: Markup) -> str:
    """Return a figure of the page as a self-contained file, with the colours of the page."""
    parts = (resources.files(__package__).joinpath("page", name) for name in ("variables.css", "figures.css"))
    style = "".join(part.read_text(encoding="utf-8") for part in parts)
    own = "svg { background: var(--card); font-family: system-ui, sans-serif; }"
    opened = drawn.replace("<svg ", Markup('<svg xmlns="http://www.w3.org/2000/svg" '), 1)
    begin, _, rest = opened.partition(Markup(">"))
    return f"{begin}><style>{style}{own}</style>{rest}\n"
