"""Drive the sub-environments of a plain `DummyVecEnv` or `SubprocVecEnv` one by one.

Their own `step` resets ended rows at once and has one reset for all rows. Row by row, every
autoreset mode, masked resets, seeds and options are what `SyncVectorEnv` makes of the same
sub-environments. What is SB3's own stays: `DummyVecEnv` rounds rewards to float32, and an episode
that is terminated and truncated at once counts as terminated.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from sb3compat._convert.infos import Info, same_step_info
from sb3compat._convert.observations import Array, Leaf, Observations, action_rows
from sb3compat._upstream.subproc_vec_env import Workers, reset_env, step_env
from sb3compat.errors import PartialResetError

Mask = npt.NDArray[np.bool_]


class Transition(NamedTuple):
    """One step of all rows, in Gymnasium's terms."""

    observations: Any
    rewards: npt.NDArray[np.float64]
    terminations: Mask
    truncations: Mask
    # One for each row, as `SyncVectorEnv` would add them to its own.
    infos: list[Info]


class Rows:
    """What both have in common: which rows have ended, and what each has returned last.

    Args:
        vec_env: The environment.
        mode: The autoreset mode to present.
    """

    def __init__(self, vec_env: Any, mode: AutoresetMode) -> None:
        self._vec_env = vec_env
        self._mode = mode
        self._n: int = vec_env.num_envs
        self._observed: list[Any] = [None] * self._n
        self._layout = Observations(vec_env.observation_space, self._n, from_zero=False)
        # The rows whose episode has ended and that have not been reset since.
        self.ended: Mask = np.zeros(self._n, np.bool_)

    @property
    def broken(self) -> bool:
        """Whether a worker is lost."""
        return False

    def check_reset(
        self, rows: list[int], seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> None:
        """Refuse a reset of some rows before the others were ever seen.

        Raises:
            PartialResetError: If all rows have to be reset first.
        """
        unseen = [i for i in range(self._n) if self._observed[i] is None and i not in rows]
        if unseen:
            raise PartialResetError(
                f"Expected reset() of all rows first, got reset_mask for the rows {rows}: what the "
                f"rows {unseen} returned last, before {self._vec_env} was adapted, is not known."
            )

    def reset(
        self, rows: list[int], seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> tuple[Any, list[Info]]:
        """Reset some rows, or all of them.

        Returns:
            The observations of all rows, and their infos, empty where nothing was reset.
        """
        vec_env, kwargs = self._vec_env, []
        every = len(rows) == self._n
        for i in rows:
            # What was set on the VecEnv itself waits for the next reset, as it would there.
            seed = vec_env._seeds[i] if every and seeds[i] is None else seeds[i]
            given = (vec_env._options[i] or options) if every and not options else options
            kwargs.append({"seed": seed, "options": given})
        infos = self._reset(rows, kwargs)
        if every:
            vec_env._reset_seeds()
            vec_env._reset_options()
        return self._batch(), infos

    def prepare(self, actions: Any) -> list[Any]:
        """The single actions, one for each row."""
        return action_rows(self._vec_env.action_space, actions, self._n)

    def settle(self) -> None:
        """Reset the rows that have ended, as the `VecEnv` itself would have done at once."""
        self._reset(rows := np.flatnonzero(self.ended).tolist(), [{}] * len(rows))

    def _reset(self, rows: list[int], kwargs: list[dict[str, Any]]) -> list[Info]:
        infos: list[Info] = [{} for _ in range(self._n)]
        reset_infos = list(self._vec_env.reset_infos)
        for i, result in zip(rows, self._reset_rows(rows, kwargs), strict=True):
            self._observed[i], infos[i] = result
            reset_infos[i] = infos[i]
        self._vec_env.reset_infos = reset_infos
        self.ended[rows] = False
        return infos

    def _reset_rows(self, rows: list[int], kwargs: list[dict[str, Any]]) -> list[Any]:
        raise NotImplementedError

    def _batch(self) -> Any:
        """New arrays with what each row has returned last."""
        layout = self._layout
        if layout.keys is None:
            return self._stacked(layout.leaves[0], self._observed)
        columns = [[observed[key] for observed in self._observed] for key in layout.keys]
        return layout.pack(list(map(self._stacked, layout.leaves, columns)))

    def _stacked(self, leaf: Leaf, values: list[Any]) -> Array:
        with suppress(ValueError):  # of several shapes
            array = np.array(values)
            if array.dtype == leaf.dtype and array.shape == (self._n, *leaf.shape):
                return array
        # Cast, or refused, as `SyncVectorEnv` does; in most steps there is nothing to cast.
        return np.stack(values, out=np.empty((self._n, *leaf.shape), leaf.dtype))


class LocalRows(Rows):
    """The sub-environments of a `DummyVecEnv`, in this process."""

    def step(self, actions: list[Any]) -> Transition:
        """Step each row, or reset it where that is its turn."""
        n, vec_env = self._n, self._vec_env
        same_step = self._mode == AutoresetMode.SAME_STEP
        resetting = self.ended.tolist() if self.ended.any() else None
        rewards = np.zeros(n, np.float32)
        terminations, truncations = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        infos: list[Info] = []
        for i, (env, action) in enumerate(zip(vec_env.envs, actions, strict=True)):
            if resetting and resetting[i]:
                self._observed[i], info = env.reset()
                vec_env.reset_infos[i] = info
            else:
                observed, rewards[i], terminated, truncated, info, first = step_env(
                    env, action, same_step
                )
                if terminated or truncated:
                    terminations[i], truncations[i] = terminated, truncated
                    if first is not None:
                        final = observed
                        observed, vec_env.reset_infos[i] = first
                        info = same_step_info(final, info, first[1])
                self._observed[i] = observed
            infos.append(info)
        if not same_step:
            self.ended = terminations | truncations
        return Transition(
            self._batch(), rewards.astype(np.float64), terminations, truncations, infos
        )

    def _reset_rows(self, rows: list[int], kwargs: list[dict[str, Any]]) -> list[Any]:
        return [
            reset_env(self._vec_env.envs[i], arguments)
            for i, arguments in zip(rows, kwargs, strict=True)
        ]


class RemoteRows(Rows):
    """The sub-environments of a `SubprocVecEnv`, in its workers.

    All that have something to do are asked before the first answer is waited for.
    """

    def __init__(self, vec_env: Any, mode: AutoresetMode, workers: Workers) -> None:
        super().__init__(vec_env, mode)
        self._workers = workers

    @property
    def broken(self) -> bool:
        """Whether a worker is lost."""
        return self._workers.lost

    def step(self, actions: list[Any]) -> Transition:
        """Step each row, or reset it where that is its turn; all at the same time."""
        n = self._n
        same_step = self._mode == AutoresetMode.SAME_STEP
        answers = self._workers.ask(
            {
                i: ("reset", {}) if self.ended[i] else ("step", action, same_step)
                for i, action in enumerate(actions)
            }
        )
        rewards = np.zeros(n, np.float64)
        terminations, truncations = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        infos: list[Info] = []
        reset_infos = list(self._vec_env.reset_infos)
        for i, answer in answers.items():
            if not self.ended[i]:
                observed, rewards[i], terminations[i], truncations[i], info, first = answer
                if first is not None:
                    final = observed
                    observed, reset_infos[i] = first
                    info = same_step_info(final, info, first[1])
                self._observed[i] = observed
            else:
                self._observed[i], info = answer
                reset_infos[i] = info
            infos.append(info)
        self._vec_env.reset_infos = reset_infos
        if not same_step:
            self.ended = terminations | truncations
        return Transition(self._batch(), rewards, terminations, truncations, infos)

    def _reset_rows(self, rows: list[int], kwargs: list[dict[str, Any]]) -> list[Any]:
        commands = {i: ("reset", arguments) for i, arguments in zip(rows, kwargs, strict=True)}
        return list(self._workers.ask(commands).values())
