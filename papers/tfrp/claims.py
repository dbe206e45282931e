"""The paper's claims about its table and figures, checked here.

Losses are compared directly. Times are those of plain twins of all methods, since the kernels use other algorithms;
where the plain twin takes too long, the claim is not testable in the run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from papers.claims import NOT_MEASURED, Claim, judged, untested
from papers.tfrp.images import NAMES
from papers.tfrp.methods import METHODS, SCATTERED, Result
from papers.tfrp.printed import IN_TEXT, SIZES, table_2

TWO_SETS = "the paper's figure 7 compares TFRP on ten columns with the others on eleven (docs/tfrp.md)"
ANOTHER_PICTURE = "another picture: the paper's are not free to use"
TOO_LONG = "the plain twin of Diameter was not run at this size: it takes hours"


class Grid:
    """The results, accessed by data set, k and method."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._results = {(result.data, result.k, result.method): result for result in results}

    def sizes(self, data: str) -> list[int]:
        """Return the k measured on a data set."""
        return sorted({k for name, k, _ in self._results if name == data})

    def il(self, data: str, k: int, method: str) -> float:
        """Return the information loss in percent."""
        return self._results[data, k, method].il

    def plain(self, data: str, k: int, method: str) -> float | None:
        """Return the time of the plain twin, None where it was not run."""
        found = self._results.get((data, k, method))
        return found.plain_seconds if found else None

    def seconds(self, data: str, k: int, method: str) -> float:
        """Return the time of the kernels."""
        return self._results[data, k, method].seconds

    def least(self, data: str, k: int) -> str:
        """Name the method that loses least."""
        return min(METHODS, key=lambda method: self.il(data, k, method))

    def most(self, data: str, k: int) -> str:
        """Name the method that loses most."""
        return max(METHODS, key=lambda method: self.il(data, k, method))


Extreme = Callable[[Grid, str, int], str]
"""Names the method that is the extreme one on a set at a k."""


def claims(content: Mapping[str, Any]) -> list[Claim]:
    """Check every measurable claim of sections 2.3 and 4 on a result file."""
    results = content["results"]
    grid = Grid(results)
    return [
        *_trees(content["trees"]),
        _whole_table(results),
        *_in_text(results),
        *_losses(grid, results),
        *_pictures(grid),
        *_times(grid, results),
        *growth(content["scalability"]),
    ]


def _whole_table(results: Sequence[Result]) -> Claim:
    ours = {(result.data, result.k, result.method): result.il for result in results}
    entries = [
        (printed, ours.get((data, k, "TFRP_I" if phases == 1 else "TFRP"))) for data, k, phases, printed in table_2()
    ]
    there = [(printed, il) for printed, il in entries if il is not None]
    same = sum(round(il, 3) == printed for printed, il in there)
    says = "information losses of both phases on Tarragona, Census and EIA"
    holds = same == len(entries) if len(there) == len(entries) else None
    return judged("table 2", says, f"{same} of {len(entries)} to the printed digits", holds, NOT_MEASURED)


def _in_text(results: Sequence[Result]) -> list[Claim]:
    found = []
    for data, k in IN_TEXT:
        mine = [
            (method, printed, ours)
            for name, size, method, printed, ours in in_text(results)
            if (name, size) == (data, k)
        ]
        says = f"{data}, k={k}: " + ", ".join(f"{method} {printed:.2f}" for method, printed in IN_TEXT[data, k].items())
        if not mine:
            found.append(untested("section 4", says))
            continue
        off = [(method, ours - printed) for method, printed, ours in mine if abs(ours - printed) > 0.05]
        text = ", ".join(f"{method} {ours:.3f}" for method, _, ours in mine)
        why = f"{', '.join(f'{method} by {by:+.2f}' for method, by in off)}; {TWO_SETS}" if off else ""
        found.append(Claim("section 4", says, text, not off, why))
    return found


LARGE = [k for k in SIZES if k >= 10]
EXTREMES: tuple[tuple[str, str, str, str, Extreme, Sequence[int], str], ...] = (
    ("figure 5", "Tarragona: TFRP_I loses most for k < 5", "tarragona", "TFRP_I", Grid.most, (3, 4), ""),
    ("figure 5", "Tarragona: TFRP loses least except at k=3", "tarragona", "TFRP", Grid.least, SIZES[1:], ""),
    ("figure 6", "Census: TFRP loses least for k >= 10", "census", "TFRP", Grid.least, LARGE, ""),
    *(
        (
            "figure 7",
            f"{data}: TFRP loses least at k=5,7,9,20,35,40,45,50",
            *(data, "TFRP", Grid.least, (5, 7, 9, 20, 35, 40, 45, 50), TWO_SETS),
        )
        for data in ("eia-10", "eia-11")
    ),
    *(
        ("figure 7", f"{data}: TFRP_I loses most for k = 3 to 6", data, "TFRP_I", Grid.most, (3, 4, 5, 6), TWO_SETS)
        for data in ("eia-10", "eia-11")
    ),
)
"""Where a method loses most or least: the set, the method, the k that the paper names, and a reason for a no."""


def _losses(grid: Grid, results: Sequence[Result]) -> list[Claim]:
    """Compare figures 5 to 7 with ours."""
    extremes = [_at(grid, *said) for said in EXTREMES]
    both = [_less_than_both(grid, figure, data) for figure, data in (("figure 5", "tarragona"), ("figure 6", "census"))]
    return [_always_lower(grid, results), *extremes[:3], *both, *extremes[3:]]


def _at(
    grid: Grid,
    where: str,
    says: str,
    data: str,
    method: str,
    extreme: Extreme,
    said: Iterable[int],
    why: str = "",
) -> Claim:
    """Compare the k at which a method is the extreme one with those that the paper names."""
    sizes = grid.sizes(data)
    asked = [k for k in said if k in sizes]
    if not asked:
        return untested(where, says)
    where_ours = [k for k in sizes if extreme(grid, data, k) == method]
    holds = set(asked) <= set(where_ours)
    missing = [k for k in asked if k not in where_ours]
    others = ", ".join(f"k={k}: {extreme(grid, data, k)}" for k in missing)
    found = f"at k={','.join(map(str, where_ours))}" if where_ours else "nowhere"
    return judged(where, says, found, holds, "; ".join(part for part in (others, why) if part))


def _always_lower(grid: Grid, results: Sequence[Result]) -> Claim:
    pairs = [(data, k, base) for data, k in {(r.data, r.k) for r in results} for base in SCATTERED]
    lower = sum(grid.il(data, k, SCATTERED[base]) < grid.il(data, k, base) for data, k, base in pairs)
    says = "phase II always lowers the loss"
    return Claim("figures 5 to 9", says, f"in {lower} of {len(pairs)} cases", lower == len(pairs))


def _less_than_both(grid: Grid, figure: str, data: str) -> Claim:
    says = f"{data}: for k >= 10 TFRP_I loses less than Diameter and Centroid"
    sizes = [k for k in grid.sizes(data) if k >= 10]
    if not sizes:
        return untested(figure, says)
    less = [
        k for k in sizes if grid.il(data, k, "TFRP_I") < min(grid.il(data, k, "Diameter"), grid.il(data, k, "Centroid"))
    ]
    text = f"at {len(less)} of {len(sizes)} k"
    not_at = f"not at k={','.join(str(k) for k in sizes if k not in less)}"
    return judged(figure, says, text, less == sizes, not_at)


def _pictures(grid: Grid) -> list[Claim]:
    """Compare figures 8 and 9 with ours, which use two other pictures."""
    found = []
    for figure, name in zip((8, 9), NAMES, strict=True):
        dense, sparse = f"{name}-2x2", f"{name}-4x4"
        sizes = [k for k in grid.sizes(dense) if k >= 60], [k for k in grid.sizes(sparse) if k >= 20]
        similar = "" if figure == 8 else " (the paper: similar to figure 8)"
        said: tuple[tuple[str, str, str, str, Sequence[int]], ...] = (
            ("a", f"dense: TFRP loses least for k >= 60{similar}", dense, "TFRP", sizes[0]),
            ("a", f"dense: Centroid+ loses least at k=10{similar}", dense, "Centroid+", (10,)),
            ("b", f"sparse: TFRP loses least for k >= 20{similar}", sparse, "TFRP", sizes[1]),
        )
        found += [
            _at(grid, f"figure {figure}{part}", says, data, method, Grid.least, at, ANOTHER_PICTURE)
            for part, says, data, method, at in said
        ]
    worst = [k for k in grid.sizes(f"{NAMES[1]}-2x2") if grid.most(f"{NAMES[1]}-2x2", k) == "TFRP_I"]
    says = "dense: TFRP_I loses most in many cases"
    all_sizes = grid.sizes(f"{NAMES[1]}-2x2")
    if not all_sizes:
        return [*found, untested("figure 9a", says)]
    holds = 2 * len(worst) >= len(all_sizes)
    text = f"at {len(worst)} of {len(all_sizes)} k"
    return [*found, judged("figure 9a", says, text, holds, ANOTHER_PICTURE)]


def _times(grid: Grid, results: Sequence[Result]) -> list[Claim]:
    """Compare figures 10 to 12 with the times of the plain twins."""
    found = [_fastest(grid, results), _small_addition(grid, results)]
    for figure, name in zip((11, 12), NAMES, strict=True):
        sparse = f"{name}-4x4"
        for k, said in ((10, 3.52), (80, 12.84)):
            says = f"sparse: Centroid takes {said} times as long as TFRP at k={k}"
            says += "" if figure == 11 else " (said of figure 11b)"
            found.append(_ratio(grid, f"figure {figure}b", says, sparse, k, said))
        found += [_slowest(grid, f"figure {figure}", data) for data in (f"{name}-2x2", sparse)]
    return found


def _fastest(grid: Grid, results: Sequence[Result]) -> Claim:
    says = "TFRP_I is always the fastest, TFRP the second"
    cases = sorted({(r.data, r.k) for r in results if "x" not in r.data and r.plain_seconds is not None})
    cases = [case for case in cases if all(grid.plain(*case, method) is not None for method in METHODS)]
    if not cases:
        return untested("figure 10", says)
    orders = [sorted(METHODS, key=lambda method: grid.plain(*case, method) or 0.0) for case in cases]
    first = sum(order[0] == "TFRP_I" for order in orders)
    second = sum(order[:2] == ["TFRP_I", "TFRP"] for order in orders)
    text = f"plain twins: fastest in {first} of {len(cases)} cases, with TFRP second in {second}"
    why = "phase II in NumPy costs about as much as Centroid, whose steps are vectorised; in the paper's C++ it did not"
    holds = second == len(cases)
    return judged("figure 10", says, text, holds, why)


def _small_addition(grid: Grid, results: Sequence[Result]) -> Claim:
    says = "Diameter+ and Centroid+ are only slightly slower than Diameter and Centroid"
    cases = {(r.data, r.k) for r in results if r.plain_seconds is not None and r.method == "Diameter"}
    if not cases:
        return untested("figures 10 to 12", says)
    times = {
        base: [float(grid.plain(*case, plus) or 0) / float(grid.plain(*case, base) or 1) for case in cases]
        for base, plus in (("Diameter", "Diameter+"), ("Centroid", "Centroid+"))
    }
    text = ", ".join(f"{base}: {np.median(ratios):.2f} times in the median" for base, ratios in times.items())
    holds = all(float(np.median(ratios)) < 1.2 for ratios in times.values())
    why = "Centroid's own steps are quick in NumPy, so that phase II weighs more"
    return judged("figures 10 to 12", says, f"plain twins, {text}", holds, why)


def _ratio(grid: Grid, where: str, says: str, data: str, k: int, said: float) -> Claim:
    centroid, tfrp = grid.plain(data, k, "Centroid"), grid.plain(data, k, "TFRP")
    if centroid is None or tfrp is None:
        return untested(where, says)
    kernels = grid.seconds(data, k, "Centroid") / grid.seconds(data, k, "TFRP")
    ours = centroid / tfrp
    text = f"plain twins {ours:.2f} times, shoal's kernels {kernels:.2f} times"
    holds = said / 2 <= ours <= said * 2
    return judged(where, says, text, holds, "within a factor of two would be a yes; another implementation")


def _slowest(grid: Grid, where: str, data: str) -> Claim:
    says = f"{data.split('-')[-1]}: Diameter takes over 1000 times as long as TFRP"
    sizes = [k for k in grid.sizes(data) if grid.plain(data, k, "Diameter") is not None and grid.plain(data, k, "TFRP")]
    if not sizes:
        return untested(where, says, TOO_LONG if grid.sizes(data) else NOT_MEASURED)
    ratios = [float(grid.plain(data, k, "Diameter") or 0) / float(grid.plain(data, k, "TFRP") or 1) for k in sizes]
    text = f"plain twins, k={','.join(map(str, sizes))}: {min(ratios):.0f} to {max(ratios):.0f} times"
    why = "the ratio grows with n; a search of all pairs is one matrix product in NumPy, which the paper's C++ had not"
    holds = min(ratios) > 1000
    return judged(where, says, text, holds, why)


def growth(scalability: Sequence[Result]) -> list[Claim]:
    """Compare the claims about figure 13 with the exponents of the plain twins' times."""
    found = []
    for method, (word, power) in {
        "Diameter": ("cubic", 3),
        "Centroid": ("quadratic", 2),
        "TFRP": ("quadratic", 2),
    }.items():
        points = [result for result in scalability if result.method == method and result.plain_seconds is not None]
        says = f"the time of {method} is {word} in n"
        if len(points) < 3:
            found.append(untested("figure 13", says))
            continue
        ours = exponent([(point.n, point.plain_seconds or 0.0) for point in points])
        kernels = exponent([(r.n, r.seconds) for r in scalability if r.method == method])
        upto = max(point.n for point in points)
        text = f"plain twin n^{ours:.2f} up to {upto:,} records, shoal's kernel n^{kernels:.2f}"
        holds = abs(ours - power) <= 0.35
        why = "fixed costs of NumPy's calls count at these sizes" if ours < power else "the data outgrow the caches"
        found.append(judged("figure 13", says, text, holds, why))
    return [*found, _one_order(scalability)]


def _one_order(scalability: Sequence[Result]) -> Claim:
    says = "TFRP is faster than Centroid by one order of magnitude (k=50)"
    plain = {(r.n, r.method): r.plain_seconds for r in scalability if r.plain_seconds is not None}
    sizes = sorted(n for n, method in plain if method == "TFRP" and (n, "Centroid") in plain)
    if not sizes:
        return untested("figure 13", says)
    ratios = [plain[n, "Centroid"] / plain[n, "TFRP"] for n in sizes]
    text = f"plain twins {min(ratios):.1f} to {max(ratios):.1f} times, {ratios[-1]:.1f} at {sizes[-1]:,} records"
    holds = 5 <= ratios[-1] <= 20
    return judged("figure 13", says, text, holds, "phase II in NumPy takes most of TFRP's time")


def exponent(points: Sequence[tuple[int, float]]) -> float:
    """Fit the time to a power of the number of records."""
    n, seconds = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(n, seconds, 1)[0])


def _trees(trees: Sequence[Any]) -> list[Claim]:
    """Compare the claims of section 2.3 about minimum spanning trees with ours."""
    says = "MST partitioning loses more than Diameter unless the records are in well-separated clusters"
    slower = "MST partitioning takes longer than Centroid"
    if not trees:
        return [untested("section 2.3", says), untested("section 2.3", slower)]
    clustered = [row for row in trees if row.data.startswith("eia")]
    spread = [row for row in trees if not row.data.startswith("eia")]
    more = [row for row in spread if row.mst > row.diameter]
    less = [row for row in clustered if row.mst < row.diameter]
    text = (
        f"Census and Tarragona: more at {len(more)} of {len(spread)} k; "
        f"EIA, which is clustered: less at {len(less)} of {len(clustered)}"
    )
    longer = [row for row in trees if row.mst_seconds > row.centroid_seconds]
    return [
        Claim("section 2.3", says, text, len(more) == len(spread)),
        Claim("section 2.3", slower, f"in {len(longer)} of {len(trees)} cases", len(longer) == len(trees)),
    ]


def in_text(results: Sequence[Result]) -> list[tuple[str, int, str, float, float]]:
    """Return the losses given in the text: data, k, method, the paper's, ours."""
    grid = Grid(results)
    return [
        (data, k, method, printed, grid.il(data, k, method))
        for (data, k), losses in IN_TEXT.items()
        if k in grid.sizes(data)
        for method, printed in losses.items()
    ]
