"""Drive the sub-environments of a bare `AsyncVectorEnv` one by one, over its workers' pipes."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode

from sb3compat._convert.actions import Actions
from sb3compat._convert.infos import TERMINAL_OBSERVATION, TRUNCATED, refuse_final_keys
from sb3compat._convert.observations import Observations
from sb3compat._convert.repeats import RepeatWatch, refuse_same_memory
from sb3compat._convert.types import (
    AnyAsync,
    Array,
    Info,
    Observation,
    Options,
    Seeds,
    Transition,
)
from sb3compat._ipc import async_vector_env as workers
from sb3compat._ipc.pipes import Deadline
from sb3compat._rows.subenvs import AsyncCommands
from sb3compat._to_sb3.rows import received_info, reset_kwargs, set_reward, step_info


class AsyncRows:
    """The workers of an `AsyncVectorEnv`, spoken to over their pipes.

    Args:
        env: The vector environment, with Gymnasium's own worker.
        observations: The layout of its observations.
        actions: The layout of its actions.
        copy: Whether each step returns arrays of its own.
        timeout: How many seconds a step or reset may take; None for ever.
    """

    seeds_rows = True

    def __init__(
        self,
        env: AnyAsync,
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
        self._commands = AsyncCommands(env)
        self._repeats = RepeatWatch()
        self._shares_memory = workers.shares_memory(env)
        self._same_step = env.autoreset_mode == AutoresetMode.SAME_STEP
        # Whether the step that is under way, if there is one, was started here.
        self._started = False

    @property
    def busy(self) -> bool:
        """Whether the workers are in the middle of a step that was started here."""
        return self._started and workers.is_stepping(self._env)

    @property
    def broken(self) -> bool:
        """Whether a worker is lost."""
        return workers.is_broken(self._env)

    def check_options(self, options: Sequence[Options]) -> None:
        """Every row takes options of its own."""

    def reset(self, seeds: Seeds, options: Sequence[Options]) -> tuple[list[Array], list[Info]]:
        """Reset all rows, in parallel."""
        rows = range(self._env.num_envs)
        kwargs = [reset_kwargs(seeds[i], options[i]) for i in rows]
        results = workers.reset(self._env, rows, kwargs, self._timeout)
        batch = self._batch_of(rows, [obs for obs, _ in results])
        if self._same_step:
            for _, info in results:
                refuse_final_keys(info)
        return batch, [received_info(info) for _, info in results]

    def send(self, actions: list[Array]) -> None:
        """Send every worker its action; the workers step while the caller goes on."""
        single = self._actions.rows(actions)
        if isinstance(self._env.single_action_space, Discrete):
            # Pickling takes as long as sending, and there are few different actions.
            pickled = {action: pickle.dumps(("step", action)) for action in set(single)}
            messages = [pickled[action] for action in single]
        else:
            messages = [pickle.dumps(("step", action)) for action in single]
        workers.check_ready(self._env)
        self._started = True
        workers.send_step(self._env, dict(enumerate(messages)), Deadline(self._timeout))

    def receive(self) -> Transition:
        """Collect the step, and have the rows that ended reset, in parallel."""
        n = self._env.num_envs
        rewards = np.empty(n, np.float32)
        ended, truncated = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        deadline = Deadline(self._timeout)
        results = workers.receive_step(self._env, deadline)
        self._started = False
        batch = self._batch_of(range(n), [result[0] for result in results])
        infos: list[Info] = []
        reset_infos: dict[int, Info] = {}
        for i, (obs, reward, termination, truncation, given) in enumerate(results):
            set_reward(rewards, i, reward)
            ended[i] = bool(termination or truncation)
            truncated[i] = cut = bool(truncation and not termination)
            if ended[i] and self._same_step:
                info, reset_infos[i] = self._same_step_infos(i, obs, given, batch)
                info[TRUNCATED] = cut
            else:
                info = step_info(received_info(given), truncated=cut)
                if ended[i]:
                    info[TERMINAL_OBSERVATION] = self._last(i, obs, batch)
            infos.append(info)
        if ended.any() and not self._same_step:
            reset_infos = self._reset_rows(np.flatnonzero(ended).tolist(), batch, deadline)
        return Transition(batch, rewards, ended, truncated, infos, reset_infos)

    def cancel(self) -> None:
        """Wait for the step that is under way, and drop its results."""
        workers.check_turn(self._env)
        if self.busy:
            workers.receive_step(self._env, Deadline(self._timeout))
        self._started = False

    def render(self) -> Any:
        """One frame for each row."""
        return self._commands.render()

    def close(self) -> None:
        """Close the vector environment; workers that can no longer answer are terminated."""
        with suppress(Exception):  # from a worker, which is closed anyway
            if not self._env.closed:
                self.cancel()
        workers.close(self._env)

    def _reset_rows(
        self, rows: list[int], batch: list[Array], deadline: Deadline
    ) -> dict[int, Info]:
        """Reset the rows that ended, by `reset()` without arguments.

        In NEXT_STEP mode, the worker has an autoreset pending: its next step, whatever the action,
        is that reset. A reset command would leave the autoreset pending without shared memory (an
        upstream bug, see `lingering_autoresets`).
        """
        next_step = self._env.autoreset_mode == AutoresetMode.NEXT_STEP
        message: tuple[str, Any] = ("step", None) if next_step else ("reset", {})
        results = workers.ask(self._env, dict.fromkeys(rows, message), deadline)
        self._write(batch, rows, [result[0] for result in results])
        return {i: received_info(result[-1]) for i, result in zip(rows, results, strict=True)}

    def _batch_of(self, rows: Sequence[int], observations: list[Observation]) -> list[Array]:
        batch = self._observations.empty() if self._copy else self._batch
        self._write(batch, rows, observations)
        return batch

    def _write(
        self, batch: list[Array], rows: Sequence[int], observations: list[Observation]
    ) -> None:
        if not self._shares_memory:
            for i, obs in zip(rows, observations, strict=True):
                self._observations.write(batch, i, obs)
            return
        shared = self._observations.batch(
            workers.shared_batch(self._env), copy=False, source=self._env
        )
        for array, source in zip(batch, shared, strict=True):
            if len(rows) == len(array):
                array[...] = source
            else:
                array[rows] = source[rows]

    def _last(self, row: int, obs: Observation, batch: list[Array]) -> Observation:
        """The last observation of an episode, where the worker has not reset yet."""
        if self._shares_memory:
            return self._observations.rows(batch, np.array([row]))[0]
        return self._observations.single(obs, copy=False)

    def _same_step_infos(
        self, row: int, obs: Observation, given: Info, batch: list[Array]
    ) -> tuple[Info, Info]:
        """The step's info and the reset's, where the worker has reset within the step.

        The worker steps, resets, and only then sends both observations. If the sub-environment
        returns the same array each time, the reset has overwritten the last observation by then.
        """
        reset_info = received_info(given)
        final = reset_info.pop("final_obs")
        info = received_info(reset_info.pop("final_info"))
        if not self._shares_memory:
            refuse_same_memory(row, obs, final)
        self._observations.check_shape(final, f"the last observation of row {row}")
        final = self._observations.single(final, copy=False)
        self._repeats.note(row, self._observations, final, batch)
        info[TERMINAL_OBSERVATION] = final
        return info, reset_info
