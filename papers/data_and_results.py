"""What the papers and the benchmarks share: data files, random samples, times, and result files."""

import gzip
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from shoal import datasets
from shoal.errors import ParameterError
from shoal.files import replacing
from shoal.typing import Labels, Matrix

COVERTYPE_COLUMNS = (
    "elevation",
    "aspect",
    "slope",
    "horizontal_distance_to_hydrology",
    "vertical_distance_to_hydrology",
    "horizontal_distance_to_roadways",
    "hillshade_9am",
    "hillshade_noon",
    "hillshade_3pm",
    "horizontal_distance_to_fire_points",
)
CENSUS_COLUMNS = (
    "age",
    "citizenship",
    "family_size",
    "children",
    "education_level",
    "english_level",
    "salary",
    "hours_worked",
    "weeks_worked",
)

GAUSSIAN_DIMS = 15


class Source(NamedTuple):
    """A data set to draw random samples from."""

    name: str
    origin: str
    n_dims: int
    records: Matrix | None
    """None: independent standard normal numbers, generated on demand."""

    def holds(self, n: int) -> bool:
        """Return whether `n` different records can be drawn."""
        return self.records is None or len(self.records) >= n

    def sample(self, n: int, rng: np.random.Generator) -> Matrix:
        """Draw `n` records without repetition, in random order."""
        if self.records is None:
            return rng.normal(size=(n, self.n_dims))
        return self.records[rng.choice(len(self.records), n, replace=False)]


class Missing(NamedTuple):
    """A data set that is not available, with the reason."""

    name: str
    reason: str


def gaussian() -> Source:
    """Return independent standard normal columns, as many as the larger sets of the literature have."""
    return Source("gaussian", f"standard normal, {GAUSSIAN_DIMS} columns", GAUSSIAN_DIMS, None)


TWO_TYPES = "covertype, types 2 and 4"


def covertype(n: int) -> Source | Missing:
    """Return the covertype records: all seven types if `n` of them are available, else types 2 and 4, so named."""
    files = {"covertype_sample.csv.gz": 92_962, "covertype_two_class.csv.gz": 286_048}
    source = _from_files("covertype", tuple(files.items()), n)
    return source._replace(name=TWO_TYPES) if isinstance(source, Source) and "two_class" in source.origin else source


def census(n: int) -> Source | Missing:
    """Return the nine numeric columns of the American Community Survey records."""
    return _from_files("census", (("gov_census.csv.gz", 204_309),), n)


def unit(X: Matrix) -> Matrix:
    """Scale each column to [0, 1]."""
    return np.asarray((X - X.min(axis=0)) / np.ptp(X, axis=0))


def mcd() -> Matrix:
    """Return the moderately correlated data of steered microaggregation: TAXINC and POTHVAL of Census, from 0 to 1."""
    data = datasets.census()
    return unit(data.X[:, [list(data.columns).index(name) for name in ("TAXINC", "POTHVAL")]])


def data_folder() -> Path | None:
    """Find the folder of large data files: SHOAL_DATA, or ``shared/data`` in or beside the project."""
    named = os.environ.get("SHOAL_DATA")
    if named:
        if not Path(named).is_dir():
            raise ParameterError(f"SHOAL_DATA names {named!r}, which is not a folder. Correct it or unset it.")
        return Path(named)
    return next((folder for folder in _usual_folders() if folder.is_dir()), None)


def _usual_folders() -> Iterator[Path]:
    project = Path(__file__).resolve().parents[1]
    for start in (Path.cwd(), project):
        yield start.parent / "shared" / "data"
        yield start / "shared" / "data"


def _from_files(name: str, files: tuple[tuple[str, int], ...], n: int) -> Source | Missing:
    """Read the first available file with `n` records, else the last available one."""
    sizes, folder = dict(files), data_folder()
    if folder is None:
        return Missing(name, "no data folder found; SHOAL_DATA may name one")
    there = [file for file in sizes if (folder / file).is_file()]
    if not there:
        return Missing(name, f"{' or '.join(sizes)} not in the data folder")
    file = next((file for file in there if sizes[file] >= n), there[-1])
    records = _read_once(folder / file, CENSUS_COLUMNS if name == "census" else COVERTYPE_COLUMNS)
    return Source(name, file, records.shape[1], records)


@cache
def _read_once(path: Path, columns: tuple[str, ...]) -> Matrix:
    return read_columns(path, columns)


def read_columns(path: Path, columns: tuple[str, ...]) -> Matrix:
    """Read the named numeric columns of a comma-separated file with one header line, gzipped or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        header = lines.readline().strip().split(",")
        absent = [column for column in columns if column not in header]
        if absent:
            raise ParameterError(f"{path.name} lacks the column(s) {', '.join(absent)}; it has {', '.join(header)}.")
        where = [header.index(column) for column in columns]
        return np.loadtxt(lines, delimiter=",", usecols=where, ndmin=2, dtype=np.float64)


def timed(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, float]:
    """Call a function; return its result and its processor time, which other load on the machine does not affect."""
    start = process_time()
    result = function(*arguments, **options)
    return result, max(process_time() - start, 1e-6)


def agreement(labels: Labels, others: Labels) -> float:
    """Return the share of records whose cell holds exactly the same records in both partitions.

    Examples
    --------
    >>> agreement(np.array([0, 0, 1, 1, 2, 2]), np.array([5, 5, 3, 4, 3, 4]))
    0.3333333333333333
    """
    pairs, pair_of = np.unique(np.stack([labels, others]), axis=1, return_inverse=True)
    shared = np.bincount(pair_of.ravel())
    same = (shared == np.bincount(labels)[pairs[0]]) & (shared == np.bincount(others)[pairs[1]])
    return float(shared[same].sum() / len(labels))


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit NumPy's matrix products to one thread, as in the papers, if threadpoolctl is installed."""
    try:
        limits = import_module("threadpoolctl").threadpool_limits
    except ModuleNotFoundError:
        yield
        return
    with limits(1):
        yield


def machine() -> dict[str, str | int]:
    """Return versions and hardware for a result file, without host name or paths."""
    from shoal import __version__

    return {
        "shoal": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": platform.system(),
        "cpu": _cpu_name(),
        "cores": os.cpu_count() or 1,
    }


def _cpu_name() -> str:
    """Return the model name of the processor, or the architecture if there is none."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        named = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        if named:
            return named[0]
    if platform.system() == "Darwin":
        result = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        )
        if result.stdout.strip():
            return result.stdout.strip()
    return platform.processor() or platform.machine()


def save(path: Path, content: dict[str, Any]) -> None:
    """Write results with versions and hardware."""
    with replacing(path, force=True) as beside:
        beside.write_text(json.dumps({"machine": machine(), **content}, indent=1) + "\n", encoding="utf-8")
