"""The picture that both stream examples draw: loss and order, one line for each delay."""

from collections.abc import Sequence
from pathlib import Path


def draw(runs: Sequence[dict[str, float]], title: str, path: Path, loss: str = "information loss (%)") -> None:
    """Write a PNG, or print what needs to be installed."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        print("For the picture: pip install matplotlib")
        return
    figure = Figure(figsize=(6, 4.2), layout="constrained")
    panel = figure.subplots()
    for delay in sorted({run["delay"] for run in runs}):
        line = [run for run in runs if run["delay"] == delay]
        panel.plot([run["moved"] for run in line], [run["il"] for run in line], marker="o", label=f"delay {delay:g}")
        for run in line:
            panel.annotate(f" {run['weight']:g}", (run["moved"], run["il"]), fontsize=7)
    panel.set_xscale("symlog", linthresh=1)
    panel.set_xlabel("places moved, mean (numbers at the points: order weight)")
    panel.set_ylabel(loss)
    panel.set_title(title)
    panel.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
