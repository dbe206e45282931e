"""ModelOnColumn refine: lower the loss of a partition by steps that no model forbids.

`shoal.partition.refine` under a veto. What keeps every model at the start keeps it at the end.
"""

from collections.abc import Sequence

import numpy as np

from shoal import kernels
from shoal.arrays import as_cell_size, as_matrix
from shoal.cells.enforce import checked
from shoal.errors import GuaranteeError, ParameterError
from shoal.models.model import Model
from shoal.models.model_on_column import ModelOnColumn, vetoes_of
from shoal.typing import Labels, Matrix


def guarded_refine(
    X: Matrix,
    labels: Labels,
    k: int,
    models: Sequence[ModelOnColumn | tuple[Model, Labels, int, bool]],
    *,
    rounds: int = 20,
    neighbours: int = 20,
    least_gain: float = 0.002,
) -> Labels:
    """Return a partition that keeps k and every model as `labels` does, with at most its loss.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Quasi-identifiers in the space.
    labels : ndarray of shape (n_records,)
        Cell number of each record, from 0 and without gaps. Keeps k and every model; see `enforce` for any other.
    k : int
        Smallest cell size.
    models : sequence of (model, codes, n_values, ordered)
        Who has a veto; see `shoal.models.encode`.
    rounds, neighbours, least_gain
        At most so many rounds over pairs of cells and so many neighbours of each; a round that lowers the loss by less
        than this share is the last.

    Returns
    -------
    labels : ndarray of shape (n_records,), int64
        Cell number of each record, from 0 and without gaps.

    Raises
    ------
    GuaranteeError
        If `labels` breaks k or a model.

    Notes
    -----
    Near-linear in the records. Nothing is random, and there is one thread: the same start gives the same end. Records
    move, two swap, several go around in a circle, and cells of 2k and more are cut in two, each only if the sum of
    squared distances falls and no model says no.

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
                f"{each.model} is broken by {found.n_failing} of {found.n_classes} cells to begin with. Use enforce."
            )
    effort = kernels.Effort(rounds, neighbours, least_gain, at_any_cost=False)
    return kernels.guarded_search(matrix, start, k, vetoes_of(kept), effort)
