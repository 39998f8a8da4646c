"""The examples of SB3's guide, with an adapted environment in the place of SB3's own.

Where the guide's environments need packages of their own, others of the same kind take their place.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import RescaleAction, TransformReward

import sb3compat
from tests.lockstep import same

pytest.importorskip("stable_baselines3", reason="is about the guide of stable-baselines3")

import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv, SimpleMultiObsEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor, load_results
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.results_plotter import ts2xy
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor

# How long an episode lasts at most. Short, so that training sees many endings.
LIMIT = 15
# The helper of SB3 and ours; each takes the arguments of SB3's.
HELPERS: dict[str, Callable[..., VecEnv]] = {
    "reference": make_vec_env,
    "sync": partial(sb3compat.make_vec_env, vectorization_mode="sync"),
    "async": partial(sb3compat.make_vec_env, vectorization_mode="async"),
}
NATIVE: dict[str, Any] = {}
KINDS: dict[str, dict[str, Any]] = {
    f"{name}-{mode.name}": {"vectorization_mode": name, "vector_kwargs": {"autoreset_mode": mode}}
    for name in ("sync", "async")
    for mode in AutoresetMode
} | {"native": NATIVE}


def small() -> dict[str, Any]:
    # A new dict each time: algorithms write into `policy_kwargs`.
    return {"seed": 3, "device": "cpu", "policy_kwargs": {"net_arch": [8]}}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums are taken in one order, so that equal inputs give equal bits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=KINDS)
def cartpoles(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Three CartPoles, as `gym.make_vec` makes them."""
    source = gym.make_vec("CartPole-v1", 3, max_episode_steps=LIMIT, **KINDS[request.param])
    env = sb3compat.to_sb3(source)
    yield env
    env.close()


def weights(model: Any) -> dict[str, Any]:
    return {name: value.numpy().copy() for name, value in model.policy.state_dict().items()}


def changed(model: Any, steps: int, **kwargs: Any) -> dict[str, Any]:
    """The weights after training; the training must have changed them."""
    before = weights(model)
    model.learn(steps, **kwargs)
    after = weights(model)
    assert any((before[name] != after[name]).any() for name in before)
    return after


def check_helpers(run: Callable[[VecEnv], Any], env_id: Any, n_envs: int, **kwargs: Any) -> Any:
    """Run the same on the environment of each helper, compare, and return the result."""
    results: dict[str, Any] = {}
    for name, helper in HELPERS.items():
        env = helper(env_id, n_envs, seed=0, **kwargs)
        try:
            results[name] = run(env)
        finally:
            env.close()
        same(results[name], results["reference"], name)
    return results["reference"]


def play(model: Any, env: Any, steps: int = 40) -> list[Any]:
    """The loop in which a trained agent is watched; seconds are left out."""
    obs = env.reset()
    record = [obs]
    for _ in range(steps):
        actions, _ = model.predict(obs, deterministic=True)
        obs, rewards, dones, infos = env.step(actions)
        infos = [{k: v for k, v in info.items() if k != "episode"} for info in infos]
        record.append((obs, rewards, dones, infos))
    return record


# Vectorized environments


def test_step_returns_what_the_five_values_of_gymnasium_say(cartpoles: Any) -> None:
    """`dones`, the flag and the last observation say what Gymnasium's five values say."""
    cartpoles.seed(3)
    obs = cartpoles.reset()
    cartpoles.action_space.seed(3)
    lengths = np.zeros(3, int)
    kinds = []
    for _ in range(80):
        actions = np.array([cartpoles.action_space.sample() for _ in range(3)])
        obs, rewards, dones, infos = cartpoles.step(actions)
        assert obs.shape == (3, 4)
        assert rewards.shape == dones.shape == (3,)
        assert type(infos) is list
        lengths += 1
        for i in np.flatnonzero(dones):
            position, _, angle, _ = infos[i]["terminal_observation"]
            terminated = bool(dones[i] and not infos[i]["TimeLimit.truncated"])
            assert terminated == (abs(position) > 2.4 or abs(angle) > np.deg2rad(12))
            assert terminated or lengths[i] == LIMIT
            assert np.all(np.abs(obs[i]) <= 0.05), "the first observation of the next episode"
            kinds.append(terminated)
            lengths[i] = 0
    assert set(kinds) == {True, False}


def test_seeds_and_options_count_for_one_reset(cartpoles: Any) -> None:
    narrow = {"low": -0.001, "high": 0.001}
    assert list(cartpoles.seed(seed=5)) == [5, 6, 7]
    cartpoles.set_options(narrow)
    first = cartpoles.reset()
    second = cartpoles.reset()
    assert np.abs(first).max() <= 0.001 < np.abs(second).max()
    cartpoles.seed(seed=5)
    cartpoles.set_options(narrow)
    same(cartpoles.reset(), first)
    assert (cartpoles.reset() == second).all(), "its random numbers go on where they were"


class MultiTask(gym.Env[Any, Any]):
    """Its friction can be changed at any time, with effect from the next episode on."""

    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.mu = 0.5
        self.steps = 0
        self.used = 0.0

    def set_mu(self, mu: float) -> None:
        self.mu = mu

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps, self.used = 0, self.mu
        return self.np_random.random(2, np.float32), {"used": self.used}

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs = self.np_random.random(2, np.float32)
        return obs, self.used, False, self.steps == 4, {"used": self.used}


def test_attributes_are_set_by_a_setter_or_by_set_wrapper_attr() -> None:
    def run(env: VecEnv) -> list[Any]:
        seen = [env.env_method("get_wrapper_attr", "mu")]
        assert env.has_attr("mu")
        assert not env.has_attr("nu")
        env.env_method("set_mu", 0.1)
        env.env_method("set_wrapper_attr", "mu", 0.3, indices=[1])
        seen.append(env.env_method("get_wrapper_attr", "mu"))
        env.reset()
        seen.append(list(env.step(np.zeros(2, int))[1]))
        # This goes to the monitor around it, and hides what the environment itself uses.
        env.set_attr("mu", 9.0)
        seen.append(env.get_attr("mu"))
        env.reset()
        seen.append(list(env.step(np.zeros(2, int))[1]))
        return seen

    f = np.float32
    expected = [[0.5, 0.5], [0.1, 0.3], [f(0.1), f(0.3)], [9.0, 9.0], [f(0.1), f(0.3)]]
    same(check_helpers(run, MultiTask, 2), expected)


class Cycle(BaseCallback):
    """Change the friction at each step; remember the one in effect."""

    def __init__(self) -> None:
        super().__init__()
        self.used: list[list[float]] = []

    def _on_step(self) -> bool:
        mus = (0.1, 0.2, 0.5, 0.13, 0.9)
        self.training_env.env_method("set_mu", mus[self.n_calls % 5])
        self.used.append([info["used"] for info in self.locals["infos"]])
        return True


def test_changed_attributes_apply_from_the_next_episode() -> None:
    def run(env: VecEnv) -> Any:
        cycle = Cycle()
        return changed(A2C("MlpPolicy", env, **small()), 60, callback=cycle), cycle.used

    _, used = check_helpers(run, MultiTask, 2)
    by_episode = [{row[0] for row in used[i : i + 4]} for i in range(0, 28, 4)]
    assert all(len(values) == 1 for values in by_episode)
    assert len(set().union(*by_episode)) == 5


def test_gymnasium_wrappers_around_each_sub_environment_work() -> None:
    def run(env: VecEnv) -> Any:
        assert env.env_is_wrapped(RescaleAction) == [True, True]
        assert env.action_space == spaces.Box(-1, 1, (1,), np.float32)
        env.reset()
        halves = np.full((2, 1), 0.5, np.float32)
        return [env.step(halves)[:3] for _ in range(LIMIT + 3)]

    check_helpers(
        run,
        "Pendulum-v1",
        2,
        env_kwargs={"max_episode_steps": LIMIT},
        wrapper_class=RescaleAction,
        wrapper_kwargs={"min_action": -1.0, "max_action": 1.0},
    )


# Training, saving, loading


def test_trained_model_can_be_saved_loaded_and_watched(tmp_path: Path) -> None:
    def run(env: VecEnv) -> Any:
        trained = changed(DQN("MlpPolicy", env, learning_starts=20, **small()), 120)
        DQN("MlpPolicy", env, **small()).save(tmp_path / "untrained")
        model = DQN.load(tmp_path / "untrained", env=env, device="cpu")
        assert model.get_env() is env
        model.policy.load_state_dict({k: torch.as_tensor(v) for k, v in trained.items()})
        model.save(tmp_path / "trained")
        model.set_parameters(tmp_path / "untrained", device="cpu")
        assert any((weights(model)[name] != trained[name]).any() for name in trained)
        model.set_parameters(tmp_path / "trained", device="cpu")
        same(weights(model), trained)
        env.seed(4)
        score = evaluate_policy(model, model.get_env(), n_eval_episodes=5)
        return trained, score, play(model, model.get_env()), env.render()

    pytest.importorskip("pygame", reason="draws CartPole")
    check_helpers(run, "CartPole-v1", 2, env_kwargs={"max_episode_steps": LIMIT})


def test_buffers_and_policies_can_be_saved_and_loaded_alone(tmp_path: Path) -> None:
    def run(env: VecEnv) -> Any:
        model = SAC("MlpPolicy", env, learning_starts=30, batch_size=16, **small())
        trained = changed(model, 80)
        model.save(tmp_path / "model")
        model.save_replay_buffer(tmp_path / "buffer")
        model.policy.save(tmp_path / "policy")
        loaded = SAC.load(tmp_path / "model", device="cpu")
        assert loaded.replay_buffer.size() == 0
        loaded.load_replay_buffer(tmp_path / "buffer")
        assert loaded.replay_buffer.size() == 40
        policy = type(model.policy).load(tmp_path / "policy")
        scores = []
        for which in (model.policy, policy):
            env.seed(1)
            scores.append(evaluate_policy(which, model.get_env(), n_eval_episodes=4))
        assert scores[0] == scores[1]
        loaded.set_env(env)
        loaded.set_random_seed(2)
        return trained, scores, changed(loaded, 40, reset_num_timesteps=True)

    check_helpers(run, "Pendulum-v1", 2, env_kwargs={"max_episode_steps": LIMIT})


def test_parameters_of_a_population_can_be_evolved() -> None:
    def run(env: VecEnv) -> Any:
        model = A2C("MlpPolicy", env, **small())
        changed(model, 60)
        mean = {k: v for k, v in model.policy.state_dict().items() if "value" not in k}
        torch.manual_seed(1)
        scores = []
        for _ in range(4):
            mutant = {name: value + torch.randn_like(value) for name, value in mean.items()}
            model.policy.load_state_dict(mutant, strict=False)
            scores.append(evaluate_policy(model, model.get_env(), n_eval_episodes=4)[0])
        return scores

    scores = check_helpers(run, "CartPole-v1", 2, env_kwargs={"max_episode_steps": 60})
    assert len(set(scores)) > 1


def test_her_relabels_goals_after_loading(tmp_path: Path) -> None:
    def run(env: VecEnv) -> Any:
        buffer: dict[str, Any] = {"n_sampled_goal": 4, "goal_selection_strategy": "future"}
        model = SAC(
            "MultiInputPolicy",
            env,
            replay_buffer_class=HerReplayBuffer,
            replay_buffer_kwargs=buffer,
            learning_starts=30,
            buffer_size=400,
            batch_size=16,
            **small(),
        )
        trained = changed(model, 60)
        model.save(tmp_path / "her")
        model.save_replay_buffer(tmp_path / "buffer")
        loaded = SAC.load(tmp_path / "her", env=env, device="cpu")
        same(weights(loaded), trained)
        # The buffer asks the environment it is given for the rewards of other goals.
        loaded.load_replay_buffer(tmp_path / "buffer")
        loaded.set_random_seed(2)
        return play(loaded, env), changed(loaded, 20, reset_num_timesteps=False)

    flipping = partial(BitFlippingEnv, n_bits=5, continuous=True)
    check_helpers(run, flipping, 2)


# Several environments


def test_evaluate_policy_uses_the_rewards_inside_the_monitor() -> None:
    """A monitor within other wrappers counts the rewards of the environment itself."""

    def run(env: VecEnv) -> Any:
        assert env.env_is_wrapped(Monitor) == [True, True]
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # SB3 warns where there is no monitor
            returns, lengths = evaluate_policy(policy, env, 6, return_episode_rewards=True)
        assert returns == lengths
        return returns

    policy = A2C("MlpPolicy", DummyVecEnv([lambda: gym.make("CartPole-v1")]), **small())
    tenfold = {"func": lambda reward: 10 * reward}
    check_helpers(run, "CartPole-v1", 2, wrapper_class=TransformReward, wrapper_kwargs=tenfold)


def test_monitors_remember_the_same() -> None:
    def run(env: VecEnv) -> Any:
        env.reset()
        for _ in range(40):
            env.step(np.array([0, 1]))
        times = env.env_method("get_episode_times")
        assert all(row == sorted(row) and len(row) >= 3 for row in times)
        with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
            VecMonitor(env)
        names = ("get_total_steps", "get_episode_rewards", "get_episode_lengths")
        return [env.env_method(name) for name in names]

    check_helpers(run, "CartPole-v1", 2)


def seeded(rank: int) -> gym.Env[Any, Any]:
    env = gym.make("CartPole-v1", max_episode_steps=LIMIT)
    env.reset(seed=10 + rank)
    return env


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "native"])
def test_seeds_set_by_the_functions_are_kept(kind: str) -> None:
    """A first reset without a seed goes on with the random numbers of the function's own reset."""
    cls = gym.vector.SyncVectorEnv if kind.startswith("sync") else gym.vector.AsyncVectorEnv
    fns: Any = [partial(seeded, rank) for rank in range(3)]
    env = sb3compat.to_sb3(cls(fns, **KINDS[kind]["vector_kwargs"]))
    reference = DummyVecEnv(fns)
    same(env.reset(), reference.reset())
    for _ in range(2 * LIMIT):
        same(env.step(np.array([0, 1, 1])), reference.step(np.array([0, 1, 1])))
    env.close()


SCRIPT = """
import gymnasium as gym
import numpy as np

class Ten(gym.Env):
    observation_space = gym.spaces.Box(0, 10, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.full(1, self.steps, np.float32), 1.0, self.steps == 10, False, {}

if __name__ == "__main__":
    import sb3compat
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import SubprocVecEnv

    env = sb3compat.make_vec_env(
        Ten, 2, vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "spawn"}
    )
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, device="cpu").learn(64)
    print([episode["l"] for episode in model.ep_info_buffer])
    print({type(process).__name__ for process in env.env.processes})
    env.close()
"""


def test_training_works_in_spawned_processes(tmp_path: Path) -> None:
    """The environment's class is in the main script, which guards its own part by `__main__`."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str([10] * 6), "{'SpawnProcess'}"]


@pytest.mark.parametrize(("gradient_steps", "updates"), [(2, 40), (-1, 80)])
def test_off_policy_training_with_several_rows_gives_the_same_weights(
    gradient_steps: int, updates: int
) -> None:
    def run(env: VecEnv) -> Any:
        kwargs = {"learning_starts": 20, "batch_size": 16, **small()}
        model = SAC("MlpPolicy", env, train_freq=1, gradient_steps=gradient_steps, **kwargs)
        result = changed(model, 100)
        # Four transitions for each call of `step`, and 80 of them after the start.
        assert model._n_updates == updates
        return result

    check_helpers(run, "Pendulum-v1", 4, env_kwargs={"max_episode_steps": LIMIT})


def multi_obs() -> gym.Env[Any, Any]:
    # Its pictures are drawn at random when it is made.
    np.random.seed(0)
    env = SimpleMultiObsEnv(random_start=False)
    env.max_count = LIMIT
    return env


def test_training_on_dict_observations_gives_the_same_weights() -> None:
    def run(env: VecEnv) -> Any:
        kwargs = {**small(), "n_steps": 20, "batch_size": 20, "n_epochs": 1}
        kwargs["policy_kwargs"]["features_extractor_kwargs"] = {"cnn_output_dim": 4}
        model = PPO("MultiInputPolicy", env, **kwargs)
        trained = changed(model, 40)
        return trained, play(model, model.get_env(), 20)

    # Between two episodes the agent may well stand where it started.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The last observation of row")
        check_helpers(run, multi_obs, 2)


# Callbacks


class SaveBest(BaseCallback):
    """Save the model when the returns in the monitor's files have increased."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.best = -np.inf
        self.history: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        if self.n_calls % 20 == 0:
            steps, returns = ts2xy(load_results(str(self.folder)), "timesteps")
            self.history.append((int(steps[-1]), float(np.mean(returns[-100:]))))
            if self.history[-1][1] > self.best:
                self.best = self.history[-1][1]
                self.model.save(self.folder / "best")
        return True


def test_monitor_files_can_be_read_during_training(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="SB3 reads its csv files with it")
    results = []
    for name, helper in HELPERS.items():
        folder = tmp_path / name
        kwargs: dict[str, Any] = {"env_kwargs": {"max_episode_steps": LIMIT}, "seed": 0}
        env = helper("Pendulum-v1", 1, monitor_dir=str(folder), **kwargs)
        noise = NormalActionNoise(np.zeros(1), 0.1 * np.ones(1))
        model = TD3("MlpPolicy", env, action_noise=noise, learning_starts=30, **small())
        callback = SaveBest(folder)
        trained = changed(model, 100, callback=callback)
        env.close()
        best = weights(TD3.load(folder / "best", device="cpu"))
        results.append((trained, callback.history, best))
        assert [steps for steps, _ in callback.history] == [15, 30, 60, 75, 90]
    same(results[1], results[0])
    same(results[2], results[0])
