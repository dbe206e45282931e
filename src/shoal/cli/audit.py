"""``shoal audit``: the guarantees of a published file, recounted."""

import os
from typing import Any

import click

from shoal.auditing import audit
from shoal.auditing.series import audit_series
from shoal.cli import options
from shoal.cli.execute import (
    histories_in_words,
    models_in_words,
    series_in_words,
    truth_in_words,
    verdict_in_words,
)
from shoal.cli.printing import facts, print_json, telling
from shoal.cli.progress import showing
from shoal.files import check_free, replacing_all
from shoal.interrupts import report_what_is_written
from shoal.measures.recount import Diversity, Verdict
from shoal.output.manifest import manifest_of, read_internal
from shoal.output.report.formatting import counted
from shoal.output.report.plot_files import plot_format, plot_sizes
from shoal.sources import output_format_of, shown, write_into
from shoal.spelling import option_name


@click.command(
    "audit",
    epilog="\b\nExamples:\n"
    "  shoal audit release.csv --quasi-identifiers age,zip,income -k 10\n"
    "  shoal audit release.csv --quasi-identifiers age,zip,income --confidential diagnosis --json\n"
    "  shoal audit release.csv --quasi-identifiers age,zip -k 10 --confidential salary --t-closeness salary=0.1\n"
    "  shoal audit people.csv --quasi-identifiers age,zip -k 10 --list --risks risks.csv\n"
    "  shoal audit release.csv --quasi-identifiers age,zip -k 10 --original people.csv\n"
    "  shoal audit --series 2024.csv 2025.csv 2026.csv --key id --quasi-identifiers age,zip -k 10\n"
    "  shoal audit visits.csv --quasi-identifiers age,date -k 10 --subject patient --keep-link subject",
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--series", "is_series", is_flag=True, help="Recount what several releases tell together, in the order given."
)
@click.option(
    "--key",
    metavar="COLUMN",
    help="Column that says whose record it is, in every file of --series; without it, FILE.cells does.",
)
@click.option(
    "--originals",
    metavar="FILE",
    multiple=True,
    help="Original of each file of --series, in the same order, with the --key; internal manifests say who is who.",
)
@click.option(
    "-k", "k", type=click.IntRange(min=1), help="Required size of every class; without it, sizes are only counted."
)
@options.roles("quasi_identifiers", "confidential", "subject", "household", "keep_link")
@options.models
@options.columns("kind", "categories", "missing_codes", "hierarchy", "outside", "fold")
@options.as_json
@options.quiet
@click.option("--list", "as_list", is_flag=True, help="List the records below k: their number, from 1, and class size.")
@click.option("--risks", metavar="FILE", help="Write class size and risk of every record to a file: for internal use.")
@click.option("--plot", metavar="FILE", help="Draw the sizes of the classes: .svg, .png or .pdf by its ending.")
@options.force
@click.option("--memory", metavar="SIZE", help="Count a file larger than memory in parts, within so much, such as 2GB.")
@click.option(
    "--original", metavar="FILE", help="Compare intervals, sets, ancestors and periods with every record of this file."
)
@click.option("--manifest", metavar="FILE", help="Internal manifest of FILE, if it is not beside it; for --original.")
@click.option("--same-order", is_flag=True, help="FILE has the records of --original in the same order.")
@options.reading_of_another("original_reading", "How to read --original, if its manifest does not say so")
@options.reading
def command(
    files: tuple[str, ...], k: int | None, as_json: bool, as_list: bool, risks: str | None, **given: Any
) -> int:
    """Recount the guarantees of a published FILE, made by shoal or by another tool.

    A class is a set of records with the same quasi-identifiers, where missing counts as a value. The exit code is 0 if
    every class has k records and satisfies every model named, 1 if not, 2 if it cannot be counted; with --quiet it is
    the whole answer.

    With --series, the files are releases of overlapping people: internal copies as published, with a key; published
    files beside their cells files; or, with --originals, beside their internal manifests. Counted are the people who
    have the same class, or the same absence, in all of them, and what subtraction tells (docs/series.md).
    """
    if given["is_series"]:
        return _of_series(files, k, as_json, {**given, "risks": risks, "as_list": as_list})
    if given["key"] is not None or given["originals"]:
        raise click.UsageError(
            "--key and --originals name the persons of several releases. Add --series, or leave them out."
        )
    if len(files) > 1:
        raise click.UsageError(f"{len(files)} files are given. To count them together, add --series and --key COLUMN.")
    (file,) = files
    if as_list and k is None:
        raise click.UsageError("--list lists the records in classes smaller than k. Give k: -k 10")
    if risks is not None:
        output_format_of(risks)
    if given["plot"] is not None:
        plot_format(given["plot"])
    written = [path for path in (risks, given["plot"]) if path is not None]
    if written:
        check_free(written, given["force"], _inputs(file, given))
    roles = options.with_prefix(given, "role")
    with telling(), showing(f"reading and counting {shown(file)}", ""):
        verdict = audit(
            file,
            quasi_identifiers=roles.pop("quasi_identifiers", ()),
            k=k,
            columns=options.column_settings(given),
            models=options.models_of(given),
            records=as_list or risks is not None,
            **{name: given[name] for name in ("original", "manifest", "same_order", "memory")},
            original_reading=given["original_reading"] or None,
            **roles,
            **options.reading_of(given),
        )
    if as_json:
        content = verdict.to_dict() | ({"below_k": verdict.below_k} if as_list else {})
        print_json(content)
    else:
        _tell(verdict)
        for one in verdict.below_k if as_list else ():
            click.echo(f"record {one['record']:<11,}class of {counted(one['size'], 'record')}")
    if risks is not None and verdict.records is not None:
        report_what_is_written()
        with replacing_all([risks], given["force"], private=[risks]) as (temporary,):
            write_into(verdict.records, temporary)
    if given["plot"] is not None:
        plot_sizes(verdict, given["plot"], given["force"])
    return 0 if verdict.holds else 1


def _of_series(files: tuple[str, ...], k: int | None, as_json: bool, given: dict[str, Any]) -> int:
    """Recount several releases together."""
    roles = options.with_prefix(given, "role")
    alone = [
        name for name in ("original", "manifest", "memory", "risks", "plot", "as_list", "same_order") if given.get(name)
    ]
    alone += [name for name in ("subject", "household", "keep_link") if name in roles]
    if alone:
        names = ", ".join("--list" if name == "as_list" else option_name(name) for name in alone)
        raise click.UsageError(f"{names} is about one release, and --series counts several. Leave it out.")
    if k is None:
        raise click.UsageError("--series needs the k that was promised: -k 10")
    with telling(), showing(f"reading and counting {len(files)} releases", ""):
        verdict = audit_series(
            files,
            key=given["key"],
            quasi_identifiers=roles.get("quasi_identifiers", ()),
            k=k,
            confidential=roles.get("confidential", ()),
            models=options.models_of(given),
            columns=options.column_settings(given),
            originals=given["originals"] or None,
            **options.reading_of(given),
        )
    if as_json:
        print_json(verdict.to_dict())
    else:
        facts(series_in_words(verdict))
    return 0 if verdict.holds else 1


def _inputs(file: str, given: dict[str, Any]) -> list[str | os.PathLike[str]]:
    """Return all files that are read: with originals, also the manifest and the hierarchies that it names."""
    if given["original"] is None:
        return [file]
    manifest = manifest_of(file, given["manifest"], given["same_order"])
    own = [column["hierarchy"] for column in options.column_settings(given).values() if "hierarchy" in column]
    if manifest is None:
        return [file, given["original"], *own]
    return [file, given["original"], manifest, *own, *read_internal(manifest).job.files]


def _tell(verdict: Verdict) -> None:
    """Print the verdict first, then the counts."""
    lines = {
        "verdict": verdict_in_words(verdict),
        "records": f"{verdict.n_records:,}",
        "classes": f"{verdict.n_classes:,}, of {min(verdict.sizes):,} to {max(verdict.sizes):,} records",
    }
    if verdict.k is not None:
        lines["records below k"] = f"{verdict.n_below:,}"
    if verdict.subjects is not None:
        lines["subjects"] = f"at least {verdict.subjects:,} different ones in a class"
    if verdict.linked is not None:
        lines |= histories_in_words(verdict.linked)
    lines |= models_in_words(verdict) | truth_in_words(verdict)
    for name, found in verdict.confidential.items():
        lines[name] = _diversity_in_words(found)
    facts(lines)


def _diversity_in_words(found: Diversity) -> str:
    return (
        f"distinct l = {found.distinct}, entropy l = {found.entropy:.3g}, recursive c = {found.recursive:.3g}, "
        f"t = {found.t:.4f} (mean {found.mean_t:.4f})"
    )
