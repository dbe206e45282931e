"""Enforce: several models at once, many strata, subjects; near the best there is, and nothing merged without need."""

import naive
import numpy as np
import pytest
from cases import as_codes
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import GuaranteeError, ParameterError, kernels, partition
from shoal.metrics import loss
from shoal.models import LDiversity, TCloseness, enforce, guarded_refine, measure

TINY = {
    "t and t": lambda a, b: [(TCloseness("a", t=0.3), *a), (TCloseness("b", t=0.3), *b)],
    "t and l": lambda a, b: [(TCloseness("a", t=0.3), *a), (LDiversity("b", l=2), *b)],
    "l and l": lambda a, b: [(LDiversity("a", l=2), *a), (LDiversity("b", l=2), *b)],
    "t": lambda a, b: [(TCloseness("a", t=0.25), *a)],
    "entropy": lambda a, b: [(LDiversity("b", l=2, kind="entropy"), *b)],
}


@st.composite
def tiny_problems(draw, n_most=9):
    """Return records that can be gone through in all partitions, and models of two of their columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(4, n_most))
    X = rng.normal(size=(n, draw(st.integers(1, 2))))
    first = as_codes((X[:, 0] + rng.normal(size=n)).round(draw(st.integers(0, 1))), draw(st.booleans()))
    second = as_codes(np.where(rng.random(n) < 0.7, X[:, -1] > 0, rng.integers(0, 3, n)), ordered=False)
    return X, TINY[draw(st.sampled_from(sorted(TINY)))](first, second)


def keeper(models, n):
    """Return what says whether some records as one cell keep every model of a table."""

    def keeps(members):
        labels = np.ones(n, dtype=np.int64)
        labels[members] = 0
        return all(off[0] == 0 for off in (veto.excess(labels, 2) for veto in vetoes))

    vetoes = [kernels.Guarantees() for _ in models]
    for veto, (model, codes, n_values, ordered) in zip(vetoes, models, strict=True):
        model.guard(veto, as_codes(codes, ordered), np.bincount(codes, minlength=n_values))
    return keeps


def enforced_or_none(X, k, models):
    try:
        return enforce(X, None, k, models, seed=1)
    except GuaranteeError:
        return None
