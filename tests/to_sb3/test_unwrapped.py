"""The environment inside all wrappers: the form of what it returns, and resets that are due."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import (
    AsyncVectorEnv,
    AutoresetMode,
    SyncVectorEnv,
    VectorEnv,
    VectorWrapper,
)

import sb3compat
from sb3compat.errors import CallOrderError
from tests.envs import Identity, fns
from tests.native import NativeEnv, UnknownEnv
from tests.to_sb3.driving import step

SAME_STEP = AutoresetMode.SAME_STEP


def native_cartpole() -> Any:
    return gym.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point").unwrapped


@pytest.mark.parametrize("returned", [[{}, {}], None, "four"])
def test_step_with_wrong_infos_is_refused_below_a_wrapper(returned: Any) -> None:
    class Odd(NativeEnv):
        def step(self, actions: Any) -> Any:
            result = super().step(actions)
            return result[:4] if returned == "four" else (*result[:4], returned)

    env = sb3compat.to_sb3(Odd(fns(), SAME_STEP))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match="infos"):
        step(env)


class OwnForm(NativeEnv):
    def step(self, actions: Any) -> Any:
        return *super().step(actions), None


class FiveValues(VectorWrapper):
    def step(self, actions: Any) -> Any:
        return self.env.step(actions)[:5]


def test_step_of_another_form_below_a_wrapper_is_refused() -> None:
    env = sb3compat.to_sb3(FiveValues(OwnForm(fns(), SAME_STEP)))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match=r"OwnForm.*\.step to return .* length 6"):
        env.step([0, 0])


PENDING: dict[str, Any] = {
    "sync": (lambda: SyncVectorEnv(fns(lengths=(2, 3))), r"rows \[1\]"),
    "sync, disabled": (
        lambda: SyncVectorEnv(fns(lengths=(2, 3)), autoreset_mode=AutoresetMode.DISABLED),
        r"rows \[1\]",
    ),
    "async": (lambda: AsyncVectorEnv(fns(lengths=(2, 3))), r"rows \[1\]"),
    "async, pipes": (
        lambda: AsyncVectorEnv(fns(lengths=(2, 3)), shared_memory=False), r"rows \[1\]"
    ),
    "native": (lambda: NativeEnv(fns(lengths=(2, 3)), AutoresetMode.NEXT_STEP), "cannot be known"),
}  # fmt: skip


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", PENDING)
def test_first_step_is_refused_where_an_autoreset_is_pending(name: str, wrapped: bool) -> None:
    make, text = PENDING[name]
    source = make()
    source.reset()
    for _ in range(2):
        source.step(np.zeros(2, int))
    env = sb3compat.to_sb3(Identity(source) if wrapped else source)
    for _ in range(2):
        with pytest.raises(CallOrderError, match=rf"Expected reset\(\).*{text}"):
            env.step(np.zeros(2, int))
    env.reset()
    infos = env.step(np.zeros(2, int))[3]
    assert [info["shared"] for info in infos] == [1, 1]
    env.close()


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", ["sync", "sync, disabled", "async", "async, pipes"])
def test_environment_without_a_pending_autoreset_goes_on(name: str, wrapped: bool) -> None:
    source = PENDING[name][0]()
    source.reset()
    source.step(np.zeros(2, int))
    env = sb3compat.to_sb3(Identity(source) if wrapped else source)
    for time in ([2, 2], [3, 1]):
        infos = env.step(np.zeros(2, int))[3]
        assert [info["shared"] for info in infos] == time
    env.close()


@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
def test_same_step_environment_that_has_ended_goes_on(cls: Any) -> None:
    source = cls(fns(lengths=(2, 3)), autoreset_mode=AutoresetMode.SAME_STEP)
    source.reset()
    for _ in range(2):
        source.step(np.zeros(2, int))
    env = sb3compat.to_sb3(source)
    assert [info["shared"] for info in env.step(np.zeros(2, int))[3]] == [3, 1]
    env.close()


def test_native_cartpole_tells_its_pending_autoresets() -> None:
    source = native_cartpole()
    source.reset(seed=1)
    sb3compat.to_sb3(source).step(np.zeros(2, int))
    source.prev_done[1] = True
    with pytest.raises(CallOrderError, match=r"rows \[1\]"):
        sb3compat.to_sb3(source).step(np.zeros(2, int))


@pytest.mark.parametrize("shared_memory", [True, False])
@pytest.mark.parametrize("wrapped", [False, True])
def test_reset_clears_an_autoreset_pending_before_adapting(
    wrapped: bool, shared_memory: bool
) -> None:
    source: VectorEnv[Any, Any, Any] = AsyncVectorEnv(fns(2), shared_memory=shared_memory)
    source.reset()
    for _ in range(3):
        ended = source.step(np.zeros(2, int))[2]
    assert ended.all()
    env = sb3compat.to_sb3(Identity(source) if wrapped else source)
    env.seed(3)
    env.reset()
    for time in (1, 2):
        infos = env.step(np.zeros(2, int))[3]
        assert [info["shared"] for info in infos] == [time, time]
    env.close()


def test_wrapped_sync_env_with_a_pending_autoreset_takes_options() -> None:
    source = SyncVectorEnv(fns(2))
    source.reset()
    for _ in range(3):
        source.step(np.zeros(2, int))
    env = sb3compat.to_sb3(Identity(source))
    env.set_options([{"x": 1}, {"x": 2}])
    env.reset()
    assert [info["option"] for info in env.reset_infos] == [1, 2]
    assert [info["shared"] for info in env.step(np.zeros(2, int))[3]] == [1, 1]


@pytest.mark.parametrize("wrapped", [False, True])
def test_no_autoreset_lingers_without_shared_memory(wrapped: bool) -> None:
    # The upstream bug that tap.py goes around: without it, row 0 would be reset once more.
    source: VectorEnv[Any, Any, Any] = AsyncVectorEnv(fns(lengths=(2, 4)), shared_memory=False)
    env = sb3compat.to_sb3(Identity(source) if wrapped else source)
    env.reset()
    resets = []
    for _ in range(8):
        env.step(np.zeros(2, int))
        resets.append([info["resets"] for info in env.reset_infos])
    assert resets[-1] == [3, 4]
    env.close()


def test_endings_are_looked_at_as_the_environment_gives_them() -> None:
    class Watched(UnknownEnv):
        pass

    seen: list[Any] = []

    class Watch:
        def reset(self, infos: Any) -> None:
            seen.append("reset")

        def step(self, terminations: Any, truncations: Any, infos: Any) -> None:
            seen.append((terminations.tolist(), truncations.tolist(), "shared" in infos))

    def watch(env: Any, mode: AutoresetMode) -> Watch:
        seen.append((type(env), mode))
        return Watch()

    function = functools.partial(sb3compat.reset_with_mask)
    function.watch = watch  # type: ignore[attr-defined]
    sb3compat.register_partial_reset(Watched, function)
    env = sb3compat.to_sb3(Identity(Watched(fns(lengths=(2, 3)), AutoresetMode.SAME_STEP)))
    env.reset()
    for _ in range(2):
        env.step(np.zeros(2, int))
    assert seen == [
        (Watched, AutoresetMode.SAME_STEP),
        "reset",
        ([False, False], [False, False], True),
        ([False, True], [False, False], True),
    ]


def test_restart_is_for_rows_that_the_environment_has_ended() -> None:
    calls: list[Any] = []

    class Restarts(UnknownEnv):
        pass

    class Function:
        def __call__(self, env: Any, mask: Any) -> Any:
            calls.append(("reset", mask.tolist(), None))
            return env.reset_rows(mask, None, None)

        def restart(self, env: Any, mask: Any, ended: Any) -> Any:
            calls.append(("restart", mask.tolist(), ended.tolist()))
            return env.reset_rows(mask, None, None)

    sb3compat.register_partial_reset(Restarts, Function())

    class ResetsTwice(VectorWrapper):
        def reset(self, **kwargs: Any) -> Any:
            self.env.reset(**kwargs)
            return self.env.reset(**kwargs)

    env = sb3compat.to_sb3(ResetsTwice(Restarts(fns(lengths=(2, 3)), AutoresetMode.NEXT_STEP)))
    env.reset()
    for _ in range(3):
        env.step(np.zeros(2, int))
    # Rows are restarted once; the second reset within a step is an ordinary one.
    one, other = [True, False], [False, True]
    restarted = [("restart", one, one), ("reset", one, None)]
    assert calls == [*restarted, ("restart", other, other), ("reset", other, None)]
