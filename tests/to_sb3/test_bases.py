"""What is known of a vector environment without its wrappers."""

from __future__ import annotations

from typing import Any

import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import sb3compat
from sb3compat._to_sb3.bases import AdapterBase, AsyncBase, Base, SyncBase, base_of
from tests.envs import Identity, fns
from tests.native import NativeEnv
from tests.to_sb3.driving import NEXT_STEP

vec_envs: Any = pytest.importorskip("stable_baselines3.common.vec_env")


def dummy(made: Any) -> Any:
    return vec_envs.DummyVecEnv(made)


KINDS: dict[str, Any] = {
    "sync": (lambda: SyncVectorEnv(fns()), SyncBase),
    "async": (lambda: AsyncVectorEnv(fns()), AsyncBase),
    "adapter": (
        lambda: sb3compat.to_gymnasium(dummy(fns()), autoreset_mode="NextStep"),
        AdapterBase,
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_bases_of_single_environments_are_known(name: str) -> None:
    make, kind = KINDS[name]
    env = make()
    wrapped = Identity(env)  # up to Gymnasium 1.2, it closes the environment when it is collected
    base = base_of(wrapped)
    assert type(base) is kind
    assert base.env is env
    assert base.holds_single_envs
    assert base.seeds_rows
    assert base.is_known
    assert base.hands_out_new_arrays
    assert not base.broken
    env.reset(seed=3)
    assert base.pending() is not None
    env.close()


def test_nothing_is_known_of_other_environments() -> None:
    base = base_of(NativeEnv(fns(), NEXT_STEP))
    assert type(base) is Base
    known = [base.holds_single_envs, base.seeds_rows, base.is_known]
    assert not any([*known, base.hands_out_new_arrays, base.broken, base.must_be_reset])
    assert base.pending() is None
    with pytest.raises(NotImplementedError):
        base.reset_rows(None, [{}, {}])


class OwnStep(SyncVectorEnv):  # type: ignore[type-arg]
    def step(self, actions: Any) -> Any:
        return super().step(actions)


class StepOfAdapter(sb3compat.VectorEnvAdapter):
    def step(self, actions: Any) -> Any:
        return super().step(actions)


def test_subclasses_with_methods_of_their_own_are_not_known() -> None:
    for base in (base_of(OwnStep(fns())), base_of(StepOfAdapter(dummy(fns())))):
        assert base.seeds_rows
        assert not any([base.is_known, base.hands_out_new_arrays])


def test_options_that_wait_inside_are_replaced() -> None:
    vec_env = dummy(fns())
    vec_env.set_options({"x": 1})
    env = sb3compat.to_sb3(Identity(sb3compat.to_gymnasium(vec_env)))
    env.set_options({})
    env.reset()
    assert not any("option" in info for info in env.reset_infos)
