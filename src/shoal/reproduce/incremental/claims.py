"""What the thesis says of its figures, and whether it is so here."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from shoal.reproduce.incremental.runs import LINES, Result


class Claim(NamedTuple):
    """A sentence of the thesis, what we measured, and whether they agree."""

    figure: str
    says: str
    found: str
    agrees: bool


Pick = Callable[..., list[float]]


def claims(results: Sequence[Result]) -> list[Claim]:
    """Hold the thesis's sentences against the results; sentences about what was not measured are left out."""
    found = [claim for data in dict.fromkeys(r.data for r in results) for claim in _of_data(results, data)]
    return [*_gaussian(results), *found]


def _gaussian(results: Sequence[Result]) -> list[Claim]:
    at_tenth = {r.line: r.delta for r in results if (r.data, r.dims, r.k, r.nu) == ("gaussian", 15, 10, 0.1)}
    if not at_tenth:
        return []
    two, split = at_tenth["2MDAV"], at_tenth["NN split-end"]
    return [
        Claim("5.9", "at nu = 10 %: delta about 5 % for 2MDAV", f"{two:+.1%}", 0.035 <= two <= 0.065),
        Claim("5.9", "at nu = 10 %: delta about 2 % for NN split-end", f"{split:+.1%}", 0.01 <= split <= 0.03),
    ]


def _of_data(results: Sequence[Result], data: str) -> list[Claim]:
    mine = [r for r in results if r.data == data]
    widest = max(r.dims for r in mine)
    most = [r for r in mine if r.dims == widest and r.k == 10]
    found = [
        _dims(mine, data),
        _not_practical(most, data),
        _inertia(most, data),
        _low_share(most, data),
        _ours(most, data),
    ]
    if any(r.plain_tau_plus is not None for r in most):
        found += [_quadratic(most, data), _stays_short(most, data)]
    return [claim for claim in found if claim is not None]


def _delta(results: Sequence[Result], line: str) -> dict[float, float]:
    return {r.nu: r.delta for r in results if r.line == line}


def _dims(results: Sequence[Result], data: str) -> Claim:
    mean = {
        dims: float(np.mean([r.delta for r in results if (r.line, r.k, r.dims) == ("2MDAV", 10, dims)]))
        for dims in sorted({r.dims for r in results})
    }
    values = list(mean.values())
    text = ", ".join(f"{dims} columns {value:+.1%}" for dims, value in mean.items())
    return Claim(
        "5.3", f"{data}: 2MDAV's delta falls as columns are added", text, values == sorted(values, reverse=True)
    )


def _not_practical(results: Sequence[Result], data: str) -> Claim:
    last = max(_delta(results, "NN"))
    without, end = _delta(results, "NN")[last], _delta(results, "NN split-end")[last]
    text = f"at {last:.0%}: {without:+.0%}, with splits {end:+.1%}"
    return Claim(
        "5.4", f"{data}: NN without splits loses far too much at large shares", text, without > 3 * max(end, 0.02)
    )


def _inertia(results: Sequence[Result], data: str) -> Claim:
    gain = [
        _delta(results, "NN split-end")[nu] - _delta(results, "NN split-end, inertial")[nu]
        for nu in sorted(_delta(results, "NN split-end"))
    ]
    text = f"gains {min(gain):+.1%} to {max(gain):+.1%}"
    return Claim("5.6", f"{data}: the inertial coefficient does not help much", text, max(gain) < 0.01)


def _low_share(results: Sequence[Result], data: str) -> Claim:
    least = min(_delta(results, "2MDAV"))
    two, end = _delta(results, "2MDAV")[least], _delta(results, "NN split-end")[least]
    text = f"at {least:.0%}: {end:+.1%} against {two:+.1%}"
    return Claim("5.9, 5.10", f"{data}: for small shares NN split-end loses less than 2MDAV", text, end < two)


def _ours(results: Sequence[Result], data: str) -> Claim:
    shares = [nu for nu in _delta(results, "ours") if nu <= 0.5]
    others = [line for line in LINES if line != "ours"]
    ours = [_delta(results, "ours")[nu] for nu in shares]
    best = [min(_delta(results, line)[nu] for line in others) for nu in shares]
    text = f"{min(ours):+.1%} to {max(ours):+.1%} up to a half; the best other {min(best):+.1%} to {max(best):+.1%}"
    agrees = all(a < b for a, b in zip(ours, best, strict=True))
    return Claim("ours", f"{data}: reopening loses less than every other variant", text, agrees)


def _quadratic(results: Sequence[Result], data: str) -> Claim:
    apart = max(abs(r.plain_tau_plus - r.nu**2) for r in results if r.line == "2MDAV" and r.plain_tau_plus is not None)
    return Claim("5.2", f"{data}: tau_+ of plain 2MDAV is nu squared", f"within {apart:.2f}", apart < 0.15)


def _stays_short(results: Sequence[Result], data: str) -> Claim:
    two, end = (
        {r.nu: r.plain_tau_plus for r in results if r.line == line and r.plain_tau_plus is not None}
        for line in ("2MDAV", "NN split-end")
    )
    last = max(end)
    text = f"at {last:.0%}: {end[last]:.2f} against {two[last]:.2f}"
    return Claim(
        "5.9, 5.10", f"{data}: for large shares plain NN split-end takes less time", text, end[last] < two[last]
    )


def in_text(found: Sequence[Claim]) -> str:
    """Lay the claims out as text."""
    lines = [f"{'figure':<10} {'agrees':<7} {'the thesis, and what we found'}"]
    for claim in found:
        lines.append(f"{claim.figure:<10} {'yes' if claim.agrees else 'NO':<7} {claim.says}")
        lines.append(f"{'':<18} {claim.found}")
    return "\n".join([*lines, ""])
