"""Risks: the numbers of `Risk` as rows with a plain name, before and after where both are known."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.output.report.formatting import number, percent, shortened

_KNOWN = {
    ("classes", "prosecutor_max"): (
        "Somebody known to be in the data",
        "largest chance that one guess finds the right record (prosecutor)",
    ),
    ("classes", "journalist_max"): (
        "Somebody who may be in the data",
        "largest chance that one guess finds the right record (journalist)",
    ),
    ("classes", "marketer"): ("Everybody at once", "share of right guesses when every record is guessed (marketer)"),
    ("linkage", "linked"): ("Known values, nearest record", "originals whose nearest published record is their own"),
    ("linkage", "dld"): (
        "Published record, nearest original",
        "published records whose nearest original is their own (distance-linked disclosure)",
    ),
    ("linkage", "dld_within_2"): (
        "The same, two tries",
        "published records whose own original is one of the two nearest",
    ),
    ("matching", "linked"): ("All matched at once", "share of right matches when blocks are matched one to one"),
    ("uniqueness", "population"): (
        "Unique in the population",
        "estimated share of original records, unique also there",
    ),
}
_FURTHER: dict[tuple[str, ...], str] = {
    ("linkage", "median_rank"): "Median rank of the own published record among the nearest",
    ("linkage", "n_ranked"): "Records whose rank was measured",
    ("classes", "prosecutor_mean"): "Average chance to find somebody known to be in the data",
    ("classes", "prosecutor_above"): "Records with a chance above the threshold, known to be in the data",
    ("classes", "journalist_mean"): "Average chance to find somebody who may be in the data",
    ("classes", "journalist_above"): "Records with a chance above the threshold, who may be in the data",
    ("classes", "n_highest"): "Records with the largest chance",
    ("classes", "threshold"): "Threshold of the chance to be found",
    ("classes", "population"): "Source of the population counts",
    ("matching", "n_tried"): "Records that were matched",
    ("matching", "n_blocks"): "Blocks that were matched",
}
_NOT_SHARES = {"n_ranked", "median_rank", "n_highest", "n_tried", "n_blocks", "threshold"}


@dataclass(frozen=True)
class RiskRow:
    """One measure of risk; a side that is not known is None."""

    name: str
    meaning: str
    before: float | None
    after: float | None
    is_share: bool = True

    def text(self, value: float | None) -> str:
        """Return one side as text."""
        if value is None:
            return ""
        return percent(value) if self.is_share else number(value)


def risk_rows(risk: Mapping[str, Any], verdict: Mapping[str, Any]) -> list[RiskRow]:
    """Return the risks that the page shows first: those with an explanation.

    Parameters
    ----------
    risk : mapping
        As `Risk.to_dict` returns it; or two of them, as ``before`` and ``after``.
    verdict : mapping
        As `Verdict.to_dict` returns it.

    Examples
    --------
    >>> rows = risk_rows({"uniqueness": {"sample": 0.8}}, {"n_records": 10, "sizes": {"5": 2}})
    >>> rows[0].name, rows[0].before, rows[0].after
    ('Unique records', 0.8, 0.0)
    """
    before, after = _sides(risk)
    rows = []
    alone = (risk.get("uniqueness") or {}).get("sample")
    if alone is not None:
        now = verdict["sizes"].get("1", 0) / verdict["n_records"]
        meaning = "records that agree with no other in what somebody could know"
        rows.append(RiskRow("Unique records", meaning, alone, now))
    for (group, key), (name, meaning) in _KNOWN.items():
        earlier, later = ((side.get(group) or {}).get(key) for side in (before, after))
        if key == "prosecutor_max" and earlier is None and alone:
            earlier = 1.0  # a record alone in its class is unique
        if group == "uniqueness":
            earlier, later = later, None
        if earlier is not None or later is not None:
            rows.append(RiskRow(name, meaning, earlier, later))
    return rows


def interval_rows(risk: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """Return for each column how often its original value is close to the published one, by rank and by deviation."""
    intervals = _sides(risk)[1].get("intervals") or {}
    return [(name, found["by_rank"], found["by_sd"]) for name, found in intervals.items()]


def further_rows(risk: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return every other number, named in words where there are some, else by its key in the JSON form."""
    shown = {*_KNOWN, ("uniqueness", "sample")}
    return [
        (_FURTHER.get(keys) or _in_words(keys), _told(keys[-1], value))
        for keys, value in _leaves(_sides(risk)[1])
        if keys[:2] not in shown and keys[0] != "intervals"
    ]


def _in_words(keys: tuple[str, ...]) -> str:
    """Return a name for a number without an explanation."""
    if keys[:2] == ("linkage", "within") and len(keys) == 3 and keys[2].isdigit():
        return f"Originals whose own published record is among the {keys[2]} nearest"
    return ", ".join(shortened(key, 40).replace("_", " ") for key in keys)


def _sides(risk: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return risk.get("before") or {}, risk.get("after") or risk


def _leaves(values: Mapping[str, Any], at: tuple[str, ...] = ()) -> Iterable[tuple[tuple[str, ...], Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*at, str(key)))
        elif value is not None:
            yield (*at, str(key)), value


def _told(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shortened(str(value), 60)
    return percent(value) if 0 <= value <= 1 and key not in _NOT_SHARES else number(value)


def moved(utility: Mapping[str, Any], name: str) -> str:
    """Describe the change of a column that `shoal.measures.utility` measured, if it did.

    Examples
    --------
    >>> moved({"numeric": {"columns": {"age": {"mean": 0.0, "variance": -0.05}}}}, "age")
    'mean kept, variance -5.0%'
    """
    numeric = ((utility.get("numeric") or {}).get("columns") or {}).get(name)
    if numeric is not None:
        mean, variance = numeric["mean"], numeric["variance"]
        if mean is None or variance is None:
            return "was constant"
        removed = numeric.get("removed") or 0.0
        if removed == 1:
            return "nothing is left"
        told = f"mean {mean:+.2f} sd" if abs(mean) >= 0.005 else "mean kept"
        gone = f", {percent(removed)} of the values gone" if removed else ""
        return f"{told}, variance {'+' if variance > 0 else ''}{percent(variance)}{gone}"
    nominal = (utility.get("nominal") or {}).get(name)
    return f"{percent(nominal['total_variation'])} of the shares" if nominal is not None else ""
