"""Drive `SyncVectorEnv` and an adapted `VecEnv` through the same program; compare everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import strategies as st

import sb3compat
from sb3compat.errors import ActionsError
from tests.closing import closed_later
from tests.envs import MakeEnv, Script
from tests.lockstep import Operation, batched, same

BuildVecEnv = Callable[[list[MakeEnv]], Any]


def dummy(fns: Sequence[Any]) -> Any:
    return pytest.importorskip("stable_baselines3.common.vec_env").DummyVecEnv(fns)


def subproc(fns: Sequence[Any]) -> Any:
    from stable_baselines3.common.vec_env import SubprocVecEnv

    return closed_later(SubprocVecEnv(fns, start_method="fork"))


def monitored(fns: Sequence[Any]) -> Any:
    """Whole steps; a `MakeEnv` makes copies, as `DummyVecEnv` itself loses reused arrays."""
    from stable_baselines3.common.vec_env import VecMonitor

    copying = [
        MakeEnv(fn.script, fn.row, copying=True) if isinstance(fn, MakeEnv) else fn for fn in fns
    ]
    return VecMonitor(dummy(copying))


SOURCES = [dummy, subproc, monitored]
NAMES = ["dummy", "subproc", "monitored"]


def back_programs(num_envs: int, max_size: int = 16) -> st.SearchStrategy[list[Operation]]:
    """A first reset, then steps and resets, some of them of some rows only."""
    seeds = st.one_of(
        st.none(),
        st.none(),
        st.integers(0, 1000),
        st.lists(st.one_of(st.none(), st.integers(0, 1000)), min_size=num_envs, max_size=num_envs),
    )
    options = st.sampled_from([None, None, {}, {"x": 1}, {"x": 2, "y": [1, 2]}])
    masks = st.lists(st.booleans(), min_size=num_envs, max_size=num_envs)
    reset = st.tuples(st.just("reset"), st.tuples(seeds, options))
    masked = st.tuples(st.just("masked"), st.tuples(masks, seeds, options))
    ended = st.just(("ended", None))  # a reset of the rows that have ended, if any
    step = st.tuples(st.just("step"), st.integers(0, 999))
    rest = st.lists(st.one_of(step, step, step, step, ended, masked, reset), max_size=max_size)
    return st.builds(lambda first, more: [first, *more], reset, rest)


class Reference:
    """The results of `SyncVectorEnv`, with the two differences of SB3 applied to them."""

    def __init__(self, script: Script, num_envs: int, mode: AutoresetMode, rounds: bool) -> None:
        fns = [MakeEnv(script, i, copying=True) for i in range(num_envs)]
        self.env = SyncVectorEnv(fns, autoreset_mode=mode)
        self.rounds = rounds
        self.ended = np.zeros(num_envs, np.bool_)

    def reset(self, seed: Any, options: Any) -> Any:
        options = deepcopy(options)
        mask = (options or {}).get("reset_mask", np.ones_like(self.ended))
        self.ended = self.ended & ~mask
        return self.env.reset(seed=deepcopy(seed), options=options)

    def step(self, actions: Any) -> Any:
        obs, rewards, terminations, truncations, infos = self.env.step(actions)
        if self.rounds:
            rewards = rewards.astype(np.float32).astype(np.float64)
        self.ended = terminations | truncations
        return obs, rewards, terminations, truncations & ~terminations, infos


def lockstep(
    script: Script,
    num_envs: int,
    mode: AutoresetMode,
    build: BuildVecEnv,
    program: Iterable[Operation],
    *,
    rounds: bool | None = None,
    whole: bool | None = None,
) -> None:
    """Run the program on both; raise at the first difference.

    `rounds` says whether rewards are rounded to float32, `whole` whether all rows step at once.
    """
    rounds = build is not subproc if rounds is None else rounds
    whole = build is monitored if whole is None else whole
    reference = Reference(script, num_envs, mode, rounds=rounds)
    vec_env = build([MakeEnv(script, i) for i in range(num_envs)])
    ours = sb3compat.to_gymnasium(vec_env, autoreset_mode=mode)
    try:
        _run(script, num_envs, reference, ours, whole, program)
    finally:
        ours.close()
        reference.env.close()


def _run(
    script: Script,
    n: int,
    reference: Reference,
    ours: Any,
    whole: bool,
    program: Iterable[Operation],
) -> None:
    handed_out: list[tuple[Any, Any]] = []
    disabled = ours.autoreset_mode == AutoresetMode.DISABLED

    def compare(got: Any, expected: Any, where: str) -> None:
        same(without(got, whole), without(expected, whole), where)
        handed_out.append((got, deepcopy(got)))

    def reset(seed: Any, options: Any, where: str) -> None:
        passed = deepcopy(options)
        got = ours.reset(seed=seed, options=passed)
        same(passed, options, f"{where}: the options passed")
        compare(got, reference.reset(seed, options), where)

    def held() -> bool:
        """Whether there are rows that the VecEnv has reset and that are held."""
        return bool(whole and disabled and reference.ended.any())

    for number, (name, argument) in enumerate(program):
        where = f"operation {number} ({name})"
        if name == "step":
            if disabled and reference.ended.any():
                # Gymnasium's own would have stepped the rows before the ended one.
                with pytest.raises(AssertionError, match="to be reset before the next step"):
                    ours.step([None] * n)
                reset(None, {"reset_mask": reference.ended.copy()}, where)
            actions = actions_of(script.action_space, n, argument)
            before = deepcopy(actions)
            compound = isinstance(script.action_space, spaces.Dict | spaces.Tuple)
            listed = compound and isinstance(actions, list)
            expected = batched(script.action_space, actions) if listed else actions
            if listed and isinstance(expected, tuple) and len(expected) == n > 1:
                with pytest.raises(ActionsError, match="either parts or actions"):
                    ours.step(actions)
                got = ours.step(expected)
            else:
                got = ours.step(actions)
            same(actions, before, f"{where}: the actions passed")
            compare(got, reference.step(expected), where)
        elif name == "ended":
            if reference.ended.any() and disabled:
                reset(None, {"reset_mask": reference.ended.copy()}, where)
        elif name == "reset":
            seed, options = argument
            plain = not options and is_none(seed, np.ones(n, bool))
            if held() and not (plain and reference.ended.all()):
                # The VecEnv has reset these rows already, and does so once more.
                reference.reset(None, {"reset_mask": reference.ended.copy()})
            reset(seed, options, where)
        else:
            bits, seed, options = argument
            mask = np.array(bits)
            if not mask.any():
                mask[0] = True
            plain = not options and is_none(seed, mask)
            from_held = plain and held() and reference.ended[mask].all()
            if whole and not mask.all() and not from_held:
                with pytest.raises(sb3compat.PartialResetError, match="has no other way"):
                    ours.reset(seed=seed, options={**(options or {}), "reset_mask": mask})
                continue
            if held() and not from_held:
                reference.reset(None, {"reset_mask": reference.ended.copy()})
            reset(seed, {**(options or {}), "reset_mask": mask}, where)
    for value, snapshot in handed_out:
        same(value, snapshot, "handed out earlier, and changed since")


def is_none(seed: Any, mask: Any) -> bool:
    """Whether no row under the mask gets a seed."""
    if not isinstance(seed, list):
        return seed is None
    return all(one is None for one, wanted in zip(seed, mask, strict=True) if wanted)


def actions_of(space: spaces.Space[Any], n: int, number: int) -> Any:
    """Actions as Gymnasium users pass them: a batch, or a list of single ones."""
    space = deepcopy(space)
    space.seed(number)
    actions = [space.sample() for _ in range(n)]
    return actions if number % 2 else batched(space, actions)


def without(value: Any, whole: bool) -> Any:
    """The infos that both sides have, without those of `VecMonitor` and without empty options."""
    if not whole:
        return value
    if isinstance(value, tuple):
        return tuple(without(part, whole) for part in value)
    if not isinstance(value, dict):
        return value
    left_out = {"episode", "_episode", "given", "_given"}
    return {key: without(part, whole) for key, part in value.items() if key not in left_out}
