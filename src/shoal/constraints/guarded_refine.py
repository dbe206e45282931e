"""Guarded refine: lower the loss of a partition by steps that no model forbids.

`shoal.methods.refine` under vetoes: a partition that satisfies every model still does afterwards.
"""

from collections.abc import Sequence

import numpy as np

from shoal import kernels
from shoal.arrays import as_cell_size, as_matrix
from shoal.constraints.enforce import checked
from shoal.errors import GuaranteeError, ParameterError
from shoal.models.model import Model
from shoal.models.model_on_column import ModelOnColumn, vetoes_of
from shoal.typing import Labels, Matrix

_EFFORT = kernels.Effort(rounds=20, neighbours=20, least_gain=0.002, at_any_cost=False)


def guarded_refine(
    X: Matrix,
    labels: Labels,
    k: int,
    models: Sequence[ModelOnColumn | tuple[Model, Labels, int, bool]],
) -> Labels:
    """Lower the loss of a partition that satisfies k and every model, and keep them satisfied.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Quasi-identifiers in the space.
    labels : ndarray of shape (n_records,)
        Cell number of each record, from 0 and without gaps. Must satisfy k and every model; otherwise use `enforce`.
    k : int
        Smallest cell size.
    models : sequence of (model, codes, n_values, ordered)
        The models; see `shoal.models.encode`.

    Returns
    -------
    labels : ndarray of shape (n_records,), int64
        Cell number of each record, from 0 and without gaps.

    Raises
    ------
    GuaranteeError
        If `labels` violates k or a model.

    Notes
    -----
    Near-linear in the records. Deterministic: the result does not depend on the number of threads. Records move, two
    records swap, several rotate in a cycle, and cells of 2k or more are split in two, each only if the sum of squared
    distances decreases and no model is violated.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal.models import LDiversity
    >>> X, diagnosis = np.array([[1.0], [9.0], [2.0], [8.0]]), np.array([0, 0, 1, 1])
    >>> guarded_refine(X, np.array([0, 1, 1, 0]), 2, [(LDiversity("diagnosis", l=2), diagnosis, 2, False)])
    array([0, 1, 0, 1])
    """
    matrix = as_matrix(X)
    k = as_cell_size(k, len(matrix))
    start = np.ascontiguousarray(labels, dtype=np.int64)
    if start.shape != (len(matrix),) or start.min() < 0 or np.bincount(start).min() == 0:
        raise ParameterError(
            f"labels must number the cells of the {len(matrix)} records from 0 and without gaps; renumber with "
            "np.unique(labels, return_inverse=True)."
        )
    if np.bincount(start).min() < k:
        raise GuaranteeError(f"Cells of k={k} records were asked for, but the smallest has {np.bincount(start).min()}.")
    kept = [checked(ModelOnColumn(*given), len(matrix)) for given in models]
    for each in kept:
        found = each.model.measure(start, each.column)
        if not found.holds:
            raise GuaranteeError(
                f"{found.n_failing} of {found.n_classes} cells of labels violate {each.model}. Use enforce."
            )
    return kernels.guarded_search(matrix, start, k, vetoes_of(kept), _EFFORT)
