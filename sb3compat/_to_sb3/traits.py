"""What is known of a library's vector environments, besides how some of their rows are reset."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode

from sb3compat._convert.types import AnyVectorEnv, Flags, VectorInfos
from sb3compat._to_sb3.partial_reset import import_backends, qualified_name


class EndingWatch(Protocol):
    """Looks at what an environment returns, for endings that cannot be presented exactly."""

    def reset(self, infos: VectorInfos) -> None:
        """Take note of the infos of a reset."""

    def step(self, terminations: Flags, truncations: Flags, infos: VectorInfos) -> None:
        """Refuse the endings of a step, or take note of its infos."""


class Traits(NamedTuple):
    """What is known of a class.

    Attributes:
        largest_seed: The largest seed of a row that its reset takes, the smallest being 0; None if
            there is no such limit.
        watch: A function of the environment and its autoreset mode. It refuses settings that
            cannot be presented exactly; if they cannot be read, it returns what looks at endings.
    """

    largest_seed: int | None = None
    watch: Callable[[Any, AutoresetMode], EndingWatch | None] | None = None


_TRAITS: dict[str, Traits] = {}


def register_traits(name: str, traits: Traits) -> None:
    """Register what is known of a class, by its qualified name."""
    _TRAITS[name] = traits


def traits_of(env: AnyVectorEnv) -> Traits:
    """What is known of the class of `env` (without wrappers), or of one that it derives from."""
    import_backends()
    for cls in type(env).__mro__:
        if qualified_name(cls) in _TRAITS:
            return _TRAITS[qualified_name(cls)]
    return Traits()


def check_seed(env: AnyVectorEnv, seed: int) -> None:
    """Refuse a first row's seed that the environment would not take, or would take for none.

    Raises:
        ValueError: If it is negative, or that of the last row is too large.
    """
    most = _most(env)
    if most is not None and not 0 <= seed <= most:
        raise ValueError(
            f"Expected a seed from 0 to {most}, as {env} takes none above "
            f"{most + env.num_envs - 1}, and its {env.num_envs} rows count up from the first one, "
            f"got seed={seed}. Nothing was changed."
        )


def seed_within(env: AnyVectorEnv, seed: int | None) -> int | None:
    """The first row's seed, checked; for None a random one, if the environment does not take all.

    Raises:
        ValueError: As `check_seed`.
    """
    most = _most(env)
    if most is None:
        return seed
    if seed is None:
        return int(np.random.randint(0, min(most + 1, _SB3_BELOW), dtype=np.int64))
    check_seed(env, operator.index(seed))
    return operator.index(seed)


def _most(env: AnyVectorEnv) -> int | None:
    """The largest seed of the first row; None if there is no limit."""
    largest = traits_of(env).largest_seed
    return None if largest is None else largest - env.num_envs + 1


# SB3 draws random seeds below this.
_SB3_BELOW = 2**32 - 1
