"""EnvPool's Gymnasium environments. See test_transitions.py as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import sb3compat
from sb3compat._to_sb3.partial_reset import partial_reset_of
from tests.lockstep import same
from tests.to_sb3.backends.libraries import lives_pool, pool

# EnvPool imports JAX as well.
pytestmark = pytest.mark.jax


def raw_endings(raw: Any, actions: Any) -> Any:
    """Each row's transitions by EnvPool itself, its reset steps apart from the others."""
    obs, infos = raw.reset()
    n = len(obs)
    steps: list[list[Any]] = [[] for _ in range(n)]
    starts: list[list[Any]] = [[(obs[i].copy(), int(infos["lives"][i]))] for i in range(n)]
    pending = np.zeros(n, bool)
    # What a row does depends on its own actions only.
    played = [0] * n
    while min(map(len, steps)) < len(actions):
        chosen = np.array([actions[played[i] % len(actions)][i] for i in range(n)])
        obs, rewards, terminated, truncated, infos = raw.step(chosen)
        for i in range(n):
            lives = int(infos["lives"][i])
            if pending[i]:
                starts[i].append((obs[i].copy(), lives))
                continue
            played[i] += 1
            flags = bool(terminated[i]), bool(truncated[i])
            steps[i].append((obs[i].copy(), rewards[i], *flags, lives))
        pending = terminated | truncated
    return steps, starts


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("limit", [27000, 40])
def test_envpool_restarts_ended_rows_as_it_does_itself(wrapped: bool, limit: int) -> None:
    """With `episodic_life`, its autoreset goes on with the game; a reset by index would not."""
    n = 2
    actions = np.random.default_rng(0).integers(0, 4, (420, n))
    steps, starts = raw_endings(lives_pool(n, limit), actions)
    source = lives_pool(n, limit)
    env = sb3compat.to_sb3(RecordEpisodeStatistics(source) if wrapped else source)
    first = env.reset()
    ended = [0] * n
    lives: list[int] = []
    for i in range(n):
        same(first[i], starts[i][0][0], f"the first observation of row {i}")
    for step, chosen in enumerate(actions):
        obs, rewards, dones, infos = env.step(chosen)
        for i in range(n):
            expected, reward, terminated, truncated, left = steps[i][step]
            where = f"step {step} of row {i}"
            reached = infos[i]["terminal_observation"] if dones[i] else obs[i]
            same(reached, expected, where)
            assert rewards[i] == reward, where
            assert dones[i] == (terminated or truncated), where
            assert infos[i]["TimeLimit.truncated"] is (truncated and not terminated), where
            assert infos[i]["lives"] == left, where
            if dones[i]:
                ended[i] += 1
                lives.append(left)
                started, left = starts[i][ended[i]]
                same(obs[i], started, f"{where}: the next first observation")
                assert env.reset_infos[i]["lives"] == left
                assert env.reset_infos[i]["env_id"] == i
                assert env.reset_infos[i].keys() == infos[i].keys() - {
                    "episode", "terminal_observation", "TimeLimit.truncated"
                }  # fmt: skip
    if limit == 27000:
        assert set(lives) == {4, 3, 2, 1, 0}


def test_envpool_rows_are_restarted_and_reset_at_once() -> None:
    source = lives_pool(3)
    source.reset()
    terminated = np.zeros(3, bool)
    while not terminated[1]:
        before, _, terminated, _, _ = source.step(np.zeros(3, int))
        before = before.copy()
    mask, ended = np.array([True, True, False]), np.array([False, True, False])
    function: Any = partial_reset_of(source)
    obs, infos = function.restart(source, mask, ended)
    assert infos["lives"][:2].tolist() == [5, 4]
    assert infos["elapsed_step"][0] == 0 < infos["elapsed_step"][1]
    assert infos["players"]["env_id"][:2].tolist() == [0, 1]
    after = source.step(np.zeros(3, int))[4]
    assert after["elapsed_step"][:2].tolist() == [1, infos["elapsed_step"][1] + 1]
    assert obs.shape == before.shape


def test_envpool_works_under_vec_monitor() -> None:
    """SB3 asks for the id of the environment's spec; EnvPool's own kind of spec has none."""
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    env = sb3compat.to_sb3(pool(3, 10))
    assert env.spec is None
    monitored = vec_env.VecMonitor(env)
    monitored.reset()
    for _ in range(25):
        for done, info in zip(*monitored.step(np.arange(3) % 2)[2:], strict=True):
            assert ("episode" in info) == done
            assert not done or info["episode"]["l"] == info["elapsed_step"]
    assert monitored.episode_count >= 6


def test_envpool_that_returns_some_rows_is_refused() -> None:
    with pytest.raises(sb3compat.UnsupportedEnvError, match="batch_size=2 for num_envs=4"):
        sb3compat.to_sb3(pool(4, batch_size=2))


def test_envpool_warns_that_it_cannot_be_seeded() -> None:
    env = sb3compat.to_sb3(pool(2))
    env.seed(3)
    with pytest.warns(UserWarning, match="seed"):
        env.reset()


@pytest.mark.parametrize(
    "options", [{"low": 0.0}, [{"low": 0.0}, {}]], ids=["of all rows", "by row"]
)
def test_envpool_refuses_options(options: Any) -> None:
    env = sb3compat.to_sb3(pool(2))
    env.reset()

    def reset_with_options() -> None:
        env.set_options(options)
        env.reset()

    with pytest.raises(ValueError, match="options"):
        reset_with_options()


def test_action_on_which_it_may_crash_is_refused() -> None:
    env = sb3compat.to_sb3(pool(2))
    env.reset()
    with pytest.raises(ValueError, match=r"Discrete\(2\).*actions\[0\]=2\."):
        env.step([2, 1])
    assert len(env.step([1, 1])[0]) == 2
