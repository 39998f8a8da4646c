"""Gymnasium to SB3: a `VectorEnv` presented as a Stable-Baselines3 `VecEnv`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from sb3compat._convert.actions import Actions
from sb3compat._convert.arguments import check_timeout, plain_seed
from sb3compat._convert.observations import Observations
from sb3compat._convert.options import options_by_row
from sb3compat._convert.types import (
    Action,
    AnyVectorEnv,
    Array,
    ClassInfo,
    Flags,
    GivenOptions,
    HoldsVectorEnv,
    Indices,
    Info,
    Observation,
    Options,
    SingleEnv,
    Value,
)
from sb3compat._to_sb3.accept import check_env, check_starts, find_mode, vec_env_inside
from sb3compat._to_sb3.source import Settings, Source, make_source
from sb3compat._to_sb3.subenvs import LocalSubEnvs, SubEnvs, resolve_indices, subenvs_of
from sb3compat._to_sb3.traits import seed_within
from sb3compat._upstream.driver import Driver
from sb3compat._upstream.sb3 import VecEnv
from sb3compat._upstream.vec_env import (
    forget_waiting,
    set_waiting_options,
    waiting_options,
    waiting_seeds,
)
from sb3compat.errors import (
    CallOrderError,
    ClosedError,
    cannot_copy,
    refuse_first_step,
)


def to_sb3(
    env: AnyVectorEnv | VecEnv,
    *,
    autoreset_mode: AutoresetMode | str | None = None,
    copy: bool = True,
    require_final_obs: bool = True,
    padding: bool = False,
    timeout: float | None = None,
) -> VecEnv:
    """Present a Gymnasium vector environment as a Stable-Baselines3 `VecEnv`.

    For the same sub-environments, seeds and actions, the result yields what SB3's own
    `DummyVecEnv` yields, value for value and dtype for dtype, whatever the autoreset mode.

    Args:
        env: A `gymnasium.vector.VectorEnv`, for example from `gymnasium.make_vec`, with or
            without vector wrappers. A `VecEnv` is returned as it is. For the result of
            `to_gymnasium`, the `VecEnv` inside is returned.
        autoreset_mode: The environment's autoreset mode, if the environment does not declare it.
            By default, the attribute `autoreset_mode` of `env.unwrapped`, then
            `env.metadata["autoreset_mode"]`.
        copy: Whether returned values stay unchanged. With False, the next step may overwrite the
            observations, which saves one copy of them. SB3's algorithms need True: they keep the
            observations during the next step.
        require_final_obs: Whether a SAME_STEP environment must give the last observation of each
            episode. With False, a *terminated* episode may end without `terminal_observation`. A
            truncated episode may not, as its value could not be bootstrapped.
        padding: Opt-in for NEXT_STEP environments without a partial reset: deliver the reset step
            as one more step of the episode, with `done=True`, reward 0 and
            `infos[i]["sb3compat.padding"]`. Episodes grow by one step, and the value of truncated
            states is biased: not the exact stream, hence not the default.
        timeout: For a bare `AsyncVectorEnv`: how many seconds a step or reset may take before
            `WorkerTimeoutError` is raised. None waits for ever.

    Returns:
        A `VecEnvAdapter`, which is a subclass of SB3's `VecEnv` where SB3 is installed.

    Raises:
        UnsupportedEnvError: If `env` is no vector environment, or not one that can be adapted.
        UnsupportedSpaceError: If SB3 has no way to batch one of the spaces.
        AutoresetModeError: If the mode is declared nowhere, or contradicts the environment.
        ValueError: If `padding` is True although the exact stream is available, or `timeout` is
            set for anything but a bare `AsyncVectorEnv` or is not positive and finite.
        PartialResetError: If the mode is NEXT_STEP and no partial reset is known for the class.

    Example:
        >>> import gymnasium as gym, sb3compat
        >>> env = sb3compat.to_sb3(gym.make_vec("CartPole-v1", num_envs=4))
        >>> env.reset().shape
        (4, 4)
    """
    if isinstance(env, VecEnv):
        return env
    held = vec_env_inside(env)
    if held is not None:
        return held
    return VecEnvAdapter(
        env,
        autoreset_mode=autoreset_mode,
        copy=copy,
        require_final_obs=require_final_obs,
        padding=padding,
        timeout=timeout,
    )


class VecEnvAdapter(VecEnv, HoldsVectorEnv):
    """A Gymnasium vector environment as a Stable-Baselines3 `VecEnv`; `to_sb3` makes them.

    Args:
        env: The vector environment. The other arguments are those of `to_sb3`.
        autoreset_mode: The autoreset mode, if the environment does not declare it.
        copy: Whether returned values stay unchanged.
        require_final_obs: Whether a SAME_STEP environment must give final observations.
        padding: Whether to pad episodes where ended rows cannot be reset on demand.
        timeout: How many seconds workers may take for a step or reset.

    Attributes:
        env: The vector environment, with its wrappers.
        autoreset_mode: The autoreset mode of that environment, as declared or given.
        num_envs: The number of rows, n.
        observation_space: The space of a single observation.
        action_space: The space of a single action.
        reset_infos: The info of the last reset of each row.
    """

    def __init__(
        self,
        env: AnyVectorEnv,
        *,
        autoreset_mode: AutoresetMode | str | None = None,
        copy: bool = True,
        require_final_obs: bool = True,
        padding: bool = False,
        timeout: float | None = None,
    ) -> None:
        check_timeout(timeout)
        check_env(env)
        self.env = env
        self.autoreset_mode = find_mode(env, autoreset_mode)
        observations = Observations(env.single_observation_space, env.num_envs)
        actions = Actions(env.single_action_space, env.num_envs)
        mode = self.autoreset_mode
        settings = Settings(env, mode, copy, require_final_obs, padding, timeout)
        source, subenvs = make_source(settings, observations, actions), subenvs_of(env)
        check_starts(env, subenvs, observations)
        # The environment's own, as in DummyVecEnv; its autoreset mode is not the adapter's.
        metadata = {k: v for k, v in (env.metadata or {}).items() if k != "autoreset_mode"}
        self._drive(source, subenvs, observations, actions, metadata)

    def _drive(
        self,
        source: Source,
        subenvs: SubEnvs,
        observations: Observations,
        actions: Actions,
        metadata: Options,
    ) -> None:
        """Present what this source drives."""
        self._source, self._subenvs = source, subenvs
        self._observations, self._actions = observations, actions
        self._driver = Driver(getattr(self, "env", None))  # rows in workers have no other driver
        self._waiting = False
        self._closed = self._released = False
        # Whether only a reset leads on; noted before each call, and taken back when it is done.
        self._lost_step = False
        # Whether this adapter has reset it; the user may have reset the environment before.
        self._was_reset = False
        self._none_pending = False  # no autoreset from before
        super().__init__(observations.num_envs, observations.presented, actions.presented)
        self.metadata = metadata

    def reset(self) -> Observation:
        """Reset all rows, with the seeds and options set before; a pending step is cancelled.

        Workers that were sent the step have executed it, as those of SB3's `SubprocVecEnv`.

        Returns:
            The observations, of shape `(n, *space.shape)`; a dict or tuple of such arrays where
            the space is one. The infos are in `reset_infos`.
        """
        self._check_open()
        self._lost_step = True
        # Also where no step waits: an interrupt may have come just after one was started.
        self._source.cancel()
        self._waiting = False
        batch, self.reset_infos = self._source.reset(waiting_seeds(self), waiting_options(self))
        observations = self._observations.pack(batch)
        self._driver.take()
        forget_waiting(self)
        self._was_reset = self._none_pending = True
        self._lost_step = False
        return observations

    def set_options(self, options: GivenOptions = None) -> None:
        """Set the options of the next reset.

        Args:
            options: One dict for all rows, or a list or tuple with one for each row. None, also for
            a single row, is no options.

        Raises:
            ValueError: If the list has another length than n.
            TypeError: If an entry is neither a dict nor None.
            PartialResetError: If the rows differ and the environment cannot reset them one by one.
        """
        rows = options_by_row(options, self.num_envs)
        self._source.check_options(rows)
        super().set_options(rows)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seeds of the next reset.

        Args:
            seed: The seed of the first row; the next ones get `seed + 1` and so on. Natively
                vectorised environments take this one only. None draws it from NumPy's global
                generator.

        Returns:
            The seed of each row.

        Raises:
            TypeError: If it is no integer, such as a list with one seed for each row.
            ValueError: If the environment does not take it, because it is too large or negative.
        """
        return super().seed(self._seed_within(plain_seed(seed)))

    def _seed_within(self, seed: int | None) -> int | None:
        return seed_within(self.env.unwrapped, seed)

    def step_async(self, actions: Action) -> None:
        """Start a step.

        Args:
            actions: One action for each row: an array of shape `(n, *space.shape)`, a dict or
                tuple of such arrays, or a list of n single actions. Cast to the space's dtype
                where that is safe.

        Raises:
            ValueError: If their count, shape or dtype does not fit. Nothing was sent.
            CallOrderError: If a step is pending, or a reset is due (maybe as others used `env`).
        """
        self._check_open()
        if self._waiting:
            raise CallOrderError(
                "Expected step_wait() after step_async(), or reset() to drop that step, got "
                "step_async() again."
            )
        self._refuse_lost("step_async()")
        prepared = self._actions.prepare(actions)
        self._driver.check()
        self._lost_step = True
        try:
            if not self._none_pending:
                self._source.check_started()
                self._none_pending = True
            self._source.send(prepared)
        except BaseException:
            self._lost_step = self._source.started
            raise
        self._waiting = True
        self._lost_step = False

    def step_wait(self) -> tuple[Observation, npt.NDArray[np.float32], Flags, list[Info]]:
        """Finish the step.

        Returns:
            The tuple `(observations, rewards, dones, infos)`.

            - observations: As from `reset`; in rows whose episode has ended, the first observation
              of the next one.
            - rewards: float32 of shape `(n,)`.
            - dones: bool of shape `(n,)`.
            - infos: One dict for each row, with `TimeLimit.truncated` (a bool) in each and
              `terminal_observation` in the rows whose episode has ended.

        Raises:
            CallOrderError: If no step is pending, or nothing was ever reset.
            ConversionError: If the environment returned a value that cannot be presented exactly.
        """
        self._check_open()
        self._refuse_lost("step_wait()")
        if not self._waiting:
            raise CallOrderError("Expected step_async(actions) before step_wait().")
        # Until the last line, for an exception at any line in between.
        self._lost_step = True
        self._waiting = False
        try:
            step = self._source.receive()
        except BaseException as error:
            if not self._was_reset:
                refuse_first_step(error)
            raise
        self._driver.note()
        for i, info in step.reset_infos.items():
            self.reset_infos[i] = info
        rewards = step.rewards.astype(np.float32, copy=False)
        observations = self._observations.pack(step.observations)
        self._lost_step = False
        return observations, rewards, step.ended, step.infos

    @property
    def envs(self) -> list[SingleEnv]:
        """The sub-environments, where they are objects in this process, as `DummyVecEnv.envs`.

        The list itself: assign to a row to replace its sub-environment, for example by a wrapper.

        Raises:
            AttributeError: If the sub-environments live in workers, or there are none.
        """
        if not isinstance(self._subenvs, LocalSubEnvs):
            raise AttributeError(
                f"{self} has no sub-environments in this process. Use get_attr, set_attr and "
                "env_method."
            )
        return self._subenvs.envs

    @property
    def spec(self) -> EnvSpec | None:
        """The `EnvSpec` with which the vector environment was made, or None."""
        spec = self.env.spec
        # EnvPool has a spec of another kind, without the `id` that SB3's `VecMonitor` asks for.
        return spec if isinstance(spec, EnvSpec) else None

    def has_attr(self, attr_name: str) -> bool:
        """Whether every sub-environment has the attribute."""
        return all(self._subenvs.has(attr_name, self._rows(None)))

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Value]:
        """Read an attribute of the sub-environments.

        Args:
            attr_name: The attribute, of the environment or any wrapper around it.
            indices: The rows: None for all, an int, or an iterable of ints. Natively vectorised
                environments have one value for every row.

        Raises:
            AttributeError: If one of the sub-environments does not have it.
        """
        return self._subenvs.get(attr_name, self._rows(indices))

    def set_attr(self, attr_name: str, value: Value, indices: Indices = None) -> None:
        """Set an attribute on the outermost wrapper of the sub-environments, as SB3 does."""
        self._subenvs.set(attr_name, value, self._rows(indices))

    def env_method(
        self, method_name: str, *method_args: Value, indices: Indices = None, **method_kwargs: Value
    ) -> list[Value]:
        """Call a method of the sub-environments; the results are in the order of `indices`."""
        return self._subenvs.call(method_name, method_args, method_kwargs, self._rows(indices))

    def env_is_wrapped(self, wrapper_class: ClassInfo, indices: Indices = None) -> list[bool]:
        """Whether each sub-environment is wrapped in that class, or in one of a tuple of them."""
        return self._subenvs.is_wrapped(wrapper_class, self._rows(indices))

    def get_images(self) -> Sequence[Array | None]:
        """One image for each row, in render mode `rgb_array`; otherwise a warning, and None."""
        self._rows(None)
        frames = self._source.render() if self.render_mode == "rgb_array" else None
        if frames is None:
            warnings.warn(
                f"The render mode is {self.render_mode}, but images need `rgb_array`.",
                stacklevel=2,
            )
            return [None] * self.num_envs
        return list(frames)

    def close(self) -> None:
        """Close the environment; a second call has no effect."""
        self._closed = True
        self._waiting = False
        # Again, if the first time was interrupted.
        if not self._released:
            self._source.close()
            self._released = True

    @property
    def seeds_rows(self) -> bool:
        """Whether a reset gives each row a seed of its own; else the first one is for all rows."""
        return self._source.seeds_rows

    def pass_options(self, options: Options) -> None:
        """Pass this very dict to each row in the next reset; `set_options` copies it."""
        self._source.check_options([options] * self.num_envs)
        set_waiting_options(self, [options] * self.num_envs)

    def original(self, autoreset_mode: AutoresetMode) -> AnyVectorEnv | None:
        """The vector environment, if it can be driven directly from now on, in its own mode.

        None if a step is under way or lost, or if seeds or options wait for the next reset. Also
        None for a subclass, which may present the environment differently.
        """
        unfinished = self._waiting or self._lost_step
        waiting = any(waiting_options(self)) or waiting_seeds(self) != [None] * self.num_envs
        other = type(self) is not VecEnvAdapter or self.autoreset_mode != autoreset_mode
        other = other or any(callable(getattr(VecEnvAdapter, name, None)) for name in vars(self))
        return None if unfinished or waiting or other else self.env

    def __reduce_ex__(self, protocol: SupportsIndex) -> Value:
        if isinstance(self.env.unwrapped, AsyncVectorEnv):
            raise cannot_copy(self)
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {self.env}>"

    def _rows(self, indices: Indices) -> list[int]:
        self._check_open()
        if self._source.busy:
            self._refuse_lost("another call")
        if self._waiting and self._source.busy:
            # The answer to the step would be taken for the answer to this call.
            raise CallOrderError(
                "Expected step_wait() first, or reset() to drop the step: the workers are in the "
                "middle of it."
            )
        return resolve_indices(indices, self.num_envs)

    def _refuse_lost(self, called: str) -> None:
        """Ask for a reset after an exception in a step or reset.

        If a worker is lost, a reset would not help; the source's error says what to do.
        """
        if self._lost_step and not self._source.broken:
            raise CallOrderError(
                "Expected reset(), as the last step or reset has raised an exception or was "
                "interrupted, and its results are lost, maybe with the end of an episode; got "
                f"{called}."
            )

    def _check_open(self) -> None:
        if self._closed or self._env_is_closed():
            raise ClosedError(f"Expected an open environment, but {self} was closed.")

    def _env_is_closed(self) -> bool:
        return bool(self.env.unwrapped.closed)  # not every environment sets it
