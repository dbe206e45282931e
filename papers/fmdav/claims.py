"""The paper's claims about its five strategies and sorting, checked here."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from papers.claims import Claim, judged, untested
from papers.fmdav.ablation import PAPERS_BEST, STRATEGIES, TOGETHER, TRADITIONAL, Result
from papers.fmdav.sorting import CELL_SIZES, Timing

ANOTHER = "NumPy in place of Matlab, other data and another machine"
TIES = "columns with few distinct values have many ties, and rounding settles them otherwise"
PAPERS_SIZES = (10_000, 70_000, 150_000)


def claims(content: Mapping[str, Any]) -> list[Claim]:
    """Check the claims of section 4.3 on a result file."""
    results = content["ablation"]
    return [
        *(_factor(results, title) for title in (*STRATEGIES.values(), TOGETHER)),
        _uniform(results),
        _best_two(results),
        *_unchanged(results),
        *_sorting(content["sorting"]),
        *(_not_run(results, n) for n in PAPERS_SIZES),
    ]


def _of(results: Sequence[Result], title: str) -> list[Result]:
    return [result for result in results if result.variant == title]


def _factor(results: Sequence[Result], title: str) -> Claim:
    """Compare the largest speed-up: confirmed from four fifths of the paper's."""
    said, where = PAPERS_BEST[title], "figure 11" if title == TOGETHER else "figures 6 to 8"
    mine = _of(results, title)
    best = max(mine, key=lambda result: result.speedup)
    text = f"{min(r.speedup for r in mine):.2f} to {best.speedup:.2f} times, most on {best.data} at n={best.n:,}"
    holds = best.speedup >= 0.8 * said
    says = f"{title}: up to {said:g} times as fast as traditional MDAV"
    return judged(where, says, text, holds, f"four fifths would be a yes; {ANOTHER}")


def _uniform(results: Sequence[Result]) -> Claim:
    factors = [result.speedup for result in _of(results, TOGETHER)]
    spread = max(factors) / min(factors)
    says = "the overall effect is uniform for the data sets"
    text = f"{min(factors):.2f} to {max(factors):.2f} times, over all data and sizes"
    why = "within a half of each other would be a yes; fixed costs count in small samples"
    return judged("section 5", says, text, spread < 1.5, why)


def _best_two(results: Sequence[Result]) -> Claim:
    best = {title: max(result.speedup for result in _of(results, title)) for title in STRATEGIES.values()}
    order = sorted(best, key=lambda title: -best[title])
    says = "algebraic distance and partial selection bring most"
    return Claim(
        "section 4.3.1",
        says,
        f"in this order: {', '.join(order)}",
        set(order[:2]) == {"algebraic distance", "partial selection"},
    )


def _unchanged(results: Sequence[Result]) -> list[Claim]:
    found = []
    exact = [STRATEGIES[name] for name in ("algebraic", "reuse", "selection", "subtraction")]
    for titles, where, says in (
        (exact, "section 4.3", "four of the strategies change no cell"),
        ([STRATEGIES["single"]], "section 4.3.5", "single precision changes the cells slightly"),
        ([TOGETHER], "section 4.3.7", "all five together leave the cells as they are"),
    ):
        mine = [result for title in titles for result in _of(results, title)]
        lowest = min(mine, key=lambda result: result.agreement)
        text = (
            f"{lowest.agreement:.1%} or more of the records in the same cell; fewest on {lowest.data}, {lowest.variant}"
        )
        holds = lowest.agreement > 0.9 if "slightly" in says else lowest.agreement == 1.0
        found.append(judged(where, says, text, holds, TIES))
    base = {(result.data, result.n): result.il for result in _of(results, TRADITIONAL)}
    apart = max(abs(result.il / base[result.data, result.n] - 1) for result in results)
    says = "the distortion remains unchanged"
    return [*found, Claim("section 4.3.5", says, f"within {apart:.2%} of that of traditional MDAV", apart < 0.005)]


def _sorting(timings: Sequence[Timing]) -> list[Claim]:
    longest = max((timing.n for timing in timings), default=0)
    if longest < 100_000:
        return [untested("figures 9 and 10", "selecting is linear in n whatever k, sorting takes n log n")]
    per_number = {
        name: {t.n: t.seconds / t.n for t in timings if t.method == name and t.n >= 10_000}
        for name in ("sort", "stable sort", *(f"select k={k}" for k in CELL_SIZES))
    }
    growth = {name: max(line.values()) / min(line.values()) for name, line in per_number.items()}
    at_end = [per_number[f"select k={k}"][longest] for k in CELL_SIZES]
    gain = per_number["sort"][longest] / float(np.mean(at_end))
    selecting = max(growth[f"select k={k}"] for k in CELL_SIZES)
    flat = selecting < 2.5
    return [
        judged(
            "figures 9 and 10",
            "the time of a selection is linear in n, whatever k",
            f"time per number varies by {selecting:.1f} times from 10,000 to {longest:,}",
            flat,
            "long lists outgrow the processor's caches",
        ),
        Claim(
            "figures 9 and 10",
            "the time per number of a full sort grows with n, and is higher",
            f"{growth['sort']:.1f} times from 10,000 to {longest:,}; {gain:.1f} times a selection's at the end",
            gain > 1 and growth["sort"] > 1.1,
        ),
    ]


def _not_run(results: Sequence[Result], n: int) -> Claim:
    """List the data sets measured at a size of the paper, and the number of samples."""
    mine = {(result.data, result.n_samples) for result in results if result.n == n}
    says = f"figures for n = {n:,}, means of three samples"
    if not mine:
        return untested("figures 6 to 8, 11", says, "not run at this size: hours")
    text = ", ".join(f"{data}: {samples} sample{'s' * (samples > 1)}" for data, samples in sorted(mine))
    full = len(mine) >= 3 and all(samples >= 3 for _, samples in mine)
    return judged("figures 6 to 8, 11", says, f"run on {text}", True if full else None, "not run in full")
