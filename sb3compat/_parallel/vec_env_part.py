"""A `VecEnv` as the part of a worker: SB3's own ones, with wrappers, or a nested one.

`to_gymnasium` is not used here: it casts observations to the dtype of their space, and rewards to
Gymnasium's, while a part keeps its own dtypes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv

from sb3compat._convert.actions import Actions
from sb3compat._convert.infos import TERMINAL_OBSERVATION, TRUNCATED
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import (
    Array,
    Info,
    Observation,
    Options,
    Seeds,
    Transition,
    holds_vector_env,
)
from sb3compat._to_gymnasium.arguments import pass_seeds, rows_take_seeds
from sb3compat._to_gymnasium.results import ResetInfos, checked_step
from sb3compat._upstream.private import private
from sb3compat._upstream.vec_env import derives_from, inherits, keeps_methods, set_waiting_seeds
from sb3compat.errors import (
    ConversionError,
    MissingFinalObservationError,
    MissingTruncationError,
    shown,
)


class VecEnvSource:
    """Drives a `VecEnv` through its own methods.

    Args:
        vec_env: The environment.
        observations: The layout of its observations.
        actions: The layout of its actions.
    """

    busy = False
    broken = False

    def __init__(self, vec_env: Any, observations: Observations, actions: Actions) -> None:
        self._vec_env = vec_env
        self._base = getattr(vec_env, "unwrapped", vec_env)
        self._observations = observations
        self._actions = actions
        self._reset_infos = ResetInfos(self._base, vec_env.num_envs)
        # SB3's algorithms call `step`, which a class may override.
        self._steps_whole = hasattr(vec_env, "step") and not inherits(vec_env, "step")
        self._sent: Any = None
        self._waiting = False

    @property
    def seeds_rows(self) -> bool:
        """Whether a reset gives each row a seed of its own."""
        return rows_take_seeds(self._vec_env)

    def check_options(self, options: Sequence[Options]) -> None:
        """Set the options, as a `VecEnv` refuses invalid options when they are set."""
        self._vec_env.set_options(list(options))

    def reset(self, seeds: Seeds, options: Sequence[Options]) -> tuple[list[Array], list[Info]]:
        """Reset all rows, with the options that `check_options` has set, and these seeds.

        Without options and seeds, those that were set on the `VecEnv` itself are used.
        """
        pass_seeds(self._vec_env, self._base, seeds)
        try:
            batch = self._batch(self._vec_env.reset())
        except BaseException:
            if any(seed is not None for seed in seeds):
                # The parent passes them again if they are to be used again.
                set_waiting_seeds(self._base, [None] * len(seeds))
            raise
        rows = range(self._vec_env.num_envs)
        return batch, [self._reset_infos.of(row, in_step=False) for row in rows]

    def send(self, actions: list[Array]) -> None:
        """Start the step, so that no part is stepped if one refuses its actions."""
        keys = self._actions.keys
        self._sent = actions[0] if keys is None else self._actions.rows(actions)
        if not self._steps_whole:
            self._vec_env.step_async(self._sent)
            self._waiting = True

    def receive(self) -> Transition:
        """Finish the step, or make it."""
        self._waiting = False
        vec_env = self._vec_env
        result = vec_env.step(self._sent) if self._steps_whole else vec_env.step_wait()
        obs, rewards, ended, infos = checked_step(self._vec_env, result, self._vec_env.num_envs)
        truncated = np.zeros(len(ended), np.bool_)
        row_infos = [dict(info) for info in infos]
        reset_infos: dict[int, Info] = {}
        for i in np.flatnonzero(ended).tolist():
            self._check_ending(row_infos[i], i)
            truncated[i] = bool(row_infos[i][TRUNCATED])
            final = self._observations.single(row_infos[i][TERMINAL_OBSERVATION], copy=False)
            row_infos[i][TERMINAL_OBSERVATION] = final
            reset_infos[i] = self._reset_infos.of(i, in_step=True)
        return Transition(self._batch(obs), rewards, ended, truncated, row_infos, reset_infos)

    def _check_ending(self, info: Info, row: int) -> None:
        missing: dict[str, type[ConversionError]] = {
            TRUNCATED: MissingTruncationError,
            TERMINAL_OBSERVATION: MissingFinalObservationError,
        }
        for key, error in missing.items():
            if info.get(key) is None:
                raise error(
                    f"Expected infos[{row}][{key!r}] at the end of an episode from "
                    f"{self._vec_env}, got the keys {shown(sorted(map(str, info)))}. Add it to "
                    "that VecEnv."
                )

    def _batch(self, obs: Observation) -> list[Array]:
        return self._observations.batch(obs, copy=False, source=self._vec_env)

    def cancel(self) -> None:
        """Drop the step that is under way; its rows have stepped only if they have workers."""
        base, waiting, self._waiting = self._base, self._waiting, False
        if derives_from(base, "SubprocVecEnv"):
            waiting = private(base, "waiting")
        elif keeps_methods(base, "DummyVecEnv", "step_async"):
            waiting = False
        elif holds_vector_env(base):
            waiting &= isinstance(self._base.env, AsyncVectorEnv)
        if waiting:
            base.step_wait()

    def render(self) -> Any:
        """One frame for each row."""
        return self._vec_env.get_images()

    def close(self) -> None:
        """Close the environment."""
        self._vec_env.close()
