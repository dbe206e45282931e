"""Made-up data that resemble the real ones, for machines without them."""

import os
from pathlib import Path

import numpy as np
import pandas as pd


def where(file: str) -> Path | None:
    """Return the path of a data file, if it is available."""
    path = Path(os.environ.get("SHOAL_DATA", "shared/data")) / file
    return path if path.is_file() else None


def flights_like(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    distance = rng.choice([200, 500, 760, 1000, 1400, 2500], n)
    return pd.DataFrame(
        {
            "dep_time": np.sort(rng.integers(500, 2300, n)),
            "dep_delay": np.minimum(np.round(rng.exponential(20, n) - 8), 290),
            "air_time": np.round(distance / 7 + rng.normal(0, 10, n)),
            "distance": distance,
            "tailnum": [f"N{i}" for i in rng.integers(0, max(40, n // 20), n)],
            "carrier": rng.choice(["UA", "B6", "EV", "DL", "AA"], n),
            "dest": rng.choice(["ORD", "ATL", "LAX", "BOS", "MCO"], n),
        }
    )


def laboratory_like(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    test = rng.choice(["hdl", "chol", "dbp", "sbp", "smoke", "fib4"], n)
    middle = pd.Series(test).map({"hdl": 50, "chol": 190, "dbp": 75, "sbp": 130, "smoke": 0.5, "fib4": 1.3})
    people = np.minimum(rng.zipf(1.6, n), max(60, n // 10))
    value = np.round(middle * rng.lognormal(0, 0.2, n), 1)
    return pd.DataFrame({"id": people, "days": np.sort(rng.integers(-3000, 3000, n)), "test": test, "value": value})
