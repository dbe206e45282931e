"""Metrics: information loss, utility and disclosure risk of a release."""

from shoal.metrics.bound import Bound, lower_bound
from shoal.metrics.loss import Loss, loss
from shoal.metrics.ncp import Ncp, ncp
from shoal.metrics.risk import Risk, class_risk, interval_disclosure, linkage, matching, uniqueness
from shoal.metrics.utility import nominal_utility, numeric_utility

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
