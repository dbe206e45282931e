"""Class risk: re-identification risk of records, from the sizes of their equivalence classes."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.errors import ParameterError
from shoal.measures.pairs import as_classes, as_weights
from shoal.typing import Labels, Vector


@dataclass(frozen=True)
class ClassRisk:
    """Re-identification risk from the sizes of equivalence classes.

    Attributes
    ----------
    prosecutor_max, prosecutor_mean : float
        Largest and mean 1/f, where f is the number of records in the class: the intruder knows that the person is in
        the table.
    prosecutor_above : float
        Share of records with 1/f above the threshold.
    n_highest : int
        Number of records with the highest prosecutor risk.
    journalist_max, journalist_mean, journalist_above : float
        The same with 1/F, where F is the size of the class in the population: the intruder does not know who is in the
        table.
    marketer : float
        Expected share of correct links if all records are linked: the sum over classes of f/F, divided by n.
    threshold : float
        Risks above this value count as high.
    population : str
        Source of F: ``weights``, or ``sample``, which takes F = f. The journalist risk then equals the prosecutor risk,
        which is an upper bound.
    """

    prosecutor_max: float
    prosecutor_mean: float
    prosecutor_above: float
    n_highest: int
    journalist_max: float
    journalist_mean: float
    journalist_above: float
    marketer: float
    threshold: float
    population: str

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for a report."""
        return asdict(self)


def class_risk(classes: ArrayLike, weights: ArrayLike | None = None, threshold: float = 0.1) -> ClassRisk:
    """Measure prosecutor, journalist and marketer risk.

    Parameters
    ----------
    classes : array_like of shape (n_records,)
        Equivalence class of each record in the release, as whole numbers.
    weights : array_like of shape (n_records,), optional
        Sampling weights: number of people in the population that each record represents.
    threshold : float, default 0.1
        Risks above this value count as high.

    Returns
    -------
    ClassRisk
        The three risks.

    Raises
    ------
    ParameterError
        If the classes are not whole numbers, a weight is not positive, or the threshold is not between 0 and 1.

    Notes
    -----
    The size of a class in the population is estimated by the sum of its weights, and is at least the size of the class
    in the table.

    References
    ----------
    K. El Emam, "Guide to the De-Identification of Personal Health Information", CRC Press, 2013.

    Examples
    --------
    >>> class_risk([0, 0, 0, 1, 1]).prosecutor_max
    0.5
    >>> round(class_risk([0, 0, 0, 1, 1], weights=[10, 10, 10, 40, 40]).marketer, 4)
    0.025
    """
    if not 0 <= threshold <= 1:
        raise ParameterError("threshold must be between 0 and 1; a risk is a probability.")
    numbers = as_classes(classes)
    return risk_of_sizes(np.bincount(numbers), None if weights is None else _class_sums(numbers, weights), threshold)


def risk_of_sizes(sizes: Labels, weights: Vector | None = None, threshold: float = 0.1) -> ClassRisk:
    """Measure the risks from the number of records, and the sum of the weights, of each class."""
    n_records = int(sizes.sum())
    population = sizes.astype(np.float64) if weights is None else np.maximum(weights, sizes)
    prosecutor, journalist = 1 / sizes, 1 / population
    expected = float(np.sum(sizes / population) / n_records)
    return ClassRisk(
        prosecutor_max=float(prosecutor.max()),
        prosecutor_mean=len(sizes) / n_records,
        prosecutor_above=int(sizes[prosecutor > threshold].sum()) / n_records,
        n_highest=int(sizes[prosecutor == prosecutor.max()].sum()),
        journalist_max=float(journalist.max()),
        journalist_mean=expected,
        journalist_above=int(sizes[journalist > threshold].sum()) / n_records,
        marketer=expected,
        threshold=float(threshold),
        population="sample" if weights is None else "weights",
    )


def _class_sums(classes: Labels, weights: ArrayLike) -> Vector:
    """Sum the weights in each class."""
    return np.asarray(np.bincount(classes, _as_sampling_weights(weights, len(classes))), dtype=np.float64)


def _as_sampling_weights(weights: ArrayLike, n_records: int) -> Vector:
    array = as_weights(weights, n_records)
    if not (array > 0).all():
        raise ParameterError(
            f"Sampling weights must be positive; {np.count_nonzero(array <= 0)} records have a weight of 0. A weight "
            "is the number of people that a record represents. Give every record a positive weight."
        )
    return array


@dataclass(frozen=True)
class Uniqueness:
    """Share of records whose combination of values is unique.

    Attributes
    ----------
    sample : float
        Share of records that are alone in their equivalence class.
    population : float or None
        Estimated share of records that are also unique in the population; None without weights.
    """

    sample: float
    population: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for a report."""
        return asdict(self)


def uniqueness(classes: ArrayLike, weights: ArrayLike | None = None) -> Uniqueness:
    """Count the records that are unique in the sample, and estimate how many are unique in the population.

    Parameters
    ----------
    classes, weights
        As for `class_risk`; usually those of the original table.

    Returns
    -------
    Uniqueness
        Both shares.

    Raises
    ------
    ParameterError
        If the classes are not whole numbers, or a weight is not positive.

    Notes
    -----
    In the model of Benedetti and Franconi, F given f follows a negative binomial distribution with success probability
    f / (sum of weights). A sample unique of weight w is then unique in the population with probability 1/w, or 1 if w
    is below 1.

    References
    ----------
    R. Benedetti, L. Franconi, "Statistical and technological solutions for controlled data dissemination", 1998.

    Examples
    --------
    >>> uniqueness([0, 0, 1, 2], weights=[5, 5, 2, 4])
    Uniqueness(sample=0.5, population=0.1875)
    """
    numbers = as_classes(classes)
    alone = np.bincount(numbers)[numbers] == 1
    population = None
    if weights is not None:
        population = float((alone / np.maximum(_as_sampling_weights(weights, len(numbers)), 1)).mean())
    return Uniqueness(sample=float(alone.mean()), population=population)
