"""Vector environments of other libraries: ale-py, EnvPool, Gymnasium's JAX and torch ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import sb3compat
from sb3compat._to_sb3.partial_reset import partial_reset_of
from tests.envs import GYMNASIUM, Identity
from tests.lockstep import same
from tests.to_sb3.test_native_cartpole import (
    RESET_BOUND,
    TOLERANCE,
    Array,
    Policy,
    always,
    at_random,
    check_cartpole,
    native,
    run,
    within,
)

# EnvPool imports JAX as well.
pytestmark = pytest.mark.jax

FRAMESKIP = 4

_opened: list[Any] = []


def closed_later(env: Any) -> Any:
    _opened.append(env)
    return env


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    """EnvPool's and ale-py's threads live on until the environment is closed."""
    yield
    while _opened:
        _opened.pop().close()


# ale-py


def atari(mode: AutoresetMode, num_envs: int = 3, limit: int = 211, **kwargs: Any) -> Any:
    """Asterix: at random, a life lasts so long that some episodes end before the limit."""
    pytest.importorskip("ale_py", reason="drives ale-py's AtariVectorEnv")
    from ale_py.vector_env import AtariVectorEnv

    return closed_later(
        AtariVectorEnv(
            "asterix",
            num_envs=num_envs,
            autoreset_mode=mode,
            max_num_frames_per_episode=limit * FRAMESKIP,
            img_height=20,
            img_width=20,
            **kwargs,
        )
    )


def atari_policy(num_envs: int) -> Policy:
    rng = np.random.default_rng(3)
    return lambda obs: rng.integers(0, 9, num_envs)


def without(info: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in info.items() if key not in keys}


def test_atari_next_step_and_same_step_give_one_stream() -> None:
    n, steps = 3, 440
    next_step = sb3compat.to_sb3(atari(AutoresetMode.NEXT_STEP, n))
    same_step = sb3compat.to_sb3(atari(AutoresetMode.SAME_STEP, n))
    raw = atari(AutoresetMode.SAME_STEP, n)
    for env in (next_step, same_step):
        env.seed(1)
    policy = atari_policy(n)
    expected, _ = raw.reset(seed=1)
    for env in (next_step, same_step):
        same(env.reset(), expected, "the first observations")
    same(same_step.reset_infos, next_step.reset_infos, "reset_infos")
    seen: Counter[bool] = Counter()
    ended_together: set[int] = set()
    for step in range(steps):
        actions = policy(expected)
        expected, rewards, terminated, truncated, raw_infos = raw.step(actions)
        ours, other = next_step.step(actions), same_step.step(actions)
        for obs, our_rewards, dones, infos in (ours, other):
            same(obs, expected, f"observations of step {step}")
            same(our_rewards, rewards.astype(np.float32), f"rewards of step {step}")
            same(dones, terminated | truncated, f"dones of step {step}")
            for i, info in enumerate(infos):
                assert info["TimeLimit.truncated"] is bool(truncated[i] and not terminated[i])
                assert ("terminal_observation" in info) == bool(dones[i])
                if dones[i]:
                    last = info["terminal_observation"]
                    same(last, raw_infos["final_obs"][i], f"terminal_observation of row {i}")
                    assert not np.array_equal(last, obs[i])
                    assert not np.shares_memory(last, obs)
                else:
                    same(info, ours[3][i], f"info of row {i}")
        same(same_step.reset_infos, next_step.reset_infos, f"reset_infos of step {step}")
        rows = np.flatnonzero(terminated | truncated).tolist()
        seen.update(bool(ours[3][i]["TimeLimit.truncated"]) for i in rows)
        ended_together.add(len(rows))
    assert seen[True] >= 1
    assert seen[False] >= 2
    assert ended_together >= {0, 1}


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_atari_loses_no_step(mode: AutoresetMode) -> None:
    """Each step increases the frame counter of each row by the frame skip."""
    n = 3
    env = sb3compat.to_sb3(atari(mode, n, limit=30))
    obs = env.reset()
    assert (type(obs), obs.dtype, obs.shape) == (np.ndarray, np.uint8, (n, 4, 20, 20))
    frames = [info["episode_frame_number"] for info in env.reset_infos]
    policy, lengths, endings = atari_policy(n), np.zeros(n, int), 0
    for _ in range(100):
        obs, rewards, dones, infos = env.step(policy(obs))
        lengths += 1
        assert (obs.dtype, rewards.dtype) == (np.uint8, np.float32)
        np.testing.assert_array_equal(dones, lengths == 30)
        for i in range(n):
            # In SAME_STEP mode, the env gives no step info for rows that end.
            if not dones[i] or mode == AutoresetMode.NEXT_STEP:
                assert infos[i]["episode_frame_number"] == frames[i] + FRAMESKIP
            started = env.reset_infos[i] if dones[i] else infos[i]
            frames[i] = started["episode_frame_number"]
            if dones[i]:
                endings += 1
                assert frames[i] <= FRAMESKIP + 30 + 1  # what the no-ops of a reset take at most
        lengths[dones] = 0
    assert endings == 3 * n


def test_atari_environments_of_two_modes_keep_their_modes() -> None:
    """Their metadata are one dict, in which the second one overwrites the mode of the first one."""
    first = atari(AutoresetMode.NEXT_STEP, 1)
    second = atari(AutoresetMode.SAME_STEP, 1)
    assert first.metadata is second.metadata
    for env in (first, second):
        assert sb3compat.VecEnvAdapter(env).autoreset_mode is env.autoreset_mode
    assert first.autoreset_mode is not second.autoreset_mode


def test_atari_stream_follows_from_the_seed() -> None:
    def stream(seed: int) -> Any:
        env = sb3compat.to_sb3(atari(AutoresetMode.NEXT_STEP, 2, limit=10))
        env.seed(seed)
        return run(env, 25)

    first, again, other = stream(5), stream(5), stream(6)
    same(again, first, "the stream of the same seed")
    assert not np.array_equal(first[-1][0][0], other[-1][0][0])


def test_atari_seed_reaches_rows_with_options_by_row() -> None:
    """Each row has a generator of its own, and the seed reaches all of them."""
    env = sb3compat.to_sb3(atari(AutoresetMode.NEXT_STEP, 3))
    env.reset()
    started = []
    for _ in range(4):
        env.seed(5)
        env.set_options([{"a": 1}, {}, {"a": 1}])
        env.reset()
        started.append([info["episode_frame_number"] for info in env.reset_infos])
    assert started == [started[0]] * 4


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_atari_in_smaller_batches_is_refused(mode: AutoresetMode) -> None:
    with pytest.raises(sb3compat.ConversionError, match=r"num_envs|batch_size"):
        sb3compat.to_sb3(atari(mode, 4, batch_size=2)).reset()


# Steps that are really started by step_async

SPLIT: dict[str, Callable[[], Any]] = {
    "AtariVectorEnv": lambda: atari(AutoresetMode.NEXT_STEP, 2),
    "EnvPool": lambda: pool(2),
}


def starts(source: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The actions of every step that was started."""
    log: list[Any] = []

    class Logged(type(source)):  # type: ignore[misc]
        def send(self, actions: Any, *args: Any) -> Any:
            log.append(actions)
            return super().send(actions, *args)

    monkeypatch.setattr(source, "__class__", Logged)
    return log


@pytest.mark.parametrize("name", SPLIT)
def test_step_async_starts_the_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SPLIT[name]()
    log = starts(source, monkeypatch)
    env = sb3compat.to_sb3(source)
    env.reset()
    actions = np.zeros(2, np.int64)
    env.step_async(actions)
    assert len(log) == 1
    env.step_wait()
    assert len(log) == 1
    env.step_async(actions)
    env.reset()  # drops that step
    obs, _, dones, _ = env.step(actions)
    assert len(log) == 3
    assert not dones.any()
    env.step_async(actions)
    np.testing.assert_array_equal(env.step_wait()[0].shape, obs.shape)
    env.step_async(actions)
    env.close()


@pytest.mark.parametrize("name", SPLIT)
def test_step_through_a_wrapper_starts_in_step_wait(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SPLIT[name]()
    log = starts(source, monkeypatch)
    env = sb3compat.to_sb3(Identity(source))
    env.reset()
    env.step_async(np.zeros(2, np.int64))
    assert not log
    env.step_wait()
    assert len(log) == 1


# EnvPool


def pool(num_envs: int, limit: int = 500, seed: int = 1, **kwargs: Any) -> Any:
    envpool = pytest.importorskip("envpool", reason="drives EnvPool")
    return closed_later(
        envpool.make(
            "CartPole-v1",
            env_type="gymnasium",
            num_envs=num_envs,
            max_episode_steps=limit,
            seed=seed,
            **kwargs,
        )
    )


@pytest.mark.parametrize("limit", [15, 500])
def test_envpool_transitions_are_true(limit: int) -> None:
    env = sb3compat.to_sb3(pool(4, limit))
    # At both ends at once, EnvPool itself says that the episode was truncated, and no more.
    endings = check_cartpole(env, at_random(4), 300, limit, limit_wins=True)
    assert {ending.truncated for ending in endings} == ({True, False} if limit == 15 else {False})
    assert {ending.row for ending in endings} == set(range(4))


def test_envpool_loses_no_step() -> None:
    """EnvPool counts the steps of each episode, its own autoreset step included."""
    env = sb3compat.to_sb3(pool(4, 15))
    env.reset()
    policy, lengths, endings = at_random(4), np.zeros(4, int), 0
    for _ in range(200):
        _, _, dones, infos = env.step(policy(np.zeros(4)))
        lengths += 1
        for i in range(4):
            assert infos[i]["elapsed_step"] == lengths[i]
            assert infos[i]["env_id"] == infos[i]["players"]["env_id"] == i
            assert env.reset_infos[i]["elapsed_step"] == 0
            assert env.reset_infos[i]["env_id"] == env.reset_infos[i]["players"]["env_id"] == i
        endings += int(dones.sum())
        lengths[dones] = 0
    assert endings > 40


def test_envpool_equals_the_environment_up_to_the_first_ending() -> None:
    raw, ours = pool(3, seed=8), sb3compat.to_sb3(pool(3, seed=8))
    expected, _ = raw.reset()
    same(ours.reset(), expected.copy(), "the first observations")
    policy = at_random(3)
    for _ in range(500):
        actions = policy(expected)
        expected, rewards, terminated, truncated, _ = raw.step(actions)
        obs, our_rewards, dones, infos = ours.step(actions)
        same(our_rewards, rewards, "rewards")
        same(dones, terminated | truncated, "dones")
        if dones.any():
            break
        same(obs, expected, "observations")
    assert dones.any()
    for i in range(3):
        same(infos[i]["terminal_observation"] if dones[i] else obs[i], expected[i], f"row {i}")


def test_envpool_results_do_not_change_later() -> None:
    expected = run(sb3compat.to_sb3(pool(3, 15)), 60)
    same(run(sb3compat.to_sb3(pool(3, 15)), 60, scribble=True), expected, "the stream")
    other = run(sb3compat.to_sb3(pool(3, 15, seed=2)), 60)
    assert not np.array_equal(other[-1][0][0], expected[-1][0][0])


def test_envpool_works_under_a_wrapper_after_earlier_use() -> None:
    source = pool(3, 10)
    source.reset()
    for _ in range(10):
        source.step(np.zeros(3, int))
    env = sb3compat.to_sb3(RecordEpisodeStatistics(source))
    check_cartpole(env, at_random(3), 45, 10, limit_wins=True)
    env.reset()
    for _ in range(10):
        _, _, dones, infos = env.step(np.arange(3) % 2)
        for done, info in zip(dones, infos, strict=True):
            assert ("episode" in info) == done
            if done:
                assert info["episode"]["l"] == info["elapsed_step"]


def test_envpool_works_under_vec_monitor() -> None:
    """SB3 asks for the id of the environment's spec; EnvPool's own kind of spec has none."""
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    env = sb3compat.to_sb3(pool(3, 10))
    assert env.spec is None
    monitored = vec_env.VecMonitor(env)
    monitored.reset()
    for _ in range(25):
        _, _, dones, infos = monitored.step(np.arange(3) % 2)
        assert [info["episode"]["l"] for info in infos if "episode" in info] == [
            info["elapsed_step"] for done, info in zip(dones, infos, strict=True) if done
        ]
    assert monitored.episode_count >= 6


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


def test_envpool_in_smaller_batches_is_refused() -> None:
    with pytest.raises(sb3compat.ConversionError, match=r"num_envs|batch_size"):
        sb3compat.to_sb3(pool(4, batch_size=2)).reset()


# JAX


def jax_env(name: str, num_envs: int, limit: int) -> Any:
    pytest.importorskip("jax", reason="drives Gymnasium's JAX environments")
    pytest.importorskip("flax", reason="Gymnasium's JAX environments are made with flax")
    return gym.make_vec(
        f"phys2d/{name}",
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        max_episode_steps=limit,
    )


def jax_cartpole(num_envs: int, limit: int = 500, seed: int = 1) -> Any:
    env = sb3compat.to_sb3(jax_env("CartPole-v1", num_envs, limit))
    env.seed(seed)
    return env


# Its authors added the mass and the length of the pole where they meant to multiply.
JAX_POLEMASS_LENGTH = 0.6


@pytest.mark.parametrize(
    ("policy", "limit", "kinds"),
    [(at_random(4), 12, {True, False}), (always(1), 8, {True, False}), (always(0), 500, {False})],
    ids=["random", "both at once", "terminated"],
)
def test_jax_cartpole_transitions_are_true(policy: Policy, limit: int, kinds: set[bool]) -> None:
    env = jax_cartpole(4, limit)
    endings = check_cartpole(env, policy, 60, limit, polemass_length=JAX_POLEMASS_LENGTH)
    assert {ending.truncated for ending in endings} == kinds
    assert {ending.row for ending in endings} == set(range(4))


def test_jax_works_after_earlier_use() -> None:
    """Its own reset leaves the autoreset of ended rows pending for the next step."""
    source = jax_env("CartPole-v1", 3, 4)
    source.reset()
    for _ in range(4):
        source.step(np.zeros(3, int))
    env = sb3compat.to_sb3(source)
    check_cartpole(env, at_random(3), 6, 4, polemass_length=JAX_POLEMASS_LENGTH)


def test_jax_equals_the_environment_up_to_the_first_ending() -> None:
    raw, ours = jax_env("CartPole-v1", 3, 500), jax_cartpole(3, seed=8)
    expected, _ = raw.reset(seed=8)
    same(ours.reset(), np.asarray(expected), "the first observations")
    policy = at_random(3)
    for _ in range(100):
        actions = policy(expected)
        expected, rewards, terminated, truncated, _ = raw.step(actions)
        obs, our_rewards, dones, infos = ours.step(actions)
        same(our_rewards, np.asarray(rewards, np.float32), "rewards")
        same(dones, np.asarray(terminated | truncated), "dones")
        if dones.any():
            break
        same(obs, np.asarray(expected), "observations")
    assert dones.any()
    for i in range(3):
        last = infos[i]["terminal_observation"] if dones[i] else obs[i]
        same(last, np.asarray(expected)[i], f"row {i}")


@pytest.fixture(scope="module")
def jax_stream() -> list[Any]:
    return run(jax_cartpole(2, 6, seed=5), 15)


def test_jax_stream_follows_from_the_seed(jax_stream: list[Any]) -> None:
    again = run(jax_cartpole(2, 6, seed=5), 15, scribble=True)
    same(again, jax_stream, "the stream of the same seed, overwritten")
    other = jax_cartpole(2, 6, seed=6)
    assert not np.array_equal(other.reset(), jax_stream[0][0])


def test_jax_partial_reset_leaves_other_rows_alone() -> None:
    env = jax_env("CartPole-v1", 4, 3)
    env.reset(seed=0)
    for _ in range(3):
        before, _, _, truncated, _ = env.step(np.zeros(4, int))
    assert np.asarray(truncated).all()
    reset = partial_reset_of(env)
    assert reset is not None
    obs = np.asarray(reset(env, np.array([False, True, False, True]))[0])
    same(obs[[0, 2]], np.asarray(before)[[0, 2]], "the rows that were left alone")
    assert within(obs[[1, 3]], -RESET_BOUND, RESET_BOUND)
    assert np.asarray(env.steps).tolist() == [3, 0, 3, 0]
    assert np.asarray(env.prev_done).tolist() == [True, False, True, False]


def after_one_swing(obs: Array, torques: Array) -> Array:
    """The pendulum's equations of motion, one step."""
    angle = np.arctan2(obs[:, 1], obs[:, 0]).astype(np.float64)
    speed = obs[:, 2] + (15 * np.sin(angle) + 3 * np.clip(torques[:, 0], -2, 2)) * 0.05
    speed = np.clip(speed, -8, 8)
    angle = angle + 0.05 * speed
    return np.stack([np.cos(angle), np.sin(angle), speed], axis=1)


@pytest.mark.filterwarnings("ignore:.*missing AutoresetMode metadata")
def test_jax_pendulum_needs_its_mode_as_an_argument() -> None:
    """With the mode as an argument, the truncated episodes of a continuous task are right."""
    n, limit = 3, 5
    source = jax_env("Pendulum-v0", n, limit)
    with pytest.raises(sb3compat.AutoresetModeError, match="autoreset_mode='NextStep'"):
        sb3compat.to_sb3(source)
    env = sb3compat.to_sb3(source, autoreset_mode="NextStep")
    env.seed(2)
    rng = np.random.default_rng(0)
    obs: Any = env.reset()
    for step in range(1, 18):
        previous, torques = obs, rng.uniform(-2, 2, (n, 1)).astype(np.float32)
        obs, rewards, dones, infos = env.step(torques)
        assert (type(obs), obs.dtype, rewards.dtype) == (np.ndarray, np.float32, np.float32)
        assert np.all(rewards < 0)
        assert dones.tolist() == [step % limit == 0] * n
        assert [info["TimeLimit.truncated"] for info in infos] == dones.tolist()
        reached = np.stack(
            [info.get("terminal_observation", obs[i]) for i, info in enumerate(infos)]
        )
        np.testing.assert_allclose(reached, after_one_swing(previous, torques), atol=TOLERANCE)
        assert dones.any() != np.array_equal(reached, obs)
        if dones.any():
            assert np.all(np.abs(obs[:, 2]) <= 1)


# Wrappers that convert to another array library


@pytest.mark.skipif(
    GYMNASIUM < (1, 2), reason="before Gymnasium 1.2, the wrapper does not take NumPy actions"
)
def test_torch_observations_of_a_wrapper_are_converted() -> None:
    pytest.importorskip("torch", reason="converts to torch")
    pytest.importorskip("array_api_compat", reason="Gymnasium converts with array-api-compat")
    from gymnasium.wrappers.vector import NumpyToTorch

    def converted() -> Any:
        env = sb3compat.to_sb3(NumpyToTorch(native(4, 15)))
        env.seed(3)
        return env

    endings = check_cartpole(converted(), at_random(4), 200, 15)
    assert {ending.truncated for ending in endings} == {True, False}
    plain = sb3compat.to_sb3(native(4, 15))
    plain.seed(3)
    expected = run(plain, 60)
    same(run(converted(), 60), expected, "the stream through torch")
    same(run(converted(), 60, scribble=True), expected, "the stream, overwritten")


@pytest.mark.skipif(
    GYMNASIUM < (1, 2), reason="before Gymnasium 1.2, the wrapper does not take NumPy actions"
)
@pytest.mark.parametrize("name", ["JaxToNumpy", "JaxToTorch"])
def test_jax_wrappers_change_nothing_in_the_stream(name: str, jax_stream: list[Any]) -> None:
    pytest.importorskip("torch", reason="converts to torch")
    source = jax_env("CartPole-v1", 2, 6)
    pytest.importorskip("array_api_compat", reason="Gymnasium converts with array-api-compat")
    env = sb3compat.to_sb3(getattr(gym.wrappers.vector, name)(source))
    env.seed(5)
    same(run(env, 15), jax_stream, "the stream")
