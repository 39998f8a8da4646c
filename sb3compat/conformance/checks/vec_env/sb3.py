"""What Stable-Baselines3 makes of a VecEnv: its wrappers, and its algorithms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from sb3compat.conformance.checks.tools.spaces import leaves
from sb3compat.conformance.checks.vec_env.marks import ENDINGS, error
from sb3compat.conformance.contract import BASICS
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.calls import opening, stepping

_WRAPPERS = (
    "https://github.com/DLR-RM/stable-baselines3/blob/master/stable_baselines3/common/vec_env/{}.py"
)
_RL_TIPS = "https://stable-baselines3.readthedocs.io/en/master/guide/rl_tips.html"
_SB3 = ("sb3", "sb3_vec_env")
_USUAL = (*ENDINGS, "step_obs_in_space", "rewards_shape", "terminal_observation_in_space")
_TRAINS = (*BASICS["vec_env"], "dones_shape")
_TOTAL = 256
# The most memory that a check lets SB3 take for observations.
_MOST_BYTES = 2**30
# For each value of an observation the first layers of the networks have eight weights, with
# gradients and moments: of the policy and of the critics.
_PER_VALUE = 8 * 4 * 4 * 2
# Copies in double precision that running statistics take.
_STATISTICS = 10


def _wrap(play: Play, wrapper: str, call: str) -> None:
    """Put a wrapper around the environment that was made."""
    play.run(f"from stable_baselines3.common.vec_env import {wrapper}")
    play.run(f"made = []\nerror = caught(lambda: made.append({call}))")
    play.demand("error is None", "error", f"None, as {wrapper} takes every such environment")
    play.run("env = made[0]")


def _entries(space: Any) -> dict[str, Any]:
    """The spaces of arrays in an observation space, by the source of the index that leads there.

    Raises:
        NotExercisedError: If there are others, or some within others: SB3 does not know them.
    """
    nested = isinstance(space, spaces.Dict | spaces.Tuple)
    parts = list(leaves(space))
    if len(parts) != (len(space.spaces) if nested else 1) or any(p.shape is None for _, p in parts):
        raise NotExercisedError("observations are nested deeper, or no arrays")
    return dict(parts)


def _values(space: Any) -> int:
    """The number of values in an observation."""
    return int(sum(np.prod(part.shape) for _, part in leaves(space) if part.shape is not None))


def _must_fit(needed: int) -> None:
    """Leave environments alone whose observations would fill the memory.

    Raises:
        NotExercisedError: If so many bytes are too many.
    """
    if needed > _MOST_BYTES:
        raise NotExercisedError(
            f"its observations are too large: SB3 would need {needed / 2**30:.1f} GiB for them"
        )


def _walk(play: Play) -> Iterator[int]:
    """Reset and step until an end and a little further; yields after each step."""
    ending = play.subject.endings[0] if play.subject.endings else None
    for line in opening("vec_env", ending.setup if ending else "", ending.seed if ending else None):
        _try(play, line)
    steps = 8 if ending is None else ending.steps + 2
    for number in range(1, steps + 1):
        play.run(f"actions = {ending.actions if ending else play.actions()}")
        _try(play, stepping("vec_env", "deepcopy(actions)"))
        yield number


def _try(play: Play, line: str) -> None:
    """Run a statement; an exception is a violation."""
    name, _, call = line.rpartition(" = ")
    if not name:
        play.run(line)
        return
    play.run(f"results = []\nerror = caught(lambda: results.append({call}))")
    play.demand("error is None", "error", f"None: {call} works without the wrapper")
    play.run(f"{name} = results[0]")


@error(group="working with SB3", source=_WRAPPERS.format("vec_monitor"), needs=_SB3, after=_USUAL)
def works_under_vec_monitor(play: Play) -> None:
    """`VecMonitor` counts the rewards and steps of each episode.

    It needs `spec` to be a Gymnasium spec or None, `env_is_wrapped` to answer, and infos that are
    dicts.
    """
    play.make()
    _wrap(play, "VecMonitor", "VecMonitor(env)")
    counts = np.zeros(play.n, int)
    returns = np.zeros(play.n)
    sizes = np.zeros(play.n)
    for _ in _walk(play):
        counts += 1
        returns += play.value("rewards")
        sizes += np.abs(play.value("rewards"))
        for i in play.ended():
            expected = f"{{'r': {returns[i]:.6g}, 'l': {counts[i]}}}"
            what = f"infos[{i}]['episode']"
            tolerance = 1e-3 + 1e-5 * np.nan_to_num(sizes[i], posinf=0)  # it adds in float32
            play.demand(
                f"{what}['l'] == {counts[i]}"
                f" and np.isclose({what}['r'], float('{returns[i]}'), rtol=1e-3, atol={tolerance},"
                " equal_nan=True)"
                f" and 'terminal_observation' in infos[{i}]",
                what,
                f"{expected}, the sum of the rewards and the number of steps",
                i,
            )
            counts[i], returns[i], sizes[i] = 0, 0.0, 0.0


@error(
    group="working with SB3",
    source=_WRAPPERS.format("vec_normalize"),
    needs=_SB3,
    after=(*_USUAL, "dones_bool_array"),
)
def works_under_vec_normalize(play: Play) -> None:
    """`VecNormalize` normalises observations, rewards and `terminal_observation`.

    It copies observations, uses `dones` as a mask, and writes into the infos.
    """
    play.make()
    space = play.value("env.observation_space")
    boxes = all(isinstance(part, spaces.Box) for part in _entries(space).values())
    if isinstance(space, spaces.Tuple) or not boxes:
        raise NotExercisedError("observations are no Box or Dict of Boxes")
    _must_fit(_STATISTICS * 8 * play.n * _values(space))
    # VecNormalize writes into a Dict space, which other instances may share.
    parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {}
    try:
        _wrap(play, "VecNormalize", "VecNormalize(env)")
        for _ in _walk(play):
            for i in play.ended():
                _is_normalised(play, i)
    finally:
        if isinstance(space, spaces.Dict):
            space.spaces.update(parts)


def _is_normalised(play: Play, i: int) -> None:
    for path, _space in leaves(play.value("env.observation_space")):
        what = f"infos[{i}]['terminal_observation']{path}"
        should = "normalised, and clipped at 10"
        play.demand(f"np.abs({what}).max(initial=0) <= 10", what, should, i)


@error(
    group="working with SB3",
    source=_WRAPPERS.format("stacked_observations"),
    needs=_SB3,
    after=_USUAL,
)
def works_under_vec_frame_stack(play: Play) -> None:
    """`VecFrameStack` stacks observations, and `terminal_observation` on those before it.

    It writes into the infos.
    """
    play.make()
    space = play.value("env.observation_space")
    if isinstance(space, spaces.Tuple) or not all(
        isinstance(part, spaces.Box) and part.shape for part in _entries(space).values()
    ):
        raise NotExercisedError("observations are no Box or Dict of Boxes with axes")
    _wrap(play, "VecFrameStack", "VecFrameStack(env, 2)")
    for _ in _walk(play):
        for i in play.ended():
            for path, part in leaves(play.value("env.observation_space")):
                what = f"infos[{i}]['terminal_observation']{path}"
                play.demand(f"{what}.shape == {part.shape}", what, f"of shape {part.shape}", i)


@error(group="working with SB3", source=_WRAPPERS.format("vec_check_nan"), needs=_SB3, after=_USUAL)
def works_under_vec_check_nan(play: Play) -> None:
    """`VecCheckNan` finds neither NaN nor infinity in observations and rewards.

    One such value makes all weights NaN with the next gradient step.
    """
    play.make()
    _entries(play.value("env.observation_space"))
    if isinstance(play.value("env.action_space"), spaces.Dict):
        raise NotExercisedError("actions are a Dict")
    _wrap(play, "VecCheckNan", "VecCheckNan(env, raise_exception=True)")
    for _ in _walk(play):
        pass


@error(
    group="working with SB3",
    source=_WRAPPERS.format("vec_transpose"),
    needs=(*_SB3, "image_obs"),
    after=_USUAL,
)
def works_under_vec_transpose_image(play: Play) -> None:
    """`VecTransposeImage` puts the channels of images first, in `terminal_observation` too.

    SB3 wraps every environment with images in it.
    """
    play.make()
    _wrap(play, "VecTransposeImage", "VecTransposeImage(env)")
    shape = play.value("env.observation_space.shape")
    for _ in _walk(play):
        expected = (play.n, *shape)
        play.demand(f"obs.shape == {expected}", "obs.shape", f"{expected}, with channels first")
        for i in play.ended():
            what = f"infos[{i}]['terminal_observation']"
            play.demand(f"{what}.shape == {shape}", what, f"of shape {shape}", i)


@error(
    group="working with SB3",
    source=_WRAPPERS.format("vec_extract_dict_obs"),
    needs=(*_SB3, "dict_obs"),
    after=_USUAL,
)
def works_under_vec_extract_dict_obs(play: Play) -> None:
    """`VecExtractDictObs` takes one entry out of observations and `terminal_observation`.

    It writes into the infos.
    """
    play.make()
    space = play.value("env.observation_space")
    key = next((key for key in space if getattr(space[key], "shape", None) is not None), None)
    if key is None:
        raise NotExercisedError("no part of the observations is an array")
    _wrap(play, "VecExtractDictObs", f"VecExtractDictObs(env, {key!r})")
    for _ in _walk(play):
        play.demand("isinstance(obs, np.ndarray)", "type(obs)", "an array")
        for i in play.ended():
            what = f"infos[{i}]['terminal_observation']"
            play.demand(f"inside(env.observation_space, {what})", what, "the entry alone", i)


@error(group="working with SB3", source=_RL_TIPS, needs=_SB3, after=_TRAINS)
def trains_ppo(play: Play) -> None:
    """PPO trains on the environment for a few hundred steps.

    It adds to rewards in place, values `terminal_observation`, and passes clipped actions.
    """
    play.make()
    _train(play, "PPO", "n_steps=16, batch_size=16, n_epochs=1", 16 * play.n)


@error(group="working with SB3", source=_RL_TIPS, needs=_SB3, after=_TRAINS)
def trains_off_policy(play: Play) -> None:
    """DQN, or SAC where actions are continuous, trains on the environment for a few hundred steps.

    It copies observations, puts `terminal_observation` into the rows that are done, and reads
    `TimeLimit.truncated` in every info.
    """
    play.make()
    discrete = isinstance(play.value("env.action_space"), spaces.Discrete)
    settings = "buffer_size=400, batch_size=16, learning_starts=50, train_freq=8"
    _train(play, "DQN" if discrete else "SAC", settings, 2 * 400)


def _train(play: Play, algorithm: str, settings: str, kept: int) -> None:
    space, actions = play.value("env.observation_space"), play.value("env.action_space")
    if not _learnable(space) or not _usable(actions, algorithm):
        raise NotExercisedError("the algorithm does not take these spaces")
    # In the buffer observations may be of bytes; a minibatch of 16 is of floats.
    _must_fit(_values(space) * (_PER_VALUE + 16 * 4) + kept * _bytes(space))
    policy = "MultiInputPolicy" if isinstance(space, spaces.Dict) else "MlpPolicy"
    play.run(f"from stable_baselines3 import {algorithm}")
    settings += ", policy_kwargs={'net_arch': [8]}, device='cpu'"
    if play.subject.capabilities.get("seeding"):  # the algorithm passes its seed on to `env.seed`
        settings += ", seed=0"
    make = f"{algorithm}({policy!r}, env, {settings})"
    play.run(f"model = []\nerror = caught(lambda: model.append({make}))")
    play.demand("error is None", "error", f"None, as {algorithm} takes such environments")
    play.run(f"error = caught(lambda: model[0].learn({_TOTAL}))")
    play.demand("error is None", "error", f"None: {algorithm} learns")
    done = "model[0].num_timesteps"
    play.demand(f"{done} >= {_TOTAL}", done, f"at least {_TOTAL}")


def _bytes(space: Any) -> int:
    return int(
        sum(np.prod(part.shape) * part.dtype.itemsize for _, part in leaves(space) if part.shape)
    )


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
