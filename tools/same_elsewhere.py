"""Print hashes of cells and of published files, to compare those of two systems: python tools/same_elsewhere.py."""

import json
import sys
import tempfile
from hashlib import sha256
from itertools import islice
from pathlib import Path

import shoal
from shoal import datasets

sys.path.insert(0, str(Path(__file__).parent))
from libcxx import cells

N_CELLS = 150
METHODS = ("auto", "mdav", "topdown")
FORMATS = ("csv", "csv.gz", "parquet", "arrow", "ndjson", "sav", "dta")  # a workbook says which system has packed it
ROLES = {
    "quasi_identifiers": ["AFNLWGT", "AGI", "EMCONTRB"],
    "confidential": ["FEDTAX", "TAXINC"],
    "identifiers": ["PTOTVAL", "STATETAX", "POTHVAL", "INTVAL", "PEARNVAL", "FICA", "WSALVAL", "ERNVAL"],
}

found = {name: sha256(labels.tobytes()).hexdigest() for name, labels in islice(cells(), N_CELLS)}
for method in METHODS:
    release = shoal.anonymize(datasets.path("census"), k=4, method=method, seed=3, threads=2, **ROLES)
    for ending in FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"release.{ending}"
            release.write(file)
            found[f"{method}, {ending}"] = sha256(file.read_bytes()).hexdigest()
print(json.dumps(found, indent=0))
