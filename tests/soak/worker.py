"""Soak: two workers compete for a stream while they, Redis and their connections are killed, stopped and starved.

A producer adds entries, bad ones among them. Faults come at random moments: workers are killed, stopped for longer than
their lease or asked to end; Redis is killed and started again, stopped, out of memory, or drops its connections; the
user of the workers loses the right to one command of the scripts after the other; the consumer group is deleted, and
entries that were used are trimmed. In the end every entry must be in the output or the side output exactly once, and
the output must be, byte for byte, that of a stream to which nothing happened. Before that, entries of a megabyte have
to arrive once through the command, with as much memory as the unit of the examples allows.

    python tests/soak/worker.py --seconds 1800 --kills 1000 --out benchmarks/results/soak.json
"""

import argparse
import json
import logging
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench_partition import circumstances
from shoal.errors import ParameterError
from shoal.stream import Stream
from shoal.stream.batches import one_batch
from shoal.stream.pipe.lines import LineForm, LineReading, Reader, Writer
from shoal.stream.redis_worker import FIELD, ID, RedisSettings, Worker, scripts
from shoal.stream.redis_worker.redis_keys import RedisKeys

K, LEASE = 5, 0.4
NAMES = {"source": "in", "target": "out", "side": "aside"}
KEYS = RedisKeys.of(RedisSettings.of(**NAMES))
RULES = {"quasi_identifiers": ["x", "y"], "other": ["n"], "delay": 60, "on_error": "side", "tracked": [ID]}
ENDED = (0, -signal.SIGKILL, -signal.SIGTERM)  # the last one if it was asked to end before it had begun
KILLS = ("worker killed", "redis killed", "connections killed")
FAULTS = {
    "worker killed": 12,
    "worker stopped": 2,
    "worker ended": 2,
    "redis killed": 2,
    "connections killed": 6,
    "redis stopped": 1,
    "out of memory": 1,
    "group deleted": 1,
    "source trimmed": 2,
    "right taken": 4,
}
RIGHTS = sorted(set(re.findall(r"(?:call|attempt)\('([A-Z]+)'", "".join(map(str, vars(scripts).values())))))
UNIT = Path(__file__).parents[2] / "examples" / "operations" / "shoal-worker@.service"
N_LARGE = 600


def connected(socket, **options):
    return redis.Redis(unix_socket_path=socket, retry=Retry(NoBackoff(), 0), socket_timeout=2, **options)


def entry(number):
    """Return the entry of a number: mostly a tuple, now and then none."""
    rng = random.Random(number)
    if rng.random() < 0.01:
        return rng.choice(["nonsense", '{"x":1}', json.dumps({"x": None, "y": 1, "n": number})])
    return json.dumps({"x": round(rng.random(), 4), "y": round(rng.random(), 4), "n": number})


def work(socket, batch, seed):
    """Be a worker until killed, asked to end, or denied a command."""
    random.seed(seed)
    logging.disable()
    with connected(socket, username="worker", password="worker") as connection:
        settings = RedisSettings.of(**NAMES, batch=batch, lease=LEASE, patience=300)
        worker = Worker(connection, Stream(K, **RULES), settings)
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        try:
            worker.run(0.2)
        except ParameterError as error:
            if "denied" not in str(error):
                raise


class Server:
    """A Redis that can be killed: what it has answered is in its file."""

    def __init__(self, folder):
        self.socket = str(folder / "socket")
        self._command = [
            *("redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", str(folder), "--save", ""),
            *("--appendonly", "yes", "--appendfsync", "no"),
        ]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        while True:
            with suppress(redis.exceptions.RedisError):
                self.grant()
                return
            time.sleep(0.05)

    def grant(self, *less):
        """Give the user of the workers all rights but these."""
        with connected(self.socket) as connection:
            connection.execute_command("ACL", "SETUSER", "worker", "on", ">worker", "~*", "+@all", *less)

    def restart(self):
        self.process.kill()
        self.process.wait()
        self.start()


class Producer(threading.Thread):
    """Adds entries with numbers as ids, so that one whose answer was lost is not added twice."""

    def __init__(self, socket, rate):
        super().__init__(daemon=True)
        self._socket, self._rate = socket, rate
        self.number = 0
        self.ending = threading.Event()

    def run(self):
        while not self.ending.is_set():
            with suppress(redis.exceptions.RedisError), connected(self._socket) as connection:
                while not self.ending.is_set():
                    self._add(connection, self.number + 1)
                    self.number += 1
                    time.sleep(1 / self._rate)
            time.sleep(0.05)

    def _add(self, connection, number):
        try:
            connection.xadd("in", {FIELD: entry(number)}, id=f"{number}-0")
        except redis.exceptions.ResponseError as error:
            if "equal or smaller" not in str(error):
                raise


class Chaos:
    """Faults at random moments."""

    def __init__(self, server, rng):
        self._server, self.rng = server, rng
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["shoal.stream.redis_worker", "redis", "pyarrow", "numpy"])
        self.counts = Counter()
        self.workers = [self._worker() for _ in range(2)]

    @property
    def n_kills(self):
        return sum(self.counts[name] for name in KILLS)

    def _worker(self):
        arguments = (self._server.socket, self.rng.choice([1, 7, 50, 300]), self.rng.random())
        process = self._context.Process(target=work, args=arguments, daemon=True)
        process.start()
        return process

    def replace(self):
        """Start a worker for each that is gone; one that ended by itself with an error is a fault of the worker."""
        for place, process in enumerate(self.workers):
            if not process.is_alive():
                process.join()
                assert process.exitcode in ENDED, f"a worker ended with {process.exitcode}"
                self.workers[place] = self._worker()

    def strike(self):
        name = self.rng.choices(list(FAULTS), list(FAULTS.values()))[0]
        with suppress(redis.exceptions.RedisError):
            getattr(self, "_" + name.replace(" ", "_"))()
        self.counts[name] += 1

    def _one(self):
        return self.rng.choice(self.workers)

    def _worker_killed(self):
        self._one().kill()

    def _worker_ended(self):
        self._one().terminate()

    def _worker_stopped(self):
        pid = self._one().pid
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(LEASE * self.rng.uniform(0.5, 3))
            os.kill(pid, signal.SIGCONT)

    def _redis_killed(self):
        self._server.restart()

    def _redis_stopped(self):
        os.kill(self._server.process.pid, signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.1, 3))
        os.kill(self._server.process.pid, signal.SIGCONT)

    def _connections_killed(self):
        with connected(self._server.socket) as connection:
            connection.execute_command("CLIENT", "KILL", "TYPE", "normal")

    def _out_of_memory(self):
        with connected(self._server.socket) as connection:
            connection.config_set("maxmemory", "1")
            time.sleep(self.rng.uniform(0.1, 0.8))
            connection.config_set("maxmemory", "0")

    def _right_taken(self):
        self._server.grant(f"-{self.rng.choice(RIGHTS)}")
        time.sleep(self.rng.uniform(0.1, 0.8))
        self._server.grant()

    def _group_deleted(self):
        with connected(self._server.socket) as connection:
            connection.xgroup_destroy("in", RedisSettings.of(**NAMES).group)

    def _source_trimmed(self):
        with connected(self._server.socket) as connection:
            used = json.loads(connection.hget(KEYS.state, "head")[4:])["notes"]["last"]
            connection.xtrim("in", minid=used, approximate=False)

    def end(self):
        self._server.grant()
        with connected(self._server.socket) as connection:
            connection.config_set("maxmemory", "0")
        for process in self.workers:
            process.terminate()
        for process in self.workers:
            process.join(60)
            assert process.exitcode in ENDED, f"a worker ended with {process.exitcode}"


def undisturbed(n):
    """Return what a stream releases, and what it refuses, if nothing happens to it."""
    aside = []
    stream = Stream(K, **RULES)
    stream.on_side = lambda table, reasons: aside.extend(table[ID].to_pylist())
    text = b"".join(entry(number).encode() + b"\n" for number in range(1, n + 1))
    read = Reader(LineReading(stream.rules, LineForm.NDJSON)).read(text, True, 0)
    ids = [b"%d-0" % number for number in read.numbers]
    aside += [b"%d-0" % bad.number for bad in read.bad]
    released = [stream.push_rows(read.rows.append_column(ID, pa.array(ids))), one_batch(stream.flush())]
    writer = Writer(LineForm.NDJSON, released[0].schema.names)
    return b"".join(map(writer.write, released)).split(b"\n")[:-1], sorted(aside)


def compared(socket, n):
    """Use up what is left, and compare with what a quiet evening gives; return the counts."""
    with connected(socket) as connection:
        worker = Worker(connection, Stream(K, **RULES), RedisSettings.of(**NAMES, lease=LEASE))
        time.sleep(LEASE)
        worker.run(until_empty=True)
        released = [fields[FIELD] for _, fields in connection.xrange("out")]
        aside = sorted(fields[b"id"] for _, fields in connection.xrange("aside"))
    numbers = Counter(json.loads(line)["n"] for line in released) + Counter(int(i.split(b"-")[0]) for i in aside)
    cells = Counter((line["x"], line["y"]) for line in map(json.loads, released))
    expected, refused = undisturbed(n)
    return {
        "entries": n,
        "released": len(released),
        "aside": len(aside),
        "lost": n - len(numbers),
        "doubled": sum(count - 1 for count in numbers.values()),
        "reported_lost": worker.n_lost,
        "smallest_cell": min(cells.values()),
        "as_if_nothing_had_happened": released == expected and aside == refused,
    }


def large(n):
    """Let the command release n entries of a megabyte; return what there is to report."""
    folder = Path(tempfile.mkdtemp(prefix="soak"))
    server = Server(folder)
    roles = ["--quasi-identifiers", "x,y", "--confidential", "n,text", "-k", str(K), "--delay", "100"]
    places = ["--url", f"unix://{server.socket}", "--from", "in", "--to", "out"]
    try:
        with connected(server.socket) as connection:
            for i in range(n):
                record = {"x": i % 97, "y": i % 31, "n": i, "text": "t" * 1_000_000}
                connection.xadd("in", {FIELD: json.dumps(record)})
            subprocess.run([sys.executable, "-m", "shoal.cli", "worker", *places, *roles, "--until-empty"], check=True)
            numbers, last = Counter(), "-"
            while page := connection.xrange("out", last, count=10):
                numbers.update(json.loads(fields[FIELD])["n"] for _, fields in page)
                last = b"(" + page[-1][0]
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
        return {"entries": n, "released_once": sum(count == 1 for count in numbers.values()), "megabytes_used": used}
    finally:
        server.process.kill()
        server.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def soak(seconds, kills, seed, rate):
    """Run until the time is up and there were enough kills, or for twice that time; return what there is to report."""
    folder = Path(tempfile.mkdtemp(prefix="soak"))
    server = Server(folder)
    begin = time.monotonic()
    try:
        producer, chaos = Producer(server.socket, rate), Chaos(server, random.Random(seed))
        producer.start()
        while (spent := time.monotonic() - begin) < seconds or (chaos.n_kills < kills and spent < 2 * seconds):
            time.sleep(chaos.rng.uniform(0, 1.2 * seconds / kills))
            chaos.strike()
            chaos.replace()
        producer.ending.set()
        producer.join()
        chaos.end()
        return {
            "seconds": round(time.monotonic() - begin),
            "kills": chaos.n_kills,
            "faults": dict(sorted(chaos.counts.items())),
            "k": K,
            **compared(server.socket, producer.number),
        }
    finally:
        server.process.kill()
        server.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=300, help="entries per second")
    parser.add_argument("--out", type=Path, help="JSON file for the result")
    given = parser.parse_args()
    megabytes = large(N_LARGE)
    found = {**soak(given.seconds, given.kills, given.seed, given.rate), "large": megabytes}
    print(json.dumps(found, indent=1))
    if given.out is not None:
        about = {**circumstances(quick=False), "seed": given.seed}
        given.out.write_text(json.dumps({**about, **found}, indent=1) + "\n", encoding="utf-8")
    good = found["as_if_nothing_had_happened"] and not found["lost"] and not found["doubled"]
    allowed = 1024 * int(re.search(r"MemoryMax=(\d+)G", UNIT.read_text())[1])
    fits = megabytes["released_once"] == N_LARGE and megabytes["megabytes_used"] < allowed
    sys.exit(0 if good and fits and found["smallest_cell"] >= K else 1)


if __name__ == "__main__":
    main()
