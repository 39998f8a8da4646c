"""Drive the sub-environments of a bare `SyncVectorEnv` or `AsyncVectorEnv` one by one.

Their own `step` batches the infos, which loses what the sub-environments said: of the values 1 and
1.75 of two rows it makes `[1, 1]`, and it raises for arrays of different shapes. Row by row,
everything arrives as `DummyVecEnv` would see it, from all three autoreset modes alike: the step,
and, where the episode has ended, `reset()` without arguments.

With vector wrappers in between, or for any other class, `autoreset.py` does the work instead.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode
from gymnasium.vector.async_vector_env import AsyncState

from sb3compat._convert.arrays import copy_value
from sb3compat._convert.infos import TERMINAL_OBSERVATION, TRUNCATED, Info
from sb3compat._upstream import async_vector_env as workers
from sb3compat.errors import ConversionError

if TYPE_CHECKING:
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

    from sb3compat._convert.observations import Actions, Array, Observations


class Transition(NamedTuple):
    """One step of all rows, in SB3's terms."""

    observations: list[Array]
    rewards: npt.NDArray[np.float32]
    dones: npt.NDArray[np.bool_]
    infos: list[Info]
    # The infos of the resets within the step, by row.
    reset_infos: dict[int, Info]


def own_info(info: Info, *, copy: bool) -> Info:
    """A new dict with the sub-environment's info."""
    return {key: copy_value(value) for key, value in info.items()} if copy else dict(info)


def reset_kwargs(seed: int | None, options: dict[str, Any]) -> dict[str, Any]:
    """What `DummyVecEnv` passes to a sub-environment's `reset`."""
    return {"seed": seed, "options": options} if options else {"seed": seed}


def set_reward(rewards: npt.NDArray[np.float32], row: int, reward: Any) -> None:
    """Store one reward as float32, or say what is wrong with it."""
    try:
        rewards[row] = reward
    except (TypeError, ValueError) as error:
        raise ConversionError(
            f"Expected the reward of row {row} to be one number, got reward={reward!r:.200} "
            f"({type(reward).__name__}). Stable-Baselines3 knows no vector rewards: scalarise "
            "them in a wrapper around each sub-environment."
        ) from error


class SyncRows:
    """The sub-environments of a `SyncVectorEnv`, in this process.

    Args:
        env: The vector environment.
        observations: The layout of its observations.
        actions: The layout of its actions.
        copy: Whether each step returns arrays and infos of its own.
    """

    def __init__(
        self,
        env: SyncVectorEnv[Any, Any],
        observations: Observations,
        actions: Actions,
        *,
        copy: bool,
    ) -> None:
        self._envs = env.envs
        self._env = env
        self._observations = observations
        self._actions = actions
        self._copy = copy
        self._batch = observations.empty()
        self._pending: list[Any] = []

    def check_options(self, options: Sequence[dict[str, Any]]) -> None:
        """Every row takes options of its own."""

    def reset(
        self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]
    ) -> tuple[list[Array], list[Info]]:
        """Reset all rows."""
        batch = self._new_batch()
        infos = []
        # The environment's own notes, so that it can be driven by itself again at any time.
        held: list[Any] = self._env._env_obs
        self._env._autoreset_envs[:] = False
        for i, env in enumerate(self._envs):
            held[i], info = env.reset(**reset_kwargs(seeds[i], options[i]))
            self._observations.write(batch, i, held[i])
            infos.append(own_info(info, copy=self._copy))
        return batch, infos

    def send(self, actions: list[Array]) -> None:
        """Note the actions; there is nobody to send them to."""
        self._pending = self._actions.rows(actions)

    def receive(self) -> Transition:
        """Step each row, and reset those that end."""
        observations, batch = self._observations, self._new_batch()
        n = len(self._envs)
        rewards, dones = np.empty(n, np.float32), np.empty(n, np.bool_)
        infos: list[Info] = []
        reset_infos: dict[int, Info] = {}
        held: list[Any] = self._env._env_obs
        for i, (env, action) in enumerate(zip(self._envs, self._pending, strict=True)):
            obs, reward, terminated, truncated, step_info = env.step(action)
            info = own_info(step_info, copy=self._copy)
            info.pop(TERMINAL_OBSERVATION, None)  # only the adapter says what is terminal
            info[TRUNCATED] = bool(truncated and not terminated)
            set_reward(rewards, i, reward)
            dones[i] = done = bool(terminated or truncated)
            if done:
                # Before the reset, which may overwrite the very array that `step` returned.
                info[TERMINAL_OBSERVATION] = observations.single(obs, copy=True)
                obs, reset_info = env.reset()
                reset_infos[i] = own_info(reset_info, copy=self._copy)
            held[i] = obs
            observations.write(batch, i, obs)
            infos.append(info)
        return Transition(batch, rewards, dones, infos, reset_infos)

    def cancel(self) -> None:
        """Forget the actions noted."""
        self._pending = []

    def render(self) -> Any:
        """One frame for each row."""
        return self._env.render()

    def close(self) -> None:
        """Close the vector environment, and with it each sub-environment."""
        self._env.close()

    def _new_batch(self) -> list[Array]:
        return self._observations.empty() if self._copy else self._batch


class AsyncRows:
    """The workers of an `AsyncVectorEnv`, spoken to over their pipes.

    Args:
        env: The vector environment, with Gymnasium's own worker.
        observations: The layout of its observations.
        actions: The layout of its actions.
        copy: Whether each step returns arrays of its own.
        timeout: How many seconds a step or reset may take; None for ever.
    """

    def __init__(
        self,
        env: AsyncVectorEnv[Any, Any],
        observations: Observations,
        actions: Actions,
        *,
        copy: bool,
        timeout: float | None,
    ) -> None:
        workers.check_ready(env)
        self._env = env
        self._observations = observations
        self._actions = actions
        self._copy = copy
        self._batch = observations.empty()
        self._timeout = timeout
        self._repeats = RepeatWatch()

    def check_options(self, options: Sequence[dict[str, Any]]) -> None:
        """Every row takes options of its own."""

    def reset(
        self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]
    ) -> tuple[list[Array], list[Info]]:
        """Reset all rows, in parallel."""
        rows = range(self._env.num_envs)
        kwargs = [reset_kwargs(seeds[i], options[i]) for i in rows]
        results = workers.reset(self._env, rows, kwargs, self._timeout)
        batch = self._batch_of(rows, [obs for obs, _ in results])
        if self._env.autoreset_mode == AutoresetMode.SAME_STEP:
            for _, info in results:
                refuse_final_keys(info)
        return batch, [own_info(info, copy=False) for _, info in results]

    def send(self, actions: list[Array]) -> None:
        """Send every worker its action; they step while the caller does something else."""
        single = self._actions.rows(actions)
        if isinstance(self._env.single_action_space, Discrete):
            # To pickle takes as long as to send, and few actions are different.
            pickled = {action: pickle.dumps(("step", action)) for action in set(single)}
            messages = [pickled[action] for action in single]
        else:
            messages = [pickle.dumps(("step", action)) for action in single]
        workers.send(self._env, dict(enumerate(messages)))
        # So that the environment knows what is going on, when it is closed for instance.
        self._env._state = AsyncState.WAITING_STEP

    def receive(self) -> Transition:
        """Collect the step, and have the rows that ended reset, in parallel."""
        n = self._env.num_envs
        rewards, dones = np.empty(n, np.float32), np.empty(n, np.bool_)
        results = workers.receive(self._env, range(n), self._timeout)
        self._env._state = AsyncState.DEFAULT
        batch = self._batch_of(range(n), [result[0] for result in results])
        same_step = self._env.autoreset_mode == AutoresetMode.SAME_STEP
        infos: list[Info] = []
        reset_infos: dict[int, Info] = {}
        for i, (obs, reward, terminated, truncated, step_info) in enumerate(results):
            set_reward(rewards, i, reward)
            dones[i] = done = bool(terminated or truncated)
            info = own_info(step_info, copy=False)
            if done and same_step:
                reset_info = info
                final = reset_info.pop("final_obs")
                info = own_info(reset_info.pop("final_info"), copy=False)
                info[TRUNCATED] = bool(truncated and not terminated)
                info[TERMINAL_OBSERVATION] = self._final(i, obs, final, batch)
                reset_infos[i] = reset_info
            else:
                info.pop(TERMINAL_OBSERVATION, None)
                info[TRUNCATED] = bool(truncated and not terminated)
                if done:
                    info[TERMINAL_OBSERVATION] = (
                        self._observations.rows(batch, np.array([i]))[0]
                        if self._env.shared_memory
                        else self._observations.single(obs, copy=False)
                    )
            infos.append(info)
        if dones.any() and not same_step:
            reset_infos = self._reset_rows(np.flatnonzero(dones).tolist(), batch)
        return Transition(batch, rewards, dones, infos, reset_infos)

    def cancel(self) -> None:
        """Let the step that is under way come to its end, and drop it."""
        if self._env._state == AsyncState.WAITING_STEP:
            self._env._state = AsyncState.DEFAULT
            workers.receive(self._env, range(self._env.num_envs), self._timeout)

    def render(self) -> Any:
        """One frame for each row."""
        return workers.call(self._env, "render", (), {}, range(self._env.num_envs))

    def close(self) -> None:
        """Close the vector environment; workers that can no longer answer are terminated."""
        with suppress(Exception):  # the worker's own; it is gone either way
            if not self._env.closed:
                self.cancel()
        workers.close(self._env)

    def _reset_rows(self, rows: list[int], batch: list[Array]) -> dict[int, Info]:
        """Reset the rows that ended, by `reset()` without arguments.

        In NEXT_STEP mode by the autoreset that the worker has pending: its next step, whatever the
        action. A reset command would leave it pending where there is no shared memory (an upstream
        bug, see `workers`).
        """
        next_step = self._env.autoreset_mode == AutoresetMode.NEXT_STEP
        message: tuple[str, Any] = ("step", None) if next_step else ("reset", {})
        workers.send(self._env, dict.fromkeys(rows, message))
        results = workers.receive(self._env, rows, self._timeout)
        self._write(batch, rows, [result[0] for result in results])
        return {
            i: own_info(result[-1], copy=False) for i, result in zip(rows, results, strict=True)
        }

    def _batch_of(self, rows: Sequence[int], observations: list[Any]) -> list[Array]:
        batch = self._observations.empty() if self._copy else self._batch
        self._write(batch, rows, observations)
        return batch

    def _write(self, batch: list[Array], rows: Sequence[int], observations: list[Any]) -> None:
        if not self._env.shared_memory:
            for i, obs in zip(rows, observations, strict=True):
                self._observations.write(batch, i, obs)
            return
        shared = self._observations.batch(self._env.observations, copy=False)
        for array, source in zip(batch, shared, strict=True):
            if len(rows) == len(array):
                array[...] = source
            else:
                array[rows] = source[rows]

    def _final(self, row: int, obs: Any, final: Any, batch: list[Array]) -> Any:
        """The last observation of a SAME_STEP worker, if it is still the last one.

        The worker steps, resets, and only then sends both observations. If the sub-environment
        returns one and the same array each time, the last observation is lost by then.
        """
        if not self._env.shared_memory:
            refuse_same_memory(self._observations, row, obs, final)
        final = self._observations.single(final, copy=False)
        self._observations.check_shape(final, f"the last observation of row {row}")
        self._repeats.note(row, self._observations, final, batch)
        return final


def refuse_final_keys(info: Info) -> None:
    """Refuse reset infos with the names under which SAME_STEP environments report an ending."""
    taken = sorted({"final_obs", "final_observation", "final_info"}.intersection(info))
    if taken:
        raise ConversionError(
            f"Expected infos of a reset without the keys {taken}, which in SAME_STEP mode hold the "
            "last observation and info of an episode. Rename them in the sub-environment, or use "
            "autoreset_mode=AutoresetMode.NEXT_STEP."
        )


def refuse_same_memory(observations: Observations, row: int, first: Any, final: Any) -> None:
    """Refuse a last observation that shares its memory with what the reset has returned."""
    pairs = list(zip(observations.unpack(final), observations.unpack(first), strict=True))
    arrays = [(a, b) for a, b in pairs if isinstance(a, np.ndarray) and isinstance(b, np.ndarray)]
    # One array among several may be the same by design: a goal that never changes.
    shared = bool(arrays) and all(np.shares_memory(a, b) for a, b in arrays)
    if shared or (final is first and isinstance(final, dict | list)):
        raise ConversionError(
            f"Expected the sub-environment of row {row} to return a new observation from reset, "
            "got the very array (or dict, or list) that its last step returned: the last "
            f"observation of the episode is overwritten. {_RETURN_COPIES}"
        )


class RepeatWatch:
    """Warns once of last observations that look overwritten by the reset.

    In floats or many numbers, one that equals the first observation of the next episode is enough.
    Few small integers repeat by chance: there, it takes a run of them from the start.

    Args:
        advice: What to do about it.
    """

    def __init__(self, advice: str | None = None) -> None:
        self._advice = _RETURN_COPIES if advice is None else advice
        self._endings = 0
        self._done = False

    def note(self, row: int, observations: Observations, final: Any, batch: list[Array]) -> None:
        """Take note of one ending."""
        if self._done:
            return
        self._endings += 1
        if not observations.repeats(batch, row, final):
            # Where one differs, small integers have told enough; floats are looked at each time.
            self._done = not observations.telling
        elif observations.telling or self._endings >= _REPEATS:
            self._done = True
            warnings.warn(
                f"The last observation of row {row} equals the first one of its next episode. If "
                "that is not by design, the sub-environment returns the same array from each step "
                "and reset, or the vector environment reports the reset observation as the last "
                f"one. {self._advice}",
                stacklevel=2,
            )


_REPEATS = 8

_RETURN_COPIES = (
    "Return copies from the sub-environments, or build the vector environment with "
    "autoreset_mode=AutoresetMode.NEXT_STEP."
)
