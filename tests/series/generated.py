"""Series of people who come, leave and change, as a generator makes them from a number."""

import numpy as np
import pyarrow as pa
from intruder import Intruder, published

import shoal

K, L = 3, 2


def tables(number, n_editions=3):
    """Return the tables of a series."""
    rng = np.random.default_rng(number)
    n = int(rng.integers(30, 70))
    leaving, coming, changing = (
        rng.choice([0.0, 0.03, 0.1, 0.3]),
        rng.choice([0.0, 0.1, 0.4]),
        rng.choice([0.0, 0.2, 0.8]),
    )
    ids, next_id = np.arange(n), n
    age, group = rng.integers(20, 60, 10_000), rng.integers(0, 3, 10_000)
    diagnosis = rng.integers(0, rng.integers(3, 7), 10_000)
    found = []
    for _ in range(n_editions):
        order = rng.permutation(ids)
        found.append(
            pa.table(
                {
                    "id": order,
                    "age": age[order],
                    "group": pa.array([f"g{code}" for code in group[order]]),
                    "diagnosis": pa.array([f"d{code}" for code in diagnosis[order]]),
                }
            )
        )
        gone = rng.random(len(ids)) < leaving
        if rng.random() < 0.3:  # all who look alike leave together
            gone |= age[ids] < 25
        new = next_id + np.arange(rng.binomial(n, coming))
        next_id += len(new)
        back = np.setdiff1d(np.arange(n), ids)[:2] if rng.random() < 0.3 else []
        ids = np.union1d(np.concatenate([ids[~gone], new]), back).astype(np.int64)
        changed = rng.random(10_000) < changing
        age[changed] = rng.integers(20, 60, int(changed.sum()))
        diagnosis[changed] = rng.integers(0, 3, int(changed.sum()))
    return found


ROLES = {"quasi_identifiers": ["age", "group"], "confidential": ["diagnosis"], "key": "id"}


def series(number, leavers):
    """Return the releases of a series, and the originals of their records."""
    given = tables(number)
    models = [shoal.LDiversity("diagnosis", l=L)]
    releases, people = [], []
    for table in given:
        later = {"after": releases, "may_withhold": 1.0, "leavers": leavers} if releases else {"reserve": 0.05}
        try:
            release = shoal.anonymize(table, k=K, models=models, seed=number, **ROLES, **later)
        except shoal.ShoalError as error:
            if "recount" in str(error):  # which finds nothing where cells are made as they should be
                raise
            break
        people.append(table.take(pa.array(release.series.plan.records)))
        releases.append(release)
    return releases, people


def attacked(number, leavers):
    """Return what an intruder finds in a series and a version of its last release, and how many releases it has."""
    releases, tables_ = series(number, leavers)
    if not releases:
        return [], 0
    people = [np.asarray(table["id"]) for table in tables_]
    names = ["age", "group"]
    seen = [
        published(release.published, table, names, key.tolist(), "diagnosis")
        for release, table, key in zip(releases, tables_, people, strict=True)
    ]
    fine, there = releases[-1], set(people[-1].tolist())
    if fine.verdict.n_records >= 2 * K:
        version = {name: given for name, given in ROLES.items() if name != "key"}
        coarse = shoal.anonymize(fine.published, k=2 * K, after=fine, seed=number, **version)
        # What it is computed from are published values, which are nobody's own even where they are equal.
        found = {name: pa.array([f"published {value}" for value in fine.published[name].to_pylist()]) for name in names}
        seen.append(published(coarse.published, pa.table(found), names, people[-1].tolist(), "diagnosis"))
    spared = set(np.concatenate(people).tolist()) - there if leavers == "state" else frozenset()
    return Intruder(seen).attack(K, L, spared=spared), len(releases)
