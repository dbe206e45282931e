"""Store the claims of the papers: read result files, write ``papers/kept/`` and ``docs/claims.md``.

Run it after the results of a reproduction have been copied to ``benchmarks/results/papers``:

    python benchmarks/keep_claims.py
"""

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))

from papers import PAPERS
from papers.claims import Claim, as_table, counted
from papers.incremental import reference_times

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
KEPT = ROOT / "papers" / "kept"
PAGE = ROOT / "docs" / "claims.md"


class Source(NamedTuple):
    """A result file, and the run that wrote it."""

    file: str
    run: str


SOURCES: dict[str, list[Source]] = {
    "fmdav": [Source("papers/fmdav.json", "python -m papers fmdav --full --jobs 16")],
    "tfrp": [
        Source("papers/tfrp-losses.json", "python -m papers tfrp --full: losses"),
        Source("papers/tfrp.json", "python -m papers tfrp: times and MST, pictures of 256 x 256 in place of 512 x 512"),
    ],
    "incremental": [Source("papers/incremental.json", "python -m papers incremental --full")],
    "random": [Source("papers/random.json", "python -m papers random --repeats 3")],
    "steered": [Source("papers/steered.json", "python -m papers steered")],
    "streams": [Source("papers/streams.json", "python -m papers streams")],
    "records": [Source("records.json", "python -m papers records --bound")],
}
"""The result files of each paper: a claim that the first file cannot decide is decided by the next."""

HEAD = """# What the papers say, and what holds here

Every sentence of the five papers that can be counted, held against our own runs: yes, no, or not testable, and why.
`python -m papers NAME --claims` prints the same; `python -m papers NAME` measures again and holds the sentences against
the new numbers. This page is written by `benchmarks/keep_claims.py` from result files and checked by a test. A "no" is
a finding about our data, machine and implementation as much as about the paper: the reason stands beside it.

Real data sets that are not shipped (census, covertype, Breast Cancer, Diabetes) are looked for in the folder that
`SHOAL_DATA` names; a fresh clone has none of them, and the commands say what they leave out.
"""


def claims_of(paper: str) -> tuple[list[Source], dict[str, Any], list[Claim]]:
    """Return the existing files, the machine of the first, and every claim with its first answer."""
    function = import_module(f"papers.{paper}").claims
    there = [source for source in SOURCES[paper] if (RESULTS / source.file).is_file()]
    contents = [json.loads((RESULTS / source.file).read_text(encoding="utf-8")) for source in there]
    answers = [function(content) for content in contents]
    return there, contents[0]["machine"], merged(answers)


def merged(answers: Sequence[Sequence[Claim]]) -> list[Claim]:
    """Take each claim from the first list that decides it, in the order of the first."""
    found = {(claim.where, claim.says): claim for claims in reversed(answers) for claim in claims}
    for claims in reversed(answers):
        found |= {(claim.where, claim.says): claim for claim in claims if claim.holds is not None}
    order = dict.fromkeys((claim.where, claim.says) for claims in answers for claim in claims)
    return [found[key] for key in order]


def page() -> str:
    """Return the page of all claims."""
    parts = [HEAD]
    for paper, entry in PAPERS.items():
        sources, machine, claims = claims_of(paper)
        runs = "; ".join(f"`{source.run}` (`benchmarks/results/{source.file}`)" for source in sources)
        on = f"{machine.get('cpu', 'unknown processor')}, NumPy {machine.get('numpy', '?')}, one thread"
        extra = times_table() if paper == "incremental" else ""
        parts.append(
            f"## {paper}\n\n{entry.title}.\n\n"
            f"Measured by {runs}; {on}: {counted(claims)}.\n\n{as_table(claims)}\n{extra}"
        )
    return "\n".join(parts)


def times_table() -> str:
    """Return table 5.2 of the thesis beside ours."""
    content = json.loads((RESULTS / SOURCES["incremental"][0].file).read_text(encoding="utf-8"))
    rows = [reference_times.Row(**row) for row in content["table_5_2"]]
    return f"\n```text\n{reference_times.as_text(rows)}```\n"


def kept(paper: str) -> str:
    """Return the content of the shipped file of a paper."""
    sources, machine, claims = claims_of(paper)
    content = {
        "run": "; ".join(source.run for source in sources),
        "machine": machine,
        "claims": [claim._asdict() for claim in claims],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the shipped files and the page."""
    for paper in PAPERS:
        (KEPT / f"{paper}.json").write_text(kept(paper), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
