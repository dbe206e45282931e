"""Numbers printed in the paper: its table 2, and the losses and times given in its text."""

from typing import NamedTuple

TABLE_2 = {
    3: (17.228, 16.881, 5.931, 5.803, 0.530, 0.428),
    4: (19.396, 19.181, 7.880, 7.638, 0.661, 0.599),
    5: (22.110, 21.847, 9.357, 8.980, 1.651, 0.910),
    6: (26.220, 25.971, 10.623, 10.357, 1.416, 1.238),
    7: (27.695, 27.636, 11.874, 11.476, 2.348, 1.728),
    8: (29.625, 29.441, 12.775, 12.411, 2.729, 1.920),
    9: (31.303, 31.247, 13.699, 13.360, 2.959, 2.151),
    10: (33.186, 33.088, 14.442, 13.959, 3.242, 2.590),
    15: (39.166, 39.120, 17.606, 17.216, 5.198, 4.922),
    20: (43.315, 43.264, 20.289, 19.629, 6.567, 6.518),
    25: (47.551, 47.438, 21.795, 21.460, 8.472, 8.443),
    30: (49.554, 49.466, 23.474, 23.068, 10.202, 10.015),
    35: (52.693, 52.590, 24.474, 24.184, 11.416, 10.710),
    40: (54.809, 54.731, 25.638, 25.188, 11.802, 11.761),
    45: (56.880, 56.867, 27.291, 26.721, 13.224, 13.194),
    50: (58.597, 58.568, 28.310, 28.224, 14.171, 14.122),
}
"""Information loss in percent by k: Tarragona, Census and EIA-10, each after phase I and after both."""

SIZES = tuple(TABLE_2)
"""The k of table 2 and of figures 5 to 7 and 10."""

IN_TEXT = {
    ("census", 45): {
        "Diameter": 33.66,
        "Diameter+": 29.58,
        "Centroid": 31.01,
        "Centroid+": 29.21,
        "TFRP_I": 27.29,
        "TFRP": 26.72,
    },
    ("eia-11", 9): {
        "Diameter": 2.90,
        "Diameter+": 2.32,
        "Centroid": 3.07,
        "Centroid+": 2.34,
        "TFRP_I": 3.35,
        "TFRP": 2.15,
    },
}
"""The losses that sections 4.2 and 4.3 give as differences, computed."""


class Printed(NamedTuple):
    """One entry of table 2."""

    data: str
    k: int
    phases: int
    il: float


def table_2() -> list[Printed]:
    """Return all 96 entries of table 2."""
    columns = [(data, phases) for data in ("tarragona", "census", "eia-10") for phases in (1, 2)]
    return [
        Printed(data, k, phases, row[column])
        for column, (data, phases) in enumerate(columns)
        for k, row in TABLE_2.items()
    ]
