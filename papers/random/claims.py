"""The paper's claims about figures 4 to 7 and the attack, checked here."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from papers.claims import Claim, judged, untested

Lines = Sequence[Any]
READING = "bottom-up is another paper's and described nowhere in this one: ours is a reading (docs/random.md)"
NO_NUMBERS = "the paper draws curves and prints no number; its Breast Cancer has 13 columns, the public one nine"


def claims(content: Mapping[str, Any]) -> list[Claim]:
    """Check the claims of sections 3.3 and 4 on a result file."""
    found = [untested("figures 4 to 7", "the values of the curves", NO_NUMBERS)]
    for data in dict.fromkeys(line.data for line in content["partitions"]):
        cuts = [line for line in content["partitions"] if line.data == data]
        spread = [line for line in content["scattered"] if line.data == data]
        found += [*_partitions(cuts, data), *_losses(spread, data), *_risks(spread, data), *_attack(spread, data)]
    says = "random aggregation satisfies differential privacy"
    why = "the noise is bounded and its range depends on the data: no epsilon bounds the ratio of probabilities"
    return [*found, Claim("section 3.3", says, "it does not (docs/random.md)", False, why)]


def _curve(lines: Lines, what: str, **where: Any) -> dict[int, float]:
    return {
        line.k: getattr(line, what)
        for line in lines
        if all(getattr(line, name) == value for name, value in where.items())
    }


def _partitions(cuts: Lines, data: str) -> list[Claim]:
    time = [_curve(cuts, "seconds", method=method) for method in ("top-down", "bottom-up")]
    il = [_curve(cuts, "il", method=method) for method in ("top-down", "bottom-up")]
    sooner = [k for k in time[0] if time[0][k] < time[1][k]]
    ratio = float(np.median([time[0][k] / time[1][k] for k in time[0]]))
    less = [k for k in il[0] if il[0][k] < il[1][k]]
    quick = len(sooner) == len(time[0])
    most = 2 * len(less) > len(il[0])
    return [
        judged(
            "figure 4",
            f"{data}: top-down takes much less time than bottom-up",
            f"at {len(sooner)} of {len(time[0])} k; {ratio:.1f} times its time in the median",
            quick and ratio < 0.7,
            READING,
        ),
        judged(
            "figure 5",
            f"{data}: top-down loses less in most cases",
            f"at {len(less)} of {len(il[0])} k",
            most,
            READING,
        ),
    ]


def _losses(spread: Lines, data: str) -> list[Claim]:
    rhos = sorted({line.rho for line in spread})
    il = {rho: _curve(spread, "il", rho=rho) for rho in rhos}
    sizes = sorted(il[rhos[0]])
    rising = all(il[a][k] < il[b][k] for a, b in itertools.pairwise(rhos) for k in sizes)
    steps = [(rho, a, b) for rho in rhos for a, b in itertools.pairwise(sizes)]
    up = sum(il[rho][a] < il[rho][b] for rho, a, b in steps)
    last = sizes[-1]
    return [
        Claim(
            "figure 6",
            f"{data}: the larger rho, the more loss, at every k",
            f"k={last}: " + ", ".join(f"{il[rho][last]:.1f} % at rho {rho:g}" for rho in rhos),
            rising,
        ),
        Claim("figure 6", f"{data}: the larger k, the more loss", f"in {up} of {len(steps)} steps", up == len(steps)),
    ]


def _risks(spread: Lines, data: str) -> list[Claim]:
    rhos = sorted({line.rho for line in spread})
    dld = {rho: _curve(spread, "dld_within_2", rho=rho) for rho in rhos}
    sizes = sorted(dld[rhos[0]])
    poorest = [k for k in sizes if max(rhos, key=lambda rho: dld[rho][k]) == rhos[0]]
    lower = [k for k in sizes if all(dld[a][k] > dld[b][k] for a, b in itertools.pairwise(rhos))]
    ends = [dld[rho][sizes[0]] > dld[rho][sizes[-1]] for rho in rhos]
    crossed = [k for k in sizes if 0.8 in dld and 1.0 in dld and dld[0.8][k] < dld[1.0][k]]
    at = f"k={sizes[0]}: " + ", ".join(f"{100 * dld[rho][sizes[0]]:.0f} % at rho {rho:g}" for rho in rhos)
    return [
        Claim(
            "figure 7",
            f"{data}: microaggregation (rho 0) resists linkage least",
            f"at {len(poorest)} of {len(sizes)} k; {at}",
            len(poorest) == len(sizes),
        ),
        Claim(
            "figure 7",
            f"{data}: a larger rho has a lower linkage",
            f"at {len(lower)} of {len(sizes)} k",
            2 * len(lower) > len(sizes),
        ),
        Claim(
            "section 4.5",
            f"{data}: at k=8 and k=9 rho 0.8 has a lower linkage than 1.0, so rho has to be tuned",
            f"at k={','.join(map(str, crossed))}" if crossed else "at no k, means over the repeats",
            {8, 9} <= set(crossed) if {8, 9} <= set(sizes) else None,
            "" if {8, 9} <= set(crossed) else "the paper draws once; over several draws the order is that of rho",
        ),
        Claim(
            "figure 7",
            f"{data}: overall a larger k has a lower linkage",
            f"from end to end at {sum(ends)} of {len(ends)} rho",
            all(ends),
        ),
    ]


def _attack(spread: Lines, data: str) -> list[Claim]:
    rhos = sorted({line.rho for line in spread if line.rho > 0})
    known = {rho: _curve(spread, "recovered", rho=rho) for rho in (0.0, *rhos)}
    blind = _curve(spread, "blind", rho=rhos[0])
    sizes = sorted(blind)
    gains = [known[rho][k] - blind[k] for rho in rhos for k in sizes]
    return [
        Claim(
            "section 1",
            f"{data}: who knows k - 1 records of a microaggregated cell knows the last one",
            f"{100 * min(known[0.0].values()):.0f} % of the values recovered",
            min(known[0.0].values()) > 0.999,
        ),
        judged(
            "section 3.3",
            f"{data}: with random aggregation the last record cannot be guessed",
            f"{100 * min(min(known[rho].values()) for rho in rhos):.0f} to "
            f"{100 * max(max(known[rho].values()) for rho in rhos):.0f} % of its values recovered, "
            f"{100 * min(blind.values()):.0f} to {100 * max(blind.values()):.0f} % by one who does not see the release",
            max(gains) < 0.05,
            "the range of the noise is that of the cell, and reveals it",
        ),
    ]
