"""Laboratory results as they arrive, k-anonymous: five people in every cell, though some are tested hundreds of times.

The data are the readings of the NAFLD study (SHOAL_DATA names their folder); without them the example uses
made-up data and says so. The day and the kind of test are quasi-identifiers, the value is confidential, and every cell
holds at least three different values.

    python examples/laboratory_stream.py [--output FOLDER]
"""

import argparse
import os
from pathlib import Path

import pandas as pd
from stand_ins import laboratory_like, where
from stream_picture import draw

from shoal import LDiversity
from shoal.stream import Stream

K = 5


def readings(n: int) -> pd.DataFrame:
    """Return some readings from the middle of the study, in temporal order."""
    path = where("nafld_lab_stream.csv.gz")
    if path is None:
        print("The readings were not found (SHOAL_DATA names the data folder); made-up data are used instead.")
        return laboratory_like(n)
    return pd.read_csv(path, skiprows=range(1, 100_001), nrows=n).dropna().reset_index(drop=True)


def run(table: pd.DataFrame, delay: int, order_weight: float) -> dict[str, float]:
    """Push the readings through a stream, as they might come from a laboratory."""
    aside: list[str] = []
    stream = Stream(
        K,
        quasi_identifiers=["days", "test"],
        confidential=["value"],
        subject="id",
        models=[LDiversity("value", l=3)],
        delay=delay,
        order_weight=order_weight,
        ranges={"days": (-8000, 8000)},
        on_side=lambda rows, reasons: aside.extend(reasons),
    )
    released = [stream.push(table[begin : begin + 250]) for begin in range(0, len(table), 250)]
    released.append(stream.flush())
    out = pd.concat(released)
    cells = out.groupby(["days", "test"])["value"]
    summary = stream.summary()
    assert cells.size().min() >= K
    assert cells.nunique().min() >= 3
    assert summary.n_in == summary.n_released + summary.n_side
    assert len(aside) == summary.n_side
    print(
        f"delay {delay:>5}, weight {order_weight:<6g} MSE {summary.mse:.5f}, moved {summary.displacement_mean:6.1f} "
        f"places on average, aside {summary.n_side}, smallest cell {cells.size().min()}"
    )
    return {"delay": delay, "weight": order_weight, "il": summary.mse, "moved": summary.displacement_mean}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="folder for the picture")
    parser.add_argument("--n", type=int, default=int(os.environ.get("SHOAL_EXAMPLE_SIZE", "20000")))
    given = parser.parse_args()
    table = readings(given.n)
    runs = [run(table, delay, weight) for delay in (50, 200, 1000) for weight in (0.0, 0.001, 0.01, 0.1)]
    if given.output:
        draw(runs, "Laboratory: delay, loss and order", given.output / "laboratory_stream.png", loss="MSE")


if __name__ == "__main__":
    main()
