"""The ratios as a figure; the same results give the same file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from measure import Row

# Text as text, and no random names or dates: a small file, the same for the same results.
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "sb3compat", "font.size": 8}
TICKS = (0.03, 0.1, 0.25, 0.5, 1, 2)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw one dot for each row; its line reaches over the middle half of the rounds."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 0.6 + 0.2 * len(rows)), layout="constrained")
        axes = figure.subplots()
        places = range(len(rows))
        errors = [row.ratio - row.low for row in rows], [row.high - row.ratio for row in rows]
        colours = ["tab:orange" if missed(row) else "tab:blue" for row in rows]
        ratios = [row.ratio for row in rows]
        axes.errorbar(ratios, places, xerr=errors, fmt="none", ecolor="0.4", elinewidth=1)
        axes.scatter(ratios, places, 24, colours, zorder=3)
        aims = [(row.aim, place) for place, row in enumerate(rows) if row.aim is not None]
        axes.plot(*zip(*aims, strict=True), "k|", markersize=11, markeredgewidth=2, label="aim")
        axes.axvline(1, color="0.6", linewidth=0.8, zorder=0)
        axes.grid(axis="y", color="0.9", linewidth=0.5)
        axes.set_xscale("log")
        axes.set_xticks(TICKS, map(str, TICKS))
        axes.minorticks_off()
        axes.set_yticks(places, [f"{row.what}, n={row.n}: {row.other}" for row in rows])
        axes.invert_yaxis()
        axes.margins(y=0.02)
        axes.set_xlabel("ratio (orange: aim missed)")
        axes.legend(loc="upper left")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def missed(row: Row) -> bool:
    return row.aim is not None and round(row.ratio, 2) > row.aim
