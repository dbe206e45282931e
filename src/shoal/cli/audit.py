"""``shoal audit``: what a published file keeps, recounted."""

import json
from pathlib import Path
from typing import Any

import click

from shoal.auditing import Diversity, Verdict, audit
from shoal.cli import options
from shoal.cli.execute import models_in_words, verdict_in_words
from shoal.cli.printing import facts
from shoal.cli.progress import showing


@click.command(
    "audit",
    epilog="\b\nExamples:\n"
    "  shoal audit release.csv --quasi age,zip,income -k 10\n"
    "  shoal audit release.csv --quasi age,zip,income --confidential diagnosis --json\n"
    "  shoal audit release.csv --quasi age,zip -k 10 --confidential salary --t-closeness salary=0.1",
)
@click.argument("file", metavar="FILE")
@click.option("-k", "k", type=click.IntRange(min=1), help="What every class has to have; without it, only counted.")
@options.roles("quasi_identifiers", "confidential", "subject")
@options.models
@options.columns("kind", "order")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.reading
def command(file: str, k: int | None, as_json: bool, **given: Any) -> int:
    """Recount what a published FILE keeps, from shoal or from another tool.

    A class is a set of records with the same quasi-identifiers, missing being a value. Ends with exit code 0 if every
    class has k records and keeps every model that is named, 1 if not, 2 if it cannot be counted.
    """
    roles = options.taken(given, "role")
    with showing(f"reading and counting {Path(file).name}", ""):
        verdict = audit(
            file,
            quasi_identifiers=roles.pop("quasi_identifiers", ()),
            k=k,
            columns=options.column_settings(given),
            models=options.models_of(given),
            **roles,
            **options.reading_of(given),
        )
    if as_json:
        click.echo(json.dumps(verdict.to_dict(), indent=1, ensure_ascii=False))
    else:
        _tell(verdict)
    return 0 if verdict.holds else 1


def _tell(verdict: Verdict) -> None:
    """Print the verdict first, then what it rests on."""
    lines = {
        "verdict": verdict_in_words(verdict),
        "records": f"{verdict.n_records:,}",
        "classes": f"{verdict.n_classes:,}, of {min(verdict.sizes):,} to {max(verdict.sizes):,} records",
    }
    if verdict.k is not None:
        lines["records below k"] = f"{verdict.n_below:,}"
    if verdict.subjects is not None:
        lines["subjects"] = f"at least {verdict.subjects:,} different ones in a class"
    lines |= models_in_words(verdict)
    for name, found in verdict.confidential.items():
        lines[name] = _diversity_in_words(found)
    facts(lines)


def _diversity_in_words(found: Diversity) -> str:
    return (
        f"distinct l = {found.distinct}, entropy l = {found.entropy:.3g}, recursive c = {found.recursive:.3g}, "
        f"t = {found.t:.4f} (mean {found.mean_t:.4f})"
    )
