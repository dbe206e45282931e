"""Metrics: information loss, utility and disclosure risk of a release."""

from shoal.measures.bound import Bound, lower_bound
from shoal.measures.class_risk import class_risk, uniqueness
from shoal.measures.interval import interval_disclosure
from shoal.measures.linkage import linkage
from shoal.measures.loss import Loss, loss
from shoal.measures.matching import matching
from shoal.measures.ncp import Ncp, ncp
from shoal.measures.quality import Quality
from shoal.measures.table_risk import Risk
from shoal.measures.utility import nominal_utility, numeric_utility

__all__ = [
    "Bound",
    "Loss",
    "Ncp",
    "Quality",
    "Risk",
    "class_risk",
    "interval_disclosure",
    "linkage",
    "loss",
    "lower_bound",
    "matching",
    "ncp",
    "nominal_utility",
    "numeric_utility",
    "uniqueness",
]


def __dir__() -> list[str]:
    return sorted(__all__)
