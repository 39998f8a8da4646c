"""A `VecEnv` as the part of a worker: SB3's own ones, with wrappers, or a nested one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sb3compat._convert.actions import Actions
from sb3compat._convert.arrays import row_array
from sb3compat._convert.infos import TERMINAL_OBSERVATION, TRUNCATED
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import (
    Array,
    Info,
    Options,
    Seeds,
    Transition,
    Value,
)
from sb3compat._to_gymnasium.whole import rows_take_seeds
from sb3compat._upstream.vec_env import set_waiting_seeds
from sb3compat.errors import MissingFinalObservationError, MissingTruncationError


class VecEnvSource:
    """Drives a `VecEnv` through its own methods.

    Args:
        vec_env: The environment.
        observations: The layout of its observations.
        actions: The layout of its actions.
    """

    busy = False
    started = False
    broken = False

    def __init__(self, vec_env: Any, observations: Observations, actions: Actions) -> None:
        self._vec_env = vec_env
        # Wrappers have a `reset_infos` of their own, which stays empty.
        self._base = getattr(vec_env, "unwrapped", vec_env)
        self._observations = observations
        self._actions = actions
        self._waiting = False

    @property
    def seeds_rows(self) -> bool:
        """Whether a reset gives each row a seed of its own."""
        return rows_take_seeds(self._vec_env)

    def check_options(self, options: Sequence[Options]) -> None:
        """Set them, which is when a `VecEnv` refuses options."""
        self._vec_env.set_options(list(options))

    def reset(self, seeds: Seeds, options: Sequence[Options]) -> tuple[list[Array], list[Info]]:
        """Reset all rows, with the options that `check_options` has set, and these seeds.

        Where there are none, those that wait in the `VecEnv` itself are for this reset.
        """
        first = seeds[0]
        if first is not None and list(seeds) == [first + i for i in range(len(seeds))]:
            self._vec_env.seed(first)
        elif any(seed is not None for seed in seeds):
            set_waiting_seeds(self._base, seeds)
        batch = self._observations.batch(self._vec_env.reset(), copy=False)
        return batch, list(self._base.reset_infos)

    def check_started(self) -> None:
        """No autoreset is pending in a `VecEnv`."""

    def send(self, actions: list[Array]) -> None:
        """Start the step."""
        self._waiting = True
        keys = self._actions.keys
        packed = actions[0] if keys is None else self._actions.rows(actions)
        self._vec_env.step_async(packed)

    def receive(self) -> Transition:
        """Finish the step."""
        self._waiting = False
        obs, rewards, dones, infos = self._vec_env.step_wait()
        ended = np.asarray(dones, np.bool_)
        truncated = np.zeros(len(ended), np.bool_)
        row_infos = [dict(info) if type(info) is dict else info for info in infos]
        reset_infos: dict[int, Info] = {}
        for i in np.flatnonzero(ended).tolist():
            if TRUNCATED not in row_infos[i]:
                raise MissingTruncationError(
                    f"Expected infos[{i}][{TRUNCATED!r}] at the end of an episode from "
                    f"{self._vec_env}, got the keys {sorted(map(str, row_infos[i]))}. Add it to "
                    "that VecEnv."
                )
            truncated[i] = bool(row_infos[i][TRUNCATED])
            if TERMINAL_OBSERVATION not in row_infos[i]:
                raise MissingFinalObservationError(
                    f"Expected infos[{i}][{TERMINAL_OBSERVATION!r}] at the end of an episode from "
                    f"{self._vec_env}, got the keys {sorted(map(str, row_infos[i]))}. Add it to "
                    "that VecEnv."
                )
            final = self._observations.single(row_infos[i][TERMINAL_OBSERVATION], copy=False)
            row_infos[i][TERMINAL_OBSERVATION] = final
            reset_infos[i] = self._base.reset_infos[i]
        batch = self._observations.batch(obs, copy=False)
        numbers = row_array(rewards, len(ended), "rewards")
        return Transition(batch, numbers, ended, truncated, row_infos, reset_infos)

    def cancel(self) -> None:
        """Wait for the step that is under way, and drop its results."""
        if self._waiting:
            self._waiting = False
            self._vec_env.step_wait()

    def render(self) -> Value:
        """One frame for each row."""
        return self._vec_env.get_images()

    def close(self) -> None:
        """Close the environment."""
        self._vec_env.close()
