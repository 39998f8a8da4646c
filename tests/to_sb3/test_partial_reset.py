from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

import sb3compat
from sb3compat._to_sb3.partial_reset import partial_reset_of
from sb3compat.errors import CallOrderError
from tests.envs import Identity, fns
from tests.native import NativeEnv, UnknownEnv, reset_native


def test_function_of_the_nearest_class_is_used() -> None:
    class Derived(NativeEnv):
        pass

    class Own(NativeEnv):
        pass

    def other(env: Any, mask: Any, *, seed: Any = None, options: Any = None) -> Any:
        return reset_native(env, mask, seed=seed, options=options)

    sb3compat.register_partial_reset(Own, other)
    mode = AutoresetMode.NEXT_STEP
    assert partial_reset_of(Derived(fns(), mode)) is reset_native
    assert partial_reset_of(Own(fns(), mode)) is other
    assert partial_reset_of(UnknownEnv(fns(), mode)) is None
    assert partial_reset_of(SyncVectorEnv(fns())) is sb3compat.reset_with_mask


OVERRIDES = ("step", "reset", "_put", "an instance's step")


def overriding(name: str, mode: AutoresetMode) -> Any:
    """An environment that overrides what the registered function replaces, and counts the calls."""
    calls: list[str] = []

    class Overrides(NativeEnv):
        pass

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return getattr(NativeEnv, name)(self, *args, **kwargs)

    if name in OVERRIDES[:3]:
        setattr(Overrides, name, counted)
    env: Any = Overrides(fns(lengths=(2, 3)), mode)
    if name not in OVERRIDES[:3]:
        name = "step"
        env.step = counted.__get__(env)
    env.calls = calls
    return env


@pytest.mark.parametrize("name", OVERRIDES)
def test_function_does_not_hold_for_a_subclass_that_overrides_what_it_replaces(name: str) -> None:
    env = overriding(name, AutoresetMode.NEXT_STEP)
    assert partial_reset_of(env) is None
    method = name.rpartition(" ")[2]
    with pytest.raises(sb3compat.PartialResetError, match=f"NativeEnv does not hold.*'{method}'"):
        sb3compat.to_sb3(env)
    if name != OVERRIDES[3]:
        sb3compat.register_partial_reset(type(env), reset_native)
        sb3compat.to_sb3(env).reset()
        # It holds for this class, not for another one of the same name.
        assert partial_reset_of(overriding(name, AutoresetMode.NEXT_STEP)) is None


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
@pytest.mark.parametrize("name", OVERRIDES)
def test_overridden_methods_are_called(name: str, mode: AutoresetMode) -> None:
    source = overriding(name, mode)
    env = sb3compat.to_sb3(source)
    env.reset()
    for _ in range(6):
        env.step(np.zeros(2, int))
    # Two rows end alone, and both together once. In DISABLED mode, the adapter resets them.
    within = mode == AutoresetMode.DISABLED
    expected = {"reset": 1 + 3 * within, "_put": 2 + 6 * 2 + 4 * within}
    assert source.calls.count(name.rpartition(" ")[2]) == expected.get(name, 6)


def test_hook_that_the_function_calls_needs_a_registration_where_it_is_overridden() -> None:
    class Colours(UnknownEnv):
        def start(self, mask: Any) -> Any:
            return self.reset_rows(mask, None, None)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return self.start(np.ones(self.num_envs, bool))

    @sb3compat.register_partial_reset(Colours)
    def reset_colours(env: Any, mask: Any, *, seed: Any = None, options: Any = None) -> Any:
        return env.start(mask)

    class Other(Colours):
        def start(self, mask: Any) -> Any:
            obs, infos = super().start(mask)
            return obs, {**infos, "started": mask}

    source = Other(fns(lengths=(2, 3)), AutoresetMode.NEXT_STEP)
    with pytest.raises(sb3compat.PartialResetError, match="Colours does not hold here: 'start'"):
        sb3compat.to_sb3(source)
    sb3compat.register_partial_reset(Other, reset_colours)
    env = sb3compat.to_sb3(source)
    env.reset()
    for _ in range(2):
        env.step(np.zeros(2, int))
    assert [info["started"] for info in env.reset_infos] == [True, True]
    assert [info["resets"] for info in env.reset_infos] == [1, 2]


def test_function_registered_for_a_subclass_of_sync_is_used() -> None:
    class Counting(SyncVectorEnv):
        resets = 0

        def step(self, actions: Any) -> Any:
            return super().step(actions)

    @sb3compat.register_partial_reset(Counting)
    def reset_counting(env: Any, mask: Any, *, seed: Any = None, options: Any = None) -> Any:
        env.resets += int(mask.sum())
        return sb3compat.reset_with_mask(env, mask, seed=seed, options=options)

    source = Counting(fns(lengths=(2,)))
    env = sb3compat.to_sb3(source)
    env.reset()
    for _ in range(4):
        env.step(np.zeros(2, int))
    assert source.resets == 4


def test_restart_is_for_rows_that_the_environment_has_ended() -> None:
    calls: list[Any] = []

    class Restarts(UnknownEnv):
        pass

    class Function:
        def __call__(self, env: Any, mask: Any, *, seed: Any = None, options: Any = None) -> Any:
            calls.append(("reset", mask.tolist(), options))
            return env.reset_rows(mask, seed, options)

        def restart(self, env: Any, mask: Any, ended: Any) -> Any:
            calls.append(("restart", mask.tolist(), ended.tolist()))
            return env.reset_rows(mask, None, None)

    sb3compat.register_partial_reset(Restarts, Function())
    env = sb3compat.to_sb3(Identity(Restarts(fns(lengths=(2, 3)), AutoresetMode.NEXT_STEP)))
    env.reset()
    for _ in range(3):
        env.step(np.zeros(2, int))
    assert calls == [
        ("restart", [False, True], [False, True]),
        ("restart", [True, False], [True, False]),
    ]


def native_cartpole() -> Any:
    return gym.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point").unwrapped


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


def test_registration_works_as_decorator_and_as_function() -> None:
    class One(UnknownEnv):
        pass

    @sb3compat.register_partial_reset(One)
    def reset_one(env: Any, mask: Any, *, seed: Any = None, options: Any = None) -> Any:
        return env.reset_rows(mask, seed, options)

    assert partial_reset_of(One(fns(), AutoresetMode.NEXT_STEP)) is reset_one
    sb3compat.register_partial_reset(One, sb3compat.reset_with_mask)
    env = sb3compat.to_sb3(One(fns(lengths=(2, 3)), AutoresetMode.NEXT_STEP))
    env.reset()
    ends = [env.step(np.zeros(2, int))[2].tolist() for _ in range(6)]
    assert ends == [
        [False, False], [False, True], [True, False], [False, False], [True, True], [False, False]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cls", "function", "message"),
    [
        ("CartPole-v1", None, "subclass of gymnasium.vector.VectorEnv"),
        (gym.Env, None, "subclass of gymnasium.vector.VectorEnv"),
        (Identity, None, "wrapper"),
        (UnknownEnv, 3, "Expected a function, got function=3"),
    ],
)
def test_wrong_registrations_are_refused(cls: Any, function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        sb3compat.register_partial_reset(cls, function)


def test_native_cartpole_resets_only_the_rows_under_the_mask() -> None:
    env: Any = gym.make_vec("CartPole-v1", num_envs=3)
    before, _ = env.reset(seed=1)
    env.unwrapped.prev_done[:] = [True, False, True]
    env.unwrapped.steps[:] = 7
    reset = partial_reset_of(env.unwrapped)
    assert reset is not None
    mask = np.array([True, False, False])
    obs, infos = reset(env.unwrapped, mask)
    assert infos == {}
    assert obs.dtype == np.float32
    assert not np.array_equal(obs[0], before[0])
    np.testing.assert_array_equal(obs[1:], before[1:])
    assert env.unwrapped.prev_done.tolist() == [False, False, True]
    assert env.unwrapped.steps.tolist() == [0, 7, 7]
    again = [reset(env.unwrapped, mask, seed=5)[0] for _ in range(2)]
    np.testing.assert_array_equal(*again)


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


def test_registration_before_the_backend_is_imported_stays() -> None:
    script = """
import gymnasium as gym, numpy as np, sb3compat
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from sb3compat._to_sb3.partial_reset import partial_reset_of

def own(env, mask, *, seed=None, options=None):
    raise AssertionError("not called here")

sb3compat.register_partial_reset(CartPoleVectorEnv, own)
env = gym.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point")
sb3compat.to_sb3(env)
assert partial_reset_of(env.unwrapped) is own
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


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
