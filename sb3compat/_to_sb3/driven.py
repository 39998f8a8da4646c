"""A `VecEnv` over a `Source`: resets, steps and access to sub-environments."""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from sb3compat._convert.actions import Actions
from sb3compat._convert.arguments import plain_seed, seed_within
from sb3compat._convert.arrays import frames_of
from sb3compat._convert.observations import Observations
from sb3compat._convert.options import options_by_row
from sb3compat._convert.types import (
    Action,
    AnyVectorEnv,
    Array,
    ClassInfo,
    Flags,
    GivenOptions,
    Indices,
    Info,
    Observation,
    Options,
    OwnVecEnv,
    SingleEnv,
    Source,
    SubEnvs,
)
from sb3compat._rows.commands import WrapperClass
from sb3compat._rows.driver import Driver
from sb3compat._rows.subenvs import LocalSubEnvs, resolve_indices
from sb3compat._upstream.sb3 import VecEnv
from sb3compat._upstream.vec_env import (
    forget_waiting,
    set_waiting_options,
    waiting_options,
    waiting_seeds,
)
from sb3compat.errors import CallOrderError, shown, warn, was_closed


class DrivenVecEnv(VecEnv, OwnVecEnv):
    """A Stable-Baselines3 `VecEnv` whose rows a source steps and resets.

    Args:
        source: Steps and resets the rows.
        subenvs: Reaches their sub-environments.
        observations: The layout of a batch of observations.
        actions: The layout of a batch of actions.
        metadata: The metadata of the environment.
        env: The environment, if others can use it beside this adapter.
    """

    def __init__(
        self,
        source: Source,
        subenvs: SubEnvs,
        observations: Observations,
        actions: Actions,
        metadata: Options,
        env: AnyVectorEnv | None = None,
    ) -> None:
        self._source, self._subenvs = source, subenvs
        self._observations, self._actions = observations, actions
        self._driver = Driver(env)
        self._waiting = False
        self._closed = self._released = False
        # Whether a reset is needed before the next step; set before each call, and cleared after
        # it.
        self._lost_step = False
        # Whether this adapter has reset it: an autoreset may be pending from before.
        self._was_reset = False
        self.last_call: object = None
        self._stepper = 0  # the thread that has started the last step
        super().__init__(observations.num_envs, observations.presented, actions.presented)
        self.metadata = metadata

    def reset(self, *args: NoReturn, **unknown: NoReturn) -> Observation:
        """Reset all rows, with the seeds and options set before; a pending step is cancelled.

        Workers that have received the step still execute it, as in SB3's `SubprocVecEnv`.

        Args:
            *args: No arguments are accepted, as in SB3; the error says how to pass seeds and
                options.
            **unknown: The same.

        Returns:
            The observations, of shape `(n, *space.shape)`; a dict or tuple of such arrays where
            the space is one. The infos are in `reset_infos`.

        Raises:
            TypeError: If there are arguments.
        """
        if args or unknown:
            given = [*map(shown, args), *(f"{name}={shown(unknown[name])}" for name in unknown)]
            raise TypeError(
                f"Expected reset() without arguments, as a VecEnv has it, got {', '.join(given)}. "
                "Call env.seed(…) or env.set_options(…) before env.reset()."
            )
        self._check_open()
        self._lost_step = True
        self.last_call = object()
        # Even if no step is pending: an interrupt may have come just after one was started.
        self._source.cancel()
        self._waiting = False
        batch, self.reset_infos = self._source.reset(waiting_seeds(self), waiting_options(self))
        observations = self._observations.pack(batch)
        self._driver.take()
        forget_waiting(self)
        self._was_reset = True
        self._lost_step = False
        return observations

    def set_options(self, options: GivenOptions = None) -> None:
        """Set the options of the next reset.

        Args:
            options: One dict for all rows, or a list or tuple with one for each row. None stands
                for no options, also in the list.

        Raises:
            ValueError: If the list has another length than n, or the options have a `reset_mask`
                and the environment takes that as the rows to reset.
            TypeError: If an entry is neither a dict nor None.
            PartialResetError: If the rows differ and the environment cannot reset them one by one.
        """
        rows = options_by_row(options, self.num_envs)
        self._source.check_options(rows)
        super().set_options(rows)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seeds of the next reset.

        Args:
            seed: The seed of the first row; the next rows get `seed + 1` and so on. A natively
                vectorised environment takes the first seed only. With None, NumPy's global
                generator draws the first seed.

        Returns:
            The seed of each row.

        Raises:
            TypeError: If `seed` is not an integer, such as a list with one seed for each row.
            ValueError: If the environment does not take `seed`, as it is too large or negative.
        """
        return super().seed(seed_within(self, self.largest_seed, plain_seed(seed)))

    def step_async(self, actions: Action) -> None:
        """Start a step.

        Args:
            actions: One action for each row: an array of shape `(n, *space.shape)`, a dict or
                tuple of such arrays, or a list of n single actions. Cast to the space's dtype
                where that is safe.

        Raises:
            ValueError: If the count, shape or dtype of the actions does not fit. Nothing was sent.
            CallOrderError: If a step is pending, or a reset is due: the first one, or after an
                error or use of `env` by something else.
        """
        self._check_open()
        if self._waiting:
            raise CallOrderError(
                "Expected step_wait() after step_async(), got a second step. Call step_wait(), or "
                "reset() to drop the first step."
            )
        self._refuse_lost("the next step")
        if not (self._was_reset or self._source.broken):
            raise CallOrderError("Expected reset() before the first step. Call env.reset() first.")
        prepared = self._actions.prepare(actions)
        self._driver.check()
        self._stepper = get_ident()
        self._lost_step = True
        try:
            self._source.send(prepared)
        except BaseException:
            self._lost_step = self._source.busy or self._source.broken
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
            CallOrderError: If no step is pending.
            ConversionError: If the environment returned a value that cannot be presented exactly.
        """
        self._check_open()
        self._refuse_lost("the next step")
        if not self._waiting:
            raise CallOrderError(
                "Expected step_async(actions) before step_wait(). Call step(actions), which does "
                "both."
            )
        # Until the last line, for an exception at any line in between.
        self._lost_step = True
        self._waiting = False
        self.last_call = object()
        step = self._source.receive()
        self._driver.note()
        for i, info in step.reset_infos.items():
            self.reset_infos[i] = info
        observations = self._observations.pack(step.observations)
        self._lost_step = False
        return observations, step.rewards, step.ended, step.infos

    @property
    def envs(self) -> list[SingleEnv]:
        """The sub-environments, if they are objects in this process, as `DummyVecEnv.envs`.

        This is no copy: assign to a row to replace its sub-environment, for example by a wrapper.
        Assign another list to replace all of them.

        Raises:
            AttributeError: If the sub-environments live in workers, or there are none.
        """
        envs: list[SingleEnv] = self._local().owner.envs
        return envs

    @envs.setter
    def envs(self, envs: list[SingleEnv]) -> None:
        self._local().owner.envs = envs

    def _local(self) -> LocalSubEnvs:
        if not isinstance(self._subenvs, LocalSubEnvs):
            raise AttributeError(
                f"{self} has no sub-environments in this process. Use get_attr, set_attr and "
                "env_method."
            )
        return self._subenvs

    def has_attr(self, attr_name: str) -> bool:
        """Whether every sub-environment has the attribute."""
        return all(self._subenvs.ask(("has", attr_name), self._rows(None)))

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Read an attribute of the sub-environments.

        Args:
            attr_name: The attribute, of the environment or any wrapper around it.
            indices: The rows: None for all, an int, or an iterable of ints. Natively vectorised
                environments have one value for every row.

        Raises:
            AttributeError: If one of the sub-environments does not have the attribute.
        """
        return self._subenvs.ask(("get", attr_name), self._rows(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute on the outermost wrapper of the sub-environments, as SB3 does."""
        self._subenvs.ask(("set", attr_name, value), self._rows(indices))

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the sub-environments; the results are in the order of `indices`."""
        command = "call", method_name, method_args, method_kwargs
        return self._subenvs.ask(command, self._rows(indices))

    def env_is_wrapped(self, wrapper_class: ClassInfo, indices: Indices = None) -> list[bool]:
        """Whether each sub-environment is wrapped in that class, or in one of a tuple of them."""
        return self._subenvs.ask(("is_wrapped", WrapperClass(wrapper_class)), self._rows(indices))

    def get_images(self) -> Sequence[Array | None]:
        """One image for each row, in render mode `rgb_array`; else a warning, and None for each."""
        self._rows(None)
        if self.render_mode != "rgb_array":
            warn(f"The render mode is {self.render_mode}, but images need `rgb_array`.")
            return [None] * self.num_envs
        return frames_of(self._source.render(), self.num_envs, f"render() of {self}")

    def close(self) -> None:
        """Close the environment; a second call has no effect."""
        self._closed = True
        self._waiting = False
        # Again, if the first time was interrupted.
        if not self._released:
            self._source.close()
            self._released = True

    @property
    def closed(self) -> bool:
        """Whether it was closed, or the environment inside."""
        return self._closed or self._env_is_closed()

    @property
    def seeds_rows(self) -> bool:
        """Whether a reset gives each row a seed of its own; if not, all rows share the first."""
        return self._source.seeds_rows

    def pass_options(self, options: Sequence[Options]) -> None:
        """Pass these dicts to the rows in the next reset, uncopied; `set_options` copies them."""
        self._source.check_options(options)
        set_waiting_options(self, options)

    def read(self, name: str, *args: Any, indices: Indices = None, **kwargs: Any) -> list[Any]:
        """Call a method of the sub-environments, or read an attribute that is not a method."""
        return self._subenvs.ask(("read", name, args, kwargs), self._rows(indices))

    def _rows(self, indices: Indices) -> list[int]:
        self._check_open()
        if self._source.busy:
            if (self._lost_step or self._waiting) and self._stepper != get_ident():
                raise CallOrderError(
                    "Expected no step under way, got a call while another thread steps. Make it "
                    "after that step has returned, or let one thread make all calls."
                )
            self._refuse_lost("any other call")
        if self._waiting and self._source.busy:
            # The answer to the step would be mistaken for the answer to this call.
            raise CallOrderError(
                "Expected no step under way, got a call between step_async() and step_wait(). Call "
                "step_wait() first, or reset() to drop the step."
            )
        return resolve_indices(indices, self.num_envs)

    def _refuse_lost(self, call: str) -> None:
        """Ask for a reset after an exception in a step or reset.

        If a worker is lost, a reset would not help; the source's error says what to do.

        Args:
            call: What was called, in words: whoever calls `step` has not heard of `step_async`.
        """
        if self._lost_step and not self._source.broken:
            raise CallOrderError(
                f"Expected reset() before {call}, as the last step or reset raised an exception or "
                "was interrupted. Its results are lost, and an episode may have ended. Call "
                "env.reset(). If a model goes on to learn, call model.set_env(model.get_env()) "
                "instead, as SB3 keeps the last observations."
            )

    def _check_open(self) -> None:
        if self.closed:
            raise was_closed(self)

    def _env_is_closed(self) -> bool:
        """Whether the environment was closed by others."""
        return False
