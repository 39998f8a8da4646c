"""Every vector wrapper of Gymnasium: exact, or refused with an alternative.

Exact means: what `DummyVecEnv` yields with the wrapper's twin for single environments around each
of its sub-environments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorWrapper
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from gymnasium.wrappers import TransformObservation, vector
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sb3compat
from tests.envs import GYMNASIUM, Identity, MakeEnv, fns
from tests.lockstep import Build, Operation, lockstep, same
from tests.native import NativeEnv, UnknownEnv
from tests.profiles import examples
from tests.strategies import programs
from tests.to_sb3.driving import DISABLED, NEXT_STEP, SAME_STEP, made, mode_of, uniform
from tests.to_sb3.vector_wrappers import (
    OTHERS,
    TWINS,
    AnyEnv,
    FastEnv,
    fitting_space,
    halved,
    record_video,
    rows,
    scripted,
)

pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")
pytest.importorskip("pygame", reason="HumanRendering shows its frames with pygame")
pytest.importorskip("cv2", reason="ResizeObservation and HumanRendering need OpenCV")

if GYMNASIUM < (1, 4):
    # A RecordVideo that refuses its environment raises again when it is deleted.
    pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


SHOWING = ("RecordVideo", "HumanRendering")


def refused_by_gymnasium(name: str, mode: AutoresetMode) -> bool:
    """Observation wrappers know no SAME_STEP mode; statistics do since Gymnasium 1.4."""
    return mode == SAME_STEP and name.endswith("Observation")


def refused_here(name: str, mode: AutoresetMode) -> bool:
    return mode == SAME_STEP and name == "RecordEpisodeStatistics" and GYMNASIUM < (1, 4)


def allowed(mode: AutoresetMode) -> list[str]:
    """The wrappers that work in this mode."""
    return [
        name for name in TWINS if not (refused_by_gymnasium(name, mode) or refused_here(name, mode))
    ]


STEPS: list[Operation] = [("seed", 5), ("reset", None), *[("step", i) for i in range(9)]]


def in_lockstep(
    names: Sequence[str], make: Build, n: int = 3, program: Iterable[Operation] = STEPS
) -> None:
    """Compare ours with `DummyVecEnv`, in these wrappers, the innermost first."""
    space = fitting_space(*names)
    assert space is not None

    def stack(fns: list[MakeEnv]) -> AnyEnv:
        env = make([FastEnv(fn.script, fn.row) for fn in fns])
        for name in names:
            env = TWINS[name].batch(env)
        return env

    def wrap(env: AnyEnv) -> AnyEnv:
        for name in names:
            env = TWINS[name].single(env)
        return env

    lockstep(scripted(space), n, stack, program, wrap=wrap)


@mode_of
@pytest.mark.parametrize("name", TWINS)
def test_wrapper_is_exact_or_refused(name: str, mode: AutoresetMode) -> None:
    def run() -> None:
        in_lockstep((name,), lambda fns: made("async", fns, mode))

    if refused_by_gymnasium(name, mode):
        with pytest.raises((AssertionError, ValueError)):
            run()
    elif refused_here(name, mode):
        with pytest.raises(sb3compat.UnsupportedEnvError, match="around each sub-environment"):
            run()
    else:
        run()


@pytest.mark.parametrize("mode", [NEXT_STEP, DISABLED])
def test_each_of_two_wrappers_finds_the_mask_that_both_pop(mode: AutoresetMode) -> None:
    in_lockstep(["RecordEpisodeStatistics"] * 2, lambda fns: made("sync", fns, mode))


@mode_of
@given(data=st.data(), n=st.integers(1, 4), copy=st.booleans(), native=st.booleans())
@settings(max_examples=examples(250))
def test_stacks_of_wrappers_are_exact(
    mode: AutoresetMode, data: st.DataObject, n: int, copy: bool, native: bool
) -> None:
    names = [name for name in allowed(mode) if not (native and name in SHOWING)]
    stack = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
    assume(fitting_space(*stack) is not None)
    program = data.draw(programs(n, max_size=10))
    if native:
        in_lockstep(stack, lambda fns: NativeEnv(fns, mode), n, uniform(program))
    else:
        in_lockstep(stack, lambda fns: made("sync", fns, mode, copy=copy), n, program)


# What the message about a refused wrapper says.
REFUSED = {
    name: "VecNormalize" if name.startswith("Normalize") else "Remove that wrapper"
    for name in OTHERS
}


def test_every_wrapper_is_tested_and_documented() -> None:
    assert set(vector.__all__) == TWINS.keys() | REFUSED.keys()
    page = Path(__file__).parents[2] / "docs" / "reference" / "vector-wrappers.md"
    table = "".join(line for line in page.read_text().splitlines() if line.startswith("|"))
    assert {name for name in vector.__all__ if f"`{name}`" in table} == set(vector.__all__)


def needs(name: str) -> Any:
    marks = [pytest.mark.jax] if "Jax" in name else []
    return pytest.param(name, marks=marks, id=name)


@mode_of
@pytest.mark.parametrize("name", [needs(name) for name in REFUSED])
def test_refused_wrapper_is_refused_at_every_place(name: str, mode: AutoresetMode) -> None:
    if "Jax" in name:
        pytest.importorskip("jax", reason="the wrapper needs JAX")
    if name == "ArrayConversion" or (name.endswith(("Torch", "Numpy")) and GYMNASIUM >= (1, 2)):
        pytest.importorskip("array_api_compat", reason="the wrapper needs array-api-compat")
    make, way_out = OTHERS[name], REFUSED[name]
    if name == "NormalizeReward" and mode == SAME_STEP and GYMNASIUM >= (1, 4):
        return  # exact, see below
    try:
        make(made("sync", rows(2), mode))
    except (AssertionError, ValueError):  # Gymnasium refuses it itself
        assert name == "NormalizeObservation"
        assert mode != NEXT_STEP
        return
    around = TWINS["TransformReward"].batch
    for inner, outer in ((around, make), (make, around)):
        env = outer(inner(made("sync", rows(2), mode)))
        with pytest.raises(sb3compat.UnsupportedEnvError, match=f"{name}.*{way_out}"):
            sb3compat.to_sb3(env)


@pytest.mark.skipif(GYMNASIUM < (1, 4), reason="Gymnasium 1.4 is the first to have it right")
def test_normalize_reward_is_exact_in_same_step_mode() -> None:
    def stack() -> AnyEnv:
        return vector.NormalizeReward(made("sync", rows(3), SAME_STEP), gamma=0.5)

    theirs, ours = stack(), sb3compat.to_sb3(stack())
    theirs.reset(seed=1)
    ours.reset()
    theirs.action_space.seed(1)
    for _ in range(12):
        actions = theirs.action_space.sample()
        expected = theirs.step(actions)[1]
        np.testing.assert_array_equal(ours.step(actions)[1], expected.astype(np.float32))


@pytest.mark.parametrize("name", ["NormalizeReward", "NormalizeObservation"])
def test_padding_allows_statistics_wrappers(name: str) -> None:
    def stack() -> AnyEnv:
        return OTHERS[name](UnknownEnv(rows(2), NEXT_STEP))

    theirs, ours = stack(), sb3compat.to_sb3(stack(), padding=True)
    same(ours.reset(), theirs.reset()[0])
    actions = np.zeros((2, 2), np.float32)
    for _ in range(8):
        obs, rewards, dones, _ = ours.step(actions)
        expected, unrounded, *_ = theirs.step(actions)
        same(obs, expected)
        np.testing.assert_array_equal(rewards[~dones], unrounded.astype(np.float32)[~dones])


class Remembering(Identity):
    """A user's wrapper that remembers the mode as Gymnasium's do."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._autoreset_mode = env.metadata["autoreset_mode"]


def test_wrapper_that_assumes_another_mode_is_refused() -> None:
    """The wrapper has read another mode from the metadata when it was made."""
    env = made("sync", rows(1), SAME_STEP)
    metadata, env.metadata = env.metadata, {**env.metadata, "autoreset_mode": NEXT_STEP}
    wrapped = [
        vector.RescaleObservation(env, np.float32(0), np.float32(1)),
        vector.TransformObservation(env, halved),
    ]
    believing: list[Any] = [Remembering(env)]
    if GYMNASIUM >= (1, 2):
        believing.append(record_video(env))
    if GYMNASIUM >= (1, 4):
        believing += [vector.RecordEpisodeStatistics(env), vector.NormalizeReward(env)]
    env.metadata = metadata
    for wrapper in wrapped:
        with pytest.raises(sb3compat.UnsupportedEnvError, match=r"not be transformed.*around each"):
            sb3compat.to_sb3(wrapper)
    for wrapper in believing:
        with pytest.raises(sb3compat.UnsupportedEnvError, match=r"to know that .* SAME_STEP"):
            sb3compat.to_sb3(wrapper)


def test_converter_is_known_by_a_class_of_gymnasium_above_it() -> None:
    module = {"__module__": f"{vector.__name__}.anything"}
    converter: Any = type("NumpyToTorch", (Identity,), module)
    derived: Any = type("Derived", (converter,), {})
    with pytest.raises(sb3compat.UnsupportedEnvError, match="no NumpyToTorch"):
        sb3compat.to_sb3(derived(made("sync", rows(1))))
    elsewhere: Any = type("NumpyToTorch", (Identity,), {})
    sb3compat.to_sb3(elsewhere(made("sync", rows(1)))).reset()


BOX = spaces.Box(-1, 1, (2,), np.float32)
MASK = spaces.MultiBinary(3)
BOTH = spaces.Dict({"obs": BOX, "more": BOX})
# The space of a sub-environment, the one that a wrapper presents, and what it makes of a value.
RESHAPED: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
    "array to dict": (
        BOX,
        spaces.Dict({"obs": BOX, "mask": MASK}),
        lambda obs: {"obs": obs, "mask": np.ones(3, np.int8)},
    ),
    "dict to array": (BOTH, BOX, lambda obs: obs["obs"]),
    "one more key": (
        BOTH,
        spaces.Dict({**BOTH.spaces, "mask": MASK}),
        lambda obs: {**obs, "mask": np.ones(3, np.int8)},
    ),
    "dict to tuple": (BOTH, spaces.Tuple([BOX, BOX]), lambda obs: (obs["more"], obs["obs"])),
}


class Reshaped(VectorWrapper):
    """Gives observations another structure, those in the infos as well."""

    def __init__(self, env: Any, space: Any, change: Callable[[Any], Any]) -> None:
        super().__init__(env)
        self.single_observation_space = space
        self.observation_space = batch_space(space, env.num_envs)
        self._change = change

    def _batch(self, batch: Any) -> Any:
        observations = [self._change(obs) for obs in iterate(self.env.observation_space, batch)]
        out = create_empty_array(self.single_observation_space, self.num_envs)
        return concatenate(self.single_observation_space, observations, out)

    def reset(self, **kwargs: Any) -> Any:
        batch, infos = self.env.reset(**kwargs)
        return self._batch(batch), infos

    def step(self, actions: Any) -> Any:
        batch, *rest, infos = self.env.step(actions)
        if "final_obs" in infos:
            finals = [None if obs is None else self._change(obs) for obs in infos["final_obs"]]
            infos = {**infos, "final_obs": np.array([*finals, None], dtype=object)[:-1]}
        return self._batch(batch), *rest, infos


@mode_of
@pytest.mark.parametrize("name", RESHAPED)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_wrapper_may_change_the_structure_of_observations(
    kind: str, name: str, mode: AutoresetMode
) -> None:
    space, presented, change = RESHAPED[name]

    def wrap(env: AnyEnv) -> AnyEnv:
        return TransformObservation(env, change, presented)

    def stack(fns: list[MakeEnv]) -> AnyEnv:
        return Reshaped(made(kind, fns, mode), presented, change)

    lockstep(scripted(space), 3, stack, STEPS, wrap=wrap)


@pytest.mark.parametrize("name", RESHAPED)
def test_overwritten_last_observation_is_refused_in_another_structure(name: str) -> None:
    space, presented, change = RESHAPED[name]
    env = made("sync", fns(observation_space=space, reuse=True), SAME_STEP)
    ours = sb3compat.to_sb3(Reshaped(env, presented, change))
    ours.reset()
    with pytest.raises(sb3compat.ConversionError, match="of the episode is overwritten"):  # noqa: PT012
        for _ in range(9):
            ours.step(np.zeros(2, np.int64))
