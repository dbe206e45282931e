"""What these scripts share with `papers`, which a script that is run by its path finds here."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from papers.data_and_results import (
    CENSUS_COLUMNS,
    COVERTYPE_COLUMNS,
    Missing,
    Source,
    agreement,
    census,
    covertype,
    data_folder,
    gaussian,
    machine,
    read_columns,
    timed,
)

__all__ = [
    "CENSUS_COLUMNS",
    "COVERTYPE_COLUMNS",
    "Missing",
    "Source",
    "agreement",
    "census",
    "covertype",
    "data_folder",
    "gaussian",
    "machine",
    "read_columns",
    "timed",
]
