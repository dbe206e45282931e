"""Bucket steering: t-closeness by steering alone (Domingo-Ferrer and Soria-Comas 2017, algorithm 1).

Records are numbered within buckets of the confidential column so that records with the same number are near each other
and come from different buckets; the number, weighted, steers the partition. It guarantees nothing.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from shoal.constraints.steering import chain_numbers
from shoal.errors import ParameterError
from shoal.methods import partition
from shoal.methods.steer import steer
from shoal.models.model import as_fraction
from shoal.models.model_on_column import ModelOnColumn
from shoal.typing import Labels, Matrix, Seed, Vector


def n_buckets(n_records: int, k: int, t: float) -> int:
    """Return the number of buckets that t-closeness needs if all values are distinct (equation 2)."""
    exact = Fraction(n_records) / (2 * (n_records - 1) * as_fraction(t) + 1)
    return min(max(k, -(-exact.numerator // exact.denominator)), n_records)


def bucket_attribute(X: Matrix, codes: Labels, n: int) -> Vector:
    """Return, for each record, the number of the first record of the chain it is in, from 1.

    The records, sorted by code, are cut into `n` buckets. Each record of a bucket, in record order, takes the number of
    the nearest record of the previous bucket whose number is still free (steps 3 to 6).

    Takes one tree search for each record.
    """
    order = np.lexsort((np.arange(len(codes)), codes))
    return chain_numbers(X, (np.sort(bucket) for bucket in np.array_split(order, n)))


def steered(
    X: Matrix, codes: Labels, k: int, t: float, weight: float, method: str, seed: Seed, **options: Any
) -> Labels:
    """Return a partition steered by the buckets of a confidential column, with one record per bucket in each cell.

    The columns are scaled by one factor to a range of at most 1, to which weights are relative. Further options are
    those of `shoal.partition`.
    """
    n = n_buckets(len(X), k, t)
    widest = float((X.max(axis=0) - X.min(axis=0)).max(initial=0.0))
    unit = X / widest if widest > 0 else X
    return partition(steer(unit, bucket_attribute(unit, codes, n), weight), n, method, seed, **options)


def refuse_second_weight(steering: Sequence[ModelOnColumn]) -> None:
    """Refuse more than one model with a weight."""
    if len(steering) > 1:
        raise ParameterError(
            f"{len(steering)} models have a weight, but only one model can steer the partition. Leave out the weights "
            "of the others; they are then enforced."
        )
