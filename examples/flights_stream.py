"""Departures as they arrive, k-anonymous: no flight can be distinguished from those of nine other aircraft.

The subject is the aircraft (tailnum): it flies several times a day, so ten flights are not yet ten aircraft. The data
are the flights of nycflights13 (SHOAL_DATA names their folder); without them the example uses made-up data and says
so. The picture shows loss and order for several delays.

    python examples/flights_stream.py [--output FOLDER]
"""

import argparse
import os
from pathlib import Path

import pandas as pd
from stand_ins import flights_like, where
from stream_picture import draw

from shoal.stream import Stream

K = 10
QUASI = ["dep_time", "dep_delay", "air_time", "distance"]


def flights(n: int) -> pd.DataFrame:
    """Return the first flights of the year without missing values."""
    path = where("nycflights13_flights.csv.gz")
    if path is None:
        print("The flights were not found (SHOAL_DATA names the data folder); made-up data are used instead.")
        return flights_like(n)
    columns = [*QUASI, "tailnum", "carrier", "dest"]
    return pd.read_csv(path, usecols=columns, nrows=2 * n).dropna()[columns].head(n).reset_index(drop=True)


def run(table: pd.DataFrame, delay: int, order_weight: float) -> dict[str, float]:
    """Push the flights through a stream, a hundred at a time."""
    stream = Stream(
        K,
        quasi_identifiers=QUASI,
        confidential=["carrier", "dest"],
        subject="tailnum",
        delay=delay,
        order_weight=order_weight,
        ranges={"dep_time": (0, 2400), "dep_delay": (-30, 300), "air_time": (0, 700), "distance": (0, 5000)},
    )
    released = [stream.push(table[begin : begin + 100]) for begin in range(0, len(table), 100)]
    released.append(stream.flush())
    out = pd.concat(released)
    smallest = out.groupby(QUASI).size().min()
    summary = stream.summary()
    assert smallest >= K
    assert summary.n_in == summary.n_released + summary.n_side
    print(
        f"delay {delay:>5}, weight {order_weight:<6g} IL {100 * summary.il:6.2f} %, moved "
        f"{summary.displacement_mean:6.1f} places on average, aside {summary.n_side}, smallest cell {smallest}"
    )
    return {"delay": delay, "weight": order_weight, "il": 100 * (summary.il or 0.0), "moved": summary.displacement_mean}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="folder for the picture")
    parser.add_argument("--n", type=int, default=int(os.environ.get("SHOAL_EXAMPLE_SIZE", "20000")))
    given = parser.parse_args()
    table = flights(given.n)
    runs = [run(table, delay, weight) for delay in (50, 200, 1000) for weight in (0.0, 0.001, 0.01, 0.1)]
    if given.output:
        draw(runs, "Flights: delay, loss and order", given.output / "flights_stream.png")


if __name__ == "__main__":
    main()
