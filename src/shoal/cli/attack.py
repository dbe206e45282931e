"""``shoal attack``: what intruders would learn from a release."""

from typing import Any, get_args

import click

from shoal.auditing.attacks import attack
from shoal.cli import options
from shoal.cli.printing import print_json
from shoal.cli.progress import showing
from shoal.space.axes import Scaling


@click.command(
    "attack",
    epilog="\b\nExamples:\n"
    "  shoal attack release.csv --original people.csv --quasi-identifiers age,zip,income --confidential diagnosis\n"
    "  shoal attack may.csv --original people.csv --second june.csv --quasi-identifiers age,zip --confidential illness",
)
@click.argument("file", metavar="RELEASE")
@click.option("--original", metavar="FILE", required=True, help="The table that the release was made from.")
@click.option("--second", metavar="FILE", help="Another release of the same people, to intersect with.")
@click.option(
    "--manifest",
    metavar="FILE",
    help="Gives the original record of each published one.  [default: RELEASE.internal.json, if it exists]",
)
@click.option("--same-order", is_flag=True, help="The records of the release are in the order of the original.")
@options.roles("quasi_identifiers", "confidential")
@options.columns("kind", "categories", "weight")
@click.option(
    "--scaling", type=click.Choice(get_args(Scaling)), default="zscore", show_default=True, help="Scaling of columns."
)
@click.option("--seed", type=click.IntRange(min=0), help="Repeats the random sample of records that are attacked.")
@options.as_json
@options.reading_of_another("release_reading", "How to read RELEASE and --second, if shoal has not written them")
@options.reading
@options.no_progress
def command(file: str, as_json: bool, **given: Any) -> None:
    """Try attacks on RELEASE, and report the share of the people for whom each succeeds.

    The reading options are for the original. Shares are given for the originals as if published unchanged, and for the
    release. The output describes the originals too: do not publish it.
    """
    roles = options.with_prefix(given, "role")
    with showing("reading and attacking", ""):
        found = attack(
            file,
            given["original"],
            quasi_identifiers=roles.get("quasi_identifiers", ()),
            confidential=roles.get("confidential", ()),
            second=given["second"],
            manifest=given["manifest"],
            same_order=given["same_order"],
            columns=options.column_settings(given),
            scaling=given["scaling"],
            seed=given["seed"],
            reading=options.reading_of(given),
            release_reading=given["release_reading"],
        )
    if as_json:
        print_json([one.to_dict() for one in found])
        return
    click.echo(f"{'attack':<36}{'before':>9}{'after':>9}")
    for one in found:
        title = one.name if one.column is None else f"{one.name}: {one.column}"
        click.echo(f"{title:<36}{_share(one.before):>9}{_share(one.after):>9}  {one.meaning}")


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2%}"
