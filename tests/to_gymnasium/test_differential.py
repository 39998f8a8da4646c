"""The yardstick of `to_gymnasium`: what `SyncVectorEnv` yields, value for value, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TransformReward
from gymnasium.wrappers import vector as wrappers
from hypothesis import given, settings
from hypothesis import strategies as st

import sb3compat
from sb3compat._to_sb3.tap import MaskOptions
from tests.lockstep import same
from tests.lockstep_back import back_programs, dummy, lockstep, monitored, subproc
from tests.profiles import examples
from tests.strategies import scripts
from tests.to_sb3.driving import mode_of
from tests.to_sb3.vector_wrappers import (
    OBSERVATIONS,
    OTHERS,
    TWINS,
    FastEnv,
    fitting_space,
    scripted,
)

pytest.importorskip("stable_baselines3", reason="the sources are SB3's")

ROW_BY_ROW = [(dummy, mode) for mode in AutoresetMode]
AS_A_WHOLE = [(monitored, AutoresetMode.SAME_STEP), (monitored, AutoresetMode.DISABLED)]


def equal_sync_vector_env(build: Any, mode: AutoresetMode, data: st.DataObject, n: int) -> None:
    chosen = data.draw(scripts(("none", "plain"), shared=True))
    lockstep(chosen, n, mode, build, data.draw(back_programs(n)))


@pytest.mark.parametrize(("build", "mode"), ROW_BY_ROW + AS_A_WHOLE)
@given(data=st.data(), n=st.integers(1, 4))
@settings(max_examples=examples(200))
def test_vec_env_in_this_process_equals_sync_vector_env(
    build: Any, mode: AutoresetMode, data: st.DataObject, n: int
) -> None:
    equal_sync_vector_env(build, mode, data, n)


@pytest.mark.parametrize("mode", AutoresetMode)
@given(data=st.data(), n=st.integers(1, 3))
@settings(max_examples=examples(15))
def test_subproc_vec_env_equals_sync_vector_env(
    mode: AutoresetMode, data: st.DataObject, n: int
) -> None:
    equal_sync_vector_env(subproc, mode, data, n)


# Everything in `gymnasium.wrappers.vector` on top: as over `SyncVectorEnv` in that mode.


WRAPPERS = {**{name: twins.batch for name, twins in TWINS.items()}, **OTHERS}
# What some of them need.
NEEDS = {"JaxToNumpy": "jax", "JaxToTorch": "jax"}
NEEDS |= {"HumanRendering": "pygame", "ResizeObservation": "cv2"}


def pair(space: spaces.Space[Any], n: int, mode: AutoresetMode) -> tuple[Any, Any]:
    """Ours and Gymnasium's, with rewards that are rounded as by SB3's `DummyVecEnv`."""
    # SB3 does not tell that an episode has ended in both ways.
    chosen = replace(scripted(space), endings=("truncated", "terminated"))
    fns = [FastEnv(chosen, i) for i in range(n)]
    rounded = [lambda fn=fn: TransformReward(fn(), lambda r: float(np.float32(r))) for fn in fns]
    theirs = SyncVectorEnv(rounded, autoreset_mode=mode)
    return sb3compat.to_gymnasium(dummy(fns), autoreset_mode=mode), theirs


def outcome(wrap: Callable[[Any], Any], env: Any, mode: AutoresetMode, steps: int = 9) -> list[Any]:
    """The results of some steps; the last one may be the type of an exception."""
    seen: list[Any] = []
    try:
        wrapped = wrap(env)
        space = deepcopy(wrapped.action_space)
        seen.append((wrapped.observation_space, wrapped.single_observation_space, space))
        seen.append(wrapped.reset(seed=3))
        for number in range(steps):
            space.seed(number)
            actions = space.sample()
            if "Torch" in repr(wrapped) or "Conversion" in repr(wrapped):
                import torch

                actions = torch.as_tensor(actions)
            step = wrapped.step(actions)
            # RecordEpisodeStatistics clears its array among the infos in a masked reset.
            seen.append(plain(deepcopy(step)))
            ended = np.logical_or(np.asarray(step[2]), np.asarray(step[3]))
            if mode == AutoresetMode.DISABLED and ended.any():
                # SyncVectorEnv takes the mask out of the dict that RecordEpisodeStatistics looks
                # at afterwards, which then forgets the running episodes of all rows.
                forgets = isinstance(wrapped, wrappers.RecordEpisodeStatistics)
                keeping = MaskOptions if forgets else dict
                seen.append(wrapped.reset(options=keeping(reset_mask=ended)))
        seen.append(wrapped.render())
        wrapped.close()
    except Exception as error:
        seen.append(type(error))
    return [plain(value) for value in seen]


def plain(value: Any) -> Any:
    """The results as NumPy, without the times of `RecordEpisodeStatistics`."""
    if isinstance(value, dict):
        left_out = ("t", "_t", "option", "_option")
        return {key: plain(part) for key, part in value.items() if key not in left_out}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if type(value).__module__.partition(".")[0] in ("torch", "jax", "jaxlib"):
        return np.asarray(value)
    return value


def need(name: str) -> None:
    """Skip where a library is missing."""
    pytest.importorskip(NEEDS.get(name, "gymnasium"))
    try:
        getattr(wrappers, name)
    except (AttributeError, ImportError, gym.error.DependencyNotInstalled) as error:
        pytest.skip(str(error))


@mode_of
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.jax] * ("Jax" in name)) for name in WRAPPERS],
)
@pytest.mark.filterwarnings("ignore")
def test_wrapper_works_as_over_sync_vector_env(name: str, mode: AutoresetMode) -> None:
    need(name)
    wrap = WRAPPERS[name]
    space = fitting_space(name) if name in TWINS else OBSERVATIONS[0]
    assert space is not None
    ours, theirs = pair(space, 3, mode)
    got, expected = outcome(wrap, ours, mode), outcome(wrap, theirs, mode)
    same(got, expected)
    if not isinstance(expected[-1], type):
        assert len(expected) > 9
