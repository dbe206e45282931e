"""Facts: everything that a report states, as one plain dict. The formats only present it.

The public form holds nothing that depends on the original beyond what the release itself shows.
"""

import platform
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from shoal.columns.schema import Column, Kind, Role
from shoal.distribution import versions
from shoal.errors import ParameterError
from shoal.job import Job
from shoal.kernels.parallel_calls import column_by_column
from shoal.measures.recount import Verdict
from shoal.output.report.associations import correlations
from shoal.output.report.binning import round_step
from shoal.output.report.distributions import distribution
from shoal.output.report.sentences import (
    explanation,
    headline,
    kind_in_words,
    price_of_link,
    series_in_sentences,
    treatment,
    what_was_done,
)

if TYPE_CHECKING:
    from shoal.output.release import Release

Form = Literal["internal", "public"]
"""Internal: for those who hold the original. Public: for everybody."""

MOST_SIZES = 24
"""Approximate number of bars in the picture of group sizes."""


def gather(
    release: "Release",
    form: Form = "internal",
    *,
    bound: float | None = None,
    title: str | None = None,
    author: str | None = None,
    date: str | None = None,
    file: str | None = None,
    sha256: str | None = None,
) -> dict[str, Any]:
    """Collect the facts of a report.

    Parameters
    ----------
    release : Release
        The release to report on.
    form : {"internal", "public"}
        The internal form compares with the original and repeats the release; the public one may accompany it.
    bound : float, optional
        Lower bound of the information loss of any release, from 0 to 1; internal form only.
    title, author, date : str, optional
        Shown at the top. Without a date the report has none, so that the same release gives the same bytes.
    file, sha256 : str, optional
        Name and SHA-256 of the published file.

    Returns
    -------
    dict
        Plain values, ready for JSON: no infinities, no NaN.

    Raises
    ------
    ParameterError
        If there is no such form.

    Notes
    -----
    Takes O(n) time in records for each column, and O(m^2) for m numeric columns.
    """
    if form not in get_args(Form):
        raise ParameterError(f"A report has no form {form!r}. Forms: {', '.join(get_args(Form))}.")
    verdict = release.verdict
    facts: dict[str, Any] = {
        "report": "shoal",
        "form": form,
        "title": title,
        "author": author,
        "date": date,
        "file": file,
        "sha256": sha256,
        "headline": headline(verdict),
        "explanation": explanation(verdict),
        "verdict": verdict.to_dict(),
        "done": what_was_done(release.job, release.schema, verdict, release.records.source.n_left_out, release.linking),
        "columns": _columns(release, form),
        "codebook": list(release.codebook),
        "class_sizes": class_sizes(verdict),
        "distributions": _distributions(release, form),
        "job": job_text(release.job, form),
        "versions": _versions(),
    }
    if form == "internal" and "linking" in release.measures:
        without = release.measures["linking"]["il_without_link"]
        facts["done"].append(price_of_link(release.measures["loss"]["il"], without))
    if form == "internal":
        facts |= {
            "correlations": correlations(release.schema, release.original, release.plain_columns, _least(verdict)),
            "risk": None,
            "utility": None,
            "attacks": [],
            "quality": None,
            **release.measures,
            "bound": bound,
            "warnings": list(release.warnings),
            "series": _series(release),
        }
    return {name: _plain(value) for name, value in facts.items()}


def _series(release: "Release") -> dict[str, Any] | None:
    """Return what there is to say of a release as part of a series, with its loss beside that without history."""
    if release.series is None:
        return None
    fresh = release.measured.loss_without_history if release.series.plan.earlier else None
    found = {**release.series.to_dict(), "il": release.loss.il, "il_without_history": fresh}
    return {**found, "told": series_in_sentences(found)}


def _least(verdict: Verdict) -> int:
    """Return the minimum number of records of a group in a picture: the k asked for, or else the k found."""
    return max(verdict.k or verdict.smallest, 2)


def _columns(release: "Release", form: Form) -> list[dict[str, str | None]]:
    labels = {entry["name"]: entry["label"] for entry in release.codebook}
    read = {receipt.name: receipt.line if form == "internal" else receipt.public for receipt in release.receipts}
    return [
        {
            "name": column.name,
            "label": labels.get(column.name),
            "role": column.role.value,
            "kind": kind_in_words(column.kind),
            "read": read.get(column.name),
            "treatment": treatment(column, bool(release.job.rho)),
        }
        for column in release.schema.columns
    ]


def _distributions(release: "Release", form: Form) -> list[dict[str, Any]]:
    """Return the distribution of each published column."""
    columns = [column for column in release.schema.published if column.role is not Role.LINK]
    found = column_by_column(lambda column: distribution_of(release, column, form), columns, release.verdict.n_records)
    return list(found)


def distribution_of(release: "Release", column: Column, form: Form) -> dict[str, Any]:
    """Return the distribution of a column; also before, where it was replaced and the form allows it.

    Intervals and periods count at their middle. Sets and ancestors are bars of their own, and have no before.
    """
    listed = column.form in ("set", "ancestor")
    compared = form == "internal" and column.role is Role.QUASI and not listed
    return distribution(
        replace(column, kind=Kind.NOMINAL) if listed else column,
        release.original[column.name] if compared else None,
        (release.columns if listed else release.plain_columns)[column.name],
        _least(release.verdict),
    )


def class_sizes(verdict: Verdict) -> list[dict[str, int | bool]]:
    """Count the groups by size; neighbouring sizes share a bar where there are many.

    Examples
    --------
    >>> class_sizes(Verdict(3, 10, 3, 3, {3: 2, 4: 1}, 0, ("age",)))[0]
    {'from': 3, 'to': 3, 'classes': 2, 'records': 6, 'below_k': False}
    """
    sizes = np.array(list(verdict.sizes), dtype=np.int64)
    numbers = np.array(list(verdict.sizes.values()), dtype=np.int64)
    k = verdict.k or int(sizes.min())
    # The width of the bars ignores the largest few sizes, which share the last bar. Sizes up to 2k - 1 are usual.
    usual = max(sizes[np.searchsorted(np.cumsum(numbers), 0.98 * numbers.sum())], min(sizes.max(), 2 * k - 1))
    step = int(round_step((usual - sizes.min() + 1) / MOST_SIZES, whole=True))
    # Counted from k, so that no bar stands for sizes on both sides of it.
    bars = np.minimum(sizes - k, usual - k) // step
    return [
        {
            "from": max(k + bar * step, 1),
            "to": k + (bar + 1) * step - 1 if bar < bars.max() else max(int(sizes.max()), k + bar * step),
            "classes": int(numbers[bars == bar].sum()),
            "records": int((numbers * sizes)[bars == bar].sum()),
            "below_k": bar < 0,
        }
        for bar in range(int(bars.min()), int(bars.max()) + 1)
    ]


def job_text(job: Job, form: Form) -> str:
    """Return the job as TOML: all of it, or what may be published, without seed and file paths."""
    if form == "internal":
        return job.to_toml()
    return job.for_public().to_toml(with_seed=False)


def _versions() -> dict[str, str]:
    return {**versions("numpy", "pyarrow"), "python": platform.python_version()}


def _plain(value: Any) -> Any:
    """Return values that JSON can hold: keys as text, NumPy numbers as Python numbers, None for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
