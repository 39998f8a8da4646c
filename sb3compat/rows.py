"""Drive the sub-environments of a bare `SyncVectorEnv` or `AsyncVectorEnv` one by one.

Their own `step` batches the infos, which loses what the sub-environments said: of the values 1 and
1.75 of two rows it makes `[1, 1]`, and it raises for arrays of different shapes. Row by row,
everything arrives as `DummyVecEnv` would see it, from all three autoreset modes alike: the step,
and, where the episode has ended, `reset()` without arguments.

With vector wrappers in between, or for any other class, `autoreset.py` does the work instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.async_vector_env import AsyncState

from sb3compat.arrays import copy_value
from sb3compat.errors import ConversionError, UnsupportedEnvError, WorkerError
from sb3compat.infos import TERMINAL_OBSERVATION, TRUNCATED, Info

if TYPE_CHECKING:
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

    from sb3compat.batching import Actions, Array, Observations


class Transition(NamedTuple):
    """One step of all rows, in SB3's terms."""

    observations: list[Array]
    rewards: npt.NDArray[np.float32]
    dones: npt.NDArray[np.bool_]
    infos: list[Info]
    # The infos of the resets within the step, by row.
    reset_infos: dict[int, Info]


def own_info(info: Info, *, copy: bool) -> Info:
    """A new dict with the sub-environment's info, without what only the adapter may say."""
    own = {key: copy_value(value) for key, value in info.items()} if copy else dict(info)
    own.pop(TERMINAL_OBSERVATION, None)
    return own


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
        for i, env in enumerate(self._envs):
            obs, info = env.reset(**reset_kwargs(seeds[i], options[i]))
            self._observations.write(batch, i, obs)
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
        for i, (env, action) in enumerate(zip(self._envs, self._pending, strict=True)):
            obs, reward, terminated, truncated, step_info = env.step(action)
            info = own_info(step_info, copy=self._copy)
            info[TRUNCATED] = bool(truncated and not terminated)
            set_reward(rewards, i, reward)
            dones[i] = done = bool(terminated or truncated)
            if done:
                # Before the reset, which may overwrite the very array that `step` returned.
                info[TERMINAL_OBSERVATION] = observations.single(obs, copy=True)
                obs, reset_info = env.reset()
                reset_infos[i] = own_info(reset_info, copy=self._copy)
            observations.write(batch, i, obs)
            infos.append(info)
        return Transition(batch, rewards, dones, infos, reset_infos)

    def cancel(self) -> None:
        """Forget the actions noted."""
        self._pending = []

    def close(self) -> None:
        """Close the vector environment, and with it each sub-environment."""
        self._env.close()

    def _new_batch(self) -> list[Array]:
        return self._observations.empty() if self._copy else self._batch


class AsyncRows:
    """The workers of an `AsyncVectorEnv`, spoken to over their pipes.

    The protocol (`_async_worker`) is the same in Gymnasium 1.1 to 1.4: a command and its data go
    down the pipe; `(payload, True)` comes back, or `(None, False)` with the exception on
    `error_queue`, after which the worker is gone.

    Args:
        env: The vector environment, with Gymnasium's own worker.
        observations: The layout of its observations.
        actions: The layout of its actions.
        copy: Whether each step returns arrays of its own.
    """

    def __init__(
        self,
        env: AsyncVectorEnv[Any, Any],
        observations: Observations,
        actions: Actions,
        *,
        copy: bool,
    ) -> None:
        if env._state != AsyncState.DEFAULT:
            raise UnsupportedEnvError(
                f"Expected {env} with no call under way, but it is waiting for a pending "
                f"{env._state.value!r}. Finish that first."
            )
        self._env = env
        self._observations = observations
        self._actions = actions
        self._copy = copy
        self._batch = observations.empty()
        self._broken = False
        self._warned = False

    def check_options(self, options: Sequence[dict[str, Any]]) -> None:
        """Every row takes options of its own."""

    def reset(
        self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]
    ) -> tuple[list[Array], list[Info]]:
        """Reset all rows, in parallel."""
        rows = range(self._env.num_envs)
        self._command(rows, [("reset", reset_kwargs(seeds[i], options[i])) for i in rows])
        results = self._results(rows)
        batch = self._batch_of(rows, [obs for obs, _ in results])
        return batch, [own_info(info, copy=False) for _, info in results]

    def send(self, actions: list[Array]) -> None:
        """Send every worker its action; they step while the caller does something else."""
        rows = range(self._env.num_envs)
        self._command(rows, [("step", action) for action in self._actions.rows(actions)])
        # So that the environment knows what is going on, when it is closed for instance.
        self._env._state = AsyncState.WAITING_STEP

    def receive(self) -> Transition:
        """Collect the step, and have the rows that ended reset, in parallel."""
        n = self._env.num_envs
        rewards, dones = np.empty(n, np.float32), np.empty(n, np.bool_)
        results = self._results(range(n))
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
            self.receive()

    def close(self) -> None:
        """Close the vector environment; workers that can no longer answer are terminated."""
        if self._env.closed:
            return
        try:
            self.cancel()
        except Exception:  # the worker's own; it is gone either way
            self._broken = True
        self._env.close(terminate=self._broken)

    def _reset_rows(self, rows: list[int], batch: list[Array]) -> dict[int, Info]:
        """Reset the rows that ended, by `reset()` without arguments.

        In NEXT_STEP mode by the autoreset that the worker has pending: its next step, whatever the
        action. A reset command would leave it pending where there is no shared memory (an upstream
        bug, see `partial_reset`).
        """
        next_step = self._env.autoreset_mode == AutoresetMode.NEXT_STEP
        self._command(rows, [("step", None) if next_step else ("reset", {})] * len(rows))
        results = self._results(rows)
        self._write(batch, rows, [result[0] for result in results])
        return {
            i: own_info(result[-1], copy=False) for i, result in zip(rows, results, strict=True)
        }

    def _command(self, rows: Iterable[int], messages: Iterable[tuple[str, Any]]) -> None:
        if self._broken:
            raise WorkerError(
                "Expected a running AsyncVectorEnv, but an earlier error has stopped some of its "
                "workers. Close this environment and build a new one."
            )
        try:
            for i, message in zip(rows, messages, strict=True):
                self._env.parent_pipes[i].send(message)
        except BaseException as error:
            self._broken = True
            if isinstance(error, OSError):
                raise self._lost(i) from error
            raise

    def _results(self, rows: Iterable[int]) -> list[Any]:
        results, failed = [], []
        try:
            for i in rows:
                payload, success = self._env.parent_pipes[i].recv()
                results.append(payload)
                if not success:
                    failed.append(i)
        except BaseException as error:
            self._broken = True
            self._env._state = AsyncState.DEFAULT
            if isinstance(error, EOFError | OSError):
                raise self._lost(i) from error
            raise
        if failed:
            self._broken = True
            self._env._state = AsyncState.DEFAULT
            # Every failed worker has put its exception on the queue; the first in row order
            # is the one that DummyVecEnv would have met.
            errors = sorted((self._env.error_queue.get() for _ in failed), key=lambda e: int(e[0]))
            index, kind, value, trace = errors[0]
            cause = value if isinstance(value, BaseException) else kind(value)
            raise cause from WorkerError(f"in the worker of row {index}:\n{trace}")
        return results

    def _lost(self, row: int) -> WorkerError:
        return WorkerError(
            f"The worker process of row {row} has died without an answer. "
            "Close this environment and build a new one."
        )

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
            refuse_same_array(self._observations, row, obs, final)
        final = self._observations.single(final, copy=False)
        if not self._warned and self._observations.repeats(batch, row, final):
            self._warned = True
            warn_repeated(row)
        return final


def refuse_same_array(observations: Observations, row: int, first: Any, final: Any) -> None:
    """Refuse a last observation that is the very object which the reset has returned."""
    pairs = zip(observations.unpack(final), observations.unpack(first), strict=True)
    if any(isinstance(a, np.ndarray) and a is b for a, b in pairs):
        raise ConversionError(
            f"Expected the sub-environment of row {row} to return a new array from reset, got the "
            "very array that its last step returned: the last observation of the episode is "
            f"overwritten. {_RETURN_COPIES}"
        )


def warn_repeated(row: int) -> None:
    """Warn of a last observation that looks overwritten."""
    warnings.warn(
        f"The last observation of row {row} equals the first one of its next episode. If that is "
        "not by design, the sub-environment returns the same array from each step and reset, or "
        f"the vector environment reports the reset observation as the last one. {_RETURN_COPIES}",
        stacklevel=2,
    )


_RETURN_COPIES = (
    "Return copies from the sub-environments, or build the vector environment with "
    "autoreset_mode=AutoresetMode.NEXT_STEP."
)
