"""Ways to spread the rows of a test over parts and workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import strategies as st

from sb3compat import ParallelVecEnv, to_gymnasium
from sb3compat._convert.actions import Actions
from sb3compat._convert.observations import Observations
from tests.closing import closed_later
from tests.envs import Identity, MakeEnv, Script
from tests.resources import children_of
from tests.strategies import scripts

Part = Callable[[], Any]


# What `lockstep` does with seven rows, where Hypothesis would draw too much.
PROGRAM: list[tuple[str, Any]] = [
    ("seed", 3),
    ("options", [{"x": 1}, {}, {"x": 2}, {}, {"x": 3}, {}, {"x": 4}]),
    ("reset", None),
    *[("step", number) for number in range(7)],
    ("options", {"x": 2}),
    ("reset", None),
    *[("step", number) for number in range(4)],
]


def dummy(fns: Sequence[Any]) -> Any:
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([
        MakeEnv(fn.script, fn.row, copying=fn.script.reuse) if isinstance(fn, MakeEnv) else fn
        for fn in fns
    ])  # fmt: skip


def children() -> list[int]:
    """The processes that this one has started and that run, without helpers of Python's own."""
    found = []
    for pid in children_of("self"):
        with suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            command = Path(f"/proc/{pid}/cmdline").read_text()
            helper = any(name in command for name in ("forkserver", "resource_tracker"))
            found += [] if state == "Z" or helper else [pid]
    return found


# What makes one part of several rows.
KINDS: dict[str, Callable[[Sequence[MakeEnv]], Any]] = {
    "sync": lambda fns: SyncVectorEnv(fns),
    "same_step": lambda fns: SyncVectorEnv(fns, autoreset_mode=AutoresetMode.SAME_STEP),
    "wrapped": lambda fns: Identity(SyncVectorEnv(fns, autoreset_mode=AutoresetMode.DISABLED)),
    "async": lambda fns: AsyncVectorEnv(fns, context="fork"),
    "dummy": dummy,
    "adapter": lambda fns: Identity(to_gymnasium(dummy(fns), autoreset_mode="Disabled")),
    "nested": lambda fns: ParallelVecEnv(fns, workers=2, start_method="fork"),
}
if find_spec("stable_baselines3") is None:
    del KINDS["dummy"], KINDS["adapter"]


def forked(fns: Sequence[Part], workers: int | None = None, **kwargs: Any) -> ParallelVecEnv:
    """Forks start fastest, and need no pickling; they are closed after the test."""
    return closed_later(ParallelVecEnv(fns, workers=workers, start_method="fork", **kwargs))


def split(rows: Any, counts: Sequence[int]) -> list[Any]:
    """The share of each part in what there is one of for each row."""
    return [rows[start:stop] for start, stop in pairwise(accumulate(counts, initial=0))]


def parts_of(
    fns: Sequence[MakeEnv],
    shape: Sequence[tuple[str, int]],
    kinds: Mapping[str, Callable[[Sequence[MakeEnv]], Any]] = KINDS,
) -> list[Part]:
    """Parts of so many rows each, of these kinds; `"single"` is one row by itself."""
    parts: list[Part] = []
    for (kind, _), own in zip(shape, split(fns, [count for _, count in shape]), strict=True):
        parts += own if kind == "single" else [partial(kinds[kind], own)]
    return parts


def unshifted(
    infos: tuple[str, ...] = ("none", "plain", "wild"), reuse: bool = True
) -> st.SearchStrategy[Script]:
    """Scripts with spaces that start at 0, as a `VecEnv` presents them."""
    return scripts(infos, reuse=reuse).filter(
        lambda script: (
            Observations(script.observation_space, 1).presented is script.observation_space
            and Actions(script.action_space, 1).presented is script.action_space
        )
    )
