"""docs/operations.md, run as it is printed: the configuration of Redis, the commands, the unit."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from importlib.metadata import files
from pathlib import Path

import click
import pytest

from shoal import cli
from shoal.distribution import DISTRIBUTION
from waits import wait_until

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "operations"
UNIT = EXAMPLES / "shoal-worker@.service"
PAGE = (ROOT / "docs" / "operations.md").read_text()
BLOCKS = [
    (kind, re.sub("^    ", "", text, flags=re.MULTILINE))
    for kind, text in re.findall(
        r"^ *```(\w+)\n(.*?)^ *```", PAGE.split("## What can be seen")[0], flags=re.MULTILINE | re.DOTALL
    )
]
CONFIGURATION = next(text for kind, text in BLOCKS if kind == "text")
NOT_HERE = ("python3 -m venv", "/opt/shoal/bin/pip", "systemctl", "curl", "promtool")
"""Commands that need the network, systemd or root."""


def commands():
    """Return the commands of the page, in their order."""
    lines, end = [], None
    for line in "\n".join(text for kind, text in BLOCKS if kind == "console").splitlines():
        if end is not None or line.startswith("# "):
            lines.append(line if end is not None else line.removeprefix("# "))
            found = re.search("<< '(.*)'", line)
            end = found[1] if found else None if line == end else end
    return lines


def here(text, folder):
    """Return what the page says with the folders of this test."""
    for place in ("/etc/shoal", "/etc/systemd/system", "/etc/prometheus"):
        (folder / place[1:]).mkdir(parents=True, exist_ok=True)
        text = text.replace(place, str(folder / place[1:]))
    text = text.replace("redis://127.0.0.1:6379/0", f"unix://{folder}/socket")
    return text.replace("redis-cli ", f"redis-cli -s {folder}/socket ").replace("/opt/shoal", sys.prefix)


@pytest.fixture
def redis(tmp_path):
    redis = pytest.importorskip("redis")
    if shutil.which("redis-server") is None or shutil.which("redis-cli") is None:
        pytest.skip("no redis-server and redis-cli on this machine")
    (tmp_path / "redis.conf").write_text(CONFIGURATION)
    places = ["--port", "0", "--unixsocket", str(tmp_path / "socket"), "--dir", str(tmp_path)]
    with subprocess.Popen(
        ["redis-server", str(tmp_path / "redis.conf"), *places], stdout=subprocess.DEVNULL
    ) as process:
        try:
            wait_until(lambda: answers(redis, tmp_path) or process.poll() is not None)
            yield redis
        finally:
            process.terminate()


def answers(redis, folder):
    with connected(redis, folder, "default", "ADMIN-PASSWORD") as one, suppress(redis.exceptions.ConnectionError):
        return one.ping()


def connected(redis, folder, user, password):
    return redis.Redis(unix_socket_path=str(folder / "socket"), username=user, password=password)


def test_the_page_leads_from_an_empty_machine_to_a_worker_at_work(redis, tmp_path):
    script = "\n".join(line for line in commands() if not line.startswith(NOT_HERE))
    done = subprocess.run(["bash", "-eu"], input=here(script, tmp_path), capture_output=True, text=True, check=False)
    env = tmp_path / "etc" / "shoal" / "visits.env"

    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"age":') == 3  # three released tuples
    assert '"failed"' not in done.stderr
    assert env.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in env.parent.iterdir()) == ["visits.env", "visits.toml"]

    # systemd starts the worker with the command of the unit, its environment and that of the file.
    start, environment = started_by_unit(env)
    environment["SHOAL_METRICS_PORT"] = str(free_port())
    with subprocess.Popen(here(start, tmp_path).format(**environment).split(), env=os.environ | environment) as process:
        ready = f"http://127.0.0.1:{environment['SHOAL_METRICS_PORT']}/ready"
        wait_until(lambda: answer(ready).get("status") == "working" or process.poll() is not None)
        process.terminate()

    assert process.returncode == 0
    with connected(redis, tmp_path, "shoal", "WORKER-PASSWORD") as worker:
        assert worker.hgetall("visits:shoal:state")


def started_by_unit(env):
    """Return the command of the unit, and the environment in which it starts, as systemd makes it."""
    unit = UNIT.read_text()
    lines = [*re.findall("^Environment=(.*)$", unit, re.MULTILINE), *env.read_text().splitlines()]
    start = re.search("^ExecStart=(.*)$", unit, re.MULTILINE)[1]
    return start.replace("%i", "visits").replace("${", "{"), dict(line.split("=", 1) for line in lines)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answer(url):
    with suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(url) as found:
        return json.loads(found.read())
    return {}


def test_the_user_of_the_worker_has_no_command_beyond_those_it_needs(redis, tmp_path):
    denied = [
        "FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "KEYS *", "RANDOMKEY", "SCAN 0", "RENAME visits visits-x", "CONFIG GET *",
        "SHUTDOWN", "SCRIPT FLUSH", "FUNCTION FLUSH", "ACL LIST", "CLIENT KILL ID 1", "MONITOR",
        "REPLICAOF NO ONE", "MIGRATE h 1 visits 0 1", "EVAL return 0", "SET other 1", "GET other", "XADD other * a b",
    ]  # fmt: skip
    with connected(redis, tmp_path, "shoal", "WORKER-PASSWORD") as worker:
        for command in denied:
            with pytest.raises(redis.exceptions.NoPermissionError):
                worker.execute_command(*command.split())
        # Nor by a script.
        script = worker.register_script("return redis.call('FLUSHALL')")
        with pytest.raises(redis.exceptions.ResponseError, match=r"can't run this command|NOPERM|no permission"):
            script()
    with connected(redis, tmp_path, "clinic", "CLINIC-PASSWORD") as clinic:
        assert clinic.xadd("visits", {"data": "{}"})
        with pytest.raises(redis.exceptions.NoPermissionError):
            clinic.xrange("visits")
    with pytest.raises(redis.exceptions.AuthenticationError):
        redis.Redis(unix_socket_path=str(tmp_path / "socket")).ping()


def test_every_worker_command_of_page_and_unit_parses():
    unit = re.search("^ExecStart=(.*)$", UNIT.read_text(), re.MULTILINE)[1].replace("${SHOAL_METRICS_PORT}", "9464")
    found = re.findall(r"(?:^|[#`] |`)(?:/opt/shoal/bin/)?shoal (worker --[^`\n]*)", f"{PAGE}\n# {unit}", re.MULTILINE)

    assert len(found) >= 3
    for line in found:
        name, *words = shlex.split(line)
        command = cli.main.get_command(click.Context(cli.main), name)
        assert command.make_context(name, words).params["job"].endswith(".toml")


def test_the_unit_is_one_for_systemd(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on this machine")
    (tmp_path / "shoal-worker@visits.service").write_text(UNIT.read_text().replace("/opt/shoal", sys.prefix))
    command = ["systemd-analyze", "verify", "--man=no", tmp_path / "shoal-worker@visits.service"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "shoal-worker" not in done.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool on this machine")
def test_the_settings_for_prometheus_are_valid(tmp_path):
    (tmp_path / "etc" / "prometheus").mkdir(parents=True)
    shutil.copy(EXAMPLES / "alerts.yml", tmp_path / "etc" / "prometheus" / "shoal.yml")
    (tmp_path / "prometheus.yml").write_text(here(next(text for kind, text in BLOCKS if kind == "yaml"), tmp_path))
    command = ["promtool", "check", "config", tmp_path / "prometheus.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


def test_the_files_of_the_page_come_with_the_installed_package():
    installed = {path.name: path.locate() for path in files(DISTRIBUTION) if path.parent.name == "shoal"}
    for path in EXAMPLES.iterdir():
        assert Path(installed[path.name]).read_bytes() == path.read_bytes()
