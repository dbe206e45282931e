"""Page: the risk-utility map and its table as one self-contained HTML file without scripts."""

from html import escape
from typing import TYPE_CHECKING

from shoal.comparison.picture import svg

if TYPE_CHECKING:
    from shoal.comparison import Choice, Comparison

_STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2430; --soft: #5f6b7a; --line: #e3e7ec; --mark: #eef4fb; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181e; --ink: #e6eaf0; --soft: #9aa6b4; --line: #2b323c; --mark: #1d2936; } }
body { font: 16px/1.5 system-ui, sans-serif; background: var(--paper); color: var(--ink); margin: 0 auto;
  max-width: 860px; padding: 32px 20px; }
h1 { font-size: 26px; margin: 0 0 8px; }
p { color: var(--soft); margin: 8px 0; }
svg { display: block; width: 100%; height: auto; margin: 16px 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 6px 12px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:nth-child(2), td:nth-child(2), th:last-child, td:last-child { text-align: left; }
tr.best td { background: var(--mark); font-weight: 600; }
@media print { body { max-width: none; } tr { break-inside: avoid; } }
"""


def html(comparison: "Comparison") -> str:
    """Return the page."""
    from shoal.comparison import RISK

    rows = "\n".join(_row(choice) for choice in comparison.choices)
    notes = [f"Left out: {s.method}{'' if s.k is None else f', k = {s.k}'}: {s.reason}" for s in comparison.skipped]
    notes += [f"Every choice: {text}" for text in comparison.models]
    notes += [f"Look at this before publishing: {text}" for text in comparison.warnings]
    told = "\n".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Risk and loss of each choice</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Risk and loss of each choice</h1>
<p>{comparison.n_records:,} records, {len(comparison.choices)} choices of k and method. A choice is undominated if no
other one, and no mixture of two others, is better in loss or risk without being worse in the other.
{_recommendation(comparison)}</p>
{svg(comparison)}
<div class="wide">
<table>
<thead><tr><th>k</th><th>method</th><th>loss %</th><th>risk %</th><th>classes</th><th></th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
<p>Loss: share of the variance of the quasi-identifiers that the release has lost. Risk: {escape(RISK)}.</p>
{told}
</body>
</html>
"""


def _row(choice: "Choice") -> str:
    mark = ' class="best"' if choice.undominated else ""
    cells = (f"{choice.k}", escape(choice.name), f"{100 * choice.loss:.4f}", f"{100 * choice.risk:.4f}")
    last = ", ".join(choice.words)
    return f"<tr{mark}>{''.join(f'<td>{c}</td>' for c in cells)}<td>{choice.n_classes:,}</td><td>{last}</td></tr>"


def _recommendation(comparison: "Comparison") -> str:
    best = comparison.recommended
    if best is None:
        return ""
    return f"Recommended, as nearest to the least loss and the least risk: {escape(best.method)} with k = {best.k}."
