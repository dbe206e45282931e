"""Synthetic records by SmartNoise, run by a Python that has it: smartnoise_records.py IN.npy OUT.npy METHOD EPSILON.

Records are shares of public ranges. SmartNoise needs categories: eight equal bins, released as their midpoints. Its
neighbouring tables differ by adding or removing a record, and replacing one is two such steps: it gets half of epsilon.
"""

import sys

import numpy as np
import pandas as pd
from snsynth import Synthesizer

BINS = 8

if __name__ == "__main__":
    records, output, method, epsilon = sys.argv[1:]
    X = np.load(records)
    binned = pd.DataFrame(np.minimum((X * BINS).astype(int), BINS - 1), columns=[f"c{j}" for j in range(X.shape[1])])
    synthesizer = Synthesizer.create(method, epsilon=float(epsilon) / 2)
    synthesizer.fit(binned, categorical_columns=list(binned.columns), preprocessor_eps=0.0)
    np.save(output, (synthesizer.sample(len(X)).to_numpy().astype(float) + 0.5) / BINS)
