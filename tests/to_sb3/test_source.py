"""Which source drives which environment, and what is refused before one is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import sb3compat
from sb3compat._convert.actions import Actions
from sb3compat._convert.observations import Observations
from sb3compat._to_sb3.modes import Padded, ResetWithin, SameStep
from sb3compat._to_sb3.rows_async import AsyncRows
from sb3compat._to_sb3.rows_sync import SyncRows
from sb3compat._to_sb3.source import make_source
from tests.envs import Identity, MakeEnv, fns, script
from tests.native import NativeEnv, UnknownEnv

NEXT_STEP, SAME_STEP = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP
DISABLED = AutoresetMode.DISABLED


def test_choice_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="sb3compat"):
        sb3compat.to_sb3(SyncVectorEnv(fns()))
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("sb3compat", "DEBUG")
    assert "in NEXT_STEP mode is driven by SyncRows" in record.getMessage()


def test_timeout_without_effect_is_refused() -> None:
    source = AsyncVectorEnv([MakeEnv(script(), 0)])
    with pytest.raises(ValueError, match="timeout=None"):
        sb3compat.to_sb3(Identity(source), timeout=3)
    source.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: UnknownEnv(fns(), SAME_STEP),
        lambda: UnknownEnv(fns(), AutoresetMode.DISABLED),
        lambda: NativeEnv(fns(), NEXT_STEP),
        lambda: SyncVectorEnv(fns()),
    ],
)
def test_padding_that_is_not_needed_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="can be presented exactly"):
        sb3compat.to_sb3(make(), padding=True)


def test_async_subclass_with_its_own_reset_needs_shared_memory() -> None:
    class OwnReset(AsyncVectorEnv):
        def reset(self, **kwargs: Any) -> Any:
            return super().reset(**kwargs)

    source = OwnReset(fns(), shared_memory=False)
    with pytest.raises(sb3compat.PartialResetError, match="'reset' is overridden"):
        sb3compat.to_sb3(source)
    sb3compat.register_partial_reset(OwnReset, sb3compat.reset_with_mask)
    with pytest.raises(sb3compat.PartialResetError, match="shared_memory=True"):
        sb3compat.to_sb3(source)
    source.close()


class OwnSync(SyncVectorEnv):
    """A subclass may step in its own way, so it is driven as a whole."""


def own_worker(*args: Any) -> None:
    """Gymnasium's worker, under a name of the user's."""
    from gymnasium.vector.async_vector_env import _async_worker

    _async_worker(*args)


CHOICES: dict[str, tuple[Callable[[], Any], AutoresetMode, type]] = {
    "sync": (lambda: SyncVectorEnv(fns()), NEXT_STEP, SyncRows),
    "sync, same step": (
        lambda: SyncVectorEnv(fns(), autoreset_mode=SAME_STEP),
        SAME_STEP,
        SyncRows,
    ),
    "subclass of sync": (lambda: OwnSync(fns()), NEXT_STEP, ResetWithin),
    "wrapped": (lambda: Identity(SyncVectorEnv(fns())), NEXT_STEP, ResetWithin),
    "wrapped, same step": (
        lambda: Identity(SyncVectorEnv(fns(), autoreset_mode=SAME_STEP)),
        SAME_STEP,
        SameStep,
    ),
    "native": (lambda: NativeEnv(fns(), NEXT_STEP), NEXT_STEP, ResetWithin),
    "native, same step": (lambda: NativeEnv(fns(), SAME_STEP), SAME_STEP, SameStep),
    "unknown, same step": (lambda: UnknownEnv(fns(), SAME_STEP), SAME_STEP, SameStep),
    "unknown, disabled": (lambda: UnknownEnv(fns(), DISABLED), DISABLED, ResetWithin),
}


def source_of(env: Any, mode: AutoresetMode, **settings: Any) -> Any:
    layouts = (
        Observations(env.single_observation_space, env.num_envs),
        Actions(env.single_action_space, env.num_envs),
    )
    source = make_source(env, mode, *layouts, **settings)
    return getattr(source, "_mode", source)


@pytest.mark.parametrize("name", CHOICES)
def test_source_is_chosen_by_class_and_mode(name: str) -> None:
    make, mode, expected = CHOICES[name]
    assert type(source_of(make(), mode)) is expected


def test_async_environment_is_driven_row_by_row_unless_its_worker_is_another() -> None:
    for worker, expected in ((None, AsyncRows), (own_worker, ResetWithin)):
        env = AsyncVectorEnv(fns(), worker=worker)
        assert type(source_of(env, NEXT_STEP)) is expected
        env.close()


def test_padding_is_for_next_step_without_a_partial_reset() -> None:
    env = UnknownEnv(fns(), NEXT_STEP)
    with pytest.raises(sb3compat.PartialResetError, match="padding=True"):
        source_of(env, NEXT_STEP)
    assert type(source_of(env, NEXT_STEP, padding=True)) is Padded


@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_how_one_object_adds_infos_is_heeded(cls: Any, mode: AutoresetMode) -> None:
    source = cls(fns(2, lengths=(2,)), autoreset_mode=mode)
    add = source._add_info
    source._add_info = lambda infos, info, row: add(infos, {**info, "added": row + 10}, row)
    env = sb3compat.to_sb3(source)
    env.reset()
    assert [info["added"] for info in env.reset_infos] == [10, 11]
    for _ in range(3):
        infos = env.step(np.zeros(2, int))[3]
        assert [info["added"] for info in infos] == [10, 11]
        assert [info["added"] for info in env.reset_infos] == [10, 11]
    env.close()


def test_subclass_of_the_adapter_is_told_of_that_class() -> None:
    vec_envs = pytest.importorskip("stable_baselines3.common.vec_env")

    class Own(sb3compat.VectorEnvAdapter):
        def reset(self, **kwargs: Any) -> Any:
            return super().reset(**kwargs)

    own = Own(vec_envs.DummyVecEnv(fns(2)), autoreset_mode="NextStep")
    with pytest.raises(sb3compat.PartialResetError, match="one known for VectorEnvAdapter"):
        sb3compat.to_sb3(own)
