"""Measure the app as a browser meets it: start, a page of 300 columns, every page while a release is being made.

The release is that of gov_census (204,309 records, 17 columns); without that file, its part is left out and said so.
CPU seconds of the server stand beside wall time, because they tell more on a busy machine; so does the load.
"""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import click
import numpy as np

from bench_partition import ROOT, circumstances
from materials import data_folder
from measure import say

RESULTS = ROOT / "benchmarks" / "results" / "app.json"
DATA = "gov_census.csv.gz"
PAGES = ("file", "columns", "protection", "try", "release", "closer", "history")


class Visitor:
    """A browser without a screen: `shoal app` in a process of its own, and a session with it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        began = perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "shoal.cli", "app", "--no-browser", *arguments],
            cwd=folder,
            env={**os.environ, "XDG_STATE_HOME": str(folder / "state")},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        address = self._process.stdout.readline().split()[-1]
        self.ready = perf_counter() - began
        self.ready_cpu = self.cpu()
        self._open = build_opener(HTTPCookieProcessor())
        self.url = self._open.open(address).url.rpartition("/")[0]

    def cpu(self) -> float | None:
        """Return the CPU seconds that the server has used so far, on Linux."""
        stat = Path(f"/proc/{self._process.pid}/stat")
        if not stat.exists():
            return None
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def get(self, page: str) -> tuple[str, float]:
        """Return a page, and the seconds until it was here."""
        began = perf_counter()
        text = self._open.open(f"{self.url}/{page}").read().decode()
        return text, perf_counter() - began

    def post(self, page: str, **fields: Any) -> None:
        """Send a form of a page."""
        path = "/" + f"{self.url}/{page}".split("/", 3)[3]
        text, _ = self.get(page)
        form = text[text.index(f'action="{path}"') :]
        tokens = {name: unescape(re.search(rf'name="{name}" value="([^"]*)"', form)[1]) for name in ("csrf", "at")}  # type: ignore[index]
        origin = "/".join(self.url.split("/")[:3])
        body = urlencode({**tokens, **fields}, doseq=True).encode()
        self._open.open(Request(f"{self.url}/{page}", body, {"Origin": origin}))

    def wait(self, page: str) -> str:
        """Return a page once nothing runs on it any more."""
        while "data-events" in (text := self.get(page)[0]):
            sleep(0.2)
        return text

    def close(self) -> None:
        """End the app."""
        self._process.send_signal(signal.SIGINT)
        self._process.communicate()


@click.command()
@click.option("--quick", is_flag=True, help="Small tables, to check that it works.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS, show_default=True)
def main(quick: bool, output: Path) -> None:
    """Measure the app."""
    rounds = 2 if quick else 5
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        load = os.getloadavg()[0]
        result = {
            **circumstances(quick),
            "load": load,
            "ready": ready(folder, rounds),
            "wide": wide(folder, 20 if quick else 300),
        }
        result["busy"] = busy(folder, quick)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n")


def ready(folder: Path, rounds: int) -> dict[str, Any]:
    """Time from the command to the printed address."""
    times, cpu = [], []
    for _ in range(rounds):
        visitor = Visitor(folder)
        times.append(visitor.ready)
        cpu.append(visitor.ready_cpu or 0.0)
        visitor.close()
    say(f"ready in {min(times):.2f} s at best, {median(times):.2f} s usually, {min(cpu):.2f} s of CPU; goal: 1.5 s")
    return {"seconds": min(times), "median": median(times), "cpu": min(cpu), "runs": rounds}


def wide(folder: Path, n_columns: int) -> dict[str, Any]:
    """Time of the page that shows many columns, all of them decided on."""
    values = np.random.default_rng(1).integers(1, 90, size=(500, n_columns))
    lines = [",".join(f"c{i}" for i in range(n_columns)), *(",".join(map(str, row)) for row in values)]
    (folder / "wide.csv").write_text("\n".join(lines) + "\n")
    visitor = Visitor(folder, "wide.csv")
    visitor.wait("file")
    visitor.post("columns", **{f"role-{i}": "quasi-identifier" for i in range(n_columns)})
    before = visitor.cpu() or 0.0
    times = [visitor.get("columns")[1] for _ in range(20)]
    cpu = ((visitor.cpu() or 0.0) - before) / len(times)
    visitor.close()
    told = f"{min(times):.3f} s at best, {median(times):.3f} s usually, {cpu:.3f} s of CPU"
    say(f"{n_columns} columns in {told}; goal: 0.3 s")
    return {"columns": n_columns, "seconds": min(times), "median": median(times), "largest": max(times), "cpu": cpu}


def busy(folder: Path, quick: bool) -> dict[str, Any] | None:
    """Time of every page while a release is being made."""
    data = data_folder()
    if data is None or not (data / DATA).exists():
        say(f"{DATA} not found; SHOAL_DATA may name the folder that has it")
        return None
    path = folder / "gov_census.csv"
    with gzip.open(data / DATA, "rt", encoding="utf-8") as packed, path.open("w", encoding="utf-8") as file:
        if quick:
            file.writelines(line for _, line in zip(range(5000), packed, strict=False))
        else:
            shutil.copyfileobj(packed, file)
    n_columns = path.open().readline().count(",") + 1
    visitor = Visitor(folder, path.name)
    visitor.wait("file")
    visitor.post("columns", **{f"role-{i}": "quasi-identifier" for i in range(n_columns)})
    while asked := re.search(r'class="finding asked".*?value="(\d+\.\d+\.0)"', visitor.wait("columns"), re.DOTALL):
        visitor.post("columns", remedy=asked[1])
    visitor.post("protection", k=10, missing="own-value", seed=1)
    visitor.wait("protection")
    visitor.post("release", path="release.parquet")
    times: dict[str, list[float]] = {page: [] for page in PAGES}
    began = perf_counter()
    while "data-events" in visitor.get("release")[0]:
        for page in PAGES:
            times[page].append(visitor.get(page)[1])
        sleep(0.1)
    seconds = perf_counter() - began
    made = "hides among" in visitor.get("release")[0]
    visitor.close()
    slowest = max(times, key=lambda page: max(times[page], default=0.0))
    every = [each for page in times.values() for each in page]
    say(
        f"{len(every)} pages while a release took {seconds:.1f} s: {median(every):.3f} s usually, "
        f"{max(every):.3f} s at most ({slowest}); goal: 0.5 s"
    )
    return {
        "data": DATA,
        "release_made": made,
        "release_seconds": seconds,
        "pages": {
            page: {"n": len(found), "median": median(found), "largest": max(found)} for page, found in times.items()
        },
        "median": median(every),
        "largest": max(every),
    }


if __name__ == "__main__":
    main()
