"""Differentially private releases, with proofs and with noise from OpenDP.

`marginals` publishes every column separately, `joint` whole records of a few kinds. Both protect one record among a
public number of records (replace-one neighbours), need public bounds, and publish nothing else of the original.
``docs/dp.md`` has the proofs. These releases share no guarantee with k-anonymous ones: they make no claim about k, take
no seed, and their manifests hold no statistic of the original.
"""

from shoal.dp.dp_release import DpRelease
from shoal.dp.joint import joint
from shoal.dp.marginals import marginals

__all__ = ["DpRelease", "joint", "marginals"]


def __dir__() -> list[str]:
    return sorted(__all__)
