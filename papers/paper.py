"""What a paper brings: options, a measurement, tables, claims and pictures. The runner is the same for all.

A run fills one result file, which is saved after every step. Tables, claims and pictures are made from its content, so
that they can be made again from a stored file.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from papers.claims import Claim, as_text, counted, merged
from papers.data_and_results import save
from shoal.errors import ParameterError

RESULTS = Path(__file__).with_name("results")
"""The result files of the archived runs, at the largest sizes that were run."""

Content = dict[str, Any]
"""A result file: settings by name, and lists of named tuples."""


class Archived(NamedTuple):
    """An archived result file, and the run that wrote it: what stood behind ``python -m papers``."""

    file: str
    run: str


class Paper(NamedTuple):
    """A paper's entry: what it is, and how its numbers are measured, shown and judged."""

    title: str
    covers: str
    takes: str
    full: str
    """Running time at the paper's own sizes; empty where they are the default."""

    about: str
    """The help of its command."""

    examples: tuple[str, ...]
    """Arguments of the examples in the help."""

    quick: str
    """Arguments of its quick form, which ``make papers`` runs."""

    options: tuple[click.Option, ...]
    rows: Mapping[str, type]
    """The lists of its result file, and the named tuple of their entries."""

    measure: Callable[..., None]
    """Takes the run and the options, and fills the run."""

    tables: Callable[[Content], str]
    claims: Callable[[Content], list[Claim]]
    pictures: str
    """The module whose function `figures` draws them; empty where there are none."""

    archived: tuple[Archived, ...]
    """A claim that the first file cannot decide is decided by the next."""


class Run:
    """Results so far, saved after every step, so that an interrupted run keeps them."""

    def __init__(self, file: Path, rows: Mapping[str, type], resume: bool = False) -> None:
        _make_folder(file.parent)
        self.file = file
        self.content: Content = {}
        self._rows = rows
        self._resume = resume

    def begin(self, **settings: Any) -> None:
        """Note the settings; if the run is resumed, read what there is, which needs to have the same ones."""
        self.content = {**settings, **{name: [] for name in self._rows}}
        if not self._resume:
            return
        if not self.file.is_file():
            raise ParameterError(f"There is nothing to resume: {self.file} is not there. Run without --resume.")
        try:
            earlier = read(self.file, self._rows)
            del earlier["machine"]
            before = {name: earlier[name] for name in settings}
        except (ValueError, KeyError, TypeError):
            raise ParameterError(f"{self.file} is not a result file of a run. Run without --resume.") from None
        if before != settings:
            said = ", ".join(f"{name} {value}" for name, value in before.items())
            raise ParameterError(f"{self.file} was measured with other settings ({said}). Give the same ones.")
        self.content.update(earlier)

    def add(self, name: str, rows: Iterable[Any]) -> None:
        """Add rows to a list and save the file."""
        self.content[name] += rows
        save(self.file, _plain(self.content))


def read(file: Path, rows: Mapping[str, type]) -> Content:
    """Read a result file; lists that it lacks are empty."""
    content = json.loads(file.read_text(encoding="utf-8"))
    return {**content, **{name: [row(**entry) for entry in content.get(name, [])] for name, row in rows.items()}}


def _plain(content: Content) -> Content:
    return {
        name: [row._asdict() for row in value] if isinstance(value, list) else value for name, value in content.items()
    }


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"The output folder {folder} cannot be created: {error.strerror}.") from error


def bar(label: str, items: Sequence[Any] | None = None, length: int | None = None) -> Any:
    """Return a progress bar on stderr, over items or of a length."""
    return click.progressbar(items, length=length, label=f"{label:<14}", file=sys.stderr)


def without(name: str, reason: str) -> None:
    """Say what is left out."""
    click.echo(f"Without {name}: {reason}.", err=True)


def command(name: str, paper: Paper) -> click.Command:
    """Return the command of a paper, which measures, or prints the claims of the archived run."""

    def work(output: Path, resume: bool = False, **given: Any) -> None:
        run = Run(output / f"{name}.json", paper.rows, resume)
        paper.measure(run, **given)
        click.echo(paper.tables(run.content))
        click.echo(as_text(paper.claims(run.content)))
        click.echo(drawn(name, paper, run.content, output), err=True)

    def print_claims(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
        if asked:
            claims = archived_claims(paper)
            runs = "; ".join(f"python -m papers {source.run}" for source in paper.archived)
            click.echo(f"{paper.title}\nMeasured by: {runs}\n")
            click.echo(as_text(claims))
            click.echo(f"{counted(claims)}.")
            ctx.exit()

    shared = (
        click.Option(
            ["--output"],
            type=click.Path(file_okay=False, path_type=Path),
            default=Path("out") / name,
            show_default=True,
            help="Folder for the pictures and the numbers.",
        ),
        click.Option(
            ["--claims"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=print_claims,
            help="Print every checked claim of the archived run (yes, no, not testable, and why) and exit.",
        ),
    )
    examples = "\n".join(f"  python -m papers {name} {example}".rstrip() for example in ("--claims", *paper.examples))
    return click.Command(
        name,
        callback=work,
        params=[*paper.options, *shared],
        help=paper.about,
        epilog=f"\b\nExamples:\n{examples}\n",
    )


def archived_claims(paper: Paper) -> list[Claim]:
    """Check the claims on the archived result files."""
    return merged([paper.claims(read(RESULTS / source.file, paper.rows)) for source in paper.archived])


def drawn(name: str, paper: Paper, content: Content, folder: Path) -> str:
    """Draw the pictures into the folder, or return what has to be installed."""
    if not paper.pictures:
        return f"Numbers in {folder}"
    try:
        figures = import_module(paper.pictures).figures
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        return f"Numbers in {folder}. For the pictures: pip install matplotlib"
    for title, figure in figures(content):
        figure.savefig(folder / f"{name}-{title}.png", dpi=110, metadata={"Software": None})
    return f"Pictures and numbers in {folder}"


def _numbers(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Read ``2000,5000`` as numbers, in order."""
    if text is None:
        return None
    try:
        return tuple(sorted({int(part.replace("_", "")) for part in text.split(",")}))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of whole numbers such as 3,5,10.") from None


def option(flag: str, help: str, **settings: Any) -> click.Option:
    """Return an option that shows its default."""
    return click.Option(flag.split(), help=help, show_default="default" in settings, **settings)


def switch(flag: str, help: str) -> click.Option:
    """Return an option without a value."""
    return click.Option(flag.split(), help=help, is_flag=True)


def count(flag: str, help: str, least: int = 0, **settings: Any) -> click.Option:
    """Return an option for a whole number."""
    return option(flag, help, type=click.IntRange(min=least), **settings)


def counts(flag: str, help: str, **settings: Any) -> click.Option:
    """Return an option for a list of whole numbers."""
    return option(flag, help, metavar="N,N,...", callback=_numbers, **settings)


def seed_option(default: int = 0, help: str = "Repeats the random samples.") -> click.Option:
    """Return the option for the seed."""
    return count("--seed", help, default=default)


RESUME = switch("--resume", "Resume an interrupted run from what is in the folder.")
