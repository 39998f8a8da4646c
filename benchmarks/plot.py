"""Eight of the results as a figure, on both sides of "no gain": each bar says what it compares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from figures import GREY, figure_of, save
from measure import Row

# What is measured, of how many rows and against what; and the same as a sentence.
BARS = {
    ("PPO, 10 epochs", 64, "DummyVecEnv"): (
        "PPO trains on 64 natively vectorized CartPoles", "DummyVecEnv"),
    ("PPO, 4 epochs", 1024, "DummyVecEnv"): (
        "PPO trains on 1,024 of them, with 4 epochs instead of 10", "DummyVecEnv"),
    ("Async images", 8, "SubprocVecEnv"): (
        "to_sb3(AsyncVectorEnv) steps 8 environments that return images", "SubprocVecEnv"),
    ("back, SameStep, Subproc", 8, "AsyncVectorEnv"): (
        "to_gymnasium(SubprocVecEnv) steps the same 8", "AsyncVectorEnv"),
    ("parallel CartPole", 32, "SubprocVecEnv"): (
        "ParallelVecEnv steps 32 CartPoles in 2 workers", "SubprocVecEnv, 32 processes"),
    ("parallel HalfCheetah", 16, "SubprocVecEnv"): (
        "ParallelVecEnv steps 16 HalfCheetahs in 2 workers", "SubprocVecEnv, 16 processes"),
    ("parallel HalfCheetah", 16, "DummyVecEnv"): (
        "the same 16 HalfCheetahs", "DummyVecEnv, no worker"),
    ("parallel 200 us a step", 16, "DummyVecEnv"): (
        "16 environments of 200 µs a step in 2 workers", "DummyVecEnv, no worker"),
}  # fmt: skip
TICKS = (0.5, 1, 2, 5, 10)


def draw(rows: Sequence[Row], path: Path, cores: int) -> None:
    """Draw bars from 1 to the ratio of the speeds; lines are the middle half of the rounds."""
    found = {(row.what, row.n, row.other): row for row in rows}
    figure, (ax,) = figure_of(1)
    figure.set_size_inches(9.5, 4.8)
    for place, key in enumerate(BARS):
        row = found[key]
        times, low, high = 1 / row.ratio, 1 / row.high, 1 / row.low
        ax.barh(place, times - 1, left=1, color="C0" if times > 1 else "C1", height=0.55)
        ax.plot((low, high), (place, place), color=GREY, linewidth=2)
        ax.text(max(high, 1) * 1.06, place, f"{times:.2g}", va="center")
    ax.axvline(1, color=GREY, linewidth=1)
    ax.set_yticks(range(len(BARS)), [f"{text},\nagainst {other}" for text, other in BARS.values()])
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set(xscale="log", title=f"Frames per second, times those of the other, on {cores} cores")
    ax.set_xticks(TICKS, map(str, TICKS))
    ax.set_xlim(0.45, 14)
    ax.minorticks_off()
    ax.set_xlabel("less than 1 (orange): sb3compat is slower")
    save(figure, path)
