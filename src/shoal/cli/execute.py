"""Execute: run a job and report the result, in the same way for every command that makes a release."""

from collections.abc import Iterable
from typing import Any

import click

from shoal.cli.printing import facts, print_json, warned
from shoal.cli.printing import tell as say
from shoal.cli.progress import showing
from shoal.columns.schema import Role
from shoal.errors import ParameterError
from shoal.interrupts import report_what_is_written
from shoal.job import Job
from shoal.measures.linked import Linked
from shoal.measures.recount import Verdict
from shoal.measures.series_risk import SeriesVerdict
from shoal.output.release import Release
from shoal.output.report.formatting import counted, percent
from shoal.output.report.sentences import reached_in_words, rest_in_words
from shoal.release import Assignment
from shoal.sources import shown
from shoal.sources.clean import printable
from shoal.sources.standard_input import DASH


def run_and_tell(
    job: Job,
    *,
    file: str | None = None,
    force: bool = False,
    dry_run: bool = False,
    save_job: str | None = None,
    threads: int | None = None,
    as_json: bool = False,
) -> None:
    """Make and write the release of a job and report it, or only say what would be done. `file` holds the job."""
    if job.input is None or job.output is None:
        raise ParameterError(
            "The job has to name the file to read, [input] path, and the file to write, [output] path."
        )
    assignment = Assignment.of(file or job, force=force, save_job=save_job)
    assert assignment.destination is not None
    places = assignment.destination.places
    if as_json and _is_taken(job):
        raise ParameterError("Standard output is for the release. Write it to a file, or leave --json out.")
    if dry_run:
        tell_plan(assignment, places, as_json=as_json)
        return
    name = shown(job.input.path)
    with warned() as texts, showing(f"reading {name}", "grouping records", "measuring and writing") as meter:
        report_what_is_written()
        release = assignment.carry_out(threads=threads, progress=meter)
    if as_json:
        print_json(to_dict(release, places))
        texts = [*dict.fromkeys([*release.warnings, *texts])]
    else:
        tell(release, places, err=_is_taken(job))
    for text in texts:
        if as_json or text not in release.warnings:  # which are printed with the rest
            click.echo(f"Warning: {text}", err=True)


def to_dict(release: Release, places: Iterable[str]) -> dict[str, Any]:
    """Return what was made as plain values, for JSON: what its internal manifest says, without single records."""
    return {
        "job": release.job.to_dict(),
        "verdict": release.verdict.to_dict(),
        "n_left_out": release.records.source.n_left_out,
        **release.measures,
        **({} if release.series is None else {"series": release.series.to_dict()}),
        "written": list(places),
        "warnings": list(release.warnings),
    }


def _is_taken(job: Job) -> bool:
    """Return whether standard output is for the release, so that all else goes to standard error."""
    return job.output is not None and job.output.path == DASH


def tell(release: Release, places: Iterable[str], *, err: bool = False) -> None:
    """Print the result, and on standard error what to check before publishing."""
    job, verdict = release.job, release.verdict
    facts(
        {
            "records": f"{verdict.n_records:,}" + left_out_in_words(release.records.source.n_left_out),
            "method": f"{job.method}, k = {job.k}",
            "verdict": verdict_in_words(verdict),
            "classes": f"{verdict.n_classes:,}, of {min(verdict.sizes):,} to {max(verdict.sizes):,} records",
            **linked_in_words(release),
            **models_in_words(verdict),
            **truth_in_words(verdict),
            **({} if release.series is None else {"series": _series_in_words(release.series.to_dict())}),
            **unchanged_in_words(verdict),
            "information loss": f"{100 * release.loss.il:.4f} %" + bound_in_words(release) + _on_middles(release),
            **(
                {} if release.certainty is None else {"certainty penalty": f"{100 * release.certainty.ncp:.4f} % (NCP)"}
            ),
            "linked": f"{100 * release.risk.linkage.dld:.2f} % of the records have their own original as the nearest",
            "written": ", ".join(places),
        },
        err=err,
    )
    facts({f"read {receipt.name}": receipt.line for receipt in release.receipts}, err=err)
    for text in release.warnings:
        click.echo(f"Warning: {text}", err=True)


def linked_in_words(release: Release) -> dict[str, str]:
    """Say what became of linked records, and what the link costs."""
    linked, without = release.verdict.linked, release.measures.get("linking", {}).get("il_without_link")
    if linked is None or release.linking is None:
        return {}
    return {
        **histories_in_words(linked),
        "patterns": rest_in_words(release.linking),
        "loss without link": f"{100 * without:.4f} % (the same records, grouped one by one)",
    }


def histories_in_words(linked: Linked) -> dict[str, str]:
    """Return the recount of whole histories."""
    alone = f"; {linked.n_unlinked:,} records without the link" if linked.n_unlinked else ""
    return {
        "histories": f"{linked.n_persons:,}, {counted(linked.n_classes, 'different one')}, each of at least "
        f"{linked.smallest:,} persons{alone}"
    }


def _series_in_words(found: dict[str, Any]) -> str:
    """Return in words what a release is in its series."""
    if not found["after"]:
        return str(found["sentence"])
    counts = (
        f"{found['kept']:,} as before, {found['new']:,} new, {found['left']:,} left, {found['withheld']:,} withheld"
    )
    return f"{counts}. {found['sentence']}"


def bound_in_words(release: Release) -> str:
    """Return the lower bound of the loss in words, where it was asked for."""
    effort = release.job.output.bound if release.job.output is not None else None
    if effort is None:
        return ""
    return f"; no release can lose less than {100 * release.bound(effort).il:.4f} %"


def _on_middles(release: Release) -> str:
    """Say that loss is measured on stand-ins, where values are intervals, sets, ancestors or periods."""
    return " (of the groups; values measured by their middle)" if release.verdict.truth else ""


def verdict_in_words(verdict: Verdict) -> str:
    """Return the result of the recount in words."""
    if verdict.withdrawn is not None:
        return f"not k-anonymous: {verdict.withdrawn}"
    if verdict.k_holds and verdict.broken:
        names = " and ".join(f"{found.model.name} of {found.model.column}" for found in verdict.broken)
        return f"does not hold: some classes break {names}"
    if verdict.k_holds and verdict.untrue:
        names = " and ".join(found.column for found in verdict.untrue)
        return f"does not hold: some records have values that are not within what is published of {names}"
    if verdict.k_holds and verdict.exposing:
        names = " and ".join(found.column for found in verdict.exposing)
        return f"does not hold: some ends or ancestors in {names} are shared by too few people"
    models = any(found.model.promised for found in verdict.models)
    if verdict.k is None:
        smallest = f"the smallest class has {counted(verdict.smallest, 'record')}"
        return f"holds: every class keeps the models; {smallest}" if models else smallest
    if verdict.linked is not None and verdict.history_below(verdict.k):
        few = f"{verdict.linked.n_below:,} of {verdict.linked.n_persons:,}"
        return f"does not hold: {few} persons have a history that fewer than {verdict.k} share"
    if verdict.holds and verdict.linked is not None:
        shared = f"every history is shared by at least {verdict.linked.smallest} persons"
        return f"holds: {shared}" + (", and every model is kept" if models else "")
    if verdict.holds:
        who = "different subjects" if verdict.subject_asked else "records"
        least = verdict.subjects if verdict.subject_asked else verdict.smallest
        return f"holds: every class has at least {least} {who}" + (" and keeps the models" if models else "")
    if verdict.smallest >= verdict.k:
        return f"does not hold: a class has {counted(verdict.subjects or 0, 'different subject')}, not {verdict.k}"
    return (
        f"does not hold: {verdict.n_below:,} of {verdict.n_records:,} records are in classes smaller than {verdict.k}"
    )


def left_out_in_words(n_left_out: int) -> str:
    """Return how many records were left out on request, to follow a count of the others."""
    return f", and {n_left_out:,} left out" if n_left_out else ""


def models_in_words(verdict: Verdict) -> dict[str, str]:
    """Return for each model what was found, under its name and column."""
    return {
        f"{found.model.name}: {printable(found.model.column)}": reached_in_words(found.to_dict(), "class")
        for found in verdict.models
    }


def series_in_words(verdict: SeriesVerdict) -> dict[str, str]:
    """Return what all releases of a series together tell."""
    about = {"in the last release": verdict.present, "left before it": verdict.left}
    lines = {
        "series": f"holds: everybody shares all classes and absences with {verdict.k - 1:,} others or more"
        if verdict.holds
        else f"does not hold over {verdict.n_releases} releases with k = {verdict.k:,}",
    }
    for who, found in about.items():
        smallest = f"in {counted(found.n_groups, 'group')} of at least {found.smallest:,}" if found.n_people else ""
        lines[who] = f"{counted(found.n_people, 'person')} {smallest}".rstrip()
        if found.n_below:
            lines[f"{who}: below k"] = f"{found.n_below:,}, {found.n_alone:,} of them alone"
        if found.n_computed:
            lines[f"{who}: by subtraction"] = f"the values, or a sum of fewer than k, of {found.n_computed:,}"
        lines |= {f"{who}: {model}": f"{n:,} in groups that violate it" for model, n in found.n_failing.items() if n}
        lines |= {
            f"{who}: {printable(column)}": f"one value is possible for {n:,}, if theirs did not change"
            for column, n in found.n_determined.items()
            if n
        }
    return lines


def unchanged_in_words(verdict: Verdict) -> dict[str, str]:
    """Name the columns that are published unchanged and nearly identify, whatever the classes are."""
    return {
        f"unchanged: {printable(column)}": f"nearly identifies: {percent(share)} of the records have a value that "
        f"fewer than {verdict.k} share"
        for column, share, _ in verdict.unchanged
    }


def truth_in_words(verdict: Verdict) -> dict[str, str]:
    """Say for each column of intervals, sets, ancestors or periods whether it is true of every record."""
    return {
        f"truth: {printable(found.column)}": f"{counted(found.n_values, found.form)}, "
        + (
            "not compared with the originals"
            if found.n_false is None
            else f"false for {counted(found.n_false, 'record')}"
            if found.n_false
            else "true of every record"
        )
        + (f", {counted(found.n_exposed, 'record')} with ends that too few people share" if found.n_exposed else "")
        for found in verdict.truth
    }


def tell_plan(assignment: Assignment, places: Iterable[str], *, as_json: bool = False) -> None:
    """Print what would be done, after all checks that are possible before cells are made."""
    job = assignment.job
    with showing(f"reading {shown(assignment.table)}", "") as _:
        plan = assignment.plan()
    if as_json:
        found = {"table": plan.table, "cells": plan.cells, "n_left_out": plan.n_left_out, "n_withheld": plan.n_withheld}
        print_json({"job": job.to_dict(), **found, "would_write": list(places)})
        return
    named = {
        str(role): [f"{c.name} ({c.kind})" if role is Role.QUASI else c.name for c in plan.schema.having(role)]
        for role in Role
    }
    helpers = {"subject": job.roles.subject, "household": job.roles.household, "weights": job.roles.weights}
    facts(
        {
            "would read": f"{assignment.table}: {plan.table}{left_out_in_words(plan.n_left_out)}",
            "would group": f"by {job.method}, k = {job.k}, {plan.cells}",
            **({} if plan.linking is None else {"would link": rest_in_words(plan.linking)}),
            **({"would withhold": f"{plan.n_withheld:,}"} if plan.n_withheld else {}),
            **{role: ", ".join(names) for role, names in named.items() if names},
            **{title: name for title, name in helpers.items() if name},
            **{f"{model.name}: {printable(model.column)}": model.promise for model in job.models},
            "would write": ", ".join(places),
        },
        err=_is_taken(job),
    )
    say("Nothing was written.", err=_is_taken(job))
