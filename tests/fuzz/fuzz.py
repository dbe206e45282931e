"""Fuzz what reads bytes: lines of a stream, CSV files, job files and manifests.

The readers in C++ are fuzzed by clang's libFuzzer with the address and undefined-behaviour sanitizers; those in Python
by mutations of the corpus, where an input that runs a new line is kept and mutated further. What fails is left in
`build/fuzz`: repair the cause, then put the file into `tests/fuzz/corpus`, which `make test` reads again.

    python tests/fuzz/fuzz.py --seconds 600 --seed 1
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from targets import CORPUS, TARGETS

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "fuzz"
SOURCES = str(ROOT / "src" / "shoal")
LONGEST = 4096
# What the formats are made of, beside bytes.
PIECES = [
    *b"\x00 \t\r\n\",;:'.-+eE0123456789[]{}=#\\/\xff\xc3\xa4".decode("latin-1"),
    "\r\n", '""', "\ufeff", "null", "true", "nan", "inf", "-inf", "1e400", "5e-324", "0x1p3", "1,5", "2020-02-30",
    "\\u0000", "\\ud800", "\\ud83d\\ude00", "[[models]]", "[input]", "[columns.age]", 'k = 3', "rho = 1e308",
    "2020-01-01T00:00:00Z", '"seed": ', '"labels": ', '"data": ""', "e" * 64, "[" * 200, "9" * 400,
]  # fmt: skip


def mutated(rng: random.Random, pool: list[bytes]) -> bytes:
    """Change an input in one to five places."""
    data = bytearray(rng.choice(pool))
    for _ in range(rng.randint(1, 5)):
        at, end = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
        end = min(end, at + 40)
        match rng.randrange(7):
            case 0:
                data[at:at] = rng.choice(PIECES).encode("utf-8", "surrogatepass")
            case 1 if data:
                data[min(at, len(data) - 1)] = rng.randrange(256)
            case 2:
                del data[at:end]
            case 3:
                data[at:at] = data[at:end] * rng.randint(1, 3)
            case 4:
                other = rng.choice(pool)
                start = rng.randint(0, len(other))
                data[at:end] = other[start : start + 60]
            case 5:
                data[at:end] = rng.choice(PIECES).encode("utf-8", "surrogatepass")
            case _ if data:
                data[min(at, len(data) - 1)] ^= 1 << rng.randrange(8)
    return bytes(data[:LONGEST])


def lines_run(run, data: bytes) -> set[tuple[str, int]]:
    """Run a target and return the lines of shoal that were run."""
    lines: set[tuple[str, int]] = set()

    def trace(frame, _event, _argument):
        if not frame.f_code.co_filename.startswith(SOURCES):
            return None
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        run(data)
    finally:
        sys.settrace(None)
    return lines


def fuzz_python(name: str, seconds: float, seed: int) -> dict[str, object]:
    """Mutate the corpus of a target until the time is up or something fails."""
    rng = random.Random(f"{seed} {name}")
    corpus = [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
    pool = list(corpus)
    seen: set[tuple[str, int]] = set()
    failures: dict[str, bytes] = {}
    n_inputs, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        data = corpus[n_inputs] if n_inputs < len(corpus) else mutated(rng, pool)
        n_inputs += 1
        try:
            lines = lines_run(TARGETS[name], data)
        except Exception as error:
            keep_failure(name, data, error, failures)
            continue
        if not lines <= seen:
            seen |= lines
            pool.append(data)
    return {"target": name, "inputs": n_inputs, "reached": len(seen), "failures": len(failures)}


def keep_failure(name: str, data: bytes, error: Exception, failures: dict[str, bytes]) -> None:
    """Leave one input for each place that fails."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    key = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
    if key not in failures:
        failures[key] = data
        BUILD.mkdir(parents=True, exist_ok=True)
        path = BUILD / f"{name}-{len(failures)}"
        path.write_bytes(data)
        print(f"{name}: {key}; the input is {path.relative_to(ROOT)}", flush=True)


def fuzz_compiled(seconds: float, seed: int) -> dict[str, object]:
    """Build the target of libFuzzer and run it on a copy of the corpus."""
    compiler = next(filter(None, map(shutil.which, ("clang++", "clang++-14"))), None)
    if compiler is None:
        sys.exit("The readers in C++ are fuzzed with clang. Debian, Ubuntu: apt install clang libclang-rt-14-dev")
    folder = BUILD / "corpus"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(CORPUS / "lines", folder)
    program = BUILD / "fuzz_lines"
    flags = ["-std=c++20", "-O2", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    source = ROOT / "tests" / "fuzz" / "fuzz_lines.cpp"
    subprocess.run([compiler, *flags, f"-I{ROOT / 'src' / 'kernels'}", source, "-o", program], check=True)
    done = subprocess.run(
        [program, f"-max_total_time={max(1, int(seconds))}", f"-seed={seed}", f"-max_len={LONGEST}",
         f"-artifact_prefix={BUILD}/lines-", "-print_final_stats=1", "-timeout=10", folder],
        capture_output=True, text=True, check=False, errors="replace",
    )  # fmt: skip
    if done.returncode:
        print(done.stderr[-4000:])
    counted = {key: int(number) for key, number in stats(done.stderr)}
    covered = re.findall(r"cov: (\d+)", done.stderr)
    return {
        "target": "lines, compiled",
        "inputs": counted.get("number_of_executed_units", 0),
        "reached": int(covered[-1]) if covered else 0,
        "failures": int(done.returncode != 0),
    }


def stats(said: str) -> Iterator[tuple[str, str]]:
    """Return what libFuzzer has counted."""
    yield from re.findall(r"stat::(\w+):\s+(\d+)", said)


def main() -> None:
    """Give every target its share of the time; end with exit code 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="where to write what was counted")
    given = parser.parse_args()
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    share = given.seconds / (len(TARGETS) + 1)
    rows = [fuzz_compiled(share, given.seed)]
    rows += [fuzz_python(name, share, given.seed) for name in TARGETS]
    for row in rows:
        print("{target}: {inputs:,} inputs, {reached:,} places reached, {failures} failures".format(**row))
    if given.output:
        sys.path.insert(0, str(ROOT / "benchmarks"))
        from bench_partition import circumstances

        results = {**circumstances(quick=False), "seconds": given.seconds, "seed": given.seed, "rows": rows}
        given.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    sys.exit(any(row["failures"] for row in rows))


if __name__ == "__main__":
    main()
