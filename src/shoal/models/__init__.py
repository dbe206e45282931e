"""Privacy models for confidential columns, beyond k-anonymity: one model per file, and the registry.

Every model can be recounted from classes and values alone (`measure`), and adds a veto to the search for a low loss.
`shoal.constraints.enforce` makes partitions that satisfy the models.
"""

from shoal.models.alpha_k import AlphaK
from shoal.models.beta_likeness import BetaLikeness
from shoal.models.codes import Codes, encode
from shoal.models.delta_disclosure import DeltaDisclosure
from shoal.models.l_diversity import LDiversity
from shoal.models.model import Model, Reached
from shoal.models.model_on_column import ModelOnColumn
from shoal.models.p_sensitive import PSensitive
from shoal.models.t_closeness import TCloseness
from shoal.typing import Labels

__all__ = [
    "MODELS",
    "AlphaK",
    "BetaLikeness",
    "Codes",
    "DeltaDisclosure",
    "LDiversity",
    "Model",
    "ModelOnColumn",
    "PSensitive",
    "Reached",
    "TCloseness",
    "encode",
    "measure",
]


def __dir__() -> list[str]:
    return sorted(__all__)


MODELS: dict[str, type[Model]] = {
    "t-closeness": TCloseness,
    "l-diversity": LDiversity,
    "p-sensitivity": PSensitive,
    "delta-disclosure": DeltaDisclosure,
    "beta-likeness": BetaLikeness,
    "alpha-k": AlphaK,
}


def measure(
    model: Model, class_ids: Labels, codes: Labels, n_values: int, ordered: bool, subjects: Labels | None = None
) -> Reached:
    """Recount a model from the class of each record and the codes of its column alone.

    With `subjects`, the person of each record, every person is counted once for each value.

    Examples
    --------
    >>> import numpy as np
    >>> found = measure(LDiversity("diagnosis", l=2), np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 2, ordered=False)
    >>> found.value, found.n_failing, found.holds
    (1.0, 1, False)
    """
    return model.measure(class_ids, Codes(codes, n_values, ordered, subjects))
