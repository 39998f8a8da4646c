"""EnvPool's Gymnasium environments. See test_transitions.py as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import sb3compat
from sb3compat._to_sb3.partial_reset import partial_reset_of
from tests.to_sb3.backends.libraries import lives_pool, pool

# EnvPool imports JAX as well.
pytestmark = pytest.mark.jax


@pytest.mark.parametrize("wrapped", [False, True])
def test_envpool_goes_on_with_the_game_after_a_life(wrapped: bool) -> None:
    """With `episodic_life`, its autoreset does that; a reset by index would not."""
    source = lives_pool(2)
    env = sb3compat.to_sb3(RecordEpisodeStatistics(source) if wrapped else source)
    env.reset()
    seen = set()
    for actions in np.random.default_rng(0).integers(0, 4, (420, 2)):
        _, _, dones, infos = env.step(actions)
        for i in np.flatnonzero(dones):
            first, left = env.reset_infos[i], infos[i]["lives"]
            seen.add(left)
            assert first["lives"] == (left or 5)
            assert first["env_id"] == i
            added = {"episode", "terminal_observation", "TimeLimit.truncated"}
            assert first.keys() == infos[i].keys() - added
    assert seen == {4, 3, 2, 1, 0}


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


def test_spec_of_another_kind_is_none() -> None:
    """SB3's `VecMonitor` asks for the id of the spec, which EnvPool's own kind of spec has not."""
    assert sb3compat.to_sb3(pool(3)).spec is None


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
