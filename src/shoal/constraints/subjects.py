"""Subjects: if several records may belong to one person, a cell must hold k persons, not k records.

This is distinct l-diversity of the subject column with l = k, and is enforced like any model.
"""

from shoal.columns.equivalence import distinct_in_classes
from shoal.errors import GuaranteeError
from shoal.models import LDiversity, ModelOnColumn
from shoal.typing import Labels


def k_subjects(subjects: Labels, strata: Labels, k: int, name: str = "subject") -> ModelOnColumn:
    """Return the model that makes every cell hold `k` different subjects.

    Parameters
    ----------
    subjects, strata : ndarray of shape (n_records,)
        The subject and the stratum of each record, numbered from 0 and without gaps.
    k : int
        Minimum number of subjects in a cell.
    name : str
        The subject column.

    Raises
    ------
    GuaranteeError
        If a whole stratum has fewer than `k` subjects.
    """
    in_strata = distinct_in_classes(strata, subjects)
    if in_strata.min() < k:
        raise GuaranteeError(
            f"Cells of k={k} different subjects were asked for, but there are only {in_strata.min()} subjects"
            + (" in a stratum" if len(in_strata) > 1 else "")
            + ". Lower k, or leave the subject out if every record is a different person."
        )
    return ModelOnColumn(LDiversity(name, l=k), subjects, int(subjects.max()) + 1, ordered=False)
