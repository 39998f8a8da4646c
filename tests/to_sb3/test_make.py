from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import sb3compat
from sb3compat._to_sb3.monitor import EpisodeMonitor
from tests.envs import BOX, DISCRETE, Script, ScriptedEnv, WorkerReport
from tests.lockstep import same

env_util: Any = pytest.importorskip("stable_baselines3.common.env_util")
vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")
monitor: Any = pytest.importorskip("stable_baselines3.common.monitor")


def scripted(row: int = 0) -> ScriptedEnv:
    return ScriptedEnv(Script(BOX, DISCRETE, lengths=(2, 3), endings=("truncated", "both")), row)


def without_times(infos: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: {**v, "t": 0} if k == "episode" else v for k, v in info.items()} for info in infos]


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize(
    "call",
    [
        {"env_id": "CartPole-v1", "env_kwargs": {"max_episode_steps": 12}},
        {"env_id": scripted, "env_kwargs": {"row": 2}},
        {"env_id": "CartPole-v1", "wrapper_class": gym.wrappers.TimeLimit,
         "wrapper_kwargs": {"max_episode_steps": 9}, "start_index": 5},
    ],
)  # fmt: skip
def test_the_same_call_gives_the_same_stream(call: dict[str, Any], mode: str) -> None:
    cls = vec_env.DummyVecEnv
    reference = env_util.make_vec_env(**call, n_envs=3, seed=7, vec_env_cls=cls)
    ours = sb3compat.make_vec_env(**call, n_envs=3, seed=7, vectorization_mode=mode)
    if mode == "sync":
        for env, other in zip(ours.envs, reference.envs, strict=True):
            same(env.action_space.sample(), other.action_space.sample())
    same(ours.reset(), reference.reset())
    rng = np.random.default_rng(0)
    endings = 0
    for _ in range(60):
        actions = rng.integers(2, size=3)
        obs, rewards, dones, infos = ours.step(actions)
        expected = reference.step(actions)
        same((obs, rewards, dones), expected[:3])
        same(without_times(infos), without_times(expected[3]))
        endings += dones.sum()
    assert endings > 5
    assert ours.render_mode == reference.render_mode == "rgb_array"
    ours.close()
    reference.close()


def test_reset_without_a_seed_draws_as_in_sb3() -> None:
    np.random.seed(3)
    reference = env_util.make_vec_env("CartPole-v1", 2)
    np.random.seed(3)
    ours = sb3compat.make_vec_env("CartPole-v1", 2, vectorization_mode="sync")
    same(ours.reset(), reference.reset())


@pytest.mark.parametrize("mode", ["sync", "async", "vector_entry_point"])
def test_monitor_files_hold_every_episode(mode: str, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="SB3's load_results needs pandas")
    folder = tmp_path / "new" / "folder"
    env = sb3compat.make_vec_env(
        "CartPole-v1", 2, seed=1, monitor_dir=str(folder), vectorization_mode=mode
    )
    env.reset()
    returns: list[float] = []
    for _ in range(100):
        returns += [i["episode"]["r"] for i in env.step(np.zeros(2, int))[3] if "episode" in i]
    env.close()
    results = monitor.load_results(str(folder))
    assert sorted(results["r"]) == sorted(returns)
    assert len(returns) > 10


def test_default_is_native_where_it_can_be() -> None:
    native = sb3compat.make_vec_env("CartPole-v1", 4)
    assert isinstance(native, vec_env.VecMonitor)
    assert type(native.unwrapped.env).__name__ == "CartPoleVectorEnv"
    for other in (
        sb3compat.make_vec_env("Acrobot-v1", 2),
        sb3compat.make_vec_env(scripted, 2),
        sb3compat.make_vec_env("CartPole-v1", 2, wrapper_class=gym.wrappers.OrderEnforcing),
        sb3compat.make_vec_env("CartPole-v1", 2, vec_env_cls=vec_env.DummyVecEnv),
    ):
        assert other.autoreset_mode == AutoresetMode.SAME_STEP
        assert type(other.env).__name__ == "SyncVectorEnv"  # type: ignore[attr-defined]
        assert other.env_is_wrapped(monitor.Monitor) == [True, True]


@pytest.mark.parametrize("mode", [None, "sync", "async"])
@pytest.mark.parametrize(
    "monitor_kwargs",
    [
        {"override_existing": False},
        {"info_keywords": ()},
        {"reset_keywords": ()},
        {"allow_early_resets": True},
    ],
)
def test_monitor_arguments_work_as_in_sb3(
    mode: Any, monitor_kwargs: dict[str, Any], tmp_path: Path
) -> None:
    """Two runs into one folder leave the same files as SB3's function, in the default mode too."""
    makers = {
        "theirs": env_util.make_vec_env,
        "ours": partial(sb3compat.make_vec_env, vectorization_mode=mode),
    }
    written = {}
    for name, make in makers.items():
        folder = tmp_path / name
        for run in range(2):
            env = make(
                "CartPole-v1",
                2,
                seed=run,
                monitor_dir=str(folder),
                monitor_kwargs=monitor_kwargs,
            )
            env.reset()
            for _ in range(30):
                env.step(np.zeros(2, int))
            env.close()
        written[name] = {
            # Returns and lengths, without times.
            file.name: [line.split(",")[:2] for line in file.read_text().splitlines()[2:]]
            for file in folder.iterdir()
        }
    if mode is None and set(monitor_kwargs) == {"info_keywords"}:
        assert set(written["ours"]) == {"0.monitor.csv"}  # natively, in one file
    else:
        assert written["ours"] == written["theirs"]


@pytest.mark.parametrize("mode", [None, "sync", "async"])
def test_unknown_monitor_arguments_are_refused(mode: Any) -> None:
    def use() -> None:
        env = sb3compat.make_vec_env(
            "CartPole-v1", 1, monitor_kwargs={"nonsense": 1}, vectorization_mode=mode
        )
        env.reset()
        env.close()

    with pytest.raises(TypeError, match="nonsense"):
        use()


def test_reset_keywords_are_written_and_required(tmp_path: Path) -> None:
    env = EpisodeMonitor(gym.make("CartPole-v1"), str(tmp_path / "x"), reset_keywords=("options",))
    with pytest.raises(ValueError, match=r"missing: \['options'\]"):
        env.reset()
    env.reset(options={"low": -0.01, "high": 0.01})
    done = False
    while not done:
        *_, done, _, info = env.step(0)
    assert info["episode"]["options"] == {"low": -0.01, "high": 0.01}
    env.close()


def test_default_has_the_spaces_of_the_single_environment() -> None:
    """Ale-py's own vector environment scales and stacks its images, so it is not the default."""
    gym.register_envs(pytest.importorskip("ale_py", reason="has such an environment"))
    env = sb3compat.make_vec_env("ALE/Pong-v5", 1)
    assert env.observation_space == gym.make("ALE/Pong-v5").observation_space
    env.close()
    env = sb3compat.make_vec_env("ALE/Pong-v5", 1, vectorization_mode="vector_entry_point")
    assert env.observation_space.shape == (4, 84, 84)
    env.close()


def test_arguments_for_gym_make_are_accepted_natively() -> None:
    env = sb3compat.make_vec_env("CartPole-v1", 2, env_kwargs={"disable_env_checker": True})
    assert type(env.unwrapped.env).__name__ == "CartPoleVectorEnv"  # type: ignore[attr-defined]


def test_sb3_logs_the_episode_statistics() -> None:
    from stable_baselines3 import PPO

    for mode in ("sync", "async", "vector_entry_point"):
        env = sb3compat.make_vec_env("CartPole-v1", 2, seed=0, vectorization_mode=mode)
        model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, device="cpu").learn(128)
        assert model.ep_info_buffer, mode
        env.close()


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_workers_do_not_import_torch(start_method: str) -> None:
    env = sb3compat.make_vec_env(
        "CartPole-v1",
        2,
        wrapper_class=WorkerReport,
        vec_env_cls=vec_env.SubprocVecEnv,
        vec_env_kwargs={"start_method": start_method},
    )
    env.reset()
    if start_method == "spawn":
        assert env.env_method("loaded", "torch") == [False, False]
        assert env.env_method("loaded", "stable_baselines3") == [False, False]
    assert env.env_is_wrapped(WorkerReport) == [True, True]
    env.close()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"vectorization_mode": "native"}, "one of .*'vector_entry_point'.*got 'native'"),
        ({"vec_env_cls": dict}, "DummyVecEnv"),
        (
            {"vectorization_mode": "vector_entry_point", "wrapper_class": WorkerReport},
            "no wrapper_class with .*no single environments",
        ),
        (
            {
                "vectorization_mode": "vector_entry_point",
                "monitor_kwargs": {"override_existing": False},
            },
            "no monitor_kwargs with .*info_keywords only",
        ),
        ({"env_id": scripted, "vectorization_mode": "vector_entry_point"}, "with to_sb3"),
    ],
)
def test_wrong_arguments_are_refused(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sb3compat.make_vec_env(**{"env_id": "CartPole-v1", **kwargs})


def test_early_resets_can_be_forbidden() -> None:
    env = sb3compat.make_vec_env(
        scripted, monitor_kwargs={"allow_early_resets": False}, vectorization_mode="async"
    )
    env.reset()
    with pytest.raises(RuntimeError, match="allow_early_resets"):
        env.reset()
    env.close()
