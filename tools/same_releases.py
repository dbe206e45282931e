"""Same releases: releases of the bundled data, of every kind, compared byte for byte before and after a change.

    python tools/same_releases.py BEFORE.json        writes the digests of all published files
    python tools/same_releases.py BEFORE.json NEW    writes those of NEW, and compares them; fails if one differs

What is published are the files of a folder that are named release*, report* or job*, and standard output. With --only
TEXT, only the releases whose names hold it are made. The releases are those of the shoal that this Python imports.
"""

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from shoal.datasets import NAMES, path

OFFICE = (
    "office.csv -k 5 --seed 7 --threads 2 --thousands income=. --decimal income=, --decimal pweight=, "
    "--date-format born=%d.%m.%Y --null-values born=NA --missing-codes hours=-9 --missing own-value --fold district "
    "--identifiers person_id --kind sex=nominal --confidential diagnosis"
)
QUASI = (
    "--quasi-identifiers born,sex,district,household_size,hours,income --other school --other pweight --accept codes"
)
CENSUS = "census.csv -k 4 --seed 3 --quasi-identifiers AFNLWGT,AGI,EMCONTRB --confidential FEDTAX,TAXINC"
DROPPED = "--identifiers PTOTVAL,STATETAX,POTHVAL,INTVAL,PEARNVAL,FICA,WSALVAL,ERNVAL"
EIA = (
    "eia.csv -k 4 --seed 1 --identifiers UTILNAME --quasi-identifiers RESREVENUE,RESSALES,STATE --by MONTH "
    "--other YEAR --confidential TOTSALES "
    "--identifiers COMREVENUE,COMSALES,INDREVENUE,INDSALES,OTHREVENUE,OTHRSALES,TOTREVENUE"
)
BOTH = "--report report.html --json report.json"


def office(more: str) -> str:
    """Return the command for a release of the office's file."""
    return f"shoal anonymize {OFFICE} {QUASI} {more}"


def census(more: str) -> str:
    """Return the command for a release of the census."""
    return f"shoal anonymize {CENSUS} {DROPPED} {more}"


def eia(more: str) -> str:
    """Return the command for a release of the sales of electricity."""
    return f"shoal anonymize {EIA} {more}"


FORMATS = ("csv", "csv.gz", "parquet", "arrow", "xlsx", "ndjson", "sav", "dta", "xpt")
TRUTHFUL = "--truthful --hierarchy district=groups.csv"
PANDAS = "import shoal, pandas as pd\npeople = pd.read_csv('census.csv')\n"
ROLES = (
    "roles = dict(quasi_identifiers=['AFNLWGT', 'AGI'], confidential=['FEDTAX'], identifiers=[name for name in "
    "people.columns if name not in ('AFNLWGT', 'AGI', 'FEDTAX')])\n"
)
SMALL_BLOCKS = "from shoal.engines.blocks import blueprint\nblueprint.BLOCK_RECORDS = 1\n"
ON_SPARK = (
    "from pyspark.sql import SparkSession\n"
    "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')"
    ".config('spark.sql.shuffle.partitions', '2').getOrCreate()\n"
)
TELL = (
    "print(release.verdict.to_dict(), release.measures, release.codebook, release.warnings, release.job, sep='\\n')\n"
)

CASES: dict[str, list[str]] = {
    **{f"format {ending}": [office(f"-o release.{ending}")] for ending in FORMATS},
    "sqlite": [office("-o release.db --to-table people"), _dump := "python dump release.db"],
    "sqlite, a file that exists": [
        office("-o release.db --to-table people --manifest release.first.json"),
        "shoal anonymize release.db --table people -k 5 --seed 7 --quasi-identifiers hours --confidential diagnosis "
        "--identifiers born,sex,district,school,household_size,income,pweight -o release.db --to-table second "
        "--missing own-value",
        _dump,
    ],
    "report, internal": [office(f"-o release.parquet {BOTH} --title T --author A --date 2024-01-02")],
    "report, public": [office(f"-o release.parquet {BOTH} --form public --title T --save-job job.toml")],
    "report with a bound": [census(f"-o release.csv {BOTH} --bound cheap")],
    "order kept": [office("-o release.csv --order keep")],
    "manifest elsewhere": [office("-o release.csv --manifest release.own.json --save-job job.toml")],
    "standard output": [office("-o - --manifest release.json")],
    "standard output as ndjson": [office("-o - --to-format ndjson --manifest release.internal.json")],
    "job repeated": [office(f"-o release.csv {BOTH} --save-job job.toml"), "shoal run job.toml --force"],
    "strata": [eia(f"--identifiers UTILITYID -o release.csv {BOTH}")],
    "subject": [eia("--subject UTILITYID -o release.csv")],
    "subject with a model": [eia(f"--subject UTILITYID --p-sensitivity TOTSALES=3 -o release.parquet {BOTH}")],
    "household": [
        "shoal anonymize homes.csv -k 3 --seed 5 --quasi-identifiers age,region --household home -o release.csv"
    ],
    "weights": [office("--weights pweight -o release.csv").replace("--other pweight", "")],
    "l-diversity": [office(f"--l-diversity diagnosis=3 -o release.csv {BOTH}")],
    "l-diversity, entropy": [office("--l-diversity diagnosis=2,kind=entropy -o release.csv")],
    "t-closeness": [census(f"--t-closeness FEDTAX=0.25 -o release.csv {BOTH}")],
    "delta-disclosure": [office("--delta-disclosure diagnosis=1.5 -o release.csv")],
    **{
        f"truthful, {form}": [office(f"{TRUTHFUL} --intervals {form} -o release.parquet {BOTH}")]
        for form in ("text", "columns", "struct")
    },
    "truthful csv, public": [office(f"{TRUTHFUL} --step income=100 -o release.csv {BOTH} --form public")],
    "sets and ancestors": [office("--aggregate district=ancestor --hierarchy district=groups.csv -o release.csv")],
    "ncp": [office(f"{TRUTHFUL} --objective ncp -o release.csv {BOTH}")],
    "rho": [census(f"--rho 0.3 -o release.csv {BOTH} --form public")],
    "rho of song": [census("--rho song -o release.parquet --report report.html")],
    "top, bottom, rounded": [
        office("--top income=4000 --bottom hours=4 --round income=0 --weight born=2 -o release.csv")
    ],
    "zeros kept": [office("--keep-zeros hours --scaling minmax -o release.csv")],
    "steer": [office("--steer school=1 --steer hours=0.5 -o release.csv")],
    **{f"method {name}": [census(f"--method {name} -o release.csv")] for name in ("mdav", "vmdav+", "tfrp", "mst")},
    "method univariate": [
        "shoal anonymize census.csv -k 4 --seed 1 --quasi-identifiers AGI --identifiers AFNLWGT,EMCONTRB,FEDTAX,TAXINC "
        f"{DROPPED} --method univariate -o release.csv"
    ],
    "method blocks with an option": [census("--method blocks --options size=100 -o release.csv")],
    "disk": [eia(f"--identifiers UTILITYID --memory 256MB -o release.parquet {BOTH}")],
    "disk, csv": [
        eia(f"--identifiers UTILITYID --engine disk -o release.csv {BOTH} --form public --save-job job.toml"),
        "shoal run job.toml --force",
    ],
    "disk, a subject": [eia("--engine disk --subject UTILITYID -o release.arrow")],
    "collection": [
        "shoal collect begin evening early.csv -k 4 --seed 2 --quasi-identifiers AFNLWGT,AGI --confidential FEDTAX "
        "--identifiers EMCONTRB,PTOTVAL,STATETAX,TAXINC,POTHVAL,INTVAL,PEARNVAL,FICA,WSALVAL,ERNVAL",
        "shoal collect add evening late.csv",
        f"shoal collect finish evening -o release.csv {BOTH}",
    ],
    "stream": [
        "shoal stream -k 4 --quasi-identifiers AFNLWGT,AGI --confidential FEDTAX --identifiers EMCONTRB,"
        "PTOTVAL,STATETAX,TAXINC,POTHVAL,INTVAL,PEARNVAL,FICA,WSALVAL,ERNVAL "
        "--delay 60 --csv -i census.csv -o release.csv"
    ],
    "audit": [office("-o release.csv"), f"shoal audit release.csv -k 5 {QUASI.split(' --')[0]}"],
    "differential privacy, names only": [
        "shoal dp census.csv --epsilon 1 --bounds AGI=0,100000 --identifiers AFNLWGT,EMCONTRB,FEDTAX,PTOTVAL,STATETAX,"
        "TAXINC,POTHVAL,INTVAL,PEARNVAL,FICA,WSALVAL,ERNVAL -o release.csv"
    ],
    "frame in Python": [
        PANDAS + ROLES + "release = shoal.anonymize(people, k=3, seed=1, **roles)\nprint(release)\n"
        "print(release.labels.tolist(), release.table, release.bound().il)\n" + TELL + "print(release._repr_html_())\n"
        "release.write('release.csv', report='report.html', form='public')\n"
    ],
    "estimator": [
        PANDAS + "import numpy as np\nfrom shoal.estimator import Microaggregator\n"
        "X = people[['AFNLWGT', 'AGI']].to_numpy(float)\n"
        "np.save('release.npy', Microaggregator(k=5).fit_transform(X))\n"
    ],
    "comparison": [PANDAS + ROLES + "print(shoal.compare(people, k=[3, 5], methods=['mdav'], **roles))\n"],
    "small blocks on disk": [
        PANDAS + ROLES + SMALL_BLOCKS + "release = shoal.anonymize('census.csv', k=2, seed=1, engine='disk', **roles)\n"
        "release.write('release.parquet', report='report.html', json='report.json')\n" + TELL + "release.close()\n"
    ],
    "spark": [
        PANDAS
        + ROLES
        + SMALL_BLOCKS
        + ON_SPARK
        + "release = shoal.spark.anonymize(spark.createDataFrame(people), k=2, seed=1, **roles)\nprint(release)\n"
        "print(sorted(map(tuple, release.table.collect())))\n"
        + TELL
        + "release.write('folder', report='report.html', json='report.json', save_job='job.toml')\n"
        "release.close()\nfor name in ('report.html', 'report.json'):\n"
        "    text = open(name).read()\n    sha = __import__('json').load(open('folder.public.json'))['output_sha256']\n"
        "    open(name, 'w').write(text.replace(sha, ''))\n"
    ],
}
"""Steps of each release: a command, or the text of a program."""


def inputs(folder: Path) -> None:
    """Put the bundled data into a folder, and what is made of them."""
    for name in NAMES:
        (folder / f"{name}.csv").write_bytes(path(name).read_bytes())
    header, *lines = (folder / "census.csv").read_text().splitlines()
    for name, part in (("early", lines[:800]), ("late", lines[800:])):
        (folder / f"{name}.csv").write_text("\n".join([header, *part, ""]))
    groups = {"Harbour": "Low", "Mill": "Low", "Hill": "High", "Old Town": "High"}
    (folder / "groups.csv").write_text("".join(f"{name};{group};*\n" for name, group in groups.items()))
    homes = [f"{number // 3},{(number * 37) % 90},{'ns'[number // 3 % 2]}" for number in range(300)]
    (folder / "homes.csv").write_text("\n".join(["home,age,region", *homes, ""]))


def made(name: str) -> dict[str, str]:
    """Make one release; return the digest of each file that it publishes, or how it failed."""
    with tempfile.TemporaryDirectory() as made_in:
        folder = Path(made_in)
        inputs(folder)
        said = b""
        for step in CASES[name]:
            done = subprocess.run(_words(step), cwd=folder, capture_output=True, check=False, env=_quiet())
            said += done.stdout
            if done.returncode:
                sys.stderr.write(f"{name}: {done.stderr.decode()}\n")
                return {"failed": hashlib.sha256(done.stderr).hexdigest()}
        files = [
            each for each in folder.iterdir() if each.is_file() and each.name.startswith(("release", "report", "job"))
        ]
        if "names only" in name:
            return dict.fromkeys(sorted(each.name for each in files), "")
        found = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in sorted(files)}
        return {**found, "standard output": hashlib.sha256(said).hexdigest()}


def _words(step: str) -> list[str]:
    command, *words = shlex.split(step) if "\n" not in step else [""]
    if command == "shoal":
        return [sys.executable, "-m", "shoal", *words]
    if command == "python":
        code = f"import sqlite3\nprint(*sqlite3.connect({words[-1]!r}).iterdump(), sep='\\n')"
        return [sys.executable, "-c", code]
    return [sys.executable, "-c", step]


def _quiet() -> dict[str, str]:
    return {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": "0"}


def main() -> int:
    """Make all releases; write their digests, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("new", type=Path, nargs="?")
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    names = [name for name in CASES if asked.only in name]
    begin = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(names, pool.map(made, names), strict=True))
    (asked.new or asked.before).write_text(json.dumps(found, indent=1) + "\n")
    failed = [name for name in names if "failed" in found[name]]
    print(f"{len(names)} releases in {time.monotonic() - begin:.0f} s; failed: {', '.join(failed) or 'none'}")
    if asked.new is None:
        return len(failed)
    before = json.loads(asked.before.read_text())
    unlike = {
        name: sorted(file for file in {*before[name], *found[name]} if before[name].get(file) != found[name].get(file))
        for name in names
        if name in before and before[name] != found[name]
    }
    for name, files in unlike.items():
        print(f"{name}: {', '.join(files)}")
    print(f"{len(unlike)} releases differ")
    return len(unlike)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
