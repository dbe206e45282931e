"""Run linkage once in a separate process, so that another version of shoal can be measured beside this one.

``one_linkage.py FILE THREADS`` links the records in the .npz file (X, points, labels, asked) and prints the CPU time
and a digest of the ranks as JSON.
"""

import hashlib
import json
import sys
from time import process_time

import numpy as np

from shoal import kernels


def main(file: str, threads: str) -> None:
    with np.load(file) as arrays:
        X, points, labels, asked = (arrays[name] for name in ("X", "points", "labels", "asked"))
    with kernels.using(threads=int(threads)):
        start = process_time()
        ranks = kernels.linkage(X, points, labels, asked)
        seconds = process_time() - start
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for pair in ranks for part in pair))
    print(json.dumps({"seconds": seconds, "digest": digest.hexdigest()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
