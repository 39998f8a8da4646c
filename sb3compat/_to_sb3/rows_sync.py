"""Drive single environments one by one: those of a bare `SyncVectorEnv`, or of a worker.

`SyncVectorEnv.step` batches the infos, which changes values: 1 and 1.75 of two rows become
`[1, 1]`, and arrays of different shapes raise. Driven row by row, every value arrives as in
`DummyVecEnv`. All three autoreset modes are driven alike: each row is stepped and, if its episode
has ended, reset by `reset()` without arguments.

`rows_async.py` does the same for a bare `AsyncVectorEnv`. With vector wrappers in between, or for
any other class, `whole.py` and `modes.py` do the work instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sb3compat._convert.actions import Actions
from sb3compat._convert.arrays import copy_dict
from sb3compat._convert.infos import (
    TERMINAL_OBSERVATION,
    TRUNCATED,
    checked_info,
    own_info,
)
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import (
    Action,
    AnySync,
    Array,
    Info,
    Observation,
    Options,
    Seeds,
    SingleEnv,
    Transition,
)
from sb3compat._rows.commands import reset_result, wrong_result
from sb3compat._to_sb3.rows import reset_kwargs, set_reward, step_info
from sb3compat._upstream.sync_vector_env import (
    forget_endings,
    held_observations,
)


class EnvRows:
    """Single environments in this process, stepped one by one.

    Args:
        owner: The object whose list `envs` they are in; it is read anew each time, as the list
            may be replaced.
        observations: The layout of a batch of their observations.
        actions: The layout of a batch of actions.
        copy: Whether infos are copied.
        batch: Where observations are written; None for new arrays with each step.
        held: The last observation of each row is stored here.

    Attributes:
        batch: As given.
        failed: The row that was being stepped or reset when the last exception was raised.
    """

    seeds_rows = True
    busy = False
    broken = False
    failed = 0

    def __init__(
        self,
        owner: Any,
        observations: Observations,
        actions: Actions,
        *,
        copy: bool,
        batch: list[Array] | None,
        held: list[Observation],
    ) -> None:
        self.batch = batch
        self._owner = owner
        self._observations = observations
        self._actions = actions
        # Each row gets a new dict; with `copy`, its values are copied as well.
        self._own_dict: Callable[[Info], Info] = copy_dict if copy else dict
        self._copy = copy
        self._held = held
        self._pending: list[Action] = []

    @property
    def _envs(self) -> list[SingleEnv]:
        envs: list[SingleEnv] = self._owner.envs
        return envs

    def number_from(self, first: int) -> None:
        """Number the rows from `first` on in messages, where they are a part of more."""
        self._observations.first = first

    def check_options(self, options: Sequence[Options]) -> None:
        """Every row takes options of its own."""

    def reset(self, seeds: Seeds, options: Sequence[Options]) -> tuple[list[Array], list[Info]]:
        """Reset all rows."""
        batch = self._observations.empty() if self.batch is None else self.batch
        infos = []
        held, i = self._held, 0
        try:
            for i, env in enumerate(self._envs):
                result = env.reset(**reset_kwargs(seeds[i], options[i]))
                held[i], info = reset_result(result)
                self._observations.write(batch, i, held[i])
                infos.append(self._own_reset_info(info))
        except BaseException:
            self.failed = i
            raise
        return batch, infos

    def send(self, actions: list[Array]) -> None:
        """Keep the actions for `receive`; there are no workers to send them to."""
        self._pending = self._actions.rows(actions)

    def receive(self) -> Transition:
        """Step each row, and reset the rows that end."""
        envs, n = self._envs, len(self._pending)
        batch = self._observations.empty() if self.batch is None else self.batch
        rewards = np.empty(n, np.float32)
        ended, truncated = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        observations, held, own_dict = self._observations, self._held, self._own_dict
        # In most environments an observation is one array, which one assignment copies. There is
        # none in an empty Dict or Tuple.
        whole, shape = batch[0] if batch else np.empty(0), observations.only_shape
        infos: list[Info] = []
        reset_infos: dict[int, Info] = {}
        i = 0
        try:
            for i, (env, action) in enumerate(zip(envs, self._pending, strict=True)):
                result = env.step(action)
                try:
                    obs, reward, termination, truncation, given = result
                except (TypeError, ValueError):
                    raise wrong_result("step", result) from None
                cut = bool(truncation and not termination)
                if given == {}:  # by far the most common info
                    info = {TRUNCATED: cut}
                else:
                    info = step_info(own_dict(checked_info(given)), truncated=cut)
                set_reward(rewards, i, reward, first=observations.first)
                if termination or truncation:
                    ended[i], truncated[i] = True, cut
                    # Before the reset, which may overwrite the array that `step` returned.
                    info[TERMINAL_OBSERVATION] = observations.single(obs, copy=True)
                    obs, reset_info = reset_result(env.reset())
                    reset_infos[i] = self._own_reset_info(reset_info)
                held[i] = obs
                if type(obs) is np.ndarray and obs.shape == shape:
                    whole[i] = obs
                else:
                    observations.write(batch, i, obs)
                infos.append(info)
        except BaseException:
            self.failed = i
            raise
        return Transition(batch, rewards, ended, truncated, infos, reset_infos)

    def _own_reset_info(self, info: Any) -> Any:
        """`DummyVecEnv` keeps what a reset gives, also what cannot be copied, or is no dict."""
        if not isinstance(info, dict):
            return info
        return own_info(info) if self._copy else dict(info)

    def cancel(self) -> None:
        """Forget the actions."""
        self._pending = []

    def render(self) -> Any:
        """One frame for each row."""
        return [env.render() for env in self._envs]

    def close(self) -> None:
        """Close each environment."""
        for env in self._envs:
            env.close()


class SyncRows(EnvRows):
    """The sub-environments of a `SyncVectorEnv`, in this process.

    Args:
        env: The vector environment. Its own state is kept up to date, so that it can be driven
            directly again.
        observations: The layout of its observations.
        actions: The layout of its actions.
        copy: Whether each step returns arrays and infos of its own.
    """

    def __init__(
        self, env: AnySync, observations: Observations, actions: Actions, *, copy: bool
    ) -> None:
        batch = None if copy else observations.empty()
        held = held_observations(env)
        super().__init__(env, observations, actions, copy=copy, batch=batch, held=held)
        self._env = env

    def reset(self, seeds: Seeds, options: Sequence[Options]) -> tuple[list[Array], list[Info]]:
        """Reset all rows."""
        self._held = held_observations(self._env)
        forget_endings(self._env)
        return super().reset(seeds, options)

    def close(self) -> None:
        """Close the vector environment, and with it each sub-environment."""
        self._env.close()
