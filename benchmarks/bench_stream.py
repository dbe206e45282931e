"""Measure streams: tuples per second, beside plain Python, and the loss.

The machine may be busy, so times are processor seconds, the best of several rounds, and the contenders are
interleaved. Wall-clock rates are given beside them.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
import numpy as np

from materials import machine
from plain_stream import plain_stream
from shoal import kernels
from shoal.stream import Stream

RESULTS = Path(__file__).parent / "results" / "stream.json"
K, DIMS, BATCH = 10, 5, 10_000


def timed(work):
    """Run the work, and return its processor seconds, its wall-clock seconds, and what it returns."""
    wall, own = time.perf_counter(), time.process_time()
    result = work()
    return time.process_time() - own, time.perf_counter() - wall, result


def engine(X, delay):
    stream = Stream(K, delay=delay, ranges=[(0, 1)] * DIMS)
    for begin in range(0, len(X), BATCH):
        stream.push(X[begin : begin + BATCH])
    return stream.summary()


def window(X, delay):
    """Run the compiled loop alone, without rows, means and the recount."""
    inside = kernels.Window(DIMS, K, delay=delay)
    none, times = np.empty((BATCH, 0), dtype=np.uint64), np.zeros(BATCH)
    for begin in range(0, len(X), BATCH):
        inside.push(kernels.Tuples(X[begin : begin + BATCH], none, none, times))
    return inside.tally()


def plain(X, delay):
    rows = X.tolist()
    begin = time.process_time()
    cells = list(plain_stream(rows, K, delay, 0.0))
    spent = time.process_time() - begin
    sse = sum(np.square(X[cell] - X[cell].mean(axis=0)).sum() for cell in cells)
    return spent, float(sse / sum(map(len, cells)))


def measure_engine(delay, n, n_plain, rounds, say):
    X = np.random.default_rng(0).random((n, DIMS))
    rows = {"stream": [], "window": []}
    plain_seconds, plain_mse = [], None
    for _ in range(rounds):
        own, wall, summary = timed(lambda: engine(X, delay))
        rows["stream"].append((own, wall))
        rows["window"].append(timed(lambda: window(X, delay))[:2])
        spent, plain_mse = plain(X[:n_plain], delay)
        plain_seconds.append(spent)
    best = {name: n / min(own for own, _ in times) for name, times in rows.items()}
    plain_rate = n_plain / min(plain_seconds)
    check = engine(X[:n_plain], delay)
    result = {
        "delay": delay,
        "n": n,
        "stream_per_second": best["stream"],
        "stream_per_second_wall": n / min(wall for _, wall in rows["stream"]),
        "window_per_second": best["window"],
        "plain_per_second": plain_rate,
        "n_plain": n_plain,
        "faster": best["stream"] / plain_rate,
        "mse": summary.mse,
        "il": 100 * summary.il,
        "mse_on_the_plain_part": check.mse,
        "plain_mse": plain_mse,
    }
    say(
        f"delay {delay:>6,}: Stream {best['stream']:>12,.0f}/s, window alone {best['window']:>12,.0f}/s, plain Python "
        f"{plain_rate:>8,.0f}/s: {result['faster']:,.0f} x; MSE {summary.mse:.4f}, IL {100 * summary.il:.2f} %"
    )
    return result


def write_lines(folder, n):
    rng = np.random.default_rng(0)
    X, codes = rng.random((n, DIMS)).round(6), rng.integers(0, 50, n)
    with open(folder / "in.ndjson", "w") as ndjson, open(folder / "in.csv", "w") as csv:
        csv.write("id,a,b,c,d,e,diagnosis\n")
        for i, (x, code) in enumerate(zip(X.tolist(), codes.tolist(), strict=True)):
            ndjson.write('{{"id":"p{}","a":{},"b":{},"c":{},"d":{},"e":{},"diagnosis":"D{}"}}\n'.format(i, *x, code))
            csv.write("p{},{},{},{},{},{},D{}\n".format(i, *x, code))


def measure_command(form, n, folder, say):
    """Run the command on a file and on an almost empty one: the difference is the time for the lines."""
    flags = ["--csv"] if form == "csv" else []
    roles = ["--quasi-identifiers", "a,b,c,d,e", "--confidential", "diagnosis", "--identifiers", "id"]
    command = [sys.executable, "-m", "shoal.cli", "stream", "-k", str(K), "--delay", "100", *roles, *flags]
    head = b"".join((folder / f"in.{form}").read_bytes().splitlines(keepends=True)[:50])
    seconds = {}
    for name, text in (("whole", None), ("start", head)):
        times = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            with open(folder / f"in.{form}", "rb") as file, open(os.devnull, "wb") as nowhere:
                where = {"stdin": file} if text is None else {"input": text}
                subprocess.run(command, stdout=nowhere, check=True, **where)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        seconds[name] = min(times)
    result = {
        "form": form,
        "n": n,
        "start_seconds": seconds["start"],
        "per_second": n / (seconds["whole"] - seconds["start"]),
        "per_second_with_start": n / seconds["whole"],
    }
    say(f"{form}: {result['per_second']:,.0f} lines/s ({result['per_second_with_start']:,.0f} with the start counted)")
    return result


def measure_worker(batch, n, say):
    """Let a worker move n tuples from one Redis stream to another; times are those of the worker and of Redis."""
    if shutil.which("redis-server") is None:
        say("no redis-server on this machine: the worker is not measured")
        return {"batch": batch, "n": n, "per_second": None}
    from redis import Redis

    from shoal.stream.redis_worker import ID, RedisSettings, Worker

    with running_redis() as socket, Redis(unix_socket_path=socket) as redis:
        add_entries(redis, n)
        stream = Stream(K, delay=1000, quasi_identifiers=list("abcde"), other=["n"], tracked=[ID])
        worker = Worker(redis, stream, RedisSettings.of("in", "out", batch=batch))
        worker.acquire()
        before = time.process_time(), redis_seconds(redis), time.perf_counter()
        while worker.step(0):
            pass
        after = time.process_time(), redis_seconds(redis), time.perf_counter()
    of_worker, of_redis, elapsed = (end - begin for begin, end in zip(before, after, strict=True))
    result = {
        "batch": batch,
        "n": n,
        "per_second": n / (of_worker + of_redis),
        "per_second_of_worker": n / of_worker,
        "per_second_elapsed": n / elapsed,
    }
    say(
        f"worker, batches of {batch}: {result['per_second']:,.0f} tuples/s, "
        f"{result['per_second_elapsed']:,.0f} by the clock"
    )
    return result


def measure_arrivals(rate, seconds, say):
    """Let a producer add entries ten at a time at a given rate; see whether a worker with default limits keeps up."""
    if shutil.which("redis-server") is None:
        return {"rate": rate, "seconds": seconds, "largest_lag": None}
    from redis import Redis

    from shoal.stream.redis_worker import ID, RedisSettings, Worker

    n = int(rate * seconds)
    with running_redis() as socket, Redis(unix_socket_path=socket) as redis:
        stream = Stream(K, delay=1000, quasi_identifiers=list("abcde"), other=["n"], tracked=[ID])
        worker = Worker(redis, stream, RedisSettings.of("in", "out"))
        worker.acquire()
        lags, steps, own, begin = [], 0, time.process_time(), time.perf_counter()
        with subprocess.Popen([sys.executable, "-c", PRODUCER, socket, str(n), str(rate)]):
            while worker.stream.n_in < n:
                steps += worker.step(0.05) > 0
                lags.append(worker.lag)
        own, elapsed = time.process_time() - own, time.perf_counter() - begin
    result = {
        "rate": rate,
        "n": n,
        "per_second_elapsed": n / elapsed,
        "largest_lag": max(lags),
        "entries_per_step": n / steps,
        "share_of_a_core": own / elapsed,
    }
    say(
        f"arrivals in tens at {rate:,}/s: {result['per_second_elapsed']:,.0f}/s, at most {max(lags):,} entries behind, "
        f"{result['entries_per_step']:.0f} a step"
    )
    return result


PRODUCER = """
import sys, time
from redis import Redis
socket, n, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
redis, begin = Redis(unix_socket_path=socket), time.perf_counter()
for first in range(0, n, 10):
    time.sleep(max(0.0, begin + first / rate - time.perf_counter()))
    with redis.pipeline(transaction=False) as pipeline:
        for i in range(first, first + 10):
            x = [i * step % 997 / 997 for step in (3, 5, 7, 11, 13)]
            pipeline.xadd("in", {"data": '{"a":%f,"b":%f,"c":%f,"d":%f,"e":%f,"n":%d}' % (*x, i)})
        pipeline.execute()
"""


@contextmanager
def running_redis():
    """Run a Redis that stores nothing on disk; give its socket."""
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/socket"
        server = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]
        with subprocess.Popen(server, stdout=subprocess.DEVNULL) as process:
            while not os.path.exists(socket):
                time.sleep(0.05)
            try:
                yield socket
            finally:
                process.terminate()


def add_entries(redis, n):
    rng = np.random.default_rng(0)
    for begin in range(0, n, 5000):
        with redis.pipeline(transaction=False) as pipeline:
            for i, row in enumerate(rng.random((min(5000, n - begin), DIMS)).round(4).tolist()):
                pipeline.xadd("in", {"data": json.dumps({**dict(zip("abcde", row, strict=True)), "n": begin + i})})
            pipeline.execute()


def redis_seconds(redis):
    used = redis.info("cpu")
    return used["used_cpu_user"] + used["used_cpu_sys"]


def measure_memory(n, say):
    """Push n tuples through a stream in a fresh process and read its peak memory, where the system reports it.

    The peak from getrusage would be that of this process, if it is higher.
    """
    if not Path("/proc/self/status").exists():
        return {"n": n, "peak_mb": None}
    code = (
        "import numpy as np, re, sys; from shoal.stream import Stream\n"
        "rng = np.random.default_rng(0); s = Stream(10, delay=100, ranges=[(0, 1)] * 5)\n"
        "n = int(sys.argv[1])\n"
        "for _ in range(n // 10_000): s.push(rng.random((10_000, 5)))\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1000)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(n)], capture_output=True, text=True, check=True)
    peak = float(done.stdout)
    say(f"{n:,} tuples: {peak:.0f} MB at most")
    return {"n": n, "peak_mb": peak}


@click.command()
@click.option("--quick", is_flag=True, help="Small sizes, to check that it works.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS, help="JSON file.")
def main(quick, output):
    """Measure streams and write the numbers to a JSON file."""
    scale = 20 if quick else 1
    rounds = 1 if quick else 3
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    results = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit or None,
        "quick": quick,
        "machine": {**machine(), "simd": kernels.simd()},
        "load": os.getloadavg()[0],  # processes that ran or waited to run, this one excepted, when it began
        "engine": [
            measure_engine(100, 2_000_000 // scale, 20_000 // scale + 1000, rounds, click.echo),
            measure_engine(10_000, 1_000_000 // scale, 12_000, rounds, click.echo),
        ],
    }
    n = 1_000_000 // scale
    with tempfile.TemporaryDirectory() as folder:
        write_lines(Path(folder), n)
        results["command"] = [measure_command(form, n, Path(folder), click.echo) for form in ("ndjson", "csv")]
    results["worker"] = [
        measure_worker(*size, click.echo) for size in ((1000, 200_000 // scale), (10, 20_000 // scale))
    ]
    results["arrivals"] = [measure_arrivals(30_000, 10 / scale, click.echo)]
    results["memory"] = [measure_memory(size // scale, click.echo) for size in (1_000_000, 50_000_000)]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1) + "\n")
    click.echo(f"Numbers in {output.name}")


if __name__ == "__main__":
    main()
