"""Every vector wrapper of Gymnasium: exact, or refused with an alternative.

Exact means: what `DummyVecEnv` yields with the wrapper's twin for single environments around each
of its sub-environments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers import TransformObservation, vector
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sb3compat
from tests.envs import GYMNASIUM, Identity, MakeEnv
from tests.lockstep import Build, Operation, lockstep
from tests.native import NativeEnv, UnknownEnv
from tests.profiles import examples
from tests.strategies import programs
from tests.to_sb3.driving import DISABLED, NEXT_STEP, SAME_STEP, made, mode_of, recast, uniform
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
        return  # allowed, see below
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
def test_normalize_reward_is_allowed_in_same_step_mode() -> None:
    env = sb3compat.to_sb3(vector.NormalizeReward(made("sync", rows(3), SAME_STEP)))
    env.reset()
    assert env.step(np.zeros((3, 2), np.float32))[1].shape == (3,)


@pytest.mark.parametrize("name", ["NormalizeReward", "NormalizeObservation"])
def test_padding_allows_statistics_wrappers(name: str) -> None:
    env = sb3compat.to_sb3(OTHERS[name](UnknownEnv(rows(2), NEXT_STEP)), padding=True)
    env.reset()
    assert any(env.step(np.zeros((2, 2), np.float32))[2].any() for _ in range(8))


def test_wrapper_that_assumes_another_mode_is_refused() -> None:
    """The wrapper has read another mode from the metadata when it was made."""
    env = made("sync", rows(1), SAME_STEP)
    metadata, env.metadata = env.metadata, {**env.metadata, "autoreset_mode": NEXT_STEP}
    wrapped = [
        vector.RescaleObservation(env, np.float32(0), np.float32(1)),
        vector.TransformObservation(env, halved),
    ]
    remembering: Any = Identity(env)
    remembering._autoreset_mode = NEXT_STEP  # a user's wrapper, as Gymnasium's do
    believing: list[Any] = [remembering]
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


@mode_of
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_wrapper_may_change_the_structure_of_observations(kind: str, mode: AutoresetMode) -> None:
    box = scripted().observation_space
    space = spaces.Dict({"obs": box})

    def wrap(env: AnyEnv) -> AnyEnv:
        return TransformObservation(env, lambda obs: {"obs": obs}, space)

    def stack(fns: list[MakeEnv]) -> AnyEnv:
        env = recast(made(kind, fns, mode), lambda obs: {"obs": obs})
        env.single_observation_space, env.observation_space = space, batch_space(space, len(fns))
        return env

    lockstep(scripted(), 3, stack, STEPS, wrap=wrap)
