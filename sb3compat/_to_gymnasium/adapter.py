"""SB3 to Gymnasium: a Stable-Baselines3 `VecEnv` presented as a `VectorEnv`."""

from __future__ import annotations

import logging
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from sb3compat._convert.arguments import check_flag
from sb3compat._convert.join_infos import join_infos
from sb3compat._convert.modes import parse_mode
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import (
    Action,
    AnyVectorEnv,
    Flags,
    HoldsVecEnv,
    Info,
    Observation,
    Options,
    RowOptions,
    RowState,
    Seeds,
    VecEnvLike,
    VectorEnvBase,
    holds_vector_env,
)
from sb3compat._rows.driver import Driver
from sb3compat._to_gymnasium.accept import check_vec_env, check_vector_env
from sb3compat._to_gymnasium.access import ReachesSubEnvs
from sb3compat._to_gymnasium.arguments import own_options, rows_under, seeds_by_row
from sb3compat._to_gymnasium.presented import presented_space
from sb3compat._to_gymnasium.stepper import (
    check_rows_alike,
    close_vec_env,
    make_stepper,
    metadata_of,
    spec_of,
)
from sb3compat._upstream.vec_env import derives_from, layers_of
from sb3compat.errors import CallOrderError, EndedRowError, cannot_copy, shown

_log = logging.getLogger("sb3compat")

# Why only a reset of all rows is possible; the messages continue "Expected reset()" with it.
_NEW = "before the first step or masked reset"
_LOST = (
    "without a mask, as the last step or reset raised an exception. Its results are lost, and an "
    "episode may have ended"
)
_HANDED_OUT = "without a mask, as to_sb3 has handed out the VecEnv since"


def to_gymnasium(
    vec_env: VecEnvLike | AnyVectorEnv,
    *,
    autoreset_mode: AutoresetMode | str | None = None,
    missing_truncation: str | None = None,
    require_final_obs: bool = True,
) -> AnyVectorEnv:
    """Present a Stable-Baselines3 `VecEnv` as a Gymnasium vector environment.

    Call `reset` first, also if `vec_env` was reset before.

    For the same sub-environments, seeds and actions, the result returns what Gymnasium's own
    `SyncVectorEnv` returns in that mode, with two exceptions that come from SB3: `DummyVecEnv`
    rounds rewards to float32, and an episode that is terminated and truncated in the same step
    counts as terminated.

    Args:
        vec_env: A `VecEnv`, with or without wrappers, or an object with its methods. A
            `gymnasium.vector.VectorEnv` is returned as it is; the other arguments cannot change it.
        autoreset_mode: When ended rows are reset: `"SameStep"` (the default), `"Disabled"`,
            `"NextStep"`, or `gymnasium.vector.AutoresetMode`. NEXT_STEP is for `DummyVecEnv`,
            `SubprocVecEnv` and `ParallelVecEnv` without wrappers: their rows can be stepped one by
            one.
        missing_truncation: With `"terminated"`, an episode whose last info has no
            `TimeLimit.truncated` counts as terminated. By default, that is an error.
        require_final_obs: Whether the last info of each episode must have `terminal_observation`.
            False is for SAME_STEP only: `infos["_final_obs"]` is False where it is missing. No
            effect where the rows of `vec_env` are stepped one by one, without wrappers.

    Returns:
        A `VectorEnvAdapter`. For the result of `to_sb3`, it is the vector environment inside, if
        that is in the same mode, no step is under way or lost, and no seeds or options wait for
        the next reset.

    Raises:
        UnsupportedEnvError: If `vec_env` lacks the methods of a `VecEnv`.
        UnsupportedSpaceError: If SB3 has no way to batch its observations, or the sub-environments
            have different spaces.
        AutoresetModeError: If `vec_env` cannot be presented in that mode, or is a `VectorEnv` in
            another one.
        ValueError: If an argument cannot be combined with the mode, or with a `VectorEnv`.
        ClosedError: If `vec_env` was closed.

    Example:
        >>> import sb3compat
        >>> from stable_baselines3.common.env_util import make_vec_env
        >>> envs = sb3compat.to_gymnasium(make_vec_env("CartPole-v1", n_envs=4))
        >>> envs.reset(seed=0)[0].shape
        (4, 4)
    """
    mode = AutoresetMode.SAME_STEP if autoreset_mode is None else parse_mode(autoreset_mode)
    if isinstance(vec_env, VectorEnv):
        check_vector_env(
            vec_env,
            None if autoreset_mode is None else mode,
            missing_truncation=(missing_truncation, None),
            require_final_obs=(require_final_obs, True),
        )
        return vec_env
    as_it_is = missing_truncation is None and require_final_obs is True
    held = vec_env.original(mode) if as_it_is and holds_vector_env(vec_env) else None
    if held is not None:
        return held
    return VectorEnvAdapter(
        vec_env,
        autoreset_mode=mode,
        missing_truncation=missing_truncation,
        require_final_obs=require_final_obs,
    )


# skrl tells what an environment is from its direct base classes.
class VectorEnvAdapter(ReachesSubEnvs, HoldsVecEnv, VectorEnvBase):
    """A Stable-Baselines3 `VecEnv` as a Gymnasium vector environment; `to_gymnasium` makes them.

    Args:
        vec_env: The `VecEnv`. The other arguments are those of `to_gymnasium`.
        autoreset_mode: When ended rows are reset.
        missing_truncation: What the end of an episode without `TimeLimit.truncated` counts as.
        require_final_obs: Whether each episode has to end with its last observation.

    Attributes:
        vec_env: The `VecEnv`, with its wrappers.
        autoreset_mode: The mode.
        num_envs: The number of rows, n.
        single_observation_space: The space of a single observation, as SB3's wrappers return it.
        single_action_space: The space of a single action.
        observation_space: The space of a batch of n observations.
        action_space: The space of a batch of n actions.
        metadata: The metadata of the sub-environments, and `autoreset_mode`.
        render_mode: The render mode of the sub-environments.
        spec: The `EnvSpec` that the sub-environments share, if they are in this process.
    """

    def __init__(
        self,
        vec_env: VecEnvLike,
        *,
        autoreset_mode: AutoresetMode | str = "SameStep",
        missing_truncation: str | None = None,
        require_final_obs: bool = True,
    ) -> None:
        check_vec_env(vec_env)
        check_flag("require_final_obs", require_final_obs)
        self.vec_env = vec_env
        self.autoreset_mode = parse_mode(autoreset_mode)
        self.num_envs: int = vec_env.num_envs
        self.single_observation_space = presented_space(vec_env)
        self.single_action_space = vec_env.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._stepper, self._subenvs = make_stepper(
            vec_env,
            self.autoreset_mode,
            missing_truncation=missing_truncation,
            require_final_obs=require_final_obs,
        )
        check_rows_alike(vec_env, self._subenvs, self.single_observation_space)
        _log.debug(
            "to_gymnasium: %s in %s mode is stepped by %s, its sub-environments reached by %s",
            vec_env,
            self.autoreset_mode.name,
            type(self._stepper).__name__,
            type(self._subenvs).__name__,
        )
        self.metadata = metadata_of(vec_env, self._subenvs) | {
            "autoreset_mode": self.autoreset_mode
        }
        self.render_mode = getattr(vec_env, "render_mode", None)
        self.spec = spec_of(vec_env, self._subenvs)
        self._layout = Observations(self.single_observation_space, self.num_envs, from_zero=False)
        self._driver = Driver(vec_env)
        self._disabled = self.autoreset_mode == AutoresetMode.DISABLED
        # Why a reset of all rows is needed; empty if a step is allowed. Set before each call, so
        # that it is set after an exception at any line.
        self._reset_due = _NEW
        self.last_call: object = None

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: Options | None = None,
    ) -> tuple[Observation, Info]:
        """Reset all rows, or those under `options["reset_mask"]`.

        Args:
            seed: An int, from which the rows get `seed`, `seed + 1` and so on; or a list with one
                seed for each row, which may be None.
            options: Passed to the reset of every sub-environment. Under `"reset_mask"`, the rows
                to reset, a bool array of shape `(n,)`. The dict is not changed.

        Returns:
            The observations of all rows and, as a dict of arrays, the infos of those reset.

        Raises:
            ResetArgumentError: If the mask, or the number of seeds, is not valid.
            PartialResetError: If the `VecEnv` cannot reset the rows under the mask alone.
            ConversionError: If the `VecEnv` takes no options, no seed, or no seed for each row.
            CallOrderError: If rows are reset under a mask before the first reset, or after an
                error.
            ClosedError: If the environment was closed.
        """
        self._check_open()
        seeds = seeds_by_row(seed, self.num_envs)
        options = own_options(options)
        rows = None
        if options is not None and "reset_mask" in options:
            masked = rows_under(options.pop("reset_mask"), self.num_envs)
            rows = masked if len(masked) < self.num_envs else None
        if isinstance(seed, int | np.integer):
            self._own_seed = int(seed)  # first, as in Gymnasium: after a reset nothing may come
        return self.reset_rows(rows, seeds, [options] * self.num_envs)

    def reset_rows(
        self, rows: list[int] | None, seeds: Seeds, options: RowOptions
    ) -> tuple[Observation, Info]:
        """As `reset`, with options by row.

        Args:
            rows: The rows to reset; None for all of them.
            seeds: The seed of each of the n rows, or None.
            options: The options of each of the n rows, or None.
        """
        self._check_open()
        if rows is not None:
            self._check_step()
        elif self._reset_due or self._driver.other() is not None:
            self._stepper.forget()
        chosen = list(range(self.num_envs)) if rows is None else rows
        self._stepper.check_reset(chosen, seeds, options)
        self._reset_due = _LOST
        self.last_call = object()
        observations, infos = self._stepper.reset(chosen, seeds, options)
        joined = join_infos(infos, without=self._stepper.added_keys)
        self._driver.take()
        self._reset_due = ""
        return observations, joined

    def step(
        self, actions: Action
    ) -> tuple[Observation, npt.NDArray[np.float64], Flags, Flags, Info]:
        """Step all rows.

        Args:
            actions: One action for each row: an array of shape `(n, *space.shape)`, a dict or
                tuple of such arrays, or a list of n single actions. They are not cast. A dict
                has the space's keys and no others. A list of n tuples is refused where the space
                is one of n parts, as it might be a list of these.

        Returns:
            The tuple `(observations, rewards, terminations, truncations, infos)`.

            - observations: Of shape `(n, *space.shape)`; a dict or tuple of such arrays where the
              space is one.
            - rewards: float64 of shape `(n,)`.
            - terminations: bool of shape `(n,)`.
            - truncations: bool of shape `(n,)`; False where the row has terminated as well.
            - infos: A dict of arrays with a mask for each, as Gymnasium batches them.

        Raises:
            ActionsError: If the number of actions is not n, or their form not that of the space;
                nothing was stepped.
            EndedRowError: In DISABLED mode, if a row has ended and was not reset.
            ConversionError: If the `VecEnv` returned a value that cannot be presented exactly.
            CallOrderError: If `reset` has to be called first: before the first step, after an
                error, or after direct use of `vec_env`.
            ClosedError: If the environment was closed.
        """
        self._check_open()
        self._check_step()
        if self._disabled and self._stepper.ended.any():
            rows = shown(np.flatnonzero(self._stepper.ended).tolist())
            raise EndedRowError(
                f"Expected rows {rows} to be reset before the next step, as their episodes have "
                "ended and autoreset is disabled. Call reset(options={'reset_mask': mask}). "
                "Nothing was stepped."
            )
        prepared = self._stepper.prepare(actions)
        self._reset_due = _LOST
        self.last_call = object()
        step = self._stepper.step(prepared)
        result = (
            self._layout.pack(step.observations),
            step.rewards.astype(np.float64, copy=False),
            step.ended & ~step.truncated,
            step.truncated,
            join_infos(step.infos, without=self._stepper.added_keys),
        )
        self._driver.note()
        self._reset_due = ""
        return result

    @property
    def row_state(self) -> RowState:
        """The state of the rows, for `to_sb3`."""
        return self._stepper

    def settled(self) -> Any:
        """The `VecEnv`, in the state that it would have if it had been driven directly.

        Rows that have ended are reset. This adapter needs a `reset` before it can step again. None
        if a step or reset was lost by an exception, maybe with the end of an episode.
        """
        self._check_open()
        if self._reset_due == _LOST:
            return None
        self._reset_due = _LOST
        if self._stepper.ended.any() and self._driver.other() is None:
            self._stepper.settle()
        self._reset_due = _HANDED_OUT
        return self.vec_env

    def close_extras(self, **kwargs: object) -> None:
        """Close the `VecEnv`, also where one of its workers has died."""
        close_vec_env(self.vec_env, broken=self._stepper.broken)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        *wrappers, base = layers_of(self.vec_env)
        # SB3's wrappers cannot be pickled; only `VecNormalize` can, and loses its environment.
        fixed = any(derives_from(wrapper, "VecEnvWrapper") for wrapper in wrappers)
        if fixed or hasattr(base, "processes"):
            raise cannot_copy(self)
        return super().__reduce_ex__(protocol)

    def __del__(self) -> None:
        # Up to Gymnasium 1.2, a VectorEnv closes itself here; the VecEnv was opened by the user.
        pass

    def _check_step(self) -> None:
        # If a worker is lost, a reset would not help; the stepper's error says what to do.
        if self._reset_due and not self._stepper.broken:
            raise CallOrderError(f"Expected reset() {self._reset_due}. Call env.reset() first.")
        self._driver.check()
