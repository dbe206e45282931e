"""``shoal demo``: a release of a bundled sample with text, categories and numbers, and its report."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copyfile

import click

from shoal import datasets
from shoal.cli import options
from shoal.cli.execute import run_and_tell
from shoal.cli.printing import tell
from shoal.errors import FileError
from shoal.files import replacing
from shoal.job import Job

_MEASURES = datasets.eia(n_columns=10).columns


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Create a folder, and remove it again if what is done in the block is refused and leaves it empty."""
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise FileError(f"The folder {str(folder)!r} cannot be created. Choose another one with --output.") from None
    try:
        yield
    except BaseException:
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise


@click.command(
    "demo",
    epilog="\b\nExamples:\n  shoal demo\n  shoal demo -k 10 --output /tmp/demo\n  shoal demo --data people",
)
@click.option("-k", "k", type=int, default=5, show_default=True, help="Smallest cell size, at least 2.")
@click.option(
    "--output",
    metavar="FOLDER",
    default="demo",
    show_default=True,
    help="Folder for the files; those of an older demo are replaced.",
)
@click.option(
    "--data",
    type=click.Choice(datasets.NAMES),
    help="Only write a bundled data set to NAME.csv in the current folder, as the pages of the documentation use it.",
)
@options.force
@options.quiet
def command(k: int, output: str, data: str | None, force: bool) -> None:
    """Make a release of a bundled sample, with its report.

    The sample is what U.S. electric utilities sold and earned in each month of 1996. Names and numbers of utilities are
    dropped; state, revenues and sales are grouped so that at least k different utilities of a month look the same.
    """
    if data is not None:
        with replacing(f"{data}.csv", force) as temporary:
            copyfile(datasets.path(data), temporary)
        tell(f"{data}.csv")
        return
    folder = Path(output)
    job = Job.of(
        k=k,
        seed=1,
        roles={
            "identifiers": ["UTILITYID", "UTILNAME"],
            "quasi_identifiers": ["STATE", *_MEASURES],
            "by": ["MONTH"],
            "other": ["YEAR"],
            "subject": "UTILITYID",
        },
        columns={name: {"round": 0} for name in _MEASURES},
        input={"path": str(datasets.path("eia"))},
        output={"path": str(folder / "release.csv"), "report": str(folder / "report.html")},
    )
    with _made(folder):
        run_and_tell(job, force=True)
    tell(f"\nOpen {folder / 'report.html'} in a browser.")
