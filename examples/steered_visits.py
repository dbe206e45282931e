"""Steering: keep regions together and spread hospitals over groups, without a guarantee; its cost and effect.

Visits have a region, which readers compare, and a hospital, which a group of records should not reveal. Strata
(`by`) would forbid groups across regions and fail for small ones; l-diversity would guarantee different hospitals in
every group. Steering only influences the groups, at some cost in loss.
"""

import numpy as np
import pyarrow as pa

import shoal

rng = np.random.default_rng(7)
N = 600
region = rng.choice(["north", "south", "west"], N, p=[0.5, 0.45, 0.05])
visits = pa.table(
    {
        "age": np.clip(rng.normal(55, 18, N), 0, 100).round(),
        "income": (rng.gamma(4, 8, N) + 6 * (region == "north")).round(1),
        "region": region,
        "hospital": rng.choice(["A", "B", "C", "D", "E"], N),
    }
)
roles = {"quasi_identifiers": ["age", "income"], "other": ["region"], "confidential": ["hospital"]}


def values_in_a_group(release: shoal.Release, column: str) -> float:
    """Return how many different values the groups hold on average."""
    values = np.asarray(visits[column])
    groups = [values[release.labels == group] for group in range(release.labels.max() + 1)]
    return float(np.mean([len(set(group)) for group in groups]))


print(f"{'steer':<36}{'loss %':>8}{'regions':>9}{'hospitals':>11}   in a group of at least 5, on average")
for steer in ({}, {"region": 1}, {"region": 100}, {"hospital": -10}, {"region": 100, "hospital": -10}):
    release = shoal.anonymize(visits, k=5, steer=steer, seed=1, **roles)
    reached = [values_in_a_group(release, column) for column in ("region", "hospital")]
    print(f"{steer!s:<36}{100 * release.loss.il:>8.2f}{reached[0]:>9.2f}{reached[1]:>11.2f}")

promised = shoal.anonymize(
    visits, k=5, steer={"region": 100}, models=[shoal.LDiversity("hospital", l=3)], seed=1, **roles
)
print(f"\nWith l-diversity as well, guaranteed: {promised.verdict.holds}, loss {100 * promised.loss.il:.2f} %")
