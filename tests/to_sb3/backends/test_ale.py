"""ale-py's `AtariVectorEnv`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import sb3compat
from sb3compat._to_sb3.backends.ale import LivesWatch
from tests.envs import Identity
from tests.lockstep import same
from tests.to_sb3.backends.cartpole import Policy
from tests.to_sb3.backends.libraries import atari, made_atari

# The threads of ale-py, like those of JAX, must not be there when another test forks.
pytestmark = pytest.mark.jax


def atari_policy(num_envs: int) -> Policy:
    rng = np.random.default_rng(3)
    return lambda obs: rng.integers(0, 9, num_envs)


# Its own autoreset is a reset with each of them: the streams of the two modes are equal.
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "sticky actions": {"repeat_action_probability": 0.25},
    "no fire, few no-ops": {"use_fire_reset": False, "noop_max": 2},
    "all actions, rewards": {"full_action_space": True, "reward_clipping": False},
    "one frame": {"maxpool": False, "stack_num": 1, "grayscale": False},
    "lives": {"episodic_life": True},
    "lives twice": {"episodic_life": True, "life_loss_info": True},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_atari_next_step_and_same_step_give_one_stream(name: str) -> None:
    n, steps, settings = 3, 440 if name == "default" else 215, SETTINGS[name]
    source = atari(AutoresetMode.NEXT_STEP, n, **settings)
    # As of gymnasium.make_vec: without it, an environment with lives is refused.
    source.spec = EnvSpec("ALE/Asterix-v5", kwargs=settings)
    next_step = sb3compat.to_sb3(source)
    same_step = sb3compat.to_sb3(atari(AutoresetMode.SAME_STEP, n, **settings))
    for env in (next_step, same_step):
        env.seed(1)
    policy = atari_policy(n)
    obs = next_step.reset()
    same(same_step.reset(), obs)
    same(same_step.reset_infos, next_step.reset_infos)
    seen: Counter[bool] = Counter()
    ended_together: set[int] = set()
    for step in range(steps):
        actions = policy(obs)
        (obs, rewards, dones, infos), other = next_step.step(actions), same_step.step(actions)
        same(other[:3], (obs, rewards, dones), f"step {step}")
        for i, (info, also) in enumerate(zip(infos, other[3], strict=True)):
            # In SAME_STEP mode, ale-py gives no info of the last step.
            keys = ("terminal_observation", "TimeLimit.truncated") if dones[i] else info
            same({key: also[key] for key in keys}, {key: info[key] for key in keys}, f"row {i}")
        same(same_step.reset_infos, next_step.reset_infos, f"reset_infos of step {step}")
        rows = np.flatnonzero(dones).tolist()
        seen.update(infos[i]["TimeLimit.truncated"] for i in rows)
        ended_together.add(len(rows))
    assert sum(seen.values()) >= 3
    if name == "default":
        assert seen[True] >= 1
        assert seen[False] >= 2
        assert ended_together >= {0, 1}


MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]
both_modes = pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])


def until_a_life_is_lost(source: Any, steps: int = 60) -> list[int]:
    env = sb3compat.to_sb3(source)
    env.seed(1)
    env.reset()
    lives = []
    for _ in range(steps):
        _, _, dones, infos = env.step(np.zeros(2, int))
        lives += [infos[i].get("lives", -1) for i in np.flatnonzero(dones)]
    return lives


@both_modes
@pytest.mark.parametrize("wrapped", [False, True])
def test_atari_that_plays_on_after_an_ending_is_refused(mode: AutoresetMode, wrapped: bool) -> None:
    made = made_atari(mode, life_loss_info=True)
    with pytest.raises(sb3compat.UnsupportedEnvError, match="its spec has life_loss_info=True"):
        sb3compat.to_sb3(Identity(made) if wrapped else made)
    # Built directly, it does not tell its settings.
    source = atari(mode, 2, game="breakout", life_loss_info=True)
    text = "does not show" if mode == AutoresetMode.NEXT_STEP else r"rows \[.*\] have lost a life"
    with pytest.raises(sb3compat.UnsupportedEnvError, match=f"(?s){text}.*episodic_life=True"):
        until_a_life_is_lost(Identity(source) if wrapped else source)


@both_modes
@pytest.mark.parametrize("both", [False, True])
def test_atari_that_starts_anew_after_a_life_is_not_refused(
    mode: AutoresetMode, both: bool
) -> None:
    lives = until_a_life_is_lost(made_atari(mode, episodic_life=True, life_loss_info=both))
    # In SAME_STEP mode, ale-py gives no info of the last step.
    assert set(lives) == {4 if mode == AutoresetMode.NEXT_STEP else -1}


def test_atari_that_returns_some_rows_is_refused() -> None:
    with pytest.raises(sb3compat.UnsupportedEnvError, match="batch_size=2 for num_envs=4"):
        sb3compat.to_sb3(atari(AutoresetMode.NEXT_STEP, 4, batch_size=2))


def test_atari_built_directly_in_same_step_mode_may_end_with_a_life() -> None:
    source = atari(AutoresetMode.SAME_STEP, 2, game="breakout", episodic_life=True)
    assert len(until_a_life_is_lost(source)) >= 2


@pytest.mark.parametrize("seed", [2**31 - 3, 2**31, 2**32 - 1, -1])
def test_atari_seeds_that_ale_does_not_take_are_refused(seed: int) -> None:
    env = sb3compat.to_sb3(atari(AutoresetMode.NEXT_STEP, 4))
    with pytest.raises(ValueError, match=f"from 0 to {2**31 - 4}, .*got seed={seed}"):
        env.seed(seed)
    env.seed(2**31 - 4)
    env.reset()


def test_lives_are_those_before_a_wrapper_has_changed_the_infos() -> None:
    """It cannot be told what the environment does after a lost life, so that it is refused."""
    watch = LivesWatch(None, AutoresetMode.NEXT_STEP)
    ended, not_ended = np.array([True]), np.array([False])
    infos = {"lives": np.array([3])}
    watch.step(not_ended, not_ended, infos)
    infos["lives"][:] = 0
    del infos["lives"]
    with pytest.raises(sb3compat.UnsupportedEnvError, match="after a lost life"):
        watch.step(ended, not_ended, {"lives": np.array([2])})


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("wrong", [-1, 9])
def test_action_on_which_its_threads_would_hang_is_refused(wrong: int, wrapped: bool) -> None:
    source = atari(AutoresetMode.NEXT_STEP, 2)
    env = sb3compat.to_sb3(RecordEpisodeStatistics(source) if wrapped else source)
    env.reset()
    with pytest.raises(ValueError, match=rf"Discrete\(9\).*actions\[1\]={wrong}\."):
        env.step([8, wrong])
    assert len(env.step([8, 0])[0]) == 2


def test_continuous_actions_are_as_they_are() -> None:
    env = sb3compat.to_sb3(atari(AutoresetMode.SAME_STEP, 2, continuous=True))
    env.reset()
    assert len(env.step(np.full((2, 3), 9, np.float32))[0]) == 2
