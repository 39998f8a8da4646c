"""Access of a `VectorEnv` to the attributes, methods and frames of its sub-environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sb3compat._convert.arrays import frames_of
from sb3compat._convert.infos import own_value
from sb3compat._convert.types import SingleEnv, SubEnvs, VectorEnvBase
from sb3compat._rows.subenvs import write_by_row
from sb3compat._rows.vec_env_subenvs import local_envs
from sb3compat._to_gymnasium.arguments import values_by_row
from sb3compat._to_gymnasium.stepper import read_if_any
from sb3compat._upstream.private import set_private
from sb3compat._upstream.vec_env import is_plain
from sb3compat.errors import was_closed


class ReachesSubEnvs(VectorEnvBase):
    """The part of the adapter that reaches the sub-environments.

    Attributes:
        vec_env: The `VecEnv`, with its wrappers.
    """

    vec_env: Any
    _subenvs: SubEnvs
    # The seed of the last reset, until the adapter's own generator is asked for.
    _own_seed: int | None = None

    def render(self) -> tuple[Any, ...]:
        """One frame for each row."""
        self._check_open()
        by_row = self._is_plain or self.render_mode != "rgb_array"
        vec_env: Any = self.vec_env
        if not by_row and not hasattr(vec_env, "get_images"):
            raise AttributeError(
                f"{vec_env} has no method 'get_images', by which its frames could be had. Add it "
                "to that class."
            )
        frames = self.call("render") if by_row else vec_env.get_images()
        what = f"get_images() of {vec_env}"
        return tuple(map(own_value, frames_of(frames, vec_env.num_envs, what)))

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each sub-environment, or read an attribute that is not a method.

        Args:
            name: The method or attribute, of the environment or any wrapper around it.
            *args: Arguments of the method.
            **kwargs: Arguments of the method.
        """
        self._check_open()
        return tuple(self._subenvs.ask(("read", name, args, kwargs), range(self.num_envs)))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of each sub-environment; a method is called."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of the sub-environments.

        Args:
            name: The attribute.
            values: A list or tuple with one value for each row, or else one value for all.

        Raises:
            ValueError: If it is a list or tuple of another length than n.
        """
        self._check_open()
        write_by_row(self._subenvs, name, values_by_row(values, self.num_envs))

    @property
    def envs(self) -> Sequence[SingleEnv]:
        """The sub-environments, if they are objects in this process, as `SyncVectorEnv.envs`.

        The `VecEnv`'s own list: assign to a row to replace its sub-environment, or assign another
        list.

        Raises:
            AttributeError: If they live in workers, or there are none.
        """
        return local_envs(self.vec_env)

    @envs.setter
    def envs(self, envs: Sequence[SingleEnv]) -> None:
        local_envs(self.vec_env)  # if there are none, its error says what to do
        getattr(self.vec_env, "unwrapped", self.vec_env).envs = envs

    @property
    def np_random(self) -> Any:
        """The random generators of the sub-environments; the adapter's own if they have none."""
        value = self._read_if_any("np_random")
        return self._seeded().np_random if value is None else value

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        if self._read_if_any("np_random") is not None:
            raise AttributeError(
                "Expected each sub-environment to keep its own generator. Call reset(seed=...) to "
                "seed them, or set_attr('np_random', [one for each row]) to replace them."
            )
        # Its seed is unknown from then on.
        self._own_seed = None
        set_private(self, "_np_random", value)
        set_private(self, "_np_random_seed", -1)

    @property
    def np_random_seed(self) -> Any:
        """The seeds of those generators."""
        value = self._read_if_any("np_random_seed")
        return self._seeded().np_random_seed if value is None else value

    def _seeded(self) -> Any:
        """The base class, whose generator has the seed of the last reset that had one."""
        if self._own_seed is not None:
            super().reset(seed=self._own_seed)
            self._own_seed = None
        return super()

    @property
    def subenvs(self) -> SubEnvs:
        """Reaches the sub-environments by row, for `to_sb3`."""
        self._check_open()
        return self._subenvs

    @property
    def _is_plain(self) -> bool:
        return is_plain(self.vec_env, "DummyVecEnv") or is_plain(self.vec_env, "SubprocVecEnv")

    def _read_if_any(self, name: str) -> tuple[Any, ...] | None:
        values = read_if_any(self._subenvs, name, self.num_envs)
        return None if values is None or all(v is None for v in values) else tuple(values)

    def _check_open(self) -> None:
        if self.closed:
            raise was_closed(self)
