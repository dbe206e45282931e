"""Cores: the number that this process may use, by its affinity and by the quota of its control groups."""

import math
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def n_cores(root: Path = Path("/")) -> int:
    """Return the number of cores this process may use, at least 1; in a container this may be fewer than the machine's.

    A quota is rounded up: with 1.5 cores, two threads use all of it.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, math.ceil(min(cores, _quota(root))))


@cache
def _quota(root: Path) -> float:
    """Return the smallest quota of the process's control groups and those above them, in cores."""
    try:
        return min(_quotas(root), default=math.inf)
    except (OSError, ValueError):
        # The files are missing or unreadable: not Linux, or no control groups.
        return math.inf


def _quotas(root: Path) -> Iterator[float]:
    """Read the quotas of version 2 and of version 1 of control groups; a machine may have both."""
    paths = _paths(root)
    for mount, kind, options in _mounts(root):
        controllers = {""} if kind == "cgroup2" else {"cpu"} & set(options)
        for controller in controllers & paths.keys():
            for folder in _upwards(mount, paths[controller]):
                yield from _quota_of(folder)


def _paths(root: Path) -> dict[str, str]:
    """Return the control group of the process for each controller; version 2 has a single one, under ''."""
    lines = (root / "proc/self/cgroup").read_text().splitlines()
    fields = [line.split(":", 2) for line in lines]
    return {controller: path for _, controllers, path in fields for controller in controllers.split(",")}


def _mounts(root: Path) -> Iterator[tuple[Path, str, list[str]]]:
    """Yield the mount points of control groups, with their kind and options."""
    for line in (root / "proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            yield root / before.split(" ")[4].lstrip("/"), kind, options.split(",")


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """Yield the folder of a control group, if it is visible, and its parents up to the mount point."""
    folder = mount / path.lstrip("/")
    while folder != mount and mount in folder.parents:
        yield folder
        folder = folder.parent
    yield mount


def _quota_of(folder: Path) -> Iterator[float]:
    """Yield the quota of one control group, if it has one."""
    if (folder / "cpu.max").exists():
        quota, period = (folder / "cpu.max").read_text().split()
    elif (folder / "cpu.cfs_quota_us").exists():
        quota, period = ((folder / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
    else:
        return
    if quota not in ("max", "-1"):
        yield float(quota) / float(period)
