"""``shoal hierarchy``: a hierarchy of values, drawn and checked."""

from typing import Any

import click

from shoal.cli import options
from shoal.cli.printing import facts
from shoal.columns.hierarchy import Coverage, Hierarchy, coverage, hierarchy_of, read_hierarchy, rule_of
from shoal.columns.hierarchy.drawing import drawn
from shoal.columns.prepare import prepare
from shoal.columns.schema import Roles, Schema, as_settings
from shoal.output.report.formatting import counted
from shoal.sources import read
from shoal.sources.clean import printable

_EXAMPLES = """\b
Examples:
  shoal hierarchy isco.csv
  shoal hierarchy isco.csv --data people.csv --column job
  shoal hierarchy prefix:1,3 --data people.csv --column zip --show-values
"""


@click.command("hierarchy", epilog=_EXAMPLES)
@click.argument("hierarchy", metavar="HIERARCHY")
@click.option("--data", metavar="FILE", help="Check that every value of --column is in the hierarchy.")
@click.option("--column", metavar="COLUMN", help="The column of --data.")
@click.option("--show-values", is_flag=True, help="List values that are missing, draw those of a rule: table values.")
@click.option(
    "--lines", type=click.IntRange(min=1), default=40, show_default=True, help="Maximum number of lines of the drawing."
)
@options.columns("missing_codes", "fold")
@options.reading
def command(hierarchy: str, data: str | None, column: str | None, show_values: bool, lines: int, **given: Any) -> int:
    """Draw a HIERARCHY and check it: a file, or a rule such as prefix:1,3, steps:5,10 or calendar.

    A file has a line for each value, the value first, then its groups, the root last (value;group;*), as ARX writes it;
    or lines of child and parent. A rule builds the hierarchy from the values of a column, so it needs --data. Ends with
    exit code 0 if every value of the column is in the hierarchy, 1 if not, 2 if the file is not a hierarchy.
    """
    rule = rule_of(hierarchy)
    if (data is None) != (column is None):
        raise click.UsageError("--data and --column belong together: --data people.csv --column job")
    if rule is not None and data is None:
        raise click.UsageError(f"{hierarchy} builds its groups from values. Name them: --data people.csv --column zip")
    if data is None or column is None:
        _tell(read_hierarchy(hierarchy), lines)
        return 0
    table = read(data, columns=[column], **options.reading_of(given))
    schema = Schema.of(table.types, Roles(quasi_identifiers=(column,)), as_settings(options.column_settings(given)))
    values = prepare(table.arrow, schema, "own-value")[column]
    if rule is not None:
        _tell(hierarchy_of(hierarchy, values, column), lines if show_values else 0)
        return 0
    tree = read_hierarchy(hierarchy)
    _tell(tree, lines)
    return _tell_coverage(coverage(tree, values), len(values), column, show_values)


def _tell(tree: Hierarchy, lines: int) -> None:
    """Print the levels, and the tree unless no line is wanted."""
    widths = [len(set(tree.nodes[:, level].tolist())) for level in range(tree.n_levels)]
    facts(
        {
            "leaves": f"{tree.n_leaves:,}",
            "levels": ", ".join(f"{level}: {counted(width, 'node')}" for level, width in enumerate(widths)),
        }
    )
    for line in drawn(tree, lines) if lines else ():
        click.echo(printable(line))


def _tell_coverage(found: Coverage, n_records: int, column: str, show_values: bool) -> int:
    """Print which values of the column are missing; return the exit code."""
    if not found.absent:
        click.echo(f"Every value of column {column!r} is in the hierarchy.")
        return 0
    click.echo(
        f"{found.n_records:,} of {n_records:,} records have values of column {column!r} that are not in the hierarchy "
        f"({len(found.absent):,} different).{found.hint}"
    )
    for value in found.absent if show_values else ():
        click.echo(f"  {printable(value)}")
    return 1
