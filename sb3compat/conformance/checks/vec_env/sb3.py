"""What Stable-Baselines3 makes of a VecEnv: its wrappers, and its algorithms."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from sb3compat.conformance.checks.vec_env.marks import ENDINGS, marked
from sb3compat.conformance.contract import BASICS
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Drawn
from sb3compat.conformance.scene import Recorded, Scene
from sb3compat.conformance.values import Value

numbers_in = PRELUDE["numbers_in"]

_WRAPPERS = (
    "https://github.com/DLR-RM/stable-baselines3/blob/master/stable_baselines3/common/vec_env/{}.py"
)
_RL_TIPS = "https://stable-baselines3.readthedocs.io/en/master/guide/rl_tips.html"
_SB3 = ("sb3", "sb3_vec_env")
_USUAL = (*ENDINGS, "step_obs_in_space", "rewards_shape", "terminal_observation_in_space")
_TRAINS = (*BASICS["vec_env"], "dones_shape")
# The transitions of a training, and of one that takes more seconds than these: the algorithms
# begin to learn after 16 steps and after 50 transitions.
_TOTAL, _FEW, _LONG_SECONDS = 256, 64, 2.0
# The most memory that a check lets SB3 take for observations.
_MOST_BYTES = 2**30
# For each value of an observation or action the networks have eight weights next to it, with
# gradients and moments: of the policy and of the critics.
_PER_VALUE = 8 * 4 * 4 * 2
# Copies in double precision that running statistics take.
_STATISTICS = 10

error, _ = marked(group="working with SB3", source=_RL_TIPS, needs=_SB3, after=_USUAL)


def _wrapped(
    env: Recorded, wrapper: str, *args: Any, **kwargs: Any
) -> Generator[Demand, None, Recorded]:
    """Put a wrapper around an environment; returns it, with the name of the environment."""
    [maker] = env.scene.imported("stable_baselines3.common.vec_env", wrapper)
    wrapped, error = env.scene.tried(maker, "env", env, *args, **kwargs)
    yield expect("{0} is None", error, should=f"None, as {wrapper} takes every such environment")
    return wrapped


def _walk(env: Recorded) -> Iterator[Call]:
    """Reset and step until an end and a little further; the calls, each of which may raise."""
    scene, ending = env.scene, next(iter(env.scene.subject.endings), None)
    act = scene.actions if ending is None else env.acting(ending)
    if ending is not None and ending.seed is not None:
        env.seed(ending.seed)
    yield scene.caught(env.reset)
    for _ in range(8 if ending is None else ending.steps + 2):
        yield scene.caught(env.step, act())


def _works(call: Call) -> Demand:
    """A call under a wrapper has not raised."""
    should = f"None: env.{call.op.method} works without the wrapper"
    return expect("{0} is None", call.error, should=should)


def _parts(space: Any) -> list[Any]:
    """The spaces within a Dict or Tuple, or the space itself."""
    if isinstance(space, spaces.Dict):
        return list(space.spaces.values())
    return list(space.spaces) if isinstance(space, spaces.Tuple) else [space]


def _are_boxes(space: Any) -> bool:
    """Whether a space is a Box, or a Dict of Boxes."""
    boxes = all(isinstance(part, spaces.Box) for part in _parts(space))
    return boxes and not isinstance(space, spaces.Tuple)


def _lasts(env: Recorded, call: Call) -> Iterator[tuple[int, Value, Any]]:
    """The rows that ended, with the arrays of their last observations, and the space of each."""
    space = env.live.observation_space
    for i in call.ended:
        last = call.infos[i]["terminal_observation"]
        if isinstance(space, spaces.Dict):
            yield from ((i, last[key], part) for key, part in space.items())
        else:
            yield i, last, space


def _of_their_shapes(env: Recorded, call: Call) -> Iterator[Demand]:
    """Last observations have the shapes that the wrapper gives them."""
    for i, last, part in _lasts(env, call):
        yield expect(f"{{0}}.shape == {part.shape}", last, should=f"of shape {part.shape}", row=i)


def _must_fit(needed: int) -> None:
    """Leave environments alone whose observations would fill the memory."""
    if needed > _MOST_BYTES:
        raise NotExercisedError(
            f"its spaces are too large: SB3 would need {needed / 2**30:.1f} GiB for them"
        )


@error(source=_WRAPPERS.format("vec_monitor"))
def works_under_vec_monitor(scene: Scene) -> Iterator[Demand]:
    """`VecMonitor` counts the rewards and steps of each episode.

    It needs `spec` to be a Gymnasium spec or None, `env_is_wrapped` to answer, and infos that are
    dicts.
    """
    env = yield from _wrapped(scene.make(), "VecMonitor")
    counts = np.zeros(scene.n, int)
    returns, sizes = np.zeros(scene.n), np.zeros(scene.n)
    for call in _walk(env):
        yield _works(call)
        if not call.is_step:
            continue
        counts += 1
        returns += call.rewards.value
        sizes += np.abs(call.rewards.value)
        for i in call.ended:
            expected = f"{{'r': {returns[i]:.6g}, 'l': {counts[i]}}}"
            tolerance = 1e-3 + 1e-5 * np.nan_to_num(sizes[i], posinf=0)  # it adds in float32
            yield expect(
                f"{{0}}['episode']['l'] == {counts[i]}"
                f" and np.isclose({{0}}['episode']['r'], float('{returns[i]}'), rtol=1e-3,"
                f" atol={tolerance}, equal_nan=True)"
                " and 'terminal_observation' in {0}",
                call.infos[i],
                what="{0}['episode']",
                should=f"{expected}, the sum of the rewards and the number of steps",
                row=i,
            )
            counts[i], returns[i], sizes[i] = 0, 0.0, 0.0


@error(source=_WRAPPERS.format("vec_normalize"), after=(*_USUAL, "dones_bool_array"))
def works_under_vec_normalize(scene: Scene) -> Iterator[Demand]:
    """`VecNormalize` normalises observations, rewards and `terminal_observation`.

    It copies observations, uses `dones` as a mask, and writes into the infos.
    """
    env = scene.make()
    space = env.attribute("observation_space").value
    if not _are_boxes(space):
        raise NotExercisedError("observations are no Box or Dict of Boxes")
    _must_fit(_STATISTICS * 8 * scene.n * spaces.flatdim(space))
    # VecNormalize writes into a Dict space, which other instances may share.
    parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {}
    try:
        env = yield from _wrapped(env, "VecNormalize")
        for call in _walk(env):
            yield _works(call)
            for i, last, _ in _lasts(env, call):
                condition = "np.abs({0}).max(initial=0) <= 10"
                yield expect(condition, last, should="normalised, and clipped at 10", row=i)
    finally:
        if isinstance(space, spaces.Dict):
            space.spaces.update(parts)


@error(source=_WRAPPERS.format("stacked_observations"))
def works_under_vec_frame_stack(scene: Scene) -> Iterator[Demand]:
    """`VecFrameStack` stacks observations, and `terminal_observation` on those before it.

    It writes into the infos.
    """
    env = scene.make()
    space = env.attribute("observation_space").value
    if not _are_boxes(space) or not all(part.shape for part in _parts(space)):
        raise NotExercisedError("observations are no Box or Dict of Boxes with axes")
    env = yield from _wrapped(env, "VecFrameStack", 2)
    for call in _walk(env):
        yield _works(call)
        yield from _of_their_shapes(env, call)


@error(source=_WRAPPERS.format("vec_check_nan"))
def works_under_vec_check_nan(scene: Scene) -> Iterator[Demand]:
    """`VecCheckNan` finds neither NaN nor infinity in observations and rewards.

    One such value makes all weights NaN with the next gradient step.
    """
    env = scene.make()
    if any(part.shape is None for part in _parts(env.attribute("observation_space").value)):
        raise NotExercisedError("observations are nested deeper, or no arrays")
    if isinstance(env.attribute("action_space").value, spaces.Dict):
        raise NotExercisedError("actions are a Dict")
    env = yield from _wrapped(env, "VecCheckNan", raise_exception=True)
    yield from map(_works, _walk(env))


@error(source=_WRAPPERS.format("vec_transpose"), needs=(*_SB3, "image_obs"))
def works_under_vec_transpose_image(scene: Scene) -> Iterator[Demand]:
    """`VecTransposeImage` puts the channels of images first, in `terminal_observation` too.

    SB3 wraps every environment with images in it.
    """
    env = yield from _wrapped(scene.make(), "VecTransposeImage")
    expected = (scene.n, *env.live.observation_space.shape)
    for call in _walk(env):
        yield _works(call)
        yield expect(
            f"{{0}}.shape == {expected}",
            call.obs,
            what="{0}.shape",
            should=f"{expected}, with channels first",
        )
        yield from _of_their_shapes(env, call)


@error(source=_WRAPPERS.format("vec_extract_dict_obs"), needs=(*_SB3, "dict_obs"))
def works_under_vec_extract_dict_obs(scene: Scene) -> Iterator[Demand]:
    """`VecExtractDictObs` takes one entry out of observations and `terminal_observation`.

    It writes into the infos.
    """
    env = scene.make()
    space = env.attribute("observation_space").value
    key = next((key for key in space if getattr(space[key], "shape", None) is not None), None)
    if key is None:
        raise NotExercisedError("no part of the observations is an array")
    env = yield from _wrapped(env, "VecExtractDictObs", key)
    for call in _walk(env):
        yield _works(call)
        yield expect("isinstance({0}, np.ndarray)", call.obs, what="type({0})", should="an array")
        for i, last, _ in _lasts(env, call):
            own = env.attribute("observation_space")
            yield expect("inside({1}, {0})", last, own, should="the entry alone", row=i)


@error(needs=_SB3, after=_TRAINS)
def trains_ppo(scene: Scene) -> Iterator[Demand]:
    """PPO trains on the environment for a few hundred steps, or 64 if these take long.

    It adds to rewards in place, values `terminal_observation`, and passes clipped actions.
    """
    settings = {"n_steps": 16, "batch_size": 16, "n_epochs": 1}
    yield from _train(scene.make(), "PPO", settings, 16 * scene.n)


@error(needs=_SB3, after=_TRAINS)
def trains_off_policy(scene: Scene) -> Iterator[Demand]:
    """DQN, or SAC where actions are continuous, trains for a few hundred steps, or 64 slow ones.

    It copies observations, puts `terminal_observation` into the rows that are done, and reads
    `TimeLimit.truncated` in every info.
    """
    env = scene.make()
    discrete = isinstance(env.attribute("action_space").value, spaces.Discrete)
    settings = {"buffer_size": 400, "batch_size": 16, "learning_starts": 50, "train_freq": 8}
    if discrete:
        yield from _train(env, "DQN", settings, 2 * 400)
    else:
        yield from _train(env, "SAC", settings | {"ent_coef": 0.1}, 2 * 400)


def _train(env: Recorded, algorithm: str, settings: dict[str, Any], kept: int) -> Iterator[Demand]:
    scene = env.scene
    space, actions = (env.attribute(f"{of}_space").value for of in ("observation", "action"))
    if not _learnable(space) or not _usable(actions, algorithm):
        raise NotExercisedError("the algorithm does not take these spaces")
    # One of n numbers is n values. In the buffer observations may be of bytes; a minibatch of 16 is
    # of floats.
    values = spaces.flatdim(space) + spaces.flatdim(actions)
    _must_fit(values * (_PER_VALUE + 16 * 4) + kept * _bytes(space))
    policy = "MultiInputPolicy" if isinstance(space, spaces.Dict) else "MlpPolicy"
    settings |= {
        "policy_kwargs": Drawn("{'net_arch': [8], 'optimizer_class': descent()}"),
        "device": "cpu",
    }
    if scene.subject.capabilities.get("seeding"):  # the algorithm passes its seed on to `env.seed`
        settings["seed"] = 0
    [maker] = scene.imported("stable_baselines3", algorithm)
    model, error = scene.tried(maker, "model", policy, env, **settings)
    yield expect("{0} is None", error, should=f"None, as {algorithm} takes such environments")
    slow = scene.subject.step_seconds * _TOTAL / scene.n > _LONG_SECONDS
    total = _FEW if slow else _TOTAL
    learned = scene.caught(model.learn, total)
    with suppress(AttributeError, OSError):
        Path(model.live.logger.dir).rmdir()  # SB3 makes a folder, and writes nothing into it
    if learned.failure is not None and _overflow(scene, total // scene.n):
        raise NotExercisedError(
            "policies compute in float32, where squares of its numbers overflow"
        )
    yield expect("{0} is None", learned.error, should=f"None: {algorithm} learns")
    done = model.attribute("num_timesteps")
    yield expect(f"{{0}} >= {total}", done, should=f"at least {total}")


def _overflow(scene: Scene, steps: int) -> bool:
    """Whether numbers are too large for a network, though none is infinite."""
    shown: list[Any] = []
    # Not an instance of the scene: a script need not show this.
    with (
        suppress(Exception),
        closing(scene.subject.instances()) as instances,
        instances.lent() as (env, _),
    ):
        shown.append(env.reset())
        shown += [env.step(scene.actions())[:2] for _ in range(steps)]
    sizes = np.abs(numbers_in(shown))
    return bool(np.isfinite(sizes).all() and np.any(sizes > np.sqrt(np.finfo(np.float32).max)))


def _bytes(space: Any) -> int:
    return int(sum(np.prod(part.shape) * part.dtype.itemsize for part in _parts(space)))


def _learnable(space: Any) -> bool:
    """Whether SB3 has networks for such observations; small images in dicts are too small."""
    if isinstance(space, spaces.Dict):
        return all(
            _learnable(part) and not isinstance(part, spaces.Dict) and len(part.shape or ()) < 2
            for part in space.spaces.values()
        )
    if isinstance(space, spaces.Discrete):
        return bool(space.start == 0)
    if isinstance(space, spaces.Box):
        return len(space.shape) > 0
    return isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary) and len(space.shape) == 1


def _usable(space: Any, algorithm: str) -> bool:
    if isinstance(space, spaces.Box):
        bounded = np.isfinite(space.low).all() and np.isfinite(space.high).all()
        floats = space.dtype.kind == "f" and len(space.shape) > 0
        return algorithm != "DQN" and bool(bounded) and floats
    if isinstance(space, spaces.Discrete):
        return algorithm != "SAC" and bool(space.start == 0)
    several = isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary)
    starts = np.any(getattr(space, "start", 0))
    return algorithm == "PPO" and several and len(space.shape) == 1 and not starts
