"""`VectorEnvAdapter`: the contract of Gymnasium's `VectorEnv`."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

import sb3compat
from tests.envs import BOX, ScriptedEnv, fns, script
from tests.lockstep_back import NAMES, SOURCES, dummy, monitored, subproc

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import VecMonitor

MODES = list(AutoresetMode)
SAME_STEP, NEXT_STEP = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP


def adapted(n: int = 2, mode: Any = SAME_STEP, **kwargs: Any) -> Any:
    return sb3compat.to_gymnasium(dummy(fns(n, **kwargs)), autoreset_mode=mode)


def test_vector_env_is_returned_as_it_is() -> None:
    env = SyncVectorEnv(fns())
    assert sb3compat.to_gymnasium(env) is env
    ours = adapted()
    assert sb3compat.to_gymnasium(ours) is ours


def test_attributes_equal_those_of_sync_vector_env() -> None:
    vec_env = dummy([lambda: gym.make("CartPole-v1", render_mode="rgb_array")] * 3)
    ours: Any = sb3compat.to_gymnasium(vec_env, autoreset_mode="NextStep")
    theirs = SyncVectorEnv(
        [lambda: gym.make("CartPole-v1", render_mode="rgb_array")] * 3, autoreset_mode=NEXT_STEP
    )
    assert isinstance(ours, sb3compat.VectorEnvAdapter)
    assert isinstance(ours, VectorEnv)
    for name in (
        "num_envs", "single_observation_space", "single_action_space", "observation_space",
        "action_space", "metadata", "render_mode", "autoreset_mode", "closed",
    ):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.vec_env is vec_env
    assert ours.unwrapped is ours
    assert ours.spec.id == "CartPole-v1"
    assert repr(ours) == "VectorEnvAdapter(CartPole-v1, num_envs=3)"
    assert repr(adapted()) == "VectorEnvAdapter(num_envs=2)"


def test_wrong_number_of_actions_is_refused(envs: Any) -> None:
    envs.reset()
    for actions in ([], [0], [0, 1, 2], np.zeros((3,), int), 0, None):
        with pytest.raises(ValueError, match="Expected 2 actions, one for each"):
            envs.step(actions)
    assert envs.step([0, 0])[-1]["shared"].tolist() == [1, 1]


TUPLE = spaces.Tuple([spaces.Discrete(2), BOX])
DICT = spaces.Dict({"a": spaces.Discrete(2), "b": BOX})
BOXES = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("space", "actions"),
    [
        (TUPLE, (np.array([0]), BOXES)),
        (TUPLE, (np.array([0, 1]), BOXES[:1])),
        (TUPLE, (np.array([0, 1]),)),
        (TUPLE, [(0, BOXES[0])]),
        (DICT, {"a": np.array([0, 1]), "b": BOXES[:1]}),
        (DICT, {"a": np.array([0, 1])}),
        (DICT, {"a": np.array([0, 1]), "c": BOXES}),
        (DICT, [{"a": 1, "b": BOXES[0]}]),
        (DICT, BOXES),
    ],
)
def test_wrong_parts_of_actions_are_refused(space: Any, actions: Any) -> None:
    envs = adapted(action_space=space)
    envs.reset()
    with pytest.raises(ValueError, match="Nothing was stepped"):
        envs.step(actions)
    right = {"a": [0, 1], "b": BOXES} if space is DICT else [np.array([0, 1]), BOXES]
    assert envs.step(right)[-1]["shared"].tolist() == [1, 1]


MASKS = {
    "a list": [True, False],
    "a bool": True,
    "nothing": None,
    "too short": np.ones(1, bool),
    "two-dimensional": np.ones((2, 1), bool),
    "numbers": np.ones(2, int),
    "objects": np.array([True, False], object),
    "no row": np.zeros(2, bool),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_wrong_reset_masks_are_refused(envs: Any, mask: Any) -> None:
    theirs = SyncVectorEnv(fns(), autoreset_mode=SAME_STEP)
    theirs.reset()
    with pytest.raises((TypeError, ValueError, AssertionError)) as expected:
        theirs.reset(options={"reset_mask": mask})
    envs.reset()
    options = {"reset_mask": mask}
    with pytest.raises(expected.type, match=r"options\['reset_mask'\] to be a NumPy array"):
        envs.reset(options=options)
    assert options == {"reset_mask": mask}
    assert envs.step([0, 0])[-1]["shared"].tolist() == [1, 1]


@pytest.mark.parametrize("seed", [[], [1], [1, 2, 3], (1,)])
def test_list_of_seeds_of_another_length_is_refused(envs: Any, seed: Any) -> None:
    theirs = SyncVectorEnv(fns(), autoreset_mode=SAME_STEP)
    with pytest.raises((ValueError, AssertionError)) as expected:
        theirs.reset(seed=seed)
    with pytest.raises(expected.type, match="a list of 2 seeds"):
        envs.reset(seed=seed)


def test_numpy_integers_are_seeds(envs: Any) -> None:
    assert envs.reset(seed=np.int64(5))[1]["seed"].tolist() == [5, 6]
    assert envs.reset(seed=np.array([7, 3]))[1]["seed"].tolist() == [7, 3]


def test_frames_do_not_change_later() -> None:
    class Painting(ScriptedEnv):
        canvas = np.zeros((2, 2, 3), np.uint8)

        def render(self) -> Any:
            self.canvas += 1
            return self.canvas

    for wrap in (lambda made: made, VecMonitor):
        envs = sb3compat.to_gymnasium(wrap(dummy([lambda: Painting(script())])))
        envs.reset()
        first, second = envs.render()[0], envs.render()[0]
        assert (first + 1).tolist() == second.tolist()


def test_ended_row_is_not_stepped_in_disabled_mode() -> None:
    for build in SOURCES:
        envs = sb3compat.to_gymnasium(build(fns(lengths=(1, 9))), autoreset_mode="Disabled")
        envs.reset()
        ended = envs.step([0, 0])[2]
        assert ended.tolist() == [False, True]
        for kind in (sb3compat.EndedRowError, AssertionError, RuntimeError):
            with pytest.raises(kind, match=r"rows \[1\] to be reset before the next step"):
                envs.step([0, 0])
        envs.reset(options={"reset_mask": ended})
        assert envs.step([0, 0])[-1]["shared"].tolist() == [2, 1]
        envs.close()


@pytest.mark.parametrize("build", SOURCES, ids=NAMES)
def test_step_is_refused_until_every_ended_row_is_reset(build: Any) -> None:
    mask = np.array([True, False])
    envs = sb3compat.to_gymnasium(build(fns(lengths=(1,))), autoreset_mode="Disabled")
    envs.reset()
    envs.step([0, 0])
    envs.reset(options={"reset_mask": mask})
    with pytest.raises(sb3compat.EndedRowError, match=r"rows \[1\] to be reset"):
        envs.step([0, 0])
    envs.close()
    if build is monitored:
        return
    envs = sb3compat.to_gymnasium(build(fns(lengths=(1,))), autoreset_mode="NextStep")
    envs.reset()
    envs.step([0, 0])
    envs.reset(options={"reset_mask": mask})
    _, _, terminations, _, infos = envs.step([0, 0])
    assert terminations.tolist() == [True, False]
    assert infos["_resets"].tolist() == [False, True]
    envs.close()


def test_closed_environment_refuses_every_call(envs: Any) -> None:
    envs.reset()
    envs.close()
    envs.close()
    assert envs.closed
    for use in (
        envs.reset,
        lambda: envs.step([0, 0]),
        envs.render,
        lambda: envs.call("mu"),
        lambda: envs.set_attr("mu", 3),
    ):
        for kind in (RuntimeError, gym.error.ClosedEnvironmentError):
            with pytest.raises(kind, match="was closed"):
                use()


def test_step_after_a_failed_step_needs_a_reset() -> None:
    class Failing(ScriptedEnv):
        def step(self, action: Any) -> Any:
            if action == 3:
                raise KeyError("three")
            return super().step(action)

    made = [lambda row=row: Failing(script(lengths=(1, 9)), row) for row in range(2)]
    for mode in MODES:
        ours = sb3compat.to_gymnasium(dummy(made), autoreset_mode=mode)
        ours.reset()
        with pytest.raises(KeyError, match="three"):
            ours.step([0, 3])
        for use in (
            lambda: ours.step([0, 0]),
            lambda: ours.reset(options={"reset_mask": np.array([True, False])}),
        ):
            with pytest.raises(RuntimeError, match=r"Expected reset\(\) without a mask"):
                use()
        ours.reset()
        assert ours.step([0, 0])[-1]["shared"].shape == (2,)


def test_info_key_that_collides_with_a_mask_is_refused() -> None:
    class Colliding(ScriptedEnv):
        def step(self, action: Any) -> Any:
            return *super().step(action)[:4], {"k": 1, "_k": 2}

    ours = sb3compat.to_gymnasium(dummy([lambda: Colliding(script())]))
    ours.reset()
    with pytest.raises(sb3compat.ConversionError, match="'_k' beside 'k'"):
        ours.step([0])


@pytest.mark.parametrize("build", SOURCES, ids=NAMES)
def test_keys_of_sb3_stay_out_of_the_infos(build: Any) -> None:
    chosen = {"lengths": (1,), "infos": "none", "reuse": True}
    ours = sb3compat.to_gymnasium(build(fns(**chosen)))
    infos = [ours.reset()[1], *[ours.step([0, 0])[-1] for _ in range(3)], ours.reset()[1]]
    for info in infos:
        for level in (info, info.get("final_info", {})):
            for key in ("TimeLimit.truncated", "terminal_observation"):
                assert key not in level
                assert f"_{key}" not in level
    ours.close()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("wrap", [lambda env: env, VecMonitor])
def test_environment_with_workers_cannot_be_copied(
    duplicate: Any, wrap: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """A copy's pipes, once dropped, would close those of the original."""
    env = sb3compat.to_gymnasium(wrap(subproc(fns())))
    env.reset()
    with pytest.raises(TypeError, match="worker processes to copy or pickle, got VectorEnvAdapter"):
        duplicate(env)
    gc.collect()
    assert len(env.step(np.zeros(2, int))[0]) == 2
    env.close()
    assert capfd.readouterr().err == ""


def test_environment_over_async_workers_cannot_be_copied(
    capfd: pytest.CaptureFixture[str],
) -> None:
    env = sb3compat.to_gymnasium(VecMonitor(sb3compat.to_sb3(AsyncVectorEnv(fns()))))
    env.reset()
    for duplicate in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="worker processes to copy or pickle"):
            duplicate(env)
    gc.collect()
    assert len(env.step(np.zeros(2, int))[0]) == 2
    env.close()
    assert capfd.readouterr().err == ""


def test_choice_is_logged_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="sb3compat"):
        adapted()
    (record,) = caplog.records
    assert record.levelname == "DEBUG"
    for text in ("DummyVecEnv", "SAME_STEP", "LocalRows", "LocalSubEnvs"):
        assert text in record.getMessage()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_environment_in_this_process_can_be_copied(duplicate: Any) -> None:
    envs = adapted()
    envs.reset()
    other = duplicate(envs)
    for each in (envs, other):
        assert each.step(np.zeros(2, int))[-1]["shared"].tolist() == [1, 1]
        each.reset()
