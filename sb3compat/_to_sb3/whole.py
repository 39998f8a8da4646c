"""Drive any `VectorEnv` as a whole, through its own `step` and `reset`, vector wrappers included.

What differs between the autoreset modes is in `modes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from sb3compat._convert.actions import Actions
from sb3compat._convert.arguments import counts_up, seed_within
from sb3compat._convert.arrays import row_array
from sb3compat._convert.observations import Observations
from sb3compat._convert.options import is_uniform
from sb3compat._convert.split_infos import split_infos
from sb3compat._convert.types import (
    Action,
    AnyVectorEnv,
    Array,
    Info,
    Observation,
    Options,
    Seeds,
    Transition,
    VectorStepResult,
)
from sb3compat._to_sb3.bases import Base
from sb3compat._to_sb3.modes import Mode, Stepped
from sb3compat._to_sb3.partial_reset import attribute_of
from sb3compat._to_sb3.tap import Wrapped
from sb3compat.errors import ConversionError, PartialResetError, shown

_NO_VECTORS = (
    " Stable-Baselines3 knows no vector rewards: scalarise them in a wrapper around the "
    "environment."
)


class VectorSource:
    """A vector environment driven as a whole.

    Args:
        driven: Steps and resets the environment.
        mode: What the end of an episode looks like.
        observations: The layout of the observations.
        actions: The layout of the actions.
        copy: Whether each step returns arrays of its own.
    """

    # A step is one call, in `receive`.
    busy = False

    def __init__(
        self,
        driven: Base | Wrapped,
        mode: Mode,
        observations: Observations,
        actions: Actions,
        *,
        copy: bool,
    ) -> None:
        self._driven, self._mode = driven, mode
        self._base = driven if isinstance(driven, Base) else driven.base
        self.env = driven.env
        self.num_envs = driven.env.num_envs
        self._observations = observations
        self._actions = actions
        self._copy = copy and not driven.hands_out_new_arrays
        # Whether the arrays that `receive` returns are written to by no one else.
        self._owned = copy or driven.hands_out_new_arrays
        self.seeds_rows = self._base.seeds_rows
        self._resets_rows = self._base.resets_rows
        self._sent: Action = None
        space = self.env.single_action_space
        self._numbers: Any = None
        if isinstance(space, Discrete) and attribute_of(self._base.env, "needs_valid_actions"):
            self._numbers = space

    @property
    def broken(self) -> bool:
        """Whether a worker is lost, or a call was interrupted whose results may still come."""
        return self._base.broken

    def check_options(self, options: Sequence[Options]) -> None:
        """Refuse options that this environment could not apply, and discard those set before.

        Raises:
            ValueError: If they contain a `reset_mask`.
            PartialResetError: If they differ by row, and rows are not environments of their own.
        """
        if any("reset_mask" in row for row in options):
            raise ValueError(
                "Expected options for the sub-environments, got options['reset_mask'], which "
                "Gymnasium's vector environments take as the rows to reset. Leave reset_mask out: "
                "SB3 resets all rows."
            )
        if not (self._resets_rows or is_uniform(options)):
            raise PartialResetError(
                f"Expected the same options for all rows, as {self._base.env} takes one dict in "
                "a reset. Pass one dict, or build a SyncVectorEnv or AsyncVectorEnv of single "
                "environments."
            )
        self._base.forget_options()

    def reset(self, seeds: Seeds, options: Sequence[Options]) -> tuple[list[Array], list[Info]]:
        """Reset all rows."""
        seed: Any = None
        if any(value is not None for value in seeds):
            seed = self._seed(seeds)
        obs, given = self._driven.reset(seed, options)
        batch = self._batch(obs, copy=self._copy)
        infos = split_infos(given, self.num_envs)
        self._mode.reset(infos)
        return batch, infos

    def send(self, actions: list[Array]) -> None:
        """Keep the batch of actions for `receive`.

        Raises:
            ValueError: If the environment would hang or crash on one.
        """
        if self._numbers is not None:
            _check_numbers(self._numbers, actions[0], self.env)
        self._sent = self._actions.pack(actions)

    def receive(self) -> Transition:
        """Step all rows, and reset those that have ended, unless they were reset by themselves."""
        return self._presented(self._driven.step(self._sent))

    def _presented(self, result: VectorStepResult) -> Transition:
        """The results of a step, and of the resets of rows that have ended, as SB3's transition."""
        step = self._checked(result)
        transition = self._mode.transition(step)
        if self._mode.leaves_resets and step.ended.any():
            return self._with_resets(transition)
        return transition

    def cancel(self) -> None:
        """Forget the actions."""
        self._sent = None

    def render(self) -> Any:
        """The frames of the environment, as its wrappers return them."""
        return self._driven.render()

    def close(self) -> None:
        """Close the environment."""
        self._base.close()
        self.env.close()

    def _checked(self, result: VectorStepResult) -> Stepped:
        """What a step has returned, its form checked."""
        driven, n = self._driven, self.num_envs
        obs, rewards, first, second, infos = result
        terminated = row_array(first, n, "terminations").astype(np.bool_, copy=False)
        truncated = row_array(second, n, "truncations").astype(np.bool_, copy=False)
        ended = terminated | truncated
        driven.check_endings(ended, any_row=self._mode.leaves_resets)
        return Stepped(
            self._batch(obs, copy=self._copy),
            row_array(rewards, n, "rewards", _NO_VECTORS).astype(np.float32),
            ended,
            truncated & ~terminated,
            infos,
            driven.own_keys,
        )

    def _with_resets(self, transition: Transition) -> Transition:
        """The transition, with the first observations and the infos of resets of the ended rows."""
        obs, ended = transition.observations, transition.ended
        (rows,) = ended.nonzero()
        if not self._owned:  # the environment's own arrays are not written to
            obs = [array.copy() for array in obs]
        reset_obs, infos = self._driven.reset_rows(ended.copy())
        batch = self._batch(reset_obs)
        self._driven.check_others(obs, batch, rows)
        for array, values in zip(obs, batch, strict=True):
            if array.dtype != values.dtype:
                raise ConversionError(
                    f"Expected {self.env} to give observations of one dtype, got {array.dtype} and "
                    f"{values.dtype}: a wrapper changes the observations of steps and those of "
                    "resets in different ways. Let it return the same dtype from both."
                )
            array[rows] = values[rows]
        split = split_infos(infos, self.num_envs, rows)
        reset_infos = dict(zip(rows.tolist(), split, strict=True))
        return transition._replace(observations=obs, reset_infos=reset_infos)

    def _batch(self, obs: Observation, *, copy: bool = False) -> list[Array]:
        return self._observations.batch(obs, copy=copy, source=self.env)

    def _seed(self, seeds: Seeds) -> Any:
        """The seed of the first row, from which the environment derives the others, or all."""
        first = seeds[0]
        if first is None or not counts_up(seeds):
            if self.seeds_rows:
                return list(seeds)
            raise ConversionError(
                f"Expected seeds that count up from the first one, which is all that "
                f"{self._base.env} takes, got seeds={shown(list(seeds))}. Pass one seed. Nothing "
                "was reset."
            )
        # An int even if each row takes its own: vector wrappers may take nothing else.
        if self.seeds_rows:
            return int(first)
        return seed_within(self._base.env, attribute_of(self._base.env, "largest_seed"), int(first))


def _check_numbers(space: Discrete, actions: Array, env: AnyVectorEnv) -> None:
    wrong = (actions < space.start) | (actions >= space.start + space.n)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"Expected actions in {space}, as {env} hangs or crashes on others, got "
            f"actions[{row}]={actions[row]}. Nothing was stepped. Pass actions of the action space."
        )
