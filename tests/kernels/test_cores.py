"""How many cores a process may use: by affinity and by the quota of its control groups, on simulated machines."""

import os
import subprocess
import sys

import pytest

from shoal.kernels import cores, using
from shoal.kernels import n_threads as n_threads_of_kernels

V1 = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "32 31 0:29 / /sys/fs/cgroup/{0} rw,relatime - cgroup cgroup rw,{0}\n"
)
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.fixture
def sixteen_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)


def machine(tmp_path, mounts, group, files):
    """Write what the kernel of a machine would show to a process."""
    files = {"proc/self/mountinfo": mounts, "proc/self/cgroup": group, **files}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(("quota", "cores_expected"), [("max 100000", 16), ("100000 100000", 1), ("150000 100000", 2)])
def test_a_container_of_version_2_has_its_quota(tmp_path, sixteen_cores, quota, cores_expected):
    root = machine(tmp_path, V2, "0::/\n", {"sys/fs/cgroup/cpu.max": quota + "\n"})

    assert cores.n_cores(root) == cores_expected


def test_the_smallest_quota_of_a_group_and_those_above_it_counts(tmp_path, sixteen_cores):
    quotas = {"a/b/cpu.max": "800000 100000\n", "a/cpu.max": "300000 100000\n", "cpu.max": "max 100000\n"}
    root = machine(tmp_path, V2, "0::/a/b\n", {f"sys/fs/cgroup/{name}": text for name, text in quotas.items()})

    assert cores.n_cores(root) == 3


@pytest.mark.parametrize("name", ["cpu", "cpu,cpuacct"])
@pytest.mark.parametrize(("quota", "cores_expected"), [(-1, 16), (50_000, 1), (400_000, 4)])
def test_a_container_of_version_1_has_its_quota(tmp_path, sixteen_cores, name, quota, cores_expected):
    folder = f"sys/fs/cgroup/{name}"
    files = {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": "100000\n"}
    # Seen from inside, the group's own path is often not there; the mount is the group.
    root = machine(tmp_path, V1.format(name), f"4:memory:/x\n1:{name}:/docker/0123\n0::/\n", files)

    assert cores.n_cores(root) == cores_expected


def test_without_control_groups_affinity_counts(tmp_path, sixteen_cores):
    assert cores.n_cores(tmp_path) == 16


def test_affinity_counts_where_it_allows_fewer_than_the_quota(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    root = machine(tmp_path, V2, "0::/\n", {"sys/fs/cgroup/cpu.max": "400000 100000\n"})

    assert cores.n_cores(root) == 1


def test_by_default_there_are_as_many_threads_as_cores(monkeypatch):
    monkeypatch.setattr("shoal.kernels.n_cores", lambda: 5)
    with using():
        assert n_threads_of_kernels() == 5
    with using(threads=2):
        assert n_threads_of_kernels() == 2


def test_a_block_without_a_number_has_the_threads_of_the_block_around_it():
    with using(threads=3):
        with using():
            assert n_threads_of_kernels() == 3
        with using(threads=1):
            assert n_threads_of_kernels() == 1


NO_THREADS = """
import resource
import numpy as np
from shoal import partition
X = np.random.default_rng(0).normal(size=(20_000, 10))
alone = partition(X, 50, "mdav", threads=1)
resource.setrlimit(resource.RLIMIT_AS, (2**35, resource.RLIM_INFINITY))
assert (partition(X, 50, "mdav", threads=4) == alone).all()
assert (partition(X, 50, "blocks", threads=4, size=5_000) == partition(X, 50, "blocks", threads=1, size=5_000)).all()
try:
    __import__("threading").Thread(target=print).start()
except RuntimeError:
    print("no thread can be started here")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space count only on Linux")
def test_where_no_thread_can_be_started_one_does_the_work():
    import resource

    # A stack of 64 GB for each thread, in an address space of 32.
    def large_stacks():
        resource.setrlimit(resource.RLIMIT_STACK, (2**36, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    program = subprocess.run(
        [sys.executable, "-c", NO_THREADS],
        env={"OPENBLAS_NUM_THREADS": "1", "PATH": ""},
        preexec_fn=large_stacks,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (program.returncode, program.stdout, program.stderr) == (0, "no thread can be started here\n", "")
