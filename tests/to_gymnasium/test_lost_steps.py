"""`to_gymnasium`: after a refusal or a fault, no step is lost silently."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import sb3compat
from tests.envs import MakeEnv, ScriptedEnv, script

vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")

ACTIONS = np.zeros(2, int)
MODES = list(AutoresetMode)


class Awkward(ScriptedEnv):
    """Row 1 does something special in its second step or its second reset."""

    def __init__(self, row: int, **told: Any) -> None:
        super().__init__(script(**told.pop("script", {})), row)
        self.told = told if row else {}

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        if self._time == 2 and "infos" in self.told:
            info = self.told["infos"]()
        if self._time == 2 and "hang" in self.told:
            threading.Event().wait()
        return obs, reward, terminated, truncated, info

    def reset(self, **kwargs: Any) -> Any:
        if self._resets == 1 and self.told.pop("fail_reset", False):
            raise KeyError("reset")
        if (kwargs.get("options") or {}).get("fail"):
            raise KeyError("options")
        return super().reset(**kwargs)

    def method(self) -> float:
        return self.mu


def fns(**told: Any) -> list[Callable[[], Any]]:
    return [partial(Awkward, row, **told) for row in range(2)]


def dummy(**told: Any) -> Any:
    return vec_env.DummyVecEnv(fns(**told))


def monitored(**told: Any) -> Any:
    return vec_env.VecMonitor(dummy(**told))


SOURCES = {"plain": dummy, "wrapped": monitored}
source_of = pytest.mark.parametrize("source", SOURCES)


@source_of
def test_step_whose_infos_cannot_be_joined_needs_a_reset(source: str) -> None:
    told = {"infos": lambda: {"k": 1, "_k": 2}}
    envs = sb3compat.to_gymnasium(SOURCES[source](**told))
    envs.reset()
    envs.step(ACTIONS)
    with pytest.raises(sb3compat.ConversionError, match="'_k'"):
        envs.step(ACTIONS)
    with pytest.raises(RuntimeError, match=r"Expected reset\(\)"):
        envs.step(ACTIONS)
    envs.reset()
    envs.step(ACTIONS)


@source_of
@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_step_after_a_failed_reset_needs_a_reset(source: str, mode: str) -> None:
    envs = sb3compat.to_gymnasium(SOURCES[source](fail_reset=True), autoreset_mode=mode)
    envs.reset()
    with pytest.raises(KeyError, match="reset"):
        envs.reset()
    with pytest.raises(RuntimeError, match=r"Expected reset\(\)"):
        envs.step(ACTIONS)
    envs.reset()
    envs.step(ACTIONS)


@source_of
def test_options_of_a_failed_reset_are_forgotten(source: str) -> None:
    envs = sb3compat.to_gymnasium(SOURCES[source]())
    with pytest.raises(KeyError, match="options"):
        envs.reset(seed=4, options={"fail": 1})
    _, infos = envs.reset()
    assert infos["seed"].tolist() == [-1, -1]


def test_options_of_a_refused_reset_are_forgotten() -> None:
    class Seeding(vec_env.DummyVecEnv):
        def seed(self, seed: Any = None) -> Any:
            return super().seed(seed)

    envs = sb3compat.to_gymnasium(Seeding(fns()))
    with pytest.raises(sb3compat.ConversionError, match="one int as seed"):
        envs.reset(seed=[5, 2], options={"x": 7})
    _, infos = envs.reset()
    assert "option" not in infos


class Keeps(vec_env.DummyVecEnv):
    """Never clears its seeds, like many hand-written classes."""

    def _reset_seeds(self) -> None:
        if self.forgets:
            super()._reset_seeds()

    forgets = True

    def reset(self) -> Any:
        self.forgets = False
        obs = super().reset()
        self.forgets = True
        return obs


@pytest.mark.parametrize("rows", [[True, False], [True, True]])
def test_held_rows_after_a_seed_equal_those_of_sync_vector_env(rows: list[bool]) -> None:
    told = {"script": {"lengths": (2,)}}
    reference = SyncVectorEnv(fns(**told), autoreset_mode=AutoresetMode.DISABLED)
    envs = sb3compat.to_gymnasium(Keeps(fns(**told)), autoreset_mode="Disabled")
    for env in (reference, envs):
        env.reset(seed=5)
        env.step(ACTIONS)
        env.step(ACTIONS)
    results = [env.reset(options={"reset_mask": np.array(rows)})[0] for env in (envs, reference)]
    np.testing.assert_array_equal(*results)


def test_seeds_for_all_rows_wait_while_held_rows_are_reset() -> None:
    told = {"script": {"lengths": (2,)}}
    vec = monitored(**told)
    envs = sb3compat.to_gymnasium(vec, autoreset_mode="Disabled")
    envs.reset()
    envs.step(ACTIONS)
    envs.step(ACTIONS)
    vec.seed(3)
    envs.reset(options={"reset_mask": np.array([True, False])})
    _, infos = envs.reset()
    assert infos["seed"].tolist() == [3, 4]


@pytest.mark.parametrize("options", [None, {}])
def test_options_set_on_the_vec_env_are_used(options: Any) -> None:
    for make in SOURCES.values():
        vec = make()
        envs = sb3compat.to_gymnasium(vec)
        vec.set_options({"x": 3})
        _, infos = envs.reset(options=options)
        assert infos["option"].tolist() == [3, 3]


@source_of
def test_options_of_the_user_are_not_changed(source: str) -> None:
    class Writes(ScriptedEnv):
        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            options["y"] = options["z"] = 5
            return super().reset(seed=seed, options=options)

    build = {"plain": lambda venv: venv, "wrapped": vec_env.VecMonitor}[source]
    envs = sb3compat.to_gymnasium(build(vec_env.DummyVecEnv([lambda: Writes(script())])))
    options = {"y": [0]}
    envs.reset(options=options)
    assert options == {"y": [0]}


class OwnDummy(vec_env.DummyVecEnv):
    pass


class OwnMethods(vec_env.DummyVecEnv):
    def get_attr(self, name: str, indices: Any = None) -> Any:
        return super().get_attr(name, indices)


LIMITED = [lambda: TimeLimit(Awkward(0), 9), lambda: TimeLimit(Awkward(0), 9)]


@pytest.mark.parametrize(
    "make",
    [
        vec_env.DummyVecEnv,
        OwnDummy,
        OwnMethods,
        lambda fns: vec_env.VecMonitor(vec_env.DummyVecEnv(fns)),
        lambda fns: vec_env.VecMonitor(sb3compat.to_sb3(SyncVectorEnv(fns))),
        lambda fns: sb3compat.to_sb3(SyncVectorEnv(fns)),
    ],
)
def test_attributes_are_set_on_the_wrapper_that_has_them(make: Callable[..., Any]) -> None:
    envs = sb3compat.to_gymnasium(make(LIMITED), autoreset_mode="SameStep")
    envs.set_attr("mu", [9, 8])
    assert envs.get_attr("mu") == (9, 8)
    assert envs.call("method") == (9, 8)


class Locked(Awkward):
    """Cannot be pickled, nor can its bound methods."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.lock = threading.Lock()


class OwnSubproc(vec_env.SubprocVecEnv):
    pass


def test_methods_of_sub_environments_that_cannot_be_pickled_can_be_called() -> None:
    envs = sb3compat.to_gymnasium(OwnSubproc([partial(Locked, 0)] * 2, start_method="fork"))
    assert envs.call("method") == (0.5, 0.5)
    envs.reset()
    envs.step(ACTIONS)
    envs.close()


def subproc(**told: Any) -> Any:
    return vec_env.SubprocVecEnv(fns(**told), start_method="fork")


def test_info_that_cannot_be_pickled_leaves_the_workers_alive() -> None:
    envs = sb3compat.to_gymnasium(subproc(infos=lambda: {"lock": threading.Lock()}))
    envs.reset()
    envs.step(ACTIONS)
    with pytest.raises(TypeError, match="cannot pickle"):
        envs.step(ACTIONS)
    envs.reset()
    envs.step(ACTIONS)
    envs.close()


@pytest.mark.parametrize("start_method", ["fork", "forkserver"])
def test_worker_that_dies_below_a_wrapper_is_a_worker_error(start_method: str) -> None:
    """Forked workers hold each other's pipes open: SB3 alone would wait for ever."""
    venv = vec_env.SubprocVecEnv(fns(infos=lambda: 1 / 0), start_method=start_method)
    envs = sb3compat.to_gymnasium(vec_env.VecMonitor(venv))
    envs.reset()
    envs.step(ACTIONS)
    with pytest.raises(sb3compat.WorkerError, match="has died"):
        envs.step(ACTIONS)
    envs.close()
    assert not any(process.is_alive() for process in venv.processes)


class Bomb:
    def __reduce__(self) -> Any:
        return int, ("no number",)


def test_info_that_cannot_be_unpickled_leaves_the_workers_alive() -> None:
    """The answers of the other rows, too long for the pipe's buffer, are read all the same."""
    large = {"observation_space": spaces.Box(0, 1, (300, 300), np.float32)}
    envs = sb3compat.to_gymnasium(subproc(script=large, infos=lambda: {"bomb": Bomb()}))
    envs.reset()
    envs.step(ACTIONS)
    with pytest.raises(ValueError, match="no number"):
        envs.step(ACTIONS)
    envs.reset()
    envs.close()


def test_close_works_after_an_interrupt() -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    large = {"observation_space": spaces.Box(0, 1, (300, 300), np.float32)}
    # Row 0 waits for someone to take its answer, while row 1 gives none.
    vec = subproc(script=large, hang=True)
    envs = sb3compat.to_gymnasium(vec)
    envs.reset()
    envs.step(ACTIONS)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    with pytest.raises(KeyboardInterrupt):
        envs.step(ACTIONS)
    signal.signal(signal.SIGALRM, before)
    envs.close()
    assert not any(process.is_alive() for process in vec.processes)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_masked_reset_before_all_rows_are_known_is_refused(mode: AutoresetMode) -> None:
    vec = dummy()
    vec.reset()
    envs = sb3compat.to_gymnasium(vec, autoreset_mode=mode)
    with pytest.raises(sb3compat.PartialResetError, match=r"rows \[1\] returned last"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    assert [env.unwrapped._resets for env in vec.envs] == [1, 1]
    envs.step(ACTIONS)


def test_gymnasium_side_needs_a_reset_after_the_sb3_side_was_used() -> None:
    envs = sb3compat.to_gymnasium(dummy())
    envs.reset()
    vec = sb3compat.to_sb3(envs)
    vec.step(ACTIONS)
    for use in (
        lambda: envs.step(ACTIONS),
        lambda: envs.reset(options={"reset_mask": np.array([True, False])}),
    ):
        with pytest.raises(RuntimeError, match=r"Expected reset\(\)"):
            use()
    envs.reset()
    envs.step(ACTIONS)


def test_vec_env_whose_methods_are_stubs_can_be_adapted() -> None:
    class Stubs(vec_env.DummyVecEnv):
        def get_attr(self, name: str, indices: Any = None) -> Any:
            if name == "render_mode":  # SB3 itself asks for it
                return [None]
            raise ValueError(name)

        env_method = get_attr

    envs = sb3compat.to_gymnasium(Stubs([MakeEnv(script(), 0)]))
    assert isinstance(envs.np_random, np.random.Generator)
    envs.np_random = np.random.default_rng(1)


def test_generators_of_sub_environments_cannot_be_replaced_by_one() -> None:
    envs = sb3compat.to_gymnasium(dummy())
    with pytest.raises(AttributeError, match="its own generator"):
        envs.np_random = np.random.default_rng(1)


def test_unknown_mode_is_refused() -> None:
    with pytest.raises(sb3compat.AutoresetModeError, match="bogus"):
        sb3compat.to_gymnasium(gym.make_vec("CartPole-v1", 1), autoreset_mode="bogus")
