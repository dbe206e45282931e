"""A data lake on Spark: visits in a folder of Parquet files, split by year, become a release that is split by year too.

    python examples/data_lake.py [FOLDER]

writes lake/visits and lake/release into the folder. It needs `pip install 'shoal-privacy[spark]'` and Java 17 or newer.
On a cluster, `main` gets the session and paths such as s3a://lake; executors need shoal (docs/spark.md).
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import shoal


def visits(n=3_000, seed=1):
    """Invent visits of three years."""
    rng = np.random.default_rng(seed)
    days = rng.geometric(0.2, n)
    return pa.table(
        {
            "patient": rng.integers(70_000, 90_000, n),
            "age": rng.integers(1, 95, n),
            "admitted": np.datetime64("2028-01-01") + rng.integers(0, 3 * 365, n),
            "ward": rng.choice(["surgery", "medicine", "children", "maternity"], n),
            "days": days,
            "diagnosis": rng.choice(["fracture", "infection", "birth", "other"], n),
            "year": rng.choice([2028, 2029, 2030], n).astype(np.int32),
        }
    )


def main(spark, lake):
    """Read a partitioned folder, release it, and write a partitioned folder."""
    frame = spark.read.parquet(f"{lake}/visits")
    with shoal.spark.anonymize(
        frame,
        k=5,
        seed=1,
        quasi_identifiers=["age", "admitted", "ward", "days"],
        by=["year"],
        confidential=["diagnosis"],
        identifiers=["patient"],
    ) as release:
        print(release)
        written = release.write(f"{lake}/release", partition_by=["year"])
    for path in written:
        print("wrote", path)
    return release


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "lake"
    pq.write_to_dataset(visits(), folder / "visits", partition_cols=["year"])
    main(SparkSession.builder.master("local[2]").getOrCreate(), folder)
