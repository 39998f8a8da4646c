"""What is known of a vector environment without its wrappers."""

from __future__ import annotations

from typing import Any

import pytest
from gymnasium.vector import SyncVectorEnv

import sb3compat
from sb3compat._to_sb3.bases import Base, base_of
from tests.envs import Identity, fns
from tests.native import NativeEnv
from tests.to_sb3.driving import NEXT_STEP

vec_envs: Any = pytest.importorskip("stable_baselines3.common.vec_env")


def test_nothing_is_known_of_other_environments() -> None:
    base = base_of(NativeEnv(fns(), NEXT_STEP))
    assert type(base) is Base
    known = [base.holds_single_envs, base.seeds_rows, base.is_known]
    assert not any([*known, base.hands_out_new_arrays, base.broken, base.must_be_reset])
    assert base.pending() is None
    with pytest.raises(NotImplementedError):
        base.reset_rows(None, [{}, {}])


def dummy(made: Any) -> Any:
    return vec_envs.DummyVecEnv(made)


class OwnStep(SyncVectorEnv):  # type: ignore[type-arg]
    def step(self, actions: Any) -> Any:
        return super().step(actions)


class StepOfAdapter(sb3compat.VectorEnvAdapter):
    def step(self, actions: Any) -> Any:
        return super().step(actions)


def test_subclasses_with_methods_of_their_own_are_not_known() -> None:
    """Those without are, also in a wrapper."""
    for make, own in ((SyncVectorEnv, OwnStep), (sb3compat.VectorEnvAdapter, StepOfAdapter)):
        inside: Any = fns() if make is SyncVectorEnv else dummy(fns())
        for cls, known in ((make, True), (own, False)):
            env = Identity(cls(inside))
            base = base_of(env)
            assert base.seeds_rows
            assert [base.is_known, base.hands_out_new_arrays] == [known] * 2


def test_options_that_wait_inside_are_replaced() -> None:
    vec_env = dummy(fns())
    vec_env.set_options({"x": 1})
    env = sb3compat.to_sb3(Identity(sb3compat.to_gymnasium(vec_env)))
    env.set_options({})
    env.reset()
    assert not any("option" in info for info in env.reset_infos)
