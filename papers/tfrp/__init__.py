"""TFRP: the paper's table of losses, its figures 5 to 13, and its claims about them.

References
----------
Chang, Li, Huang (2007), "TFRP: an efficient microaggregation algorithm for statistical disclosure control".
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from papers.data_and_results import Missing, timed
from papers.paper import Archived, Content, Paper, Run, bar, counts, seed_option, switch, without
from papers.tables import crossed, table
from papers.tfrp.claims import claims, in_text
from papers.tfrp.images import NAMES, block_sets
from papers.tfrp.methods import SMALL_LIMIT, Limit, Result, measure
from papers.tfrp.printed import SIZES, table_2
from shoal import datasets
from shoal.arrays import standardize
from shoal.datasets import Dataset
from shoal.measures import loss
from shoal.methods import partition
from shoal.typing import Matrix


class Scale(NamedTuple):
    """How much is measured."""

    side: int
    """Pixels across a picture."""

    image_sizes: tuple[int, ...]
    """The k of figures 8, 9, 11 and 12."""

    records: tuple[int, ...]
    """The n of figure 13."""

    limit: Limit = SMALL_LIMIT
    """Limits up to which the plain twins are run."""


SMALL = Scale(256, (10, 20, 40, 80), (1_000, 2_000, 4_000, 8_000, 16_000))
FULL = Scale(
    512,
    tuple(range(10, 81, 10)),
    (1_000, 2_000, 4_000, 8_000, *range(10_000, 120_001, 10_000)),
    Limit(pairs=6e10, records=17_000),
)
SCALABILITY_K = 50


class Trees(NamedTuple):
    """Losses and times of MST partitioning, Diameter and Centroid (section 2.3)."""

    data: str
    k: int
    mst: float
    mst_seconds: float
    diameter: float
    diameter_seconds: float
    centroid: float
    centroid_seconds: float


def run(run: Run, full: bool, k: tuple[int, ...] | None, without_images: bool, seed: int) -> None:
    """Measure the sets of the literature, and blocks of pixels."""
    scale = FULL if full else SMALL
    fill(run, [*reference_sets(), *([] if without_images else block_sets(scale.side))], scale, seed, k or SIZES)


def reference_sets() -> list[Dataset]:
    """Return the three data sets of the literature, EIA in both interpretations."""
    return [datasets.tarragona(), datasets.census(), datasets.eia(10), datasets.eia(11)]


def fill(run: Run, sets: Sequence[Dataset | Missing], scale: Scale, seed: int, sizes: Sequence[int] = SIZES) -> None:
    """Measure every set at every k, then samples of growing size."""
    run.begin(seed=seed)
    for data in sets:
        if isinstance(data, Missing):
            without(data.name, data.reason)
            continue
        X, is_picture = standardize(data.X), data.name.startswith(NAMES)
        with bar(data.name, scale.image_sizes if is_picture else sizes) as ks:
            for k in ks:
                run.add("results", measure(data.name, X, k, scale.limit))
                run.add("trees", [] if is_picture else [trees(data.name, X, k)])
    dense = [data.X for data in sets if isinstance(data, Dataset) and data.name in {f"{name}-2x2" for name in NAMES}]
    if dense:
        _grow(run, np.concatenate(dense), scale, seed)


def trees(data: str, X: Matrix, k: int) -> Trees:
    """Compare MST partitioning with Diameter and Centroid."""
    numbers = []
    for method in ("mst", "diameter", "centroid"):
        labels, seconds = timed(partition, X, k, method, threads=1)
        numbers += [100 * loss(X, labels).il, seconds]
    return Trees(data, k, *numbers)


def _grow(run: Run, records: Matrix, scale: Scale, seed: int) -> None:
    """Time samples of the two dense picture sets together (figure 13)."""
    with bar("growing n", [n for n in scale.records if n <= len(records)]) as sizes:
        for n in sizes:
            chosen = np.random.default_rng([seed, n]).choice(len(records), n, replace=False)
            run.add("scalability", measure("both-2x2", standardize(records[chosen]), SCALABILITY_K, scale.limit))


WHAT = {
    "il": "Figures 5 to 9: information loss in percent",
    "plain_seconds": "Figures 10 to 12: seconds of the plain twins, one thread",
    "seconds": "Figures 10 to 12: seconds of shoal's kernels, one thread",
}


def tables(content: Content) -> str:
    """Format table 2, the losses in the text, and the loss and time of the six methods in all figures."""
    results, growing = content["results"], content["scalability"]
    parts = [table_2_text(results)]
    if said := in_text(results):
        columns = {
            "data": "<10",
            "k": ">3",
            "method": "<10",
            "paper": ">8.2f",
            "ours": ">8.3f",
            "difference": ">+10.3f",
        }
        parts.append(table(columns, [(*row, row[-1] - row[-2]) for row in said], "Losses in the text"))
    for what, title in WHAT.items():
        points = [(f"{r.data:<10} n={r.n:,} k={r.k}", r.method, getattr(r, what)) for r in results]
        parts.append(_methods("data", points, title))
    for what, whose in {"plain_seconds": "the plain twins", "seconds": "shoal's kernels"}.items():
        points = [(f"{r.n:,}", r.method, getattr(r, what)) for r in growing]
        parts += (
            [_methods("n", points, f"Figure 13: seconds of {whose}, one thread, k={SCALABILITY_K}")] if points else []
        )
    return "\n".join(parts)


def _methods(key: str, points: Sequence[tuple[str, str, float | None]], title: str) -> str:
    return crossed(key, points, ">10.3f", title, "not run", "<28")


def table_2_text(results: Sequence[Result]) -> str:
    """Compare each entry of table 2 with ours, and count those that agree to the printed digits."""
    ours = {(result.data, result.k, result.method): result.il for result in results}
    rows = []
    for data, k, phases, il in table_2():
        key = (data, k, "TFRP_I" if phases == 1 else "TFRP")
        if key in ours:
            rows.append((*key, il, ours[key], ours[key] - il))
    agreeing = sum(round(mine, 3) == il for *_, il, mine, _ in rows)
    columns = {"data": "<10", "k": ">3", "method": "<7", "paper": ">8.3f", "ours": ">8.3f", "difference": ">+10.4f"}
    text = table(columns, rows, "Table 2: information loss in percent")
    return f"{text}{agreeing} of {len(rows)} entries agree in every printed digit.\n"


PAPER = Paper(
    title="TFRP: an efficient microaggregation algorithm for statistical disclosure control, Chang, Li, Huang 2007",
    covers="table 2, figures 5 to 13, section 2.3",
    takes="about 4 minutes",
    full="--full: about 30 minutes",
    about="""Compare TFRP's table and figures with ours.

    Information loss and time of Diameter, Centroid and TFRP, each with and without its second phase, on the three
    reference sets (table 2, figures 5 to 7 and 10) and on blocks of pixels (figures 8, 9 and 11 to 13), as tables,
    pictures and JSON. The pictures come with scikit-image and are left out where that is not installed.
    """,
    examples=("", "--without-images", "--full --output tfrp-full"),
    quick="--without-images -k 5,10",
    options=(
        switch("--full", "The paper's sizes: whole pictures, up to 120000 records. Takes minutes."),
        counts("-k", "The k of the reference sets.  [default: those of table 2]"),
        switch("--without-images", "Leave out the data sets made of pictures."),
        seed_option(),
    ),
    rows={"results": Result, "scalability": Result, "trees": Trees},
    measure=run,
    tables=tables,
    claims=claims,
    pictures="papers.tfrp.pictures",
    archived=(
        Archived("tfrp-losses.json", "tfrp --full: losses"),
        Archived("tfrp.json", "tfrp: times and MST, pictures of 256 x 256 in place of 512 x 512"),
    ),
)
