"""What the paper says of its figures, and what ours say."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from shoal.reproduce.tfrp.images import NAMES
from shoal.reproduce.tfrp.methods import METHODS, SCATTERED, Result
from shoal.reproduce.tfrp.printed import IN_TEXT

LEFT_OUT = "not measured"


class Claim(NamedTuple):
    """A sentence of the paper and our counterpart."""

    figure: str
    paper: str
    ours: str


class Grid:
    """The results, to be asked by data set, k and method."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._results = {(result.data, result.k, result.method): result for result in results}

    def sizes(self, data: str) -> list[int]:
        """Return the k measured on a data set."""
        return sorted({k for name, k, _ in self._results if name == data})

    def il(self, data: str, k: int, method: str) -> float:
        """Return the information loss in percent."""
        return self._results[data, k, method].il

    def seconds(self, data: str, k: int, method: str) -> float:
        """Return the time taken."""
        return self._results[data, k, method].seconds

    def least(self, data: str, k: int) -> str:
        """Name the method that loses least."""
        return min(METHODS, key=lambda method: self.il(data, k, method))

    def most(self, data: str, k: int) -> str:
        """Name the method that loses most."""
        return max(METHODS, key=lambda method: self.il(data, k, method))


def claims(results: Sequence[Result]) -> list[Claim]:
    """Set each sentence of section 4 that can be counted beside the count."""
    grid = Grid(results)
    dense, sparse = f"{NAMES[0]}-2x2", f"{NAMES[0]}-4x4"
    found = [
        Claim("5-9", "phase II always lowers the loss", _always_lower(grid, results)),
        Claim("5", "Tarragona: TFRP_I loses most for k < 5", _at(grid, "tarragona", "TFRP_I", Grid.most)),
        Claim("5", "Tarragona: TFRP loses least except at k=3", _at(grid, "tarragona", "TFRP", Grid.least)),
        Claim("6", "Census: TFRP loses least for k >= 10", _at(grid, "census", "TFRP", Grid.least)),
    ]
    least, most = "EIA: TFRP loses least at k=5,7,9,20,35,40,45,50", "EIA: TFRP_I loses most for k = 3 to 6"
    return [
        *found,
        Claim("7", least, f"eia-10: {_at(grid, 'eia-10', 'TFRP', Grid.least)}"),
        Claim("7", least, f"eia-11: {_at(grid, 'eia-11', 'TFRP', Grid.least)}"),
        Claim("7", least, f"TFRP on eia-10, the others on eia-11: {_least_across(grid)}"),
        Claim("7", most, f"eia-10: {_at(grid, 'eia-10', 'TFRP_I', Grid.most)}"),
        Claim("7", most, f"eia-11: {_at(grid, 'eia-11', 'TFRP_I', Grid.most)}"),
        Claim("8a", "dense: TFRP loses least for k >= 60", _at(grid, dense, "TFRP", Grid.least)),
        Claim("8a", "dense: Centroid+ loses least at k=10", _at(grid, dense, "Centroid+", Grid.least)),
        Claim("8b", "sparse: TFRP loses least for k >= 20", _at(grid, sparse, "TFRP", Grid.least)),
        Claim("10", "TFRP_I is always the fastest, TFRP the second", _fastest(grid, results)),
        Claim("11b", "sparse: Centroid takes 3.52 times as long as TFRP at k=10", _ratio(grid, sparse, 10)),
        Claim("11b", "sparse: Centroid takes 12.84 times as long as TFRP at k=80", _ratio(grid, sparse, 80)),
        Claim("11-12", "Diameter takes over 1000 times as long as TFRP", _slowest(grid, results)),
    ]


def growth(scalability: Sequence[Result]) -> list[Claim]:
    """Set what is said of figure 13 beside the exponents of the measured times."""
    found = []
    for method, paper in {"Diameter": "cubic", "Centroid": "quadratic", "TFRP": "quadratic"}.items():
        points = [result for result in scalability if result.method == method]
        ours = f"n^{_exponent(points):.2f}" if len(points) > 1 else LEFT_OUT
        found.append(Claim("13", f"the time of {method} is {paper} in n", ours))
    return found


def _exponent(points: Sequence[Result]) -> float:
    """Fit the time to a power of the number of records."""
    n, seconds = (np.log([getattr(point, name) for point in points]) for name in ("n", "seconds"))
    return float(np.polyfit(n, seconds, 1)[0])


def _at(grid: Grid, data: str, method: str, extreme: Callable[[Grid, str, int], str]) -> str:
    """List the k at which the method is the extreme one."""
    sizes = grid.sizes(data)
    if not sizes:
        return LEFT_OUT
    where = [str(k) for k in sizes if extreme(grid, data, k) == method]
    if len(where) == len(sizes):
        return f"at all {len(sizes)} k"
    return f"k={','.join(where)}" if where else "nowhere"


def _least_across(grid: Grid) -> str:
    """List the k at which TFRP on EIA-10 loses less than every other method on EIA-11."""
    others = [method for method in METHODS if method != "TFRP"]
    sizes = [k for k in grid.sizes("eia-11") if k in grid.sizes("eia-10")]
    where = [k for k in sizes if grid.il("eia-10", k, "TFRP") < min(grid.il("eia-11", k, other) for other in others)]
    return f"k={','.join(map(str, where))}" if sizes else LEFT_OUT


def _always_lower(grid: Grid, results: Sequence[Result]) -> str:
    cases = {(result.data, result.k) for result in results}
    pairs = [(data, k, base) for data, k in cases for base in SCATTERED]
    lower = sum(grid.il(data, k, SCATTERED[base]) < grid.il(data, k, base) for data, k, base in pairs)
    return f"in {lower} of {len(pairs)} cases"


def _fastest(grid: Grid, results: Sequence[Result]) -> str:
    cases = sorted({(result.data, result.k) for result in results if "x" not in result.data})
    orders = [sorted(METHODS, key=lambda method: grid.seconds(*case, method)) for case in cases]
    first = sum(order[0] == "TFRP_I" for order in orders)
    second = sum(order[:2] == ["TFRP_I", "TFRP"] for order in orders)
    return f"fastest in {first} of {len(cases)} cases, with TFRP second in {second}"


def _ratio(grid: Grid, data: str, k: int) -> str:
    if k not in grid.sizes(data):
        return LEFT_OUT
    return f"{grid.seconds(data, k, 'Centroid') / grid.seconds(data, k, 'TFRP'):.2f} times"


def _slowest(grid: Grid, results: Sequence[Result]) -> str:
    cases = sorted({(result.data, result.k) for result in results if "x" in result.data})
    if not cases:
        return LEFT_OUT
    ratios = [grid.seconds(*case, "Diameter") / grid.seconds(*case, "TFRP") for case in cases]
    return f"{min(ratios):.1f} to {max(ratios):.1f} times"


def in_text(results: Sequence[Result]) -> list[tuple[str, int, str, float, float]]:
    """Return the losses that the text spells out: data, k, method, the paper's, ours."""
    grid = Grid(results)
    return [
        (data, k, method, printed, grid.il(data, k, method))
        for (data, k), losses in IN_TEXT.items()
        if k in grid.sizes(data)
        for method, printed in losses.items()
    ]
