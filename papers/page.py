"""Write docs/claims.md from the archived result files: ``python -m papers.page``.

Run it after the results of a run have been copied to ``papers/results``.
"""

from pathlib import Path

from papers import PAPERS, entry_of
from papers.claims import as_table, counted
from papers.incremental import reference_times
from papers.paper import RESULTS, archived_claims, read

PAGE = Path(__file__).resolve().parents[1] / "docs" / "claims.md"

HEAD = """# What the papers say, and what holds here

Every sentence of the five papers that can be counted, held against our own runs: yes, no, or not testable, and why.
`python -m papers NAME --claims` prints the same; `python -m papers NAME` measures again and holds the sentences against
the new numbers. This page is written by `papers/page.py` from result files and checked by a test. A "no" is
a finding about our data, machine and implementation as much as about the paper: the reason stands beside it.

Real data sets that are not shipped (census, covertype, Breast Cancer, Diabetes) are looked for in the folder that
`SHOAL_DATA` names; a fresh clone has none of them, and the commands say what they leave out.
"""


def page() -> str:
    """Return the page of all claims."""
    parts = [HEAD]
    for name in PAPERS:
        entry = entry_of(name)
        claims = archived_claims(entry)
        runs = "; ".join(
            f"`python -m papers {source.run}` (`papers/results/{source.file}`)" for source in entry.archived
        )
        first = read(RESULTS / entry.archived[0].file, entry.rows)
        machine = first["machine"]
        on = f"{machine.get('cpu', 'unknown processor')}, NumPy {machine.get('numpy', '?')}, one thread"
        extra = f"\n```text\n{reference_times.as_text(first['table_5_2'])}```\n" if name == "incremental" else ""
        parts.append(
            f"## {name}\n\n{entry.title}.\n\n"
            f"Measured by {runs}; {on}: {counted(claims)}.\n\n{as_table(claims)}\n{extra}"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
