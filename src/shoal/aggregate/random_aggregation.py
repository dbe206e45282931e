"""Random aggregation: the records of a cell are scattered around its mean (``docs/random.md``)."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.aggregate.centred import Centred, rounded
from shoal.aggregate.members import Members
from shoal.columns.schema import Column, Kind, Schema
from shoal.errors import SchemaError, listed
from shoal.typing import Labels


class RandomAggregation(NamedTuple):
    """Random aggregation: how far records are moved from the mean of their cell, and the seed of the noise."""

    rho: float
    seed: int

    def generator(self) -> np.random.Generator:
        """Return the source of the noise: a stream of its own, so that other uses of the seed reveal nothing of it."""
        return np.random.default_rng([0x5CA77E6, self.seed])


def check_random_aggregation(schema: Schema) -> None:
    """Refuse random aggregation of columns without a mean, and together with households."""
    unfit = [column.name for column in schema.quasi if column.kind is not Kind.NUMERIC or column.aggregate != "mean"]
    if unfit:
        raise SchemaError(
            f"Random aggregation (rho) needs numeric quasi-identifiers that are aggregated by their mean; these are "
            f"not: {listed(unfit)}. Leave rho out, or give them another role."
        )
    if schema.roles.household is not None:
        raise SchemaError(
            "Random aggregation (rho) gives every record its own values, but a household column requires equal ones. "
            "Leave one of them out."
        )


def randomized_values(
    values: pa.ChunkedArray, column: Column, members: Members, labels: Labels, rho: float, noise: np.random.Generator
) -> pa.Array:
    """Return m + u for each record, u uniform between rho (min - m) and rho (max - m) of its cell."""
    centred = Centred.of(values)
    # Cells without values are published as missing, whatever stands here.
    means = np.where(members.sizes == 0, 0.0, members.means(centred.offsets))
    lows, highs = members.extremes(centred.offsets)
    below, above = rho * (lows - means), rho * (highs - means)
    offsets = (means + below)[labels] + noise.random(len(labels)) * (above - below)[labels]
    # Rounding must not carry a value out of the range of its cell.
    return rounded(np.clip(offsets, lows[labels], highs[labels]), centred, column)
