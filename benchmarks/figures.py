"""How the figures of the documentation look: the same for the same results, on any background."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")

# Text as text, and no random names; a grey that can be read on white and on black.
GREY = "#808080"
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "sb3compat", "font.size": 10,
    "text.color": GREY, "axes.edgecolor": GREY, "axes.labelcolor": GREY, "axes.titlecolor": GREY,
    "xtick.color": GREY, "ytick.color": GREY, "grid.color": GREY, "grid.alpha": 0.25,
    "axes.grid": True, "axes.titlesize": 11,
}  # fmt: skip


def figure_of(panels: int) -> tuple[Any, list[Any]]:
    """A figure with so many panels side by side."""
    mpl.rcParams.update(STYLE)
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, panels, figsize=(max(6.5, 4.7 * panels), 3.8), layout="constrained", squeeze=False
    )
    return figure, list(axes[0])


def save(figure: Any, path: Path) -> None:
    """Write the figure, with a transparent background."""
    figure.savefig(path, format="svg", transparent=True, metadata={"Date": None})
