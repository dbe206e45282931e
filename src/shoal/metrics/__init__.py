"""How good and how safe a release is."""

from shoal.metrics.loss import Loss, loss

__all__ = ["Loss", "loss"]
