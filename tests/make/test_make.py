"""`make_vec_env` is SB3's function of that name: what the same call gives, and what is refused."""

from __future__ import annotations

import csv
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

import sb3compat
from tests import registered
from tests.envs import ScriptedEnv, WorkerReport, script
from tests.lockstep import same, timeless
from tests.profiles import examples

env_util: Any = pytest.importorskip("stable_baselines3.common.env_util")
vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")
monitor: Any = pytest.importorskip("stable_baselines3.common.monitor")


class OwnDummy(vec_env.DummyVecEnv):  # type: ignore[misc]
    """A user's class, with an argument of its own."""

    def __init__(self, env_fns: list[Any], bonus: float = 0.0) -> None:
        super().__init__(env_fns)
        self.bonus = bonus

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards + np.float32(self.bonus), dones, infos


class Scaled(gym.Wrapper[Any, Any, Any, Any]):
    def __init__(self, env: Any, factor: float = 2.0) -> None:
        super().__init__(env)
        self.factor = factor

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward * self.factor, terminated, truncated, {**info, "scaled": self.factor}


# The environment: ours, SB3's if that needs another one, and what its `env_kwargs` may be.
LIMITS: list[Any] = [None, {}, {"max_episode_steps": None}, {"max_episode_steps": -1}]
LIMITS += [{"max_episode_steps": 3}, {"disable_env_checker": True, "render_mode": None}]
ENVS: list[tuple[Any, Any, list[Any]]] = [
    ("CartPole-v1", None, [*LIMITS, {"sutton_barto_reward": True}]),
    ("CartPole", None, LIMITS),
    ("Acrobot-v1", None, LIMITS),
    ("FrozenLake-v1", None, [*LIMITS, {"map_name": "8x8", "is_slippery": False}]),
    ("tests.registered:Scripted-v1", None, [None, {"row": 2}, {"max_episode_steps": 2}]),
    ("tests.registered:Scripted", None, [None, {"max_episode_steps": -1}]),
    (registered.scripted, None, [None, {"row": 2}]),
    (registered.reusing, registered.copying, [None, {"row": 1}]),
    (partial(gym.make, "Pendulum-v1"), None, [None, {"g": 5.0, "max_episode_steps": 4}]),
    (partial(ScriptedEnv, script(lengths=(1,), infos="wild")), None, [None]),
]
WRAPPERS: list[tuple[Any, Any]] = [
    (None, None),
    (gym.wrappers.TimeLimit, {"max_episode_steps": 5}),
    (Scaled, None),
    (Scaled, {"factor": 3.0}),
    (lambda env: Scaled(gym.wrappers.TimeLimit(env, 2)), {}),
]
MONITORS: list[Any] = [None, {}, {"override_existing": False}, {"info_keywords": ()}]
MONITORS += [{"allow_early_resets": True, "reset_keywords": ()}]
FORK = {"start_method": "fork"}
CLASSES: list[tuple[Any, Any, Any]] = [
    # SB3's class and its arguments, and our other arguments.
    (None, None, {}),
    (None, {}, {"vectorization_mode": "sync"}),
    (None, {}, {"autoreset_mode": "NextStep"}),
    (vec_env.DummyVecEnv, None, {}),
    (vec_env.SubprocVecEnv, FORK, {}),
    (vec_env.SubprocVecEnv, FORK, {"timeout": 300}),
    (vec_env.SubprocVecEnv, FORK, {"autoreset_mode": AutoresetMode.DISABLED}),
    (sb3compat.ParallelVecEnv, FORK, {}),
    (None, FORK, {"vectorization_mode": "parallel", "workers": 2, "timeout": 300}),
    (OwnDummy, {"bonus": 2.5}, {}),
    (lambda fns: OwnDummy(fns, 1.0), None, {}),
]
IN_WORKERS = (vec_env.SubprocVecEnv, sb3compat.ParallelVecEnv)


@st.composite
def calls(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """The arguments for our function and for SB3's, and whether to write monitor files."""
    ours, theirs, env_kwargs = draw(st.sampled_from(ENVS))
    wrapper_class, wrapper_kwargs = draw(st.sampled_from(WRAPPERS))
    cls, cls_kwargs, only_ours = draw(st.sampled_from(CLASSES))
    arguments = {
        "n_envs": draw(st.integers(1, 3)),
        "seed": draw(st.one_of(st.none(), st.integers(0, 2**31))),
        "start_index": draw(st.integers(0, 4)),
        "wrapper_class": wrapper_class,
        "wrapper_kwargs": wrapper_kwargs,
        "env_kwargs": draw(st.sampled_from(env_kwargs)),
        "vec_env_cls": cls,
        "vec_env_kwargs": cls_kwargs,
        "monitor_kwargs": draw(st.sampled_from(MONITORS)),
    }
    files = draw(st.booleans())
    workers = cls in IN_WORKERS or "workers" in only_ours
    if theirs is None or not (workers or cls in (None, vec_env.DummyVecEnv)):
        theirs = ours
    theirs = {"env_id": theirs, **arguments}
    if workers:
        # SubprocVecEnv does not round rewards to float32, and its infos are a tuple.
        theirs.update(vec_env_cls=vec_env.DummyVecEnv, vec_env_kwargs=None)
    return {"env_id": ours, **arguments, **only_ours}, theirs, files


def test_arguments_that_agree_may_be_given_twice() -> None:
    env = sb3compat.make_vec_env(
        "CartPole-v1", 2, autoreset_mode="SameStep", vec_env_kwargs={"autoreset_mode": "SameStep"}
    )
    assert env.env.unwrapped.autoreset_mode is AutoresetMode.SAME_STEP
    env.close()


@pytest.mark.filterwarnings("ignore:.*latest versioned environment")
@settings(max_examples=examples(600))
@given(calls(), st.lists(st.booleans(), max_size=12))
def test_the_same_call_gives_the_same_stream(
    call: tuple[dict[str, Any], dict[str, Any], bool], program: list[bool]
) -> None:
    ours, theirs, files = call
    with tempfile.TemporaryDirectory() as folder:
        written: list[Any] = []
        streams: list[Any] = []
        for name, make, kwargs in (
            ("theirs", env_util.make_vec_env, theirs),
            ("ours", sb3compat.make_vec_env, ours),
        ):
            where = Path(folder) / name if files else None
            np.random.seed(3)
            env = make(**kwargs, monitor_dir=where)
            seeded = ours["seed"] is not None
            # From a worker comes a copy, with the state of the generator.
            sampled = [space.sample() for space in env.get_attr("action_space") if seeded]
            streams.append([sampled, *stream(env, program)])
            written.append(monitored(where) if where else {})
        same(streams[1], streams[0])
        same(written[1], written[0])


def stream(env: Any, program: list[bool]) -> list[Any]:
    """What an environment does in a program of resets (True) and some steps each (False)."""
    spaces_ = (env.observation_space, env.action_space, env.render_mode, env.num_envs)
    seen: list[Any] = [[repr(space) for space in spaces_]]
    seen.append(env.env_is_wrapped((Scaled, monitor.Monitor)))
    rng = np.random.default_rng(0)
    for number, reset in enumerate([True, *program]):
        if reset:
            env.seed(number or None) if number > 3 else None
            seen += [env.reset(), list(env.reset_infos)]
            continue
        for _ in range(3):
            shape = (env.num_envs, *env.action_space.shape)
            high = getattr(env.action_space, "n", 2)
            actions = rng.integers(high, size=shape).astype(env.action_space.dtype)
            obs, rewards, dones, infos = env.step(actions)
            seen += [obs, rewards, dones, timeless(infos), list(env.reset_infos)]
    env.close()
    return seen


def monitored(folder: Path) -> dict[str, Any]:
    """The monitor files of a folder, without times."""
    found = {}
    for file in sorted(folder.iterdir()):
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        found[file.name] = [row[:2] + row[3:] for row in csv.reader(lines)]
    return found


def limited(make: Any, what: str, **kwargs: Any) -> Any:
    """Each has other bounds; SB3 goes by those of the first."""
    # A worker gets a copy of them, and the parent makes one to look at.
    numbers = iter(range(1, 9))

    def one() -> ScriptedEnv:
        space = spaces.Box(-1, float(next(numbers)), (3,))
        return ScriptedEnv(script(**{what: space}))

    return make(one, 3, seed=1, **kwargs)


@pytest.mark.parametrize("what", ["observation_space", "action_space"])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_bounds_may_differ_as_in_sb3_or_the_error_says_so(mode: str, what: str) -> None:
    def ours() -> Any:
        kwargs = {} if mode == "sync" else {"start_method": "fork"}
        make = sb3compat.make_vec_env
        return limited(make, what, vectorization_mode=mode, vec_env_kwargs=kwargs)

    if (mode, what) == ("sync", "observation_space"):
        same(stream(ours(), [False])[1:], stream(limited(env_util.make_vec_env, what), [False])[1:])
        return
    with pytest.raises(RuntimeError, match="vectorization_mode='parallel'"):
        ours().reset()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_spec_is_made_with_its_wrappers(mode: str) -> None:
    spec = gym.spec("Wrapped-v0")
    env = sb3compat.make_vec_env(spec, 2, vectorization_mode=mode)
    assert env.env_is_wrapped(gym.wrappers.TimeLimit) == [True, True]
    env.reset()
    assert [any(env.step(np.zeros(2, int))[2]) for _ in range(2)][1]
    env.close()
    single = gym.wrappers.TimeLimit(gym.make("Scripted-v1"), 2)
    env = sb3compat.make_vec_env(single.spec, 2, vectorization_mode=mode)
    assert env.env_is_wrapped(gym.wrappers.TimeLimit) == [True, True]
    env.close()


@pytest.mark.parametrize(
    "how", [{"vectorization_mode": gym.VectorizeMode.ASYNC}, {"vec_env_cls": AsyncVectorEnv}]
)
def test_arguments_reach_gymnasiums_class(how: dict[str, Any]) -> None:
    env: Any = sb3compat.make_vec_env(
        "CartPole-v1",
        2,
        **how,
        autoreset_mode="SameStep",
        vec_env_kwargs={"start_method": "spawn", "shared_memory": True, "daemon": True},
    )
    assert env.env.autoreset_mode == AutoresetMode.SAME_STEP
    assert env.env.shared_memory
    assert "Spawn" in type(env.env.processes[0]).__name__
    env.close()


ASYNC = {"vectorization_mode": "async"}
NATIVE = {"vectorization_mode": "native"}
SAME_STEP = AutoresetMode.SAME_STEP
PARALLEL = {"vectorization_mode": "parallel"}


@pytest.mark.parametrize(
    ("kwargs", "kind", "message"),
    [
        ({"vec_env_cls": vec_env.DummyVecEnv, **ASYNC}, ValueError, "Leave one of them out"),
        ({"vec_env_cls": vec_env.DummyVecEnv, **NATIVE}, ValueError, "Leave one of them out"),
        ({**NATIVE, "wrapper_class": WorkerReport}, ValueError, "no wrapper_class with .*no sing"),
        ({**NATIVE, "vec_env_kwargs": {"copy": False}}, ValueError, "no vec_env_kwargs with"),
        (
            {**NATIVE, "monitor_kwargs": {"override_existing": False}},
            ValueError,
            "no monitor_kwargs with .*may contain info_keywords only",
        ),
        ({**NATIVE, "env_id": registered.scripted}, ValueError, "with to_sb3"),
        (
            {"vec_env_kwargs": {"start_method": "fork"}},
            TypeError,
            r"SyncVectorEnv, which takes copy, .*got start_method='fork'\. Did you mean "
            "vectorization_mode='async'",
        ),
        ({**ASYNC, "vec_env_kwargs": {"nonsense": 1}}, TypeError, "takes shared_memory, .*nonsens"),
        ({"num_envs": 4}, TypeError, r"got num_envs=4\. Did you mean n_envs=\?"),
        ({"num_env": 4}, TypeError, r"got num_env=4\. Did you mean n_envs=\?"),
        ({"parent_steps": True}, TypeError, r"Did you mean vec_env_kwargs=\{'parent_steps'"),
        ({"wrappers": []}, TypeError, "Did you mean wrapper_class="),
        ({"vector_kwargs": {}}, TypeError, "Did you mean vec_env_kwargs="),
        ({"render_mode": None}, TypeError, "Did you mean env_kwargs={'render_mode'"),
        ({"timeout": 3}, ValueError, "timeout=None"),
        ({"workers": 2}, ValueError, "vectorization_mode='parallel'"),
        (
            {**PARALLEL, "workers": 2, "vec_env_kwargs": {"workers": 1}},
            ValueError,
            r"got workers=2, vec_env_kwargs={'workers': 1}\. Leave one of them out",
        ),
        (
            {**PARALLEL, "timeout": 9, "vec_env_kwargs": {"timeout": None}},
            ValueError,
            r"got timeout=9, vec_env_kwargs={'timeout': None}\. Leave one",
        ),
        (
            {**ASYNC, "vec_env_kwargs": {"start_method": "fork", "context": "spawn"}},
            ValueError,
            r"got context='fork', vec_env_kwargs={'context': 'spawn'}\. Leave one",
        ),
        (
            {"autoreset_mode": "NextStep", "vec_env_kwargs": {"autoreset_mode": SAME_STEP}},
            ValueError,
            "got autoreset_mode=.*NEXT_STEP.*, vec_env_kwargs=.*SAME_STEP.* Leave one",
        ),
        ({**PARALLEL, "vec_env_kwargs": {"shared_memory": True}}, TypeError, "mean .*='async'"),
        ({**PARALLEL, "autoreset_mode": SAME_STEP}, ValueError, "mode=None with .*Leave it out"),
        ({**PARALLEL, "vec_env_kwargs": {"worker": 2}}, TypeError, "Did you mean 'workers'"),
        ({"wrapper_class": vec_env.VecNormalize}, TypeError, "around what make_vec_env returns"),
        (
            {"wrapper_class": gym.wrappers.TimeLimit},
            TypeError,
            r"max_episode_steps.*Change wrapper_kwargs\.",
        ),
        ({"monitor_kwargs": {"nonsense": 1}}, TypeError, r"nonsense.*Change monitor_kwargs\."),
        ({"monitor_kwargs": {"filename": "a"}}, TypeError, r"Change monitor_kwargs\."),
        (
            {"env_id": registered.scripted, "env_kwargs": {"nonsense": 1}},
            TypeError,
            r"takes, got env_kwargs={'nonsense': 1}.*Change env_kwargs\.",
        ),
    ],
)
def test_wrong_arguments_are_refused(
    kwargs: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=f"(?is){message}"):
        sb3compat.make_vec_env(**{"env_id": "CartPole-v1", **kwargs})


def test_error_of_a_wrapper_itself_stays_as_it_is() -> None:
    def wrapped(env: Any) -> Any:
        return gym.wrappers.TimeLimit(env)  # type: ignore[call-arg]

    with pytest.raises(TypeError, match=r"^TimeLimit\.__init__\(\) missing 1 required"):
        sb3compat.make_vec_env("CartPole-v1", wrapper_class=wrapped)
