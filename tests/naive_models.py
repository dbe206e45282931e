"""The naive twins of the models: equations as printed, in exact fractions, slow and obvious."""

import math
from collections import Counter
from fractions import Fraction


def shares(codes, n_values):
    counts = Counter(int(code) for code in codes)
    return [Fraction(counts[value], len(codes)) for value in range(n_values)]


def ordered_distance(codes, cell, n_values):
    """Return equation 1 of Domingo-Ferrer and Soria-Comas: the earth mover's distance over ranks."""
    if n_values < 2:
        return Fraction(0)
    total, running = Fraction(0), Fraction(0)
    for p, q in zip(shares(cell, n_values), shares(codes, n_values), strict=True):
        running += p - q
        total += abs(running)
    return total / (n_values - 1)


def nominal_distance(codes, cell, n_values):
    """Return half the sum of the absolute differences."""
    pairs = zip(shares(cell, n_values), shares(codes, n_values), strict=True)
    return sum((abs(p - q) for p, q in pairs), Fraction(0)) / 2


def is_distinct(cell, l):  # noqa: E741
    return len(set(cell)) >= l


def is_entropic(cell, l):  # noqa: E741
    """Say whether the product of count^count is at most (size / l)^size, which is the entropy without logarithms."""
    return math.prod(count**count for count in Counter(cell).values()) * l ** len(cell) <= len(cell) ** len(cell)


def is_recursive(cell, l, c):  # noqa: E741
    counts = sorted(Counter(cell).values(), reverse=True)
    return counts[0] < Fraction(str(c)) * sum(counts[l - 1 :])


def is_delta_private(codes, cell, n_values, delta):
    return all(
        p > 0 and abs(math.log(p / q)) < delta
        for p, q in zip(shares(cell, n_values), shares(codes, n_values), strict=True)
        if q > 0
    )


def is_alpha_rare(cell, alpha):
    return max(Counter(cell).values()) <= Fraction(str(alpha)) * len(cell)


def is_beta_like(codes, cell, n_values, beta, kind="basic"):
    """Say whether no share gains more than beta of it, and in the enhanced kind no more than -log(p) of it."""
    most = Fraction(str(beta))
    return all(
        (q - p) / p <= most and (kind == "basic" or float((q - p) / p) <= -math.log(p) + 1e-7)
        for q, p in zip(shares(cell, n_values), shares(codes, n_values), strict=True)
        if q > p
    )


def best_partition(X, k, keeps):
    """Return the least sum of squared distances of all partitions into cells that `keeps` (of record numbers) allows.

    Every set of records is tried as the cell of its first one; infinite if there is no such partition. For about ten.
    """
    n = len(X)
    cost = {}
    for chosen in range(1, 1 << n):
        members = [i for i in range(n) if chosen >> i & 1]
        if len(members) >= k and keeps(members):
            cost[chosen] = float(((X[members] - X[members].mean(axis=0)) ** 2).sum())
    least = [0.0] + [math.inf] * ((1 << n) - 1)
    for records in range(1, 1 << n):
        first = records & -records
        part = records
        while part:
            if part & first and part in cost:
                least[records] = min(least[records], cost[part] + least[records ^ part])
            part = (part - 1) & records
    return least[-1]


def can_be_cut(members, k, keeps):
    """Say whether a cell is larger than it need be: some half of k or more and the rest both keep everything."""
    for chosen in range(1, 1 << (len(members) - 1)):
        half = [member for i, member in enumerate(members) if chosen >> i & 1]
        rest = [member for i, member in enumerate(members) if not chosen >> i & 1]
        if min(len(half), len(rest)) >= k and keeps(half) and keeps(rest):
            return True
    return False
