"""k-anonymity: every class has at least k records. The partition keeps it; here it is recounted."""

from dataclasses import dataclass

import numpy as np

from shoal.typing import Labels


@dataclass(frozen=True)
class KAnonymity:
    """Every class has at least `k` records.

    Examples
    --------
    >>> import numpy as np
    >>> KAnonymity(2).measure(np.array([0, 0, 1, 1, 1]))
    (2, True)
    """

    k: int

    def measure(self, class_ids: Labels) -> tuple[int, bool]:
        """Return the size of the smallest class, and whether that is enough."""
        smallest = int(np.unique(class_ids, return_counts=True)[1].min(initial=len(class_ids)))
        return smallest, smallest >= self.k
