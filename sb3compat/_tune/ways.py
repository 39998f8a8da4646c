"""The ways of making a vector environment that are compared, the simplest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sb3compat._make.make import make_vec_env
from sb3compat._make.native import find_spec
from sb3compat._parallel.cores import usable_cores
from sb3compat._upstream.sb3 import HAS_SB3, VecEnv, of_sb3

# An id, or a function that makes a single environment.
EnvId = str | Callable[[], Any]


class Way(NamedTuple):
    """One way of making it.

    Attributes:
        name: What the table calls it.
        line: The code that makes it.
        make: Makes it.
        imports: The lines that `line` needs before it.
    """

    name: str
    line: str
    make: Callable[[], VecEnv]
    imports: tuple[str, ...] = ()


def ways(env_id: EnvId, shown: str, n_envs: int, imports: Sequence[str] = ()) -> list[Way]:
    """All ways of making a vector environment of `n_envs` of these environments.

    Args:
        env_id: The id, or the function that makes one.
        shown: The source code that names it.
        n_envs: The number of environments.
        imports: The lines that import what `shown` names.
    """
    found = []
    if HAS_SB3:
        found.append(_dummy(env_id, shown, n_envs))
    found.append(_way("sync", env_id, shown, n_envs, vectorization_mode="sync"))
    if isinstance(env_id, str) and getattr(find_spec(env_id), "vector_entry_point", None):
        found.append(_way("native", env_id, shown, n_envs, vectorization_mode="native"))
    found.append(_way("async", env_id, shown, n_envs, vectorization_mode="async"))
    for workers in numbers_of_workers(usable_cores(), n_envs):
        kwargs: dict[str, Any] = {"vectorization_mode": "parallel", "workers": workers}
        found.append(_way(f"parallel, workers={workers}", env_id, shown, n_envs, **kwargs))
    if n_envs > 1:
        workers = max(1, usable_cores() - 1)
        kwargs = {"vectorization_mode": "parallel", "workers": workers}
        kwargs["vec_env_kwargs"] = {"parent_steps": True}
        name = f"parallel, workers={workers}, parent_steps"
        found.append(_way(name, env_id, shown, n_envs, **kwargs))
    return [way._replace(imports=(*way.imports, *imports)) for way in found]


def numbers_of_workers(cores: int, n_envs: int) -> list[int]:
    """The powers of 2 up to the number of cores, and that number itself; at most `n_envs`."""
    most = min(cores, n_envs)
    return sorted({*(2**i for i in range(most.bit_length())), most})


def _way(name: str, env_id: EnvId, shown: str, n_envs: int, **kwargs: Any) -> Way:
    arguments = [shown, f"n_envs={n_envs}", *(f"{key}={value!r}" for key, value in kwargs.items())]
    line = f"sb3compat.make_vec_env({', '.join(arguments)})"
    make = lambda: make_vec_env(env_id, n_envs, **kwargs)  # noqa: E731
    return Way(name, line, make, ("import sb3compat",))


def _dummy(env_id: EnvId, shown: str, n_envs: int) -> Way:
    imports = ("from stable_baselines3.common.env_util import make_vec_env",)
    line = f"make_vec_env({shown}, n_envs={n_envs})"
    make = lambda: of_sb3("env_util", "make_vec_env")(env_id, n_envs)  # noqa: E731
    return Way("DummyVecEnv", line, make, imports)
