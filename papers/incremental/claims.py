"""The thesis's claims about its table and figures, checked here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from papers.claims import Claim, judged, untested
from papers.incremental.reference_times import Row
from papers.incremental.variant_runs import LINES, Result, total

LARGE_CENSUS = 'the thesis has "Large Census", 13 columns, which is not publicly at hand; ours has nine'
BUSY = "processor times of a machine that did other work; caches are shared, so single times are off by a tenth or two"
Curve = dict[float, float]
"""A value by late share."""


def claims(content: Mapping[str, Any]) -> list[Claim]:
    """Check the thesis's claims on a result file."""
    results: list[Result] = content["results"]
    found = table_claims(content["table_5_2"])
    for data in ("gaussian", "census"):
        mine = [r for r in results if r.data == data]
        found += _of_data(mine, data) if mine else [untested("5.1 to 5.10", f"{data}: all sentences")]
    found += [*_influence_of_columns(results), *_in_numbers(results)]
    return [claim._replace(where=_place(claim.where)) for claim in found]


def _place(where: str) -> str:
    """Return whether a number is that of a section or of a figure."""
    if where == "4.2":
        return "section 4.2.2"
    return where if where.startswith("table") else f"figure {where}"


class Curves:
    """The curves of one data set with all its columns."""

    def __init__(self, results: Sequence[Result]) -> None:
        widest = max(r.dims for r in results)
        self._results = [r for r in results if r.dims == widest]
        self.sizes = sorted({r.k for r in self._results})

    def of(self, line: str, value: Callable[[Result], float | None], k: int = 10) -> Curve:
        """Return one value of a variant over the shares, where it was measured."""
        found = {r.nu: value(r) for r in self._results if (r.line, r.k) == (line, k)}
        return {nu: y for nu, y in sorted(found.items()) if y is not None}

    def delta(self, line: str, k: int = 10) -> Curve:
        """Return the relative extra loss."""
        return self.of(line, lambda r: r.delta, k)

    def late(self, line: str, k: int = 10) -> Curve:
        """Return tau_+ of the plain algorithm."""
        return self.of(line, lambda r: r.plain_tau_plus, k)

    def both(self, line: str, k: int = 10) -> Curve:
        """Return tau_0 + tau_+ of the plain algorithm."""
        return self.of(line, total, k)

    def bound(self, k: int = 10) -> Curve:
        """Return the upper limit of tau_+ with a head start of nu: 1 - tau_0 + nu."""
        return self.of("2MDAV", lambda r: None if r.plain_tau_0 is None else 1 - r.plain_tau_0 + r.nu, k)


def _of_data(results: Sequence[Result], data: str) -> list[Claim]:
    curves = Curves(results)
    found = [_columns(results, data), *_losses(curves, data)]
    if curves.late("2MDAV"):
        found += [*_two_steps(curves, data), *_nearest_times(curves, data), *_comparison(curves, data)]
    else:
        found.append(
            untested("5.1, 5.2, 5.7 to 5.10", f"{data}: the sentences about time", "plain times were left out")
        )
    return sorted(found, key=lambda claim: [int(part) for part in claim.where.split(",")[0].split(".")])


def _two_steps(curves: Curves, data: str) -> list[Claim]:
    """Compare figures 5.1 and 5.2 with ours."""
    both, late, bound = curves.both("2MDAV"), curves.late("2MDAV"), curves.bound()
    least = min(both, key=lambda nu: both[nu])
    apart = max(abs(y - nu**2) for nu, y in late.items())
    worst = max(both.values())
    found = [
        Claim(
            "5.1",
            f"{data}: 2MDAV needs less time than MDAV of everything at every share",
            f"tau_0 + tau_+ from {both[least]:.2f} to {worst:.2f}",
            worst < 1,
        ),
        judged(
            "5.1",
            f"{data}: 2MDAV needs least time at 50 % late",
            f"at {least:.0%}: {both[least]:.2f}; at 50 %: {both.get(0.5, np.nan):.2f}",
            abs(least - 0.5) <= 0.05,
            BUSY,
        ),
        judged(
            "5.2",
            f"{data}: tau_+ of 2MDAV is nu squared",
            f"within {apart:.2f}",
            apart < 0.1,
            BUSY,
        ),
        _below("5.2", f"{data}: 2MDAV gains time at every share with a head start of nu", late, bound),
    ]
    if len(curves.sizes) > 1:
        k = curves.sizes[-1]
        differ = max(abs(curves.both("2MDAV", k)[nu] - both[nu]) for nu in both)
        says = f"{data}: the relative time of 2MDAV does not depend on k"
        text = f"k = 10 and {k} differ by at most {differ:.2f}"
        found.append(judged("5.1", says, text, differ < 0.1, BUSY))
    return found


def _below(where: str, says: str, curve: Curve, bound: Curve) -> Claim:
    over = [nu for nu in curve if curve[nu] >= bound[nu]]
    return Claim(where, says, f"not at {_shares(over)}" if over else "at every share", not over)


def _columns(results: Sequence[Result], data: str) -> Claim:
    mean = _mean_by_columns(results)
    values = list(mean.values())
    text = ", ".join(f"{dims} columns {value:+.1%}" for dims, value in mean.items())
    says = f"{data}: 2MDAV's delta falls as columns are added"
    return Claim("5.3", says, text, values == sorted(values, reverse=True))


def _mean_by_columns(results: Sequence[Result]) -> dict[int, float]:
    return {
        dims: float(np.mean([r.delta for r in results if (r.line, r.k, r.dims) == ("2MDAV", 10, dims)]))
        for dims in sorted({r.dims for r in results})
    }


def _influence_of_columns(results: Sequence[Result]) -> list[Claim]:
    says = "the number of columns has less influence on census than on Gaussian records"
    if {r.data for r in results} != {"gaussian", "census"}:
        return [untested("5.3", says)]
    falls = {}
    for data in ("gaussian", "census"):
        means = list(_mean_by_columns([r for r in results if r.data == data]).values())
        falls[data] = means[0] / means[-1]
    text = ", ".join(f"{data}: {fall:.2f} times less with all columns" for data, fall in falls.items())
    holds = falls["census"] < falls["gaussian"]
    return [judged("5.3", says, text, holds, LARGE_CENSUS)]


def _losses(curves: Curves, data: str) -> list[Claim]:
    """Compare figures 5.4, 5.5 and 5.6, and the losses in 5.9 and 5.10, with ours."""
    names = ("NN", "NN split-mid", "NN split-end", "NN split-end, inertial", "2MDAV")
    without, mid, end, inertial, two = (curves.delta(name) for name in names)
    least, last = min(end), max(end)
    high = [nu for nu in end if nu >= 0.5]
    better = [nu for nu in high if end[nu] < mid[nu]]
    gain = [end[nu] - inertial[nu] for nu in end]
    return [
        Claim(
            "5.4",
            f"{data}: NN without splits loses far too much at large shares",
            f"at {last:.0%}: {without[last]:+.0%}, with splits {end[last]:+.1%}",
            without[last] > 3 * max(end[last], 0.02),
        ),
        Claim(
            "5.5",
            f"{data}: splitting improves the loss hugely",
            f"at {last:.0%}: {without[last]:+.0%} without, {mid[last]:+.1%} split-mid, {end[last]:+.1%} split-end",
            max(mid[last], end[last]) < without[last] / 2,
        ),
        Claim(
            "5.5",
            f"{data}: splitting at the end loses slightly less than in between at high shares",
            f"at {len(better)} of {len(high)} shares from 50 % on",
            len(better) == len(high),
        ),
        Claim(
            "5.6",
            f"{data}: the inertial coefficient does not improve the loss, and makes it worse in some cases",
            f"gains {min(gain):+.1%} to {max(gain):+.1%} (in points of delta)",
            max(gain) < 0.01 and min(gain) < 0,
        ),
        Claim(
            "5.9, 5.10",
            f"{data}: for small shares NN split-end loses less than 2MDAV",
            f"at {least:.0%}: {end[least]:+.1%} against {two[least]:+.1%}",
            end[least] < two[least],
        ),
        Claim(
            "6.3",
            f"{data}: for large shares 2MDAV loses less than NN split-end",
            f"at {last:.0%}: {two[last]:+.1%} against {end[last]:+.1%}",
            two[last] < end[last],
            "" if two[last] < end[last] else LARGE_CENSUS if data == "census" else "",
        ),
    ]


def _nearest_times(curves: Curves, data: str) -> list[Claim]:
    """Compare figures 5.7 and 5.8, and the model of section 4.2.2, with ours."""
    end, mid, two, without = (curves.late(name) for name in ("NN split-end", "NN split-mid", "2MDAV", "NN"))
    least, last = min(end), max(end)
    high = [nu for nu in end if nu >= 0.7]
    sooner = [nu for nu in high if end[nu] < mid[nu]]
    found = [
        judged(
            "5.7",
            f"{data}: splits add slightly to the time of NN",
            f"at most {max(end[nu] - without[nu] for nu in end):.2f} of MDAV's time (split-end), "
            f"{max(mid[nu] - without[nu] for nu in mid):.2f} (split-mid)",
            all(end[nu] - without[nu] < 0.15 for nu in end),
            "each split is a call of MDAV on a few records",
        ),
        Claim(
            "5.8",
            f"{data}: NN split-end is slower than 2MDAV for small shares and faster for large ones",
            f"at {least:.0%}: {end[least]:.3f} against {two[least]:.3f}; "
            f"at {last:.0%}: {end[last]:.2f} against {two[last]:.2f}",
            end[least] > two[least] and end[last] < two[last],
        ),
        Claim(
            "5.8",
            f"{data}: splitting at the end is faster than in between at high shares",
            f"at {len(sooner)} of {len(high)} shares from 70 % on",
            len(sooner) == len(high),
        ),
        _below("5.8", f"{data}: NN split-end gains time at every share with a head start of nu", end, curves.bound()),
        _model(without, data),
    ]
    if len(curves.sizes) > 1:
        k = curves.sizes[-1]
        more = [curves.both("NN split-end", k)[nu] - y for nu, y in curves.both("NN split-end").items()]
        says = f"{data}: tau_0 + tau_+ of NN split-end is slightly worse for a larger k"
        text = f"k = {k} against 10: {min(more):+.2f} to {max(more):+.2f}, {np.mean(more):+.2f} in the mean"
        found.append(Claim("5.7", says, text, 0 < float(np.mean(more)) < 0.3))
    return found


def _model(late: Curve, data: str) -> Claim:
    """Fit alpha in tau_+ = alpha nu (1 - nu)."""
    shape = np.array([nu * (1 - nu) for nu in late])
    times = np.array(list(late.values()))
    alpha = float(shape @ times / (shape @ shape))
    apart = float(np.abs(times - alpha * shape).max() / times.max())
    says = f"{data}: tau_+ of NN is proportional to nu (1 - nu) (section 4.2.2)"
    return Claim("4.2", says, f"alpha = {alpha:.3f}, within {apart:.0%} of the largest", apart < 0.25)


def _comparison(curves: Curves, data: str) -> list[Claim]:
    """Compare times and losses together: figures 5.9, 5.10 and 6.3."""
    found = []
    figure = "5.9" if data == "gaussian" else "5.10"
    for k in curves.sizes:
        end, two = curves.late("NN split-end", k), curves.late("2MDAV", k)
        top = max(end, key=lambda nu: end[nu])
        says = f"{data}, k = {k}: tau_+ of NN split-end never surpasses 10 %"
        split = end[top] - curves.late("NN", k)[top]
        why = f"assignment takes {end[top] - split:.2f} of it; MDAV of the cells that are split takes {split:.2f}"
        holds = end[top] <= 0.1
        text = f"up to {end[top]:.3f} at {top:.0%}"
        found.append(judged(figure, says, text, holds, why))
        loss_end, loss_two = curves.delta("NN split-end", k), curves.delta("2MDAV", k)
        both = [nu for nu in end if end[nu] < two[nu] and loss_end[nu] < loss_two[nu]]
        says = f"{data}, k = {k}: at middle shares NN split-end is better in time and in loss"
        if (data, k) == ("gaussian", 10):
            says += ", about 30 to 50 %"
            holds = {0.3, 0.4, 0.5} <= set(both) if 0.4 in end else {0.3, 0.5} <= set(both)
        else:
            holds = bool(both)
        quicker = [nu for nu in end if end[nu] < two[nu]]
        lighter = [nu for nu in end if loss_end[nu] < loss_two[nu]]
        why = f"quicker at {_shares(quicker)}, less loss at {_shares(lighter)}"
        found.append(judged(f"{figure}, 6.3" if k == 10 else figure, says, f"at {_shares(both)}", holds, why))
    return found


def _shares(shares: Sequence[float]) -> str:
    """List shares; neighbours on the measured grid as a range."""
    if not shares:
        return "no share"
    return f"{shares[0]:.0%}" if len(shares) == 1 else f"{len(shares)} shares from {shares[0]:.0%} to {shares[-1]:.0%}"


def _in_numbers(results: Sequence[Result]) -> list[Claim]:
    """Return the numbers in the thesis for Gaussian records with 15 columns and k = 10, and ours."""
    mine = [r for r in results if (r.data, r.dims, r.k) == ("gaussian", 15, 10)]
    if not mine:
        return [untested("6", "delta on Gaussian records of 15 columns")]
    curves = {line: {r.nu: r.delta for r in mine if r.line == line} for line in LINES}
    said = (
        ("5.9", 0.1, "2MDAV", 0.05),
        ("5.9", 0.1, "NN split-end", 0.02),
        ("6.1", 0.146, "2MDAV", 0.06),
        ("6.2", 0.072, "2MDAV", 0.03),
    )
    found = []
    for where, nu, line, delta in said:
        shares, values = zip(*sorted(curves[line].items()), strict=True)
        says = f"gaussian: at nu = {100 * nu:g} % delta is about {delta:.0%} for {line}"
        if not shares[0] <= nu <= shares[-1]:
            found.append(untested(where, says))
            continue
        ours = float(np.interp(nu, shares, values))
        found.append(Claim(where, says, f"{ours:+.1%}", abs(ours - delta) <= 0.01))
    return found


def table_claims(table: Sequence[Row]) -> list[Claim]:
    """Compare the ratios of table 5.2, which do not depend on the machine, with ours."""
    if not table:
        return [untested("table 5.2", "absolute times of MDAV: quadratic in n, a tenth at k = 100")]
    times = {row[:4]: row for row in table}
    found = []
    small, large = times.get(("gaussian", 500_000, 10, 15)), times.get(("gaussian", 1_000_000, 10, 15))
    first = times.get(("gaussian", 50_000, 10, 15))
    for one, other, says in (
        (first, small, "500,000 records take 62 times as long as 50,000"),
        (small, large, "1,000,000 records take 4 times as long as 500,000"),
    ):
        if not (one and other):
            found.append(untested("table 5.2", says))
            continue
        text = f"shoal's kernel {other.kernel / one.kernel:.0f} times"
        if one.plain and other.plain:
            text += f", plain NumPy {other.plain / one.plain:.0f} times"
        why = "plain NumPy was not run at this size, which takes hours; the kernel is not the thesis's algorithm"
        found.append(judged("table 5.2", says, text, None, why))
    pairs = [(times.get((d, n, 10, m)), times.get((d, n, 100, m))) for d, n, k, m in times if k == 100]
    ratios = [b.plain / a.plain for a, b in pairs if a and b and a.plain and b.plain]
    if ratios:
        text = f"plain NumPy {min(ratios):.2f} to {max(ratios):.2f}"
        holds = min(ratios) > 0.05 and max(ratios) < 0.15
        found.append(Claim("table 5.2", "k = 100 takes a tenth of the time of k = 10", text, holds))
    return found
