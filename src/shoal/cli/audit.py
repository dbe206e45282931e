"""``shoal audit``: what a published file keeps, recounted."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import click

from shoal.auditing import Diversity, Verdict, audit
from shoal.cli import options
from shoal.cli.execute import models_in_words, verdict_in_words
from shoal.cli.printing import counted, facts
from shoal.cli.progress import showing
from shoal.disk.recounting import audit_on_disk
from shoal.files import check_free, replacing_all
from shoal.record_risk import below, record_risk
from shoal.table import format_of, write_into


@click.command(
    "audit",
    epilog="\b\nExamples:\n"
    "  shoal audit release.csv --quasi age,zip,income -k 10\n"
    "  shoal audit release.csv --quasi age,zip,income --confidential diagnosis --json\n"
    "  shoal audit release.csv --quasi age,zip -k 10 --confidential salary --t-closeness salary=0.1\n"
    "  shoal audit people.csv --quasi age,zip -k 10 --list --risks risks.csv",
)
@click.argument("file", metavar="FILE")
@click.option("-k", "k", type=click.IntRange(min=1), help="What every class has to have; without it, only counted.")
@options.roles("quasi_identifiers", "confidential", "subject")
@options.models
@options.columns("kind", "order")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--list", "as_list", is_flag=True, help="Name the records below k: their number, from 0, and class size.")
@click.option("--risks", metavar="FILE", help="Write class size and risk of every record to a file: for internal use.")
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
@click.option("--memory", metavar="SIZE", help="Count a file larger than memory in parts, within so much, such as 2GB.")
@options.reading
def command(
    file: str,
    k: int | None,
    as_json: bool,
    as_list: bool,
    risks: str | None,
    force: bool,
    memory: str | None,
    **given: Any,
) -> int:
    """Recount what a published FILE keeps, from shoal or from another tool.

    A class is a set of records with the same quasi-identifiers, missing being a value. Ends with exit code 0 if every
    class has k records and keeps every model that is named, 1 if not, 2 if it cannot be counted.
    """
    if as_list and k is None:
        raise click.UsageError("--list names the records in classes smaller than k. Say what k is: -k 10")
    if memory is not None and (as_list or risks):
        raise click.UsageError("--list and --risks need all records in memory. Leave out --memory, or them.")
    if risks is not None:
        format_of(risks)
        check_free([risks], force)
    roles = options.taken(given, "role")
    of_records = {name: roles[name] for name in ("quasi_identifiers", "subject") if name in roles}
    with showing(f"reading and counting {Path(file).name}", ""):
        counted_by = audit if memory is None else partial(audit_on_disk, memory=memory)
        verdict = counted_by(
            file,
            quasi_identifiers=roles.pop("quasi_identifiers", ()),
            k=k,
            columns=options.column_settings(given),
            models=options.models_of(given),
            **roles,
            **options.reading_of(given),
        )
        found = record_risk(file, **of_records, **options.reading_of(given)) if as_list or risks else None
    listed = below(found, k).select(["record", "size"]).to_pylist() if as_list and found is not None and k else []
    if as_json:
        content = verdict.to_dict() | ({"below_k": listed} if as_list else {})
        click.echo(json.dumps(content, indent=1, ensure_ascii=False))
    else:
        _tell(verdict)
        for one in listed:
            click.echo(f"record {one['record']:<11,}class of {counted(one['size'], 'record')}")
    if risks is not None and found is not None:
        with replacing_all([risks], force, private=[risks]) as (temporary,):
            write_into(found, temporary)
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
