"""Metrics: information loss, utility and disclosure risk of a release."""

from shoal.measures.bound import Bound, lower_bound
from shoal.measures.loss import Loss, loss
from shoal.measures.ncp import Ncp, ncp
from shoal.measures.risk import Risk, class_risk, interval_disclosure, linkage, matching, uniqueness
from shoal.measures.utility import nominal_utility, numeric_utility

__all__ = [
    "Bound",
    "Loss",
    "Ncp",
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
