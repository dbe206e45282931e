"""Differential privacy: releases with a proof, and noise from OpenDP.

`marginals` publishes every column for itself, `joint` whole records of a few kinds. Both protect one record among a
public number of them (replace-one neighbours), need public bounds, and publish nothing else of the original.
``docs/dp.md`` has the proofs. This path shares no guarantee with k-anonymous releases: it has no cells, no k claim, no
seed, and its manifest carries no statistic of the original.
"""

from shoal.dp.dp_release import DpRelease
from shoal.dp.joint import joint
from shoal.dp.marginals import marginals

__all__ = ["DpRelease", "joint", "marginals"]
