"""What SB3 builds around a `VecEnv` does the same around an adapted one as around `DummyVecEnv`."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics
from gymnasium.wrappers import vector as vector_wrappers

import sb3compat
from tests.envs import BOX, GYMNASIUM, MakeEnv, ScriptedEnv, script
from tests.lockstep import same
from tests.native import NativeEnv

pytest.importorskip("stable_baselines3", reason="is about the features of stable-baselines3")

import torch
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor, load_results
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecCheckNan,
    VecEnv,
    VecExtractDictObs,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
    VecVideoRecorder,
    is_vecenv_wrapped,
    sync_envs_normalization,
    unwrap_vec_normalize,
    unwrap_vec_wrapper,
)

EnvFns = list[Callable[[], gym.Env[Any, Any]]]
Source = Callable[[EnvFns], VectorEnv[Any, Any, Any]]
Make = Callable[[EnvFns], VecEnv]

SOURCES: dict[str, Source] = {
    "sync-next": partial(SyncVectorEnv, autoreset_mode=AutoresetMode.NEXT_STEP),
    "sync-same": partial(SyncVectorEnv, autoreset_mode=AutoresetMode.SAME_STEP),
    "async-next": partial(AsyncVectorEnv, autoreset_mode=AutoresetMode.NEXT_STEP),
}
IMAGE = spaces.Box(0, 255, (8, 10, 3), np.uint8)


def small() -> dict[str, Any]:
    # A new dict each time: algorithms write into `policy_kwargs`.
    return {"seed": 3, "device": "cpu", "policy_kwargs": {"net_arch": [8]}}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> Source:
    return SOURCES[request.param]


@pytest.fixture(params=[*SOURCES, "native"])
def any_source(request: pytest.FixtureRequest) -> Source:
    """All sources, and one without sub-environments."""
    native: Source = partial(NativeEnv, mode=AutoresetMode.NEXT_STEP)  # type: ignore[arg-type]
    return SOURCES.get(str(request.param), native)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums are taken in one order, so that equal inputs give equal bits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@contextmanager
def both(source: Source, fns: EnvFns, wrap: Any = lambda env: env) -> Iterator[tuple[Any, Any]]:
    """The adapted environment and the reference, in the same wrappers."""
    ours = wrap(sb3compat.to_sb3(source(fns)))
    reference = wrap(DummyVecEnv(fns))
    try:
        yield ours, reference
    finally:
        ours.close()
        reference.close()


def scripted(num_envs: int = 3, **kwargs: Any) -> EnvFns:
    kwargs = {"lengths": (4, 3, 6), "endings": ("terminated", "truncated", "both"), **kwargs}
    return [MakeEnv(script(**kwargs), row) for row in range(num_envs)]


def cartpoles(num_envs: int = 3, limit: int = 20) -> EnvFns:
    return [partial(gym.make, "CartPole-v1", max_episode_steps=limit)] * num_envs


def stream(env: Any, steps: int = 25) -> list[Any]:
    """The results of the environment, without the seconds that an episode took."""
    env.seed(5)
    env.action_space.seed(5)
    record = [env.reset(), [dict(info) for info in env.reset_infos]]
    for _ in range(steps):
        actions = np.stack([env.action_space.sample() for _ in range(env.num_envs)])
        obs, rewards, dones, infos = env.step(actions)
        for info in infos:
            if "episode" in info:
                info["episode"] = {k: v for k, v in info["episode"].items() if k != "t"}
        record.append((obs, rewards, dones, infos))
    return record


def weights(model: Any) -> dict[str, Any]:
    return {name: value.numpy().copy() for name, value in model.policy.state_dict().items()}


def check_same_training(source: Source, fns: EnvFns, train: Callable[[Any], Any]) -> None:
    """`train` returns a model (or several things to compare); it learns, and learns the same."""
    with both(source, fns) as (ours, reference):
        expected = train(reference)
        got = train(ours)
    if hasattr(got, "policy"):
        got, expected = weights(got), weights(expected)
    same(got, expected)


def learn(algorithm: Any, steps: int, policy: str = "MlpPolicy", **kwargs: Any) -> Any:
    """A function that trains on an environment, and checks that the weights have changed."""

    def train(env: Any) -> Any:
        model = algorithm(policy, env, **small(), **kwargs)
        before = weights(model)
        model.learn(steps)
        after = weights(model)
        assert any((before[name] != after[name]).any() for name in before)
        return model

    return train


class EndingsByLimit(BaseCallback):
    """Count truncated episodes."""

    count = 0

    def _on_step(self) -> bool:
        self.count += sum(info["TimeLimit.truncated"] for info in self.locals["infos"])
        return True


# Wrappers


def test_vec_monitor_records_the_same(any_source: Source, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="SB3 reads its csv files with it")
    names = iter(("ours", "reference"))

    def wrap(env: Any) -> Any:
        return VecMonitor(env, str(tmp_path / next(names) / "log"), info_keywords=("shared",))

    with both(any_source, scripted(), wrap) as (ours, reference):
        same(stream(ours), stream(reference))
        assert ours.episode_count == reference.episode_count >= 15
    got, expected = (load_results(str(tmp_path / name)) for name in ("ours", "reference"))
    assert list(got.columns) == list(expected.columns) == ["index", "r", "l", "t", "shared"]
    assert len(set(got["r"])) > 3
    for column in ("r", "l", "shared"):
        assert list(got[column]) == list(expected[column])


def test_vec_monitor_records_native_cartpole(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="SB3 reads its csv files with it")
    native = gym.make_vec("CartPole-v1", num_envs=3, max_episode_steps=12)
    env = VecMonitor(sb3compat.to_sb3(native), str(tmp_path / "log"))
    steps = stream(env, 60)[2:]
    env.close()
    # An episode's length is the distance between endings, and each of its steps is worth 1.
    dones = np.array([step[2] for step in steps])
    expected = sorted(
        length
        for row in dones.T
        for length in np.diff([-1, *np.flatnonzero(row).tolist()]).tolist()
    )
    results = load_results(str(tmp_path))
    assert len(expected) > 9
    assert sorted(results["l"]) == expected
    assert list(results["r"]) == list(results["l"])


def test_vec_monitor_warns_of_a_monitor_inside(source: Source) -> None:
    fns: EnvFns = [lambda: Monitor(ScriptedEnv(script()))] * 2
    told = pytest.warns(UserWarning, match="already wrapped with a `Monitor`")
    with told as caught, both(source, fns, VecMonitor):
        pass
    assert len([w for w in caught if "already wrapped" in str(w.message)]) == 2


def test_vec_normalize_gives_the_same_stream(any_source: Source, tmp_path: Path) -> None:
    with both(any_source, scripted(), VecNormalize) as (ours, reference):
        same(stream(ours), stream(reference))
        for name in ("obs_rms", "ret_rms"):
            statistics = vars(getattr(ours, name))
            same(statistics, vars(getattr(reference, name)))
            assert np.all(statistics["var"] != 1)
        same(ours.get_original_obs(), reference.get_original_obs())
        same(ours.get_original_reward(), reference.get_original_reward())
        for env, name in ((ours, "ours"), (reference, "reference")):
            env.save(str(tmp_path / name))

    def load(env: Any) -> Any:
        name = "reference" if isinstance(env, DummyVecEnv) else "ours"
        loaded = VecNormalize.load(str(tmp_path / name), env)
        assert loaded.obs_rms.count > 75
        return loaded

    with both(any_source, scripted(), load) as (ours, reference):
        same(stream(ours), stream(reference))
        same(vars(ours.obs_rms), vars(reference.obs_rms))


def test_vec_normalize_saved_here_loads_over_dummy_vec_env(tmp_path: Path) -> None:
    env = VecNormalize(sb3compat.to_sb3(SyncVectorEnv(scripted())))
    stream(env)
    env.save(str(tmp_path / "statistics"))
    loaded = VecNormalize.load(str(tmp_path / "statistics"), DummyVecEnv(scripted()))
    same(vars(loaded.obs_rms), vars(env.obs_rms))
    assert isinstance(loaded.unwrapped, DummyVecEnv)


@pytest.mark.parametrize("space", [BOX, IMAGE], ids=["vectors", "images"])
def test_vec_frame_stack_gives_the_same_stream(any_source: Source, space: Any) -> None:
    wrap = partial(VecFrameStack, n_stack=4)
    with both(any_source, scripted(observation_space=space), wrap) as (ours, reference):
        got = stream(ours)
        same(got, stream(reference))
    terminal = [
        info["terminal_observation"]
        for *_, infos in got[2:]
        for info in infos
        if "terminal_observation" in info
    ]
    assert len(terminal) >= 15
    assert all(obs.shape == (*space.shape[:-1], 4 * space.shape[-1]) for obs in terminal)


def test_vec_transpose_image_gives_the_same_stream(any_source: Source) -> None:
    fns = scripted(observation_space=IMAGE)
    with both(any_source, fns, VecTransposeImage) as (ours, reference):
        assert ours.observation_space == reference.observation_space
        got = stream(ours)
        same(got, stream(reference))
        assert got[0].shape == (3, 3, 8, 10)


def test_images_are_transposed_for_a_cnn(any_source: Source) -> None:
    def train(env: Any) -> Any:
        model = PPO(
            "CnnPolicy",
            env,
            n_steps=6,
            batch_size=6,
            n_epochs=1,
            seed=1,
            device="cpu",
            policy_kwargs={"features_extractor_kwargs": {"features_dim": 8}},
        )
        assert is_vecenv_wrapped(model.get_env(), VecTransposeImage)
        return model.learn(12)

    space = spaces.Box(0, 255, (36, 36, 3), np.uint8)
    check_same_training(any_source, scripted(num_envs=2, observation_space=space), train)


def test_vec_check_nan_lets_numbers_through(any_source: Source) -> None:
    wrap = partial(VecCheckNan, raise_exception=True)
    with both(any_source, scripted(), wrap) as (ours, reference):
        same(stream(ours), stream(reference))


class Overflowing(gym.Env[Any, Any]):
    """Observations and rewards are NaN or infinite after three steps."""

    observation_space = BOX
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        value = np.nan if self.steps > 3 else 1.0
        return np.full(3, value, np.float32), np.inf * value, False, False, {}


def test_vec_check_nan_finds_nan(any_source: Source) -> None:
    messages = []
    wrap = partial(VecCheckNan, raise_exception=True)
    with both(any_source, [Overflowing] * 2, wrap) as envs:
        for env in envs:
            env.reset()
            with pytest.raises(ValueError, match="inf in rewards") as caught:
                env.step(np.array([0, 1]))
            messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_vec_extract_dict_obs_gives_the_same_stream(any_source: Source) -> None:
    space = spaces.Dict({"image": IMAGE, "position": BOX})
    wrap = partial(VecExtractDictObs, key="position")
    with both(any_source, scripted(observation_space=space), wrap) as (ours, reference):
        assert ours.observation_space == reference.observation_space == BOX
        got = stream(ours)
        same(got, stream(reference))
    ended = [info for *_, infos in got[2:] for info in infos if "terminal_observation" in info]
    assert ended
    assert all(info["terminal_observation"].shape == (3,) for info in ended)


class Brightening(ScriptedEnv):
    """Its picture shows the row, the episode and the step."""

    def __init__(self, row: int) -> None:
        super().__init__(script(lengths=(3, 5)), row)

    def render(self) -> Any:
        frame = np.zeros((16, 32, 3), np.uint8)
        frame[:, :16] = 60 * self.row
        frame[:, 16:24] = 40 * self._resets
        frame[:, 24:] = 40 * self._time
        return frame


def decoded(path: Path) -> tuple[float, Any]:
    frames = pytest.importorskip("imageio_ffmpeg").read_frames(str(path))
    meta = next(frames)
    width, height = meta["size"]
    return meta["fps"], np.array(
        [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in frames]
    )


def test_vec_video_recorder_records_the_same(source: Source, tmp_path: Path) -> None:
    pytest.importorskip("moviepy", reason="VecVideoRecorder writes its files with it")
    names = iter(("ours", "reference"))

    def wrap(env: Any) -> Any:
        folder = str(tmp_path / next(names))
        return VecVideoRecorder(env, folder, lambda step: step == 2, video_length=8)

    fns: EnvFns = [partial(Brightening, row) for row in range(4)]
    with both(source, fns, wrap) as (ours, reference):
        same(stream(ours, 12), stream(reference, 12))
    [path] = (tmp_path / "ours").iterdir()
    assert path.name == "rl-video-step-2-to-step-10.mp4"
    fps, frames = decoded(path)
    expected_fps, expected = decoded(tmp_path / "reference" / path.name)
    assert fps == expected_fps == 7
    assert frames.shape == (9, 32, 64, 3)
    assert len(np.unique(frames[:, 8, 28, 0])) > 2  # the first row's steps
    np.testing.assert_array_equal(frames, expected)


def test_vec_video_recorder_records_native_cartpole(tmp_path: Path) -> None:
    pytest.importorskip("moviepy", reason="VecVideoRecorder writes its files with it")
    pytest.importorskip("pygame", reason="draws CartPole")
    native = gym.make_vec("CartPole-v1", num_envs=2, render_mode="rgb_array")
    env = VecVideoRecorder(
        sb3compat.to_sb3(native), str(tmp_path), lambda step: step == 0, video_length=3
    )
    env.seed(0)
    env.reset()
    for _ in range(3):
        env.step(np.array([0, 1]))
    env.close()
    [path] = tmp_path.iterdir()
    fps, frames = decoded(path)
    assert fps == 50
    assert frames.shape == (4, 800, 600, 3)
    assert (frames[0] != frames[3]).any()
    assert (frames[3, :400] != frames[3, 400:]).any()


def test_helpers_look_through_the_wrappers(source: Source) -> None:
    with both(source, scripted()) as (ours, _):
        monitored = VecMonitor(ours)
        stack = VecNormalize(monitored)
        assert unwrap_vec_wrapper(stack, VecMonitor) is monitored
        assert unwrap_vec_wrapper(stack, VecFrameStack) is None
        assert unwrap_vec_normalize(stack) is stack
        assert unwrap_vec_normalize(ours) is None
        assert stack.unwrapped is ours
        assert is_vecenv_wrapped(stack, VecMonitor)
        assert not is_vecenv_wrapped(stack, VecFrameStack)
        assert not is_vecenv_wrapped(ours, VecMonitor)
        # Attributes are found below the wrappers, too.
        assert stack.autoreset_mode is ours.autoreset_mode
        assert stack.get_attr("row") == [0, 1, 2]
        assert stack.env_method("set_mu", 1.0, indices=[1]) == [2.0]
        assert stack.env_is_wrapped(Monitor) == [False] * 3


def test_sync_envs_normalization_copies_the_statistics(any_source: Source) -> None:
    def layers(env: Any) -> Any:
        return VecNormalize(VecMonitor(env))

    with (
        both(any_source, scripted(), layers) as (ours, reference),
        both(any_source, scripted(num_envs=2), layers) as (evaluation, reference_evaluation),
    ):
        stream(ours)
        stream(reference)
        sync_envs_normalization(ours, evaluation)
        sync_envs_normalization(reference, reference_evaluation)
        assert evaluation.obs_rms is not ours.obs_rms
        same(vars(evaluation.obs_rms), vars(ours.obs_rms))
        evaluation.training = reference_evaluation.training = False
        same(stream(evaluation), stream(reference_evaluation))


# Evaluation


@pytest.fixture(scope="module")
def policy() -> Any:
    return A2C("MlpPolicy", DummyVecEnv(cartpoles()), **small())


def at_most(calls: int) -> Any:
    """A callback that ends an evaluation in which no episode ends."""
    counter = itertools.count()

    def callback(_locals: Any, _globals: Any) -> None:
        assert next(counter) < calls

    return callback


@pytest.mark.parametrize("within", [Monitor, None], ids=["monitored", "bare"])
def test_evaluate_policy_gives_the_same_returns(source: Source, policy: Any, within: Any) -> None:
    fns = cartpoles()
    if within:
        fns = [lambda: within(gym.make("CartPole-v1", max_episode_steps=20))] * 3
    results = []
    with both(source, fns) as envs:
        for env in envs:
            env.seed(8)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                returns = evaluate_policy(
                    policy, env, 10, callback=at_most(400), return_episode_rewards=True
                )
            told = ["Monitor" in str(warning.message) for warning in caught]
            assert told.count(True) == (within is None)
            results.append(returns)
    same(results[0], results[1])
    returns, lengths = results[0]
    assert len(returns) == len(lengths) == 10
    assert len(set(lengths)) > 1


def test_evaluate_policy_works_on_native_cartpole(policy: Any) -> None:
    env = VecMonitor(sb3compat.to_sb3(gym.make_vec("CartPole-v1", num_envs=3)))
    env.seed(8)
    returns, lengths = evaluate_policy(
        policy, env, 10, callback=at_most(400), return_episode_rewards=True
    )
    env.close()
    assert returns == lengths
    assert len(set(lengths)) > 1
    assert all(7 < length < 500 for length in lengths)


def test_eval_callback_gives_the_same_results(source: Source, tmp_path: Path) -> None:
    logs = iter(("reference", "ours"))

    def train(env: Any) -> Any:
        folder = tmp_path / next(logs)
        is_reference = isinstance(env, DummyVecEnv)
        fns = [lambda: Monitor(gym.make("CartPole-v1", max_episode_steps=30))] * 2
        evaluated = DummyVecEnv(fns) if is_reference else sb3compat.to_sb3(source(fns))
        evaluated.seed(6)
        callback = EvalCallback(
            VecNormalize(evaluated, training=False, norm_reward=False),
            n_eval_episodes=5,
            eval_freq=40,
            log_path=str(folder),
            best_model_save_path=str(folder),
            verbose=0,
        )
        model = A2C("MlpPolicy", VecNormalize(env), **small())
        with warnings.catch_warnings():
            # SB3 warns where the two environments are of different kinds.
            warnings.simplefilter("error", UserWarning)
            model.learn(480, callback=callback)
        evaluated.close()
        best = A2C.load(folder / "best_model", device="cpu")
        log = np.load(folder / "evaluations.npz")
        return weights(model), weights(best), {name: log[name] for name in log.files}

    check_same_training(source, cartpoles(), train)
    log = np.load(tmp_path / "ours" / "evaluations.npz")
    assert log["timesteps"].tolist() == [120, 240, 360, 480]
    assert len(np.unique(log["results"])) > 2


# Life of a model


def test_training_goes_on_the_same_after_save_load_and_set_env(
    any_source: Source, tmp_path: Path
) -> None:
    def make(env: Any, fns: EnvFns) -> Any:
        if isinstance(env, DummyVecEnv):
            return DummyVecEnv(fns)
        return sb3compat.to_sb3(any_source(fns))

    def train(env: Any) -> Any:
        model = A2C("MlpPolicy", env, **small()).learn(60)
        model.save(tmp_path / "model")
        second, third, fewer = (
            make(env, cartpoles(n, limit)) for n, limit in ((3, 9), (3, 15), (2, 9))
        )
        seen = EndingsByLimit()
        loaded = A2C.load(tmp_path / "model", env=second, device="cpu")
        same(weights(loaded), weights(model))
        loaded.set_random_seed(4)
        loaded.learn(150, callback=seen, reset_num_timesteps=False)
        assert loaded.get_env() is second
        assert seen.count > 0
        halfway = weights(loaded)
        third.seed(9)
        loaded.set_env(third)
        loaded.learn(90, reset_num_timesteps=False)
        assert loaded.get_env() is third
        assert loaded.num_timesteps == 300
        with pytest.raises(AssertionError, match="number of environments"):
            loaded.set_env(fewer)
        for other in (second, third, fewer):
            other.close()
        return halfway, weights(loaded)

    check_same_training(any_source, cartpoles(), train)


def test_learning_goes_on_without_a_reset(any_source: Source) -> None:
    def train(env: Any) -> Any:
        model = A2C("MlpPolicy", env, **small()).learn(45)
        model.set_env(env, force_reset=False)
        return model.learn(45, reset_num_timesteps=False)

    check_same_training(any_source, cartpoles(), train)


OFF_POLICY: dict[str, Any] = {
    "dqn": (DQN, "CartPole-v1", {"target_update_interval": 20}),
    "sac": (SAC, "Pendulum-v1", {}),
    "td3": (TD3, "Pendulum-v1", {}),
    "ddpg": (DDPG, "Pendulum-v1", {}),
}


@pytest.mark.parametrize("name", OFF_POLICY)
def test_off_policy_training_gives_the_same_weights(any_source: Source, name: str) -> None:
    algorithm, env_id, kwargs = OFF_POLICY[name]
    fns: EnvFns = [partial(gym.make, env_id, max_episode_steps=15)] * 2
    train = learn(algorithm, 120, learning_starts=40, buffer_size=200, batch_size=32, **kwargs)
    check_same_training(any_source, fns, train)


CONTRIB: dict[str, Any] = {
    "ARS": ("CartPole-v1", {"n_delta": 3}),
    "CrossQ": ("Pendulum-v1", {"learning_starts": 40, "batch_size": 32}),
    "QRDQN": ("CartPole-v1", {"learning_starts": 40, "target_update_interval": 20}),
    "RecurrentPPO": ("CartPole-v1", {"n_steps": 20, "batch_size": 20, "n_epochs": 2}),
    "TQC": ("Pendulum-v1", {"learning_starts": 40, "batch_size": 32}),
    "TRPO": ("CartPole-v1", {"n_steps": 30, "batch_size": 30}),
}


@pytest.mark.parametrize("name", CONTRIB)
def test_sb3_contrib_training_gives_the_same_weights(source: Source, name: str) -> None:
    contrib = pytest.importorskip("sb3_contrib")
    if not hasattr(contrib, name):
        pytest.skip(f"this sb3-contrib has no {name}")
    env_id, kwargs = CONTRIB[name]
    policy = "MlpLstmPolicy" if name == "RecurrentPPO" else "MlpPolicy"
    fns: EnvFns = [partial(gym.make, env_id, max_episode_steps=15)] * 2
    check_same_training(source, fns, learn(getattr(contrib, name), 120, policy=policy, **kwargs))


# Goals and masks


@pytest.mark.parametrize("copy_info_dict", [False, True])
def test_her_training_gives_the_same_weights(source: Source, copy_info_dict: bool) -> None:
    train = learn(
        DQN,
        120,
        policy="MultiInputPolicy",
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "copy_info_dict": copy_info_dict},
        learning_starts=40,
        buffer_size=400,
        batch_size=32,
    )
    check_same_training(source, [partial(BitFlippingEnv, n_bits=5)] * 2, train)


class Masked(gym.Env[Any, Any]):
    """One action is forbidden at each step, another one each time; a lock cannot be pickled."""

    observation_space = BOX
    action_space = spaces.Discrete(4)

    def __init__(self, row: int) -> None:
        self.row = row
        self.lock = threading.Lock()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return self._obs(), {}

    def step(self, action: Any) -> Any:
        assert self.action_masks()[action], "a forbidden action"
        self.steps += 1
        return self._obs(), float(action == self.steps % 4), False, self.steps == 5 + self.row, {}

    def action_masks(self) -> Any:
        mask = np.ones(4, np.bool_)
        mask[(self.steps + self.row) % 4] = False
        return mask

    def _obs(self) -> Any:
        return self.np_random.random(3, np.float32)


class MaskedRows(NativeEnv):
    """A native environment that gives the masks of all rows at once."""

    def action_masks(self) -> Any:
        return np.stack([row.action_masks() for row in self._rows])


def train_masked(env: Any) -> Any:
    contrib = pytest.importorskip("sb3_contrib")
    kwargs = {"n_steps": 20, "batch_size": 20, "n_epochs": 2}
    return learn(contrib.MaskablePPO, 120, **kwargs)(env)


def test_action_masks_of_sub_environments_are_used(source: Source) -> None:
    check_same_training(source, [partial(Masked, row) for row in range(3)], train_masked)


def test_action_masks_of_a_native_environment_are_used() -> None:
    native = partial(MaskedRows, mode=AutoresetMode.NEXT_STEP)
    check_same_training(native, [partial(Masked, row) for row in range(3)], train_masked)


def test_missing_action_masks_are_noticed(source: Source) -> None:
    contrib = pytest.importorskip("sb3_contrib")
    with both(source, scripted()) as envs:
        for env in envs:
            model = contrib.MaskablePPO("MlpPolicy", env, n_steps=4, batch_size=12, **small())
            with pytest.raises(ValueError, match="does not support action masking"):
                model.learn(4)
            env.reset()  # and no worker died of the question


# Logs


def logged(env: Any, folder: Path) -> Any:
    """What A2C logs about episodes, as read from its csv."""
    model = A2C("MlpPolicy", env, **small())
    model.set_logger(configure(str(folder), ["csv"]))
    model.learn(60, log_interval=2)
    model.logger.close()
    header, *rows = ((folder / "progress.csv").read_text().strip()).split("\n")
    columns = header.split(",")
    wanted = [columns.index(f"rollout/{name}") for name in ("ep_len_mean", "ep_rew_mean")]
    return np.array([[float(row.split(",")[i]) for i in wanted] for row in rows])


def with_statistics(fns: EnvFns) -> EnvFns:
    return [lambda fn=fn: RecordEpisodeStatistics(fn()) for fn in fns]


def test_statistics_of_sub_environments_are_logged(source: Source, tmp_path: Path) -> None:
    with both(source, with_statistics(scripted())) as (ours, reference):
        got = logged(ours, tmp_path / "ours")
        expected = logged(reference, tmp_path / "reference")
    np.testing.assert_array_equal(got, expected)
    assert len(got) == 2
    assert np.all(got[:, 0] != got[:, 1])


def test_statistics_around_are_logged(source: Source, tmp_path: Path) -> None:
    if GYMNASIUM < (1, 4) and source is SOURCES["sync-same"]:
        pytest.skip("refused: wrong in this mode before Gymnasium 1.4")
    ours = sb3compat.to_sb3(vector_wrappers.RecordEpisodeStatistics(source(scripted())))
    reference = DummyVecEnv(with_statistics(scripted()))
    with closing(ours):
        got = logged(ours, tmp_path / "ours")
    expected = logged(reference, tmp_path / "reference")
    np.testing.assert_array_equal(got[:, 0], expected[:, 0])
    np.testing.assert_allclose(got[:, 1], expected[:, 1], rtol=1e-5)


def test_statistics_around_native_cartpole_are_logged(tmp_path: Path) -> None:
    native = gym.make_vec("CartPole-v1", num_envs=4, max_episode_steps=6)
    env = sb3compat.to_sb3(vector_wrappers.RecordEpisodeStatistics(native))
    # No pole falls within six steps.
    np.testing.assert_array_equal(logged(env, tmp_path), [[6, 6]])


# Setters


class Steered(ScriptedEnv):
    """Its reward depends on `mu`, which has a setter."""

    def step(self, action: Any) -> Any:
        obs, _, terminated, truncated, info = super().step(action)
        return obs, self.mu + int(action), terminated, truncated, info


class Steering(BaseCallback):
    """Change the environments during training; remember the rewards without actions."""

    def __init__(self) -> None:
        super().__init__()
        self.paid: list[list[float]] = []
        self.answers: list[Any] = []

    def _on_step(self) -> bool:
        paid = self.locals["rewards"] - self.locals["actions"].reshape(-1)
        self.paid.append(np.round(paid, 4).tolist())
        if self.n_calls == 4:
            self.answers += self.training_env.env_method("set_mu", 0.1)
        if self.n_calls == 7:
            self.answers += self.training_env.env_method("set_mu", 3.0, indices=[1])
        if self.n_calls == 9:
            self.training_env.set_attr("mu", 7.0, indices=0)
        return True


def test_setters_called_during_training_take_effect(source: Source) -> None:
    fns: EnvFns = [partial(Steered, script(), row) for row in range(2)]
    changes = []

    def train(env: Any) -> Any:
        steering = Steering()
        model = A2C("MlpPolicy", VecMonitor(env), **small()).learn(24, callback=steering)
        changes.append(steering)
        return weights(model)

    check_same_training(source, fns, train)
    for steering in changes:
        expected = [0.5, 0.5, 0.5, 0.5, *[0.1] * 5, 7.0, 7.0, 7.0]
        assert [row[0] for row in steering.paid[:12]] == pytest.approx(expected)
        expected = [0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, *[3.0] * 5]
        assert [row[1] for row in steering.paid[:12]] == pytest.approx(expected)
        assert steering.answers == [0.1, 1.1, 4.0]
