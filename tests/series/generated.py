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
NAMES = ROLES["quasi_identifiers"]


def settings(number):
    """Return the settings of the columns of research files and versions: often so coarse that classes look alike."""
    rng = np.random.default_rng(1_000 + number)
    research = [{}, {"age": {"round": -1}}, {"age": {"kind": "nominal"}}, {"age": {"aggregate": "median"}}]
    version = [{}, {"age": {"round": -1}}, {"age": {"kind": "nominal"}}, {"age": {"round": -2}}]
    return research[rng.integers(4)], version[rng.integers(4)]


def series(number, leavers):
    """Return the research files and versions of a series, and the originals of their records."""
    models = [shoal.LDiversity("diagnosis", l=L)]
    of_research, of_version = settings(number)
    research, versions, people = [], [], []
    for table in tables(number):
        later = {"may_withhold": 1.0, "leavers": leavers} if research else {"reserve": 0.05}
        asked = {"models": models, "seed": number, **later}
        try:
            release = shoal.anonymize(table, k=K, after=research, columns=of_research, **ROLES, **asked)
        except shoal.ShoalError as error:
            refuse_recount(error)
            break
        research.append(release)
        people.append(table.take(pa.array(release.series.plan.records)))
        later = {"may_withhold": 1.0, "leavers": leavers} if any(versions) else {}
        asked = {"models": models, "seed": number, **later}
        roles = {name: given for name, given in ROLES.items() if name != "key"}
        after = [release, *(version for version in versions if version is not None)]
        try:
            versions.append(
                shoal.anonymize(release.published, k=2 * K, after=after, columns=of_version, **roles, **asked)
            )
        except shoal.ShoalError as error:
            refuse_recount(error)
            versions.append(None)
    return research, versions, people


def refuse_recount(error):
    """Raise if a recount has found something, which it does not where cells are made as they should be."""
    if "recount" in str(error):
        raise error


def attacked(number, leavers):
    """Return what an intruder finds in all releases of a series, and how many research files and versions it has."""
    research, versions, tables_ = series(number, leavers)
    every, public = [], []
    for release, version, table in zip(research, versions, tables_, strict=True):
        every.append(published(release.published, table, NAMES, table["id"].to_pylist(), "diagnosis"))
        if version is not None:
            # What it is computed from are published values, which are nobody's own even where they are equal.
            own = {name: [f"published {value}" for value in release.published[name].to_pylist()] for name in NAMES}
            taken = pa.array(version.series.plan.records)
            key = table["id"].take(taken).to_pylist()
            public.append(published(version.published, pa.table(own).take(taken), NAMES, key, "diagnosis"))
    if not research:
        return [], 0, 0
    there = set(tables_[-1]["id"].to_pylist())
    everybody = set().union(*({person for person, *_ in release} for release in every))
    spared = everybody - there if leavers == "state" else frozenset()
    found = Intruder(every + public).attack(K, L, spared=spared)
    if public:
        there = {person for person, *_ in public[-1]}
        spared = everybody - there if leavers == "state" else frozenset()
        found += Intruder(public).attack(2 * K, L, spared=spared)
    return found, len(research), len(public)
