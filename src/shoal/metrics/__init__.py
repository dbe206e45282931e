"""How good and how safe a release is."""

from shoal.metrics.bound import Bound, lower_bound
from shoal.metrics.loss import Loss, loss

__all__ = ["Bound", "Loss", "loss", "lower_bound"]
