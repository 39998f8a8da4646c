"""The yardstick: what `DummyVecEnv` yields, over all kinds of parts and numbers of workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.envs import ENDINGS, fns, script
from tests.lockstep import lockstep, same
from tests.native import Form, NativeEnv, Restart, RestartsRows
from tests.parallel.teams import KINDS, PROGRAM, dummy, forked, parts_of, unshifted
from tests.profiles import examples
from tests.strategies import boxes, programs, scripts
from tests.to_sb3.driving import cast_vector, uniform

pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")

from stable_baselines3.common import vec_env as sb3

import sb3compat
from tests.vec_wrappers import FINAL, Cast, HandsOn

CUT = "TimeLimit.truncated"
DTYPES = [np.float32, np.float64, np.float16, np.int64, np.uint8, np.bool_]


@given(data=st.data(), workers=st.integers(1, 5), parent=st.booleans(), spins=st.booleans())
@settings(max_examples=examples(300))
def test_parts_of_every_kind_equal_dummy_vec_env(
    data: st.DataObject, workers: int, parent: bool, spins: bool
) -> None:
    # Often single environments only: they may have any spaces and infos.
    kind = st.sampled_from(data.draw(st.sampled_from([["single"], ["single", *KINDS]])))
    shape = data.draw(st.lists(st.tuples(kind, st.integers(1, 2)), min_size=1, max_size=3))
    n = sum(count for _, count in shape)
    # Infos of vector environments below a wrapper come as a dict of arrays.
    plain = any(kind in ("wrapped", "adapter") for kind, _ in shape)
    reuse = all(kind in ("single", "sync") for kind, _ in shape)
    infos = ("none", "plain") if plain else ("none", "plain", "wild")
    # A nested one presents spaces from 0, which are not those of a single environment.
    nested = any(kind == "nested" for kind, _ in shape)
    chosen = data.draw((unshifted if nested else scripts)(infos, reuse=reuse))
    build: Any = partial(forked, workers=workers, parent_steps=parent, spin_seconds=1e-4 * spins)
    lockstep(chosen, n, lambda fns: build(parts_of(fns, shape)), data.draw(programs(n)))


@given(data=st.data(), workers=st.integers(1, 3), changes=st.sampled_from([False, False, True]))
@settings(max_examples=examples(150))
def test_native_parts_equal_dummy_vec_env(data: st.DataObject, workers: int, changes: bool) -> None:
    rows = st.tuples(st.sampled_from(["single", "native", "restarting"]), st.integers(1, 3))
    shape = data.draw(st.lists(rows, min_size=1, max_size=3))
    mode = data.draw(st.sampled_from([AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED]))
    # Infos that are arrays are split by the parent, others by the worker.
    chosen = data.draw(scripts(data.draw(st.sampled_from([("none",), ("none", "plain")])), False))
    space = data.draw(boxes())
    chosen = replace(chosen, observation_space=space)
    # Parts keep their dtype, and these would change it.
    keeps = space.shape != () and space.dtype != np.float32
    kinds = {
        name: partial(native, cls=cls, mode=mode, form=Form(changes=changes and keeps))
        for name, cls in (("native", NativeEnv), ("restarting", RestartsRows))
    }
    n = sum(count for _, count in shape)
    program = uniform([*data.draw(programs(n)), *(("step", number) for number in range(8))])
    build: Any = partial(forked, workers=workers)
    lockstep(chosen, n, lambda fns: build(parts_of(fns, shape, kinds)), program)


class KeepsInfos(RestartsRows):
    """Returns the same arrays as infos in each step; a restart writes into them."""

    def __init__(self, env_fns: Any, bag: bool) -> None:
        super().__init__(env_fns, AutoresetMode.NEXT_STEP)
        n = self.num_envs
        self.kept = {"energy": np.zeros(n)}
        if bag:
            self.kept["bag"] = np.array([*([] for _ in range(n)), None], object)[:-1]

    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        self.kept["energy"] += 1
        for one in self.kept.get("bag", ()):
            one.append("step")
        return *results, {**infos, **self.kept}

    def reset_rows(self, mask: Any, seed: Any, options: Any) -> Any:
        self.kept["energy"][mask] = 0
        for one in self.kept.get("bag", ()):
            one.clear()
        return super().reset_rows(mask, seed, options)


sb3compat.register_partial_reset(KeepsInfos, Restart())


@pytest.mark.parametrize("bag", [False, True])
def test_infos_of_a_native_part_are_those_of_the_step_and_not_of_the_restart(bag: bool) -> None:
    def make() -> KeepsInfos:
        return KeepsInfos(fns(lengths=(2, 3), infos="none"), bag)

    def infos(env: Any) -> list[Any]:
        env.reset()
        found = [env.step([0, 0])[3] for _ in range(6)]
        env.close()
        return found

    same(infos(forked([make], 1)), infos(sb3compat.to_sb3(make())))


@pytest.mark.parametrize("start_method", [None, "fork", "forkserver", "spawn"])
def test_start_methods_equal_dummy_vec_env(start_method: str | None) -> None:
    chosen = script(lengths=(2, 3), endings=("truncated", "both"), infos="wild")
    build = partial(sb3compat.ParallelVecEnv, workers=2, start_method=start_method)
    lockstep(chosen, 7, build, PROGRAM)


# --- values and dtypes that the spaces do not have ----------------------------------------------


class Told(HandsOn):
    """Has the infos of the last resets as the environment inside has them, as ours do."""

    @property
    def reset_infos(self) -> list[Any]:
        infos: list[Any] = self.unwrapped.reset_infos
        return infos

    @reset_infos.setter
    def reset_infos(self, infos: Any) -> None:
        """As the base class sets it."""


class OwnInfo(dict[str, Any]):
    """The infos of a `VecEnv` may be of any class."""


# What a `VecEnv` may say of a row whose episode goes on.
ODD: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
    lambda info: info,
    lambda info: {},
    lambda info: {"mine": len(info)},
    lambda info: {CUT: True},
    lambda info: {CUT: np.False_},
    lambda info: {CUT: 0},
    lambda info: {CUT: False, FINAL: "not the last one"},
    lambda info: {FINAL: None},
    lambda info: {"sb3compat.worker_lost": False},
    lambda info: OwnInfo({CUT: False}),
    lambda info: OwnInfo(info),
]


class Odd(HandsOn):
    """Says of rows whose episodes go on what it likes, as no one forbids it."""

    steps = 0

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = self.venv.step_wait()
        self.steps += 1
        odd = [
            ODD[number % len(ODD)](info) if not done else info | {CUT: np.bool_(info[CUT])}
            for number, (info, done) in enumerate(zip(infos, dones, strict=True), self.steps)
        ]
        return obs, rewards, dones, odd


VECTORS: list[Any] = [Box(0, 100, (3,), dtype) for dtype in (np.uint8, np.float32, np.float64)]
OWN_SPACES = [*VECTORS, Dict(a=VECTORS[0], b=VECTORS[1], c=Discrete(3))]
IMAGE = Box(0, 255, (36, 36, 3), np.uint8)

WRAPPERS: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "normalize": (
        lambda venv: sb3.VecNormalize(
            venv, norm_obs_keys=["b"] if isinstance(venv.observation_space, Dict) else None
        ),
        OWN_SPACES,
    ),
    "normalize_rewards": (partial(sb3.VecNormalize, norm_obs=False), OWN_SPACES),
    "stack": (partial(sb3.VecFrameStack, n_stack=2), VECTORS),
    "transpose": (sb3.VecTransposeImage, [IMAGE]),
    "scale": (lambda venv: Cast(sb3.VecTransposeImage(venv), np.float32), [IMAGE]),
    "monitor": (sb3.VecMonitor, OWN_SPACES),
    "odd": (Odd, OWN_SPACES),
    **{
        f"{np.dtype(dtype).name}": (partial(Cast, dtype=dtype, rewards=dtype), OWN_SPACES)
        for dtype in DTYPES
    },
}


# What these make of a row depends on the other rows of its part.
OF_ALL_ROWS = ("normalize", "normalize_rewards", "odd")


@given(data=st.data(), counts=st.lists(st.integers(1, 3), min_size=1, max_size=3))
@settings(max_examples=examples(200))
def test_vec_env_parts_equal_what_they_give_by_themselves(
    data: st.DataObject, counts: list[int]
) -> None:
    name = data.draw(st.sampled_from([*WRAPPERS]))
    wrap, spaces = WRAPPERS[name]
    nested = data.draw(st.booleans())
    chosen = script(
        observation_space=data.draw(st.sampled_from(spaces)),
        lengths=data.draw(st.sampled_from([(1,), (2, 3), (9,)])),
        endings=data.draw(st.permutations(ENDINGS)),
        infos=data.draw(st.sampled_from(["none", "plain", "wild"])),
    )
    on_worker_lost = data.draw(st.sampled_from(["raise", "restart"]))
    build: Any = partial(
        forked, workers=data.draw(st.integers(1, 2)), on_worker_lost=on_worker_lost
    )

    def part(fns: Any) -> Any:
        return forked([lambda: wrap(dummy(fns))]) if nested else wrap(dummy(fns))

    shape = [("vec_env", n) for n in ([sum(counts)] if name in OF_ALL_ROWS else counts)]
    lockstep(
        chosen,
        sum(counts),
        lambda fns: build(parts_of(fns, shape, {"vec_env": part})),
        data.draw(programs(sum(counts))),
        refer=lambda fns: Told(wrap(dummy(fns))),
    )


def native(
    fns: Any,
    cls: type[NativeEnv] = NativeEnv,
    mode: AutoresetMode = AutoresetMode.SAME_STEP,
    form: Form | None = None,
) -> Any:
    env = cls(fns, mode, form)
    env.render_mode = "rgb_array"
    return env


def forked_async(fns: Any, **kwargs: Any) -> Any:
    return AsyncVectorEnv(fns, context="fork", **kwargs)


OWN_KINDS: dict[str, Callable[..., Any]] = {
    "vec_env": lambda fns, dtype: Cast(dummy(fns), dtype),
    "nested": lambda fns, dtype: forked([lambda: OWN_KINDS["vec_env"](fns, dtype)]),
    "native": lambda fns, dtype: cast_vector(native(fns), dtype),
    **{
        f"{make.__name__}-{mode.name}": lambda fns, dtype, make=make, mode=mode: cast_vector(
            make(fns, autoreset_mode=mode), dtype
        )
        for make in (SyncVectorEnv, forked_async)
        for mode in AutoresetMode
    },
}


@given(data=st.data(), workers=st.integers(1, 3))
@settings(max_examples=examples(100))
def test_parts_of_every_kind_keep_their_dtype(data: st.DataObject, workers: int) -> None:
    kinds = st.tuples(st.sampled_from([*OWN_KINDS]), st.integers(1, 2))
    shape = data.draw(st.lists(kinds, min_size=1, max_size=3))
    n = sum(count for _, count in shape)
    dtype = data.draw(st.sampled_from(DTYPES))
    space = data.draw(st.sampled_from([*OWN_SPACES, Tuple(VECTORS)]))
    chosen = script(
        observation_space=space, lengths=(1, 3), endings=data.draw(st.permutations(ENDINGS))
    )
    build: Any = partial(forked, workers=workers)
    own_kinds = {kind: partial(make, dtype=dtype) for kind, make in OWN_KINDS.items()}
    program = data.draw(programs(n))
    lockstep(
        chosen,
        n,
        lambda fns: build(parts_of(fns, shape, own_kinds)),
        uniform(program) if any(kind == "native" for kind, _ in shape) else program,
        refer=lambda fns: Told(Cast(sb3.DummyVecEnv(fns), dtype)),
    )
