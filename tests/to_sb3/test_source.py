"""Which source drives which environment, and what is refused before one is made."""

from __future__ import annotations

from typing import Any

import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import write_to_shared_memory
from gymnasium.wrappers.vector import FlattenObservation

import sb3compat
from sb3compat._to_sb3.modes import ResetWithin
from tests.envs import Identity, MakeEnv, fns, overriding, script
from tests.lockstep import same
from tests.native import NativeEnv, UnknownEnv
from tests.to_sb3.driving import DISABLED, NEXT_STEP, SAME_STEP, class_of, made, mode_of, step


def test_timeout_without_effect_is_refused() -> None:
    source = AsyncVectorEnv([MakeEnv(script(), 0)])
    with pytest.raises(ValueError, match="timeout=None"):
        sb3compat.to_sb3(Identity(source), timeout=3)
    source.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: UnknownEnv(fns(), SAME_STEP),
        lambda: UnknownEnv(fns(), DISABLED),
        lambda: NativeEnv(fns(), NEXT_STEP),
        lambda: SyncVectorEnv(fns()),
    ],
)
def test_padding_that_is_not_needed_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="can be presented exactly"):
        sb3compat.to_sb3(make(), padding=True)


@pytest.mark.parametrize("starts", [(0, 0), (1, 3)], ids=["nested", "other starts"])
def test_spaces_of_rows_inside_a_wrapper_with_a_space_of_its_own_are_free(starts: Any) -> None:
    """Gymnasium flattens spaces that SB3 cannot batch, and spaces that differ by row."""
    parts = [spaces.Discrete(3, start=start) for start in starts]
    nested = [spaces.Dict({"a": spaces.Dict({"b": part})}) for part in parts]
    given: Any = parts if any(starts) else nested
    rows = [MakeEnv(script(observation_space=space), i) for i, space in enumerate(given)]
    env = SyncVectorEnv(rows, observation_mode="different")
    # Kept: up to Gymnasium 1.2, a wrapper that is dropped closes its environment.
    flat = sb3compat.to_sb3(FlattenObservation(env))
    assert flat.observation_space.shape == (3,)
    with pytest.raises(sb3compat.UnsupportedSpaceError, match=r"wrapper on the sub-env|Flatten it"):
        sb3compat.to_sb3(env)


def test_async_subclass_with_its_own_reset_needs_shared_memory() -> None:
    source = AsyncVectorEnv(fns(), shared_memory=False)
    overriding(source, "reset")
    with pytest.raises(sb3compat.PartialResetError, match="'reset' is overridden"):
        sb3compat.to_sb3(source)
    sb3compat.register_partial_reset(type(source), sb3compat.reset_with_mask)
    with pytest.raises(sb3compat.PartialResetError, match="shared_memory=True"):
        sb3compat.to_sb3(source)
    source.close()


def own_worker(*args: Any) -> None:
    """Gymnasium's worker, under a name of the user's."""
    from gymnasium.vector.async_vector_env import _async_worker

    _async_worker(*args)


def test_environment_with_another_worker_is_driven_as_a_whole() -> None:
    env: Any = sb3compat.to_sb3(made("async", fns(), worker=own_worker))
    assert type(env._source._mode) is ResetWithin
    with pytest.raises(sb3compat.PartialResetError, match=r"shared_memory=True .* worker is anoth"):
        sb3compat.to_sb3(made("async", fns(), worker=own_worker, shared_memory=False))


def old_worker(
    index: int, env_fn: Any, pipe: Any, parent: Any, shared: Any, errors: Any, *rest: Any
) -> None:
    """Resets within the step, as that of Gymnasium 0.29, whatever mode is declared."""
    env, command = env_fn(), ""
    while command != "close":
        command, data = pipe.recv()
        obs, value = None, None
        if command == "step":
            obs, *value = env.step(data)
            if value[1] or value[2]:
                final, last = obs, value[3]
                obs, value[3] = env.reset()
                value[3] = {**value[3], "final_observation": final, "final_info": last}
        elif command == "reset":
            obs, *value = env.reset(**data)
        elif command == "_call":
            value = env.get_wrapper_attr(data[0])
            value = value(*data[1], **data[2]) if callable(value) else value
        elif command == "_check_spaces":
            value = True, True
        if obs is not None:
            write_to_shared_memory(env.observation_space, index, obs, shared)
            value = None, *value
        pipe.send((value, True))


def test_worker_may_reset_within_the_step_if_the_user_says_so() -> None:
    env = sb3compat.to_sb3(made("async", fns(lengths=(2,)), worker=old_worker))
    env.reset()
    step(env)
    with pytest.raises(sb3compat.AutoresetModeError, match="If it is one, pass autoreset_mode='Sa"):
        step(env)
    source = made("async", fns(lengths=(2,)), worker=old_worker)
    with pytest.warns(UserWarning, match="overrides it"):
        env = sb3compat.to_sb3(source, autoreset_mode="SameStep")
    plain = sb3compat.to_sb3(SyncVectorEnv(fns(lengths=(2,))))
    for either in (env, plain):
        either.seed(0)
    same(env.reset(), plain.reset())
    for _ in range(3):
        one, other = step(env), step(plain)
        same(one[:3], other[:3])
        same(*([i.get("terminal_observation") for i in infos] for infos in (one[3], other[3])))


@class_of
@mode_of
def test_how_one_object_adds_infos_is_heeded(cls: Any, mode: AutoresetMode) -> None:
    source = cls(fns(2, lengths=(2,)), autoreset_mode=mode)
    add = source._add_info
    source._add_info = lambda infos, info, row: add(infos, {**info, "added": row + 10}, row)
    env = sb3compat.to_sb3(source)
    env.reset()
    assert [info["added"] for info in env.reset_infos] == [10, 11]
    for _ in range(3):
        infos = step(env)[3]
        assert [info["added"] for info in infos] == [10, 11]
        assert [info["added"] for info in env.reset_infos] == [10, 11]
    env.close()
