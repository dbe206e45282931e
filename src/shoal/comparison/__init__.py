"""Comparison: risk and loss of several k and methods side by side, and which choices are undominated.

A choice is dominated if another one, or a mixture of two others, has neither more loss nor more risk, and less of one
of them. A mixture stands for the k between theirs.
"""

import json
import os
import secrets
import warnings as python_warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from shoal.arrays import as_k
from shoal.errors import FileError, GuaranteeError, ParameterError, ShoalError, ShoalWarning
from shoal.files import replacing, write_text
from shoal.measures.table_risk import table_linkage
from shoal.methods import ALGORITHMS
from shoal.output.release import Release
from shoal.output.report.formatting import lost, percent
from shoal.output.report.plot_files import ENDINGS, plot_format, write_plot
from shoal.release import anonymize
from shoal.sources import read
from shoal.sources.clean import printable
from shoal.sources.reading import as_reading
from shoal.typing import Method, Progress, Seed
from shoal.views import Frame, as_frame, as_html

RISK = "share of the published records whose own original is the nearest of all (distance-linked disclosure)"


@dataclass(frozen=True)
class Choice:
    """One k with one method, and one rho where random aggregation is asked for.

    Attributes
    ----------
    method : str
    k : int
    loss : float
        Information loss, from 0 to 1.
    risk : float
        Distance-linked disclosure: share of the published records whose own original is the nearest of all.
    marketer : float
        Share of the records that somebody who knows all quasi-identifiers would find on average: classes per record.
    n_classes, smallest : int
        Number of classes of the release, and the number of records in the smallest.
    rho : float
        Strength of random aggregation; 0 is the mean of the cell.
    k_anonymous : bool
        Whether the release is k-anonymous; never true with random aggregation, whatever its k.
    undominated : bool
        Whether no other choice, and no mixture of two others, is better in one of loss and risk without being worse in
        the other.
    ncp : float or None
        Certainty penalty, from 0 to 1, where cells are made for it or intervals, sets or ancestors are published.
    """

    method: str
    k: int
    loss: float
    risk: float
    marketer: float
    n_classes: int
    smallest: int
    rho: float = 0.0
    k_anonymous: bool = True
    undominated: bool = False
    ncp: float | None = None

    @property
    def words(self) -> list[str]:
        """The remark beside the numbers."""
        return ["undominated"] * self.undominated + ["not k-anonymous"] * (not self.k_anonymous)

    @property
    def name(self) -> str:
        """The method, with rho where there is one."""
        return f"{self.method}, rho {self.rho:g}" if self.rho else self.method


@dataclass(frozen=True)
class Skipped:
    """A choice that was left out, and why; `k` is None if the method was left out for every k."""

    method: str
    k: int | None
    reason: str


@dataclass(frozen=True)
class Comparison:
    """Loss and risk of several choices.

    Attributes
    ----------
    n_records : int
    choices : tuple of Choice
        In the order of k and then of methods.
    skipped : tuple of Skipped
        Choices that were asked for and not made, with the reason.
    warnings : tuple of str
        What to check before publishing any of them; one that is about some choices begins with their names.
    seed : int
        Repeats every choice.
    models : tuple of str
        The privacy models asked for, in sentences: every choice satisfies them, or only aims at them where
        nothing is guaranteed.
    """

    n_records: int
    choices: tuple[Choice, ...]
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...]
    seed: int
    models: tuple[str, ...] = ()

    @property
    def recommended(self) -> Choice | None:
        """The choice that balances loss and risk best: the undominated one nearest to the best of both."""
        return _recommended(self.choices)

    @property
    def undominated(self) -> tuple[Choice, ...]:
        """The undominated choices, the lowest risk first."""
        return tuple(sorted((c for c in self.choices if c.undominated), key=lambda choice: (choice.risk, choice.loss)))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "n_records": self.n_records,
            "risk": RISK,
            "seed": self.seed,
            "models": list(self.models),
            "choices": [vars(choice) for choice in self.choices],
            "recommended": vars(self.recommended) if self.recommended else None,
            "skipped": [vars(skipped) for skipped in self.skipped],
            "warnings": list(self.warnings),
        }

    def to_frame(self) -> Frame:
        """Return a row for each choice."""
        return as_frame({**vars(choice), "recommended": choice == self.recommended} for choice in self.choices)

    def _repr_html_(self) -> str:
        """Return the choices as a table for notebooks."""
        certain = any(choice.ncp is not None for choice in self.choices)
        heads = ("k", "method", "loss", *(["NCP"] if certain else []), "risk", "classes", "")
        rows = [
            (
                str(c.k),
                c.name,
                lost(c.loss),
                *([percent(c.ncp)] if certain else []),
                percent(c.risk),
                f"{c.n_classes:,}",
                ", ".join(["recommended"] * (c == self.recommended) + c.words),
            )
            for c in self.choices
        ]
        left_out = [
            f"Left out: {each.method}{'' if each.k is None else f', k = {each.k}'}: {each.reason}"
            for each in self.skipped
        ]
        every = [f"Every choice: {text}" for text in self.models]
        return as_html(f"{self.n_records:,} records. Risk: {RISK}.", heads, rows, [*left_out, *every, *self.warnings])

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"

    def to_svg(self) -> str:
        """Return the risk-utility map as a self-contained picture."""
        from shoal.comparison.picture import svg

        return svg(self)

    def to_html(self) -> str:
        """Return the map and the table as a self-contained page."""
        from shoal.comparison.page import html

        return html(self)

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write everything to an .html or .json file, or the map as `plot` does, atomically and for its owner only."""
        ending = map_format(path)
        if ending in ENDINGS:
            self.plot(path, force=force)
            return
        form = {".html": self.to_html, ".json": self.to_json}[ending]
        with replacing(path, force, private=True) as temporary:
            write_text(temporary, form())

    def plot(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Draw the map of risk and loss into an .svg file or, with matplotlib (the extra `plots`), a .png or .pdf."""
        plot_format(path)
        write_plot(self.to_svg(), path, force)

    def __str__(self) -> str:
        wide = max(12, *(len(c.name) + 2 for c in self.choices))
        certain = any(choice.ncp is not None for choice in self.choices)
        lines = [
            f"{'k':>5}  {'method':<{wide}}{'loss %':>9}" + f"{'NCP %':>9}" * certain + f"{'risk %':>9}{'classes':>10}"
        ]
        for c in self.choices:
            words = ["recommended" if word == "undominated" and c == self.recommended else word for word in c.words]
            mark = "".join(f"  {word}" for word in words)
            penalty = "" if c.ncp is None else f"{100 * c.ncp:>9.4f}"
            lines.append(
                f"{c.k:>5}  {c.name:<{wide}}{100 * c.loss:>9.4f}{penalty}{100 * c.risk:>9.4f}{c.n_classes:>10,}{mark}"
            )
        for skipped in self.skipped:
            which = skipped.method if skipped.k is None else f"{skipped.method}, k = {skipped.k}"
            lines.append(f"Left out: {which}: {skipped.reason}")
        lines += [f"Every choice: {printable(text)}" for text in self.models]
        if self.recommended is not None:
            lines.append(
                f"Recommended: {self.recommended.method} with k = {self.recommended.k}, nearest to the least loss and "
                "the least risk among the undominated choices. Requirements of law or contract take precedence."
            )
        return "\n".join([*lines, f"Risk: {RISK}."])


def map_format(path: str | os.PathLike[str]) -> str:
    """Return the extension of the file of a map; raise if it is not one of those that are written."""
    ending, known = Path(path).suffix.lower(), (*ENDINGS, ".html", ".json")
    if ending not in known:
        raise FileError(f"{Path(path).name!r} does not say its format. Choose a name that ends in {', '.join(known)}.")
    return ending


def compare(
    table: Any,
    *,
    k: Sequence[int] | int = (3, 5, 10, 25),
    methods: Sequence[Method] | Method | Literal["all"] = "all",
    rho: Sequence[float] | float | None = None,
    seed: Seed = None,
    reading: dict[str, Any] | None = None,
    progress: Progress | None = None,
    on_choice: Callable[[Choice], None] | None = None,
    **settings: Any,
) -> Comparison:
    """Make a release for each k and method, and measure its loss and risk.

    Parameters
    ----------
    table : path or frame
        Any table that `shoal.sources.read` takes.
    k : sequence of int
        Cell sizes to try.
    methods : sequence of str or "all"
        Methods to try. "all" leaves out those that are slow for this number of records or cannot be used here,
        and reports them; a method that is named is always tried.
    rho : float or sequence of float, optional
        Strength of random aggregation, one release for each: 0 is microaggregation, above 0 a release is **not**
        k-anonymous, and its line says so (section 4.5 of the paper tunes rho in this way: ``docs/random.md``).
    seed : int, optional
        Repeats every choice; a random one by default.
    reading : dict, optional
        How to read a file; see `shoal.sources.read`.
    progress : callable, optional
        Called at intervals as ``progress(done, total)``.
    on_choice : callable, optional
        Called with each choice as soon as it is made; it is not known yet whether another one dominates it.
    **settings
        Roles and all other arguments of `shoal.anonymize`.

    Returns
    -------
    Comparison
        Prints as a table; `write` gives the picture.

    Raises
    ------
    ShoalError
        As `shoal.anonymize`, if none of the choices can be made or one that was named cannot.

    Notes
    -----
    Takes the time of all releases together; only one is in memory at a time.

    Examples
    --------
    >>> from shoal import datasets
    >>> found = compare(datasets.path("census"), k=[5, 10], methods=["mdav"],
    ...                 quasi_identifiers=datasets.census().columns)
    >>> [(choice.k, round(choice.loss, 6)) for choice in found.choices]
    [(5, 0.090884), (10, 0.141559)]
    """
    sizes, names = _as_sizes(k), _as_methods(methods)
    source = read(table, **as_reading(reading)).in_memory()
    wanted, skipped = _affordable(names, source.n_records) if methods == "all" else (names, [])
    seed = secrets.randbits(63) if seed is None else seed
    rhos = [rho] if rho is None or isinstance(rho, int | float | str) else list(rho)
    plan = [(size, method, each) for size in sizes for method in wanted for each in rhos]
    choices: list[Choice] = []
    noted: dict[str, list[Choice]] = {}
    models: tuple[str, ...] = ()
    for place, (size, method, each) in enumerate(plan):
        told = _part(progress, place, len(plan))
        try:
            release = _quietly(source, k=size, method=method, rho=each, seed=seed, progress=told, **settings)
        except (GuaranteeError, ParameterError) as error:
            if not _may_skip(error, methods):
                raise
            skipped.append(Skipped(method, size, str(error)))
            continue
        choices.append(_choice(release))
        if on_choice is not None:
            on_choice(choices[-1])
        for warning in release.warnings:
            noted.setdefault(warning, []).append(choices[-1])
        models = tuple(model.promise for model in release.job.models)
    if not choices:
        raise GuaranteeError(f"None of the {len(plan)} choices can be made. {skipped[-1].reason}")
    warnings = (*source.receipt.notes, *(_of_choices(text, about, choices) for text, about in noted.items()))
    warnings = tuple(dict.fromkeys(warnings))
    return Comparison(source.n_records, tuple(_marked(choices)), tuple(skipped), warnings, seed, models)


def _of_choices(warning: str, about: Sequence[Choice], choices: Sequence[Choice]) -> str:
    """Return a warning with the choices that it is about, unless it is about all of them."""
    if len(about) == len(choices):
        return warning
    methods: dict[int, list[str]] = {}
    for choice in about:
        methods.setdefault(choice.k, []).append(choice.name)
    named_choices = [f"k = {k} with {', '.join(names)}" for k, names in methods.items()]
    return f"{'; '.join(named_choices)}: {warning}"


def _may_skip(error: ShoalError, methods: Sequence[str] | str) -> bool:
    """Return whether an error is a result (a k that the table cannot meet), not a mistake (an unknown option)."""
    return isinstance(error, GuaranteeError) or methods == "all"


def _as_sizes(k: Sequence[int] | int) -> list[int]:
    sizes = list(k) if isinstance(k, Iterable) and not isinstance(k, str) else [as_k(k)]
    if not sizes:
        raise ParameterError("No k is given. Give one or several: k=[3, 5, 10].")
    return sorted(dict.fromkeys(sizes))


def _as_methods(methods: Sequence[str] | str) -> list[str]:
    if methods == "all":
        return list(ALGORITHMS)
    if not isinstance(methods, str | Iterable):
        raise ParameterError(
            f"methods is of type {type(methods).__name__}, and should be 'all' or a list of methods: "
            f"{', '.join(ALGORITHMS)}."
        )
    names = list(dict.fromkeys([methods] if isinstance(methods, str) else methods))
    unknown = [name for name in names if name not in ALGORITHMS]
    if unknown or not names:
        raise ParameterError(
            f"Unknown method {', '.join(map(repr, unknown))}. Methods: all, {', '.join(ALGORITHMS)}."
            if unknown
            else "No method is given. Name some, or say 'all'."
        )
    return names


def _affordable(names: Iterable[str], n_records: int) -> tuple[list[str], list[Skipped]]:
    """Split the methods into those that are fast enough for this number of records, and the others."""
    slow = {name: limit for name in names if (limit := ALGORITHMS[name].largest) and n_records > limit}
    reason = "slow for {:,} records (more than {:,}); name it in methods to try it anyway"
    skipped = [Skipped(name, None, reason.format(n_records, limit)) for name, limit in slow.items()]
    return [name for name in names if name not in slow], skipped


def _quietly(source: Any, **settings: Any) -> Release:
    """Make a release; the warnings of all releases are collected together."""
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore", ShoalWarning)
        release = anonymize(source, **settings)
    assert isinstance(release, Release)
    return release


def _part(progress: Progress | None, place: int, n_parts: int) -> Progress | None:
    """Report the progress of one release as a part of all."""
    return progress and (lambda done, total: progress(place * total + done, n_parts * total))


def _choice(release: Release) -> Choice:
    verdict = release.verdict
    return Choice(
        method=release.job.method,
        k=release.job.k,
        loss=release.loss.il,
        risk=_linked(release),
        marketer=verdict.n_classes / verdict.n_records,
        n_classes=verdict.n_classes,
        smallest=verdict.smallest,
        rho=release.job.rho or 0.0,
        k_anonymous=verdict.withdrawn is None,
        ncp=None if release.certainty is None else release.certainty.ncp,
    )


def _linked(made: Release) -> float:
    """Link what is published with the originals by distance; the other risks of a release are not needed here."""
    alike = None if made.verdict.withdrawn else made.labels  # records of a cell differ after random aggregation
    return table_linkage(made.original, made.replaced, made.schema, made.space, made.X, alike).dld


def _marked(choices: Sequence[Choice]) -> Iterator[Choice]:
    """Mark the choices that no other one dominates."""
    front = _front([(choice.loss, choice.risk) for choice in choices])
    for one in choices:
        yield replace(one, undominated=(one.loss, one.risk) in front)


def _front(points: Iterable[tuple[float, float]]) -> set[tuple[float, float]]:
    """Return the points that no other point and no mixture of two others dominates: the lower convex hull."""
    front: list[tuple[float, float]] = []
    for x, y in sorted(set(points)):
        if front and y >= front[-1][1]:
            continue
        while len(front) > 1 and _is_above(front[-1], front[-2], (x, y)):
            front.pop()
        front.append((x, y))
    return set(front)


def _is_above(point: tuple[float, float], left: tuple[float, float], right: tuple[float, float]) -> bool:
    """Return whether a point lies above the line between two others, one on either side of it."""
    run, rise = right[0] - left[0], right[1] - left[1]
    return (point[1] - left[1]) * run > rise * (point[0] - left[0])


def _recommended(choices: Sequence[Choice]) -> Choice | None:
    """Return the choice nearest to the least loss and risk, each scaled to the range of the undominated choices."""
    kept = [choice for choice in choices if choice.undominated and choice.k_anonymous]
    if len(kept) < 2:
        return kept[0] if kept else None

    def far(choice: Choice) -> float:
        parts = (_within([other.loss for other in kept], choice.loss), _within([c.risk for c in kept], choice.risk))
        return sum(part * part for part in parts)

    return min(kept, key=lambda choice: (far(choice), choice.k))


def _within(values: Sequence[float], value: float) -> float:
    """Return the position of a value between the smallest (0) and the largest (1) of some values."""
    low, high = min(values), max(values)
    return (value - low) / (high - low) if high > low else 0.0
