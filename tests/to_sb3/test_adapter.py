from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList

import sb3compat
from tests.envs import Identity, MakeEnv, ScriptedEnv, script
from tests.lockstep import same
from tests.native import NativeEnv, UnknownEnv

NEXT_STEP, SAME_STEP = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP


def fns(n: int = 2, **kwargs: Any) -> list[MakeEnv]:
    return [MakeEnv(script(**kwargs), i) for i in range(n)]


def adapted(n: int = 2, **kwargs: Any) -> Any:
    return sb3compat.to_sb3(SyncVectorEnv(fns(n, **kwargs)))


ONE_ENV = ScriptedEnv(script())


def closed() -> Any:
    env = SyncVectorEnv(fns())
    env.close()
    return env


REFUSED = {
    "a single environment": (
        lambda: ONE_ENV,
        sb3compat.UnsupportedEnvError,
        ["gymnasium.vector.VectorEnv", "ScriptedEnv", "DummyVecEnv([lambda: env])", "make_vec"],
    ),
    "a class": (
        lambda: SyncVectorEnv,
        sb3compat.UnsupportedEnvError,
        ["gymnasium.vector.VectorEnv", "SyncVectorEnv", "call it"],
    ),
    "a function": (
        lambda: lambda: SyncVectorEnv(fns()),
        sb3compat.UnsupportedEnvError,
        ["gymnasium.vector.VectorEnv", "function", "call it"],
    ),
    "an id": (
        lambda: "CartPole-v1",
        sb3compat.UnsupportedEnvError,
        ["to_sb3(gymnasium.make_vec('CartPole-v1', num_envs=n))"],
    ),
    "a list of functions": (
        lambda: fns(),
        sb3compat.UnsupportedEnvError,
        ["to_sb3(gymnasium.vector.SyncVectorEnv("],
    ),
    "nothing": (lambda: None, sb3compat.UnsupportedEnvError, ["NoneType", "make_vec"]),
    "one environment in two rows": (
        lambda: SyncVectorEnv([lambda: ONE_ENV, lambda: ONE_ENV]),
        sb3compat.UnsupportedEnvError,
        ["rows 0 and 1", "ScriptedEnv", "not `lambda: env`"],
    ),
    "one environment in two rows, wrapped": (
        lambda: Identity(
            SyncVectorEnv(
                [
                    MakeEnv(script(), 0),
                    lambda: ONE_ENV,
                    lambda: gym.wrappers.TimeLimit(ONE_ENV, 9),
                ]
            )
        ),
        sb3compat.UnsupportedEnvError,
        ["rows 1 and 2"],
    ),
    "no mode": (
        lambda: UnknownEnv(fns(), None),
        sb3compat.AutoresetModeError,
        ["UnknownEnv", "autoreset_mode", "'NextStep' | 'SameStep' | 'Disabled'"],
    ),
    "NEXT_STEP without partial reset": (
        lambda: UnknownEnv(fns(), NEXT_STEP),
        sb3compat.PartialResetError,
        [
            "UnknownEnv",
            "AutoresetMode.SAME_STEP",
            "sb3compat.register_partial_reset(UnknownEnv, function)",
            "padding=True",
        ],
    ),
    "DictInfoToList": (
        lambda: Identity(DictInfoToList(SyncVectorEnv(fns()))),
        sb3compat.UnsupportedEnvError,
        ["DictInfoToList", "Remove that wrapper"],
    ),
    "closed": (closed, sb3compat.ClosedError, ["was closed"]),
    "a nested space": (
        lambda: SyncVectorEnv(
            fns(observation_space=spaces.Dict({"a": spaces.Dict({"b": spaces.Discrete(2)})}))
        ),
        sb3compat.UnsupportedSpaceError,
        ["observation_space['a']", "nested Dict", "FlattenObservation"],
    ),
    "a nested action space": (
        lambda: SyncVectorEnv(fns(action_space=spaces.Tuple([spaces.Tuple([spaces.Discrete(2)])]))),
        sb3compat.UnsupportedSpaceError,
        ["action_space[0]", "nested Tuple"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_environment_is_named_with_a_way_out(name: str) -> None:
    make: Any
    make, kind, parts = REFUSED[name]
    with pytest.raises(kind) as caught:
        sb3compat.to_sb3(make())
    assert isinstance(caught.value, sb3compat.ConversionError | sb3compat.ClosedError)
    for part in parts:
        assert part in str(caught.value)


def test_reward_that_is_no_number_is_refused() -> None:
    class Pair(gym.RewardWrapper[Any, Any]):
        def reward(self, reward: Any) -> Any:
            return np.array([reward, reward])

    env = sb3compat.to_sb3(SyncVectorEnv([lambda: Pair(ScriptedEnv(script()))]))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match="reward of row 0 to be one number"):
        env.step(np.array([0]))


def test_vec_env_is_returned_as_it_is() -> None:
    common = pytest.importorskip("stable_baselines3.common.vec_env")
    env = common.DummyVecEnv([MakeEnv(script(), 0)])
    assert sb3compat.to_sb3(env) is env
    ours = adapted()
    assert sb3compat.to_sb3(ours) is ours


def test_adapter_is_a_vec_env() -> None:
    common = pytest.importorskip("stable_baselines3.common.vec_env")
    env = adapted(3)
    assert isinstance(env, common.VecEnv)
    assert isinstance(env, sb3compat.VecEnvAdapter)
    assert env.num_envs == 3
    assert env.unwrapped is env
    assert env.render_mode == "rgb_array"
    assert env.metadata == {"render_modes": ["rgb_array"], "render_fps": 7}
    assert env.observation_space is env.env.single_observation_space
    assert env.action_space is env.env.single_action_space


def test_mode_comes_from_argument_then_instance_then_metadata() -> None:
    env = NativeEnv(fns(), SAME_STEP)
    assert sb3compat.to_sb3(env).autoreset_mode == SAME_STEP
    env.autoreset_mode = NEXT_STEP
    assert sb3compat.to_sb3(env).autoreset_mode == NEXT_STEP
    for given in ("Disabled", "DISABLED", AutoresetMode.DISABLED):
        assert sb3compat.to_sb3(env, autoreset_mode=given).autoreset_mode == (
            AutoresetMode.DISABLED
        )


def test_mode_in_the_metadata_may_be_a_string() -> None:
    env = NativeEnv(fns(), SAME_STEP)
    env.metadata = {"autoreset_mode": "NextStep"}
    assert sb3compat.to_sb3(env).autoreset_mode == NEXT_STEP


def test_mode_is_right_although_two_environments_share_metadata() -> None:
    # Up to Gymnasium 1.3 both are one dict, and the second environment's mode stands in it.
    class Shared(ScriptedEnv):
        metadata = {"render_modes": []}

    first = SyncVectorEnv([lambda: Shared(script())], autoreset_mode=SAME_STEP)
    second = SyncVectorEnv([lambda: Shared(script())], autoreset_mode=NEXT_STEP)
    first.metadata = second.metadata
    assert sb3compat.to_sb3(Identity(first)).autoreset_mode == SAME_STEP


def test_unknown_mode_is_refused() -> None:
    with pytest.raises(sb3compat.AutoresetModeError, match="'NextStep', 'SameStep', 'Disabled'"):
        sb3compat.to_sb3(NativeEnv(fns(), None), autoreset_mode="same-step")


@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
def test_mode_that_contradicts_the_environment_is_refused(cls: Any) -> None:
    env = cls(fns(), autoreset_mode=SAME_STEP)
    with pytest.raises(sb3compat.AutoresetModeError, match="was built with"):
        sb3compat.to_sb3(env, autoreset_mode=NEXT_STEP)
    env.close()


@pytest.mark.parametrize("make", [lambda fns: SyncVectorEnv(fns), AsyncVectorEnv, None])
def test_wrong_actions_leave_the_environment_untouched(make: Any) -> None:
    make = make or (lambda fns: NativeEnv(fns, SAME_STEP))
    env, twin = (sb3compat.to_sb3(make(fns(3, lengths=(5,)))) for _ in range(2))
    same(env.reset(), twin.reset())
    for wrong in (np.zeros(2, int), np.zeros((3, 1), int), [0, 1], np.array([0.5, 0, 0]), "abc"):
        with pytest.raises(ValueError, match="actions"):
            env.step(wrong)
        same(env.step(np.zeros(3, int)), twin.step(np.zeros(3, int)))
    env.close()
    twin.close()


def test_step_async_and_step_wait_out_of_order_are_errors() -> None:
    env = adapted()
    env.reset()
    with pytest.raises(RuntimeError, match="step_async"):
        env.step_wait()
    env.step_async(np.zeros(2, int))
    with pytest.raises(RuntimeError, match="again"):
        env.step_async(np.zeros(2, int))
    env.step_wait()
    with pytest.raises(RuntimeError, match="step_async"):
        env.step_wait()


@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
def test_reset_cancels_a_pending_step(cls: Any) -> None:
    env, twin = (sb3compat.to_sb3(cls(fns(2, lengths=(2,)))) for _ in range(2))
    env.reset()
    twin.reset()
    env.step_async(np.ones(2, int))
    env.seed(3)
    obs = env.reset()
    assert [info["shared"] for info in env.reset_infos] == [0, 0]
    with pytest.raises(RuntimeError, match="step_async"):
        env.step_wait()
    twin.seed(3)
    same(obs, twin.reset())
    same(env.step(np.ones(2, int)), twin.step(np.ones(2, int)))
    env.close()
    twin.close()


def test_seeds_are_used_once_and_change_nothing_before() -> None:
    env = adapted(3)
    env.reset()
    assert env.seed(10) == [10, 11, 12]
    env.step(np.zeros(3, int))
    env.reset()
    assert [info["seed"] for info in env.reset_infos] == [10, 11, 12]
    env.reset()
    assert [info["seed"] for info in env.reset_infos] == [-1, -1, -1]


def test_custom_environment_gets_one_seed() -> None:
    class Noting(NativeEnv):
        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            self.noted = seed
            return super().reset(seed=seed, options=options)

    source = Noting(fns(3), SAME_STEP)
    env = sb3compat.to_sb3(source)
    env.seed(10)
    env.reset()
    assert source.noted == 10
    env.reset()
    assert source.noted is None


def test_options_of_the_wrong_form_are_refused() -> None:
    env = adapted(2)
    with pytest.raises(ValueError, match=r"a list of 2.*len\(options\)=3"):
        env.set_options([{}, {}, {}])
    with pytest.raises(TypeError, match="dicts, got 'x'"):
        env.set_options(["x", {}])
    with pytest.raises(TypeError, match="dicts, got 3"):
        env.set_options(3)


def test_closed_environment_refuses_every_call() -> None:
    env = adapted()
    env.reset()
    env.close()
    env.close()
    for use in (env.reset, lambda: env.step(np.zeros(2, int)), lambda: env.get_attr("mu")):
        with pytest.raises(RuntimeError, match="was closed"):
            use()


def test_terminal_keys_of_sub_environments_are_dropped() -> None:
    class Liar(ScriptedEnv):
        def reset(self, **kwargs: Any) -> Any:
            obs, info = super().reset(**kwargs)
            return obs, info | {"terminal_observation": "no", "TimeLimit.truncated": "no"}

        def step(self, action: Any) -> Any:
            *result, info = super().step(action)
            return *result, info | {"terminal_observation": "no", "TimeLimit.truncated": "no"}

    for mode in AutoresetMode:
        for wrap in (lambda env: env, Identity):
            chosen = script(lengths=(2,))
            kinds = [lambda: Liar(chosen), MakeEnv(chosen, 1)]
            env = sb3compat.to_sb3(wrap(SyncVectorEnv(kinds, autoreset_mode=mode)))
            env.reset()
            for info in env.step(np.zeros(2, int))[3]:
                assert "terminal_observation" not in info
                assert info["TimeLimit.truncated"] is False
            for info in env.step(np.zeros(2, int))[3]:
                assert info["terminal_observation"].shape == (3,)
                assert info["TimeLimit.truncated"] is False


def test_infos_are_distinct_plain_dicts() -> None:
    env = sb3compat.to_sb3(NativeEnv(fns(3, infos="none"), SAME_STEP))
    env.reset()
    infos = env.step(np.zeros(3, int))[3]
    assert {type(info) for info in infos} == {dict}
    assert len({id(info) for info in infos}) == 3
    assert all(info["TimeLimit.truncated"] is False for info in infos)


def test_adapting_twice_and_dropping_one_leaves_the_environment_open() -> None:
    source = NativeEnv(fns(lengths=(2,)), SAME_STEP)
    wrapped = Identity(source)
    first = sb3compat.to_sb3(wrapped)
    del first
    env = sb3compat.to_sb3(wrapped)
    assert not source.closed
    env.reset()
    env.step(np.zeros(2, int))
    assert env.step(np.zeros(2, int))[2].all()
    assert type(wrapped.env).__name__ == "BaseTap"
    assert wrapped.env.env is source
    assert wrapped.env.colour == "blue"  # what wrappers reach for is there


def test_repr_names_the_environment() -> None:
    assert repr(adapted()) == "<VecEnvAdapter, SyncVectorEnv(num_envs=2)>"


@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
def test_rows_with_different_starts_are_refused(cls: Any) -> None:
    env_fns = [
        MakeEnv(script(observation_space=spaces.Discrete(5, start=start)), row)
        for row, start in enumerate([0, -3])
    ]
    both = spaces.MultiDiscrete([5, 5], start=[0, -3])
    source = cls(env_fns, observation_mode=(both, spaces.Discrete(5)))
    with pytest.raises(sb3compat.UnsupportedSpaceError, match=r"\[0\], got \[-3\] in row 1"):
        sb3compat.to_sb3(source)
    source.close()
