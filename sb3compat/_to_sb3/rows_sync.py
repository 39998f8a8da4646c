"""Drive the sub-environments of a bare `SyncVectorEnv` one by one.

Its own `step` batches the infos, which changes values: 1 and 1.75 of two rows become `[1, 1]`, and
arrays of different shapes raise. Driven row by row, every value arrives as in `DummyVecEnv`. All
three autoreset modes are driven alike: each row is stepped and, if its episode has ended, reset by
`reset()` without arguments.

`rows_async.py` does the same for a bare `AsyncVectorEnv`. With vector wrappers in between, or for
any other class, `whole.py` and `modes.py` do the work instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sb3compat._convert.actions import Actions
from sb3compat._convert.infos import TERMINAL_OBSERVATION
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import Action, AnySync, Array, Info, Options, Seeds, Transition, Value
from sb3compat._to_sb3.rows import (
    own_info,
    refuse_pending,
    reset_kwargs,
    set_reward,
    step_info,
)
from sb3compat._upstream.sync_vector_env import (
    forget_autoresets,
    held_observations,
    pending_autoresets,
)


class SyncRows:
    """The sub-environments of a `SyncVectorEnv`, in this process.

    Args:
        env: The vector environment.
        observations: The layout of its observations.
        actions: The layout of its actions.
        copy: Whether each step returns arrays and infos of its own.
    """

    seeds_rows = True
    busy = False
    broken = False

    def __init__(
        self,
        env: AnySync,
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
        self._pending: list[Action] = []

    def check_options(self, options: Sequence[Options]) -> None:
        """Every row takes options of its own."""

    def reset(self, seeds: Seeds, options: Sequence[Options]) -> tuple[list[Array], list[Info]]:
        """Reset all rows."""
        batch = self._new_batch()
        infos = []
        # The environment's own state is kept up to date, so that it can be driven directly again.
        held = held_observations(self._env)
        forget_autoresets(self._env)
        for i, env in enumerate(self._envs):
            held[i], info = env.reset(**reset_kwargs(seeds[i], options[i]))
            self._observations.write(batch, i, held[i])
            infos.append(own_info(info, copy=self._copy))
        return batch, infos

    def check_started(self) -> None:
        """Refuse a first step where rows have ended."""
        refuse_pending(self._env, pending_autoresets(self._env))

    def send(self, actions: list[Array]) -> None:
        """Keep the actions for `receive`; there are no workers to send them to."""
        self._pending = self._actions.rows(actions)

    def receive(self) -> Transition:
        """Step each row, and reset the rows that end."""
        observations, batch = self._observations, self._new_batch()
        n = len(self._envs)
        rewards = np.empty(n, np.float32)
        ended, truncated = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        infos: list[Info] = []
        reset_infos: dict[int, Info] = {}
        held = held_observations(self._env)
        for i, (env, action) in enumerate(zip(self._envs, self._pending, strict=True)):
            obs, reward, termination, truncation, given = env.step(action)
            cut = bool(truncation and not termination)
            info = step_info(given, truncated=cut, copy=self._copy)
            set_reward(rewards, i, reward)
            if termination or truncation:
                ended[i], truncated[i] = True, cut
                # Before the reset, which may overwrite the very array that `step` returned.
                info[TERMINAL_OBSERVATION] = observations.single(obs, copy=True)
                obs, reset_info = env.reset()
                reset_infos[i] = own_info(reset_info, copy=self._copy)
            held[i] = obs
            observations.write(batch, i, obs)
            infos.append(info)
        return Transition(batch, rewards, ended, truncated, infos, reset_infos)

    def cancel(self) -> None:
        """Forget the actions."""
        self._pending = []

    def render(self) -> Value:
        """One frame for each row."""
        return self._env.render()

    def close(self) -> None:
        """Close the vector environment, and with it each sub-environment."""
        self._env.close()

    def _new_batch(self) -> list[Array]:
        return self._observations.empty() if self._copy else self._batch
