"""The private state of SB3's `VecEnv`, and tests for SB3's own classes and methods.

Nothing here imports SB3: an environment of its classes exists only once SB3 was imported. An object
that is only similar to a `VecEnv` has no such state; a `VecEnv` that lacks it is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from sb3compat._convert.types import Options
from sb3compat._upstream.inherited import is_exactly
from sb3compat._upstream.private import missing, private, set_private

LIBRARY = "stable_baselines3"
MODULE = "stable_baselines3.common.vec_env"
# The substitute for SB3's base class, if SB3 is not installed.
STAND_IN = "sb3compat._upstream.sb3"
# The methods that turn indices into environments or workers.
_TARGETS = {"DummyVecEnv": "_get_target_envs", "SubprocVecEnv": "_get_target_remotes"}


def sb3_class(name: str) -> type | None:
    """SB3's class of that name; None if SB3 was not imported yet.

    Raises:
        UpstreamError: If SB3 was imported and the class is no longer at its place.
    """
    module = sys.modules.get(MODULE)
    if module is None and LIBRARY in sys.modules:
        raise missing(MODULE.partition(".")[2], sys.modules[LIBRARY])
    cls: type | None = None if module is None else private(module, name)
    return cls


def is_plain(vec_env: object, name: str) -> bool:
    """Whether this is SB3's own class of that name, nothing wrapped and no method replaced."""
    return is_exactly(vec_env, sb3_class(name))


def derives_from(vec_env: object, name: str) -> bool:
    """Whether this is SB3's class of that name, or a subclass."""
    cls = sb3_class(name)
    return cls is not None and isinstance(vec_env, cls)


def keeps_infos(vec_env: object, name: str, *private_names: str) -> bool:
    """Whether this is SB3's class of that name, or a subclass, with the infos that SB3 keeps.

    Args:
        vec_env: The environment. A subclass with methods of its own may have skipped `__init__`.
        name: The class.
        *private_names: The names of infos beside `reset_infos`.

    Raises:
        UpstreamError: If SB3's own class has them no longer.
    """
    if not derives_from(vec_env, name):
        return False
    if type(vec_env) is sb3_class(name):
        for one in private_names:
            private(vec_env, one)
    return all(hasattr(vec_env, one) for one in (*private_names, "reset_infos"))


def shares_infos(vec_env: Any) -> bool:
    """Whether rows of a `DummyVecEnv` have returned the same info dict in the last step."""
    infos: list[object] = vec_env.buf_infos
    return len(set(map(id, infos))) < len(infos)


def keeps_methods(vec_env: object, name: str, *methods: str) -> bool:
    """Whether this is SB3's class of that name, or a subclass that inherits these methods.

    And the object has no method of its own under such a name.
    """
    return derives_from(vec_env, name) and all(
        _of_class(vec_env, method) is private(sb3_class(name), method) for method in methods
    )


def reaches_rows_as(vec_env: object, name: str) -> bool:
    """Whether this is SB3's class of that name, or reaches its rows by the methods of that.

    Args:
        vec_env: The environment.
        name: `"DummyVecEnv"` or `"SubprocVecEnv"`.
    """
    names = ("get_attr", "set_attr", "env_method", "env_is_wrapped", _TARGETS[name])
    if not keeps_methods(vec_env, name, *names):
        return False
    # A subclass may present several rows of one environment, or have none.
    rows: Sequence[Any] = getattr(vec_env, {"DummyVecEnv": "envs"}.get(name, "remotes"), ())
    return len(rows) == vec_env.num_envs  # type: ignore[attr-defined, no-any-return]


def inherits(vec_env: object, method: str) -> bool:
    """Whether this method is the one of SB3's base classes, not overridden."""
    own = _of_class(vec_env, method)
    return own is not None and any(own is getattr(cls, method, None) for cls in _base_classes())


def overrides_only(vec_env: Any, method: str, other: str) -> bool:
    """Whether one method is overridden and another one is SB3's, here or in a `VecEnv` inside."""
    return any(
        not _is_sb3s(layer, method) and _is_sb3s(layer, other) for layer in layers_of(vec_env)
    )


def inside_of(vec_env: object) -> Any:
    """The `VecEnv` that a wrapper is around; None of one that is no wrapper.

    What a `VecEnv` keeps as `venv` may be something else, such as its simulator.
    """
    inside = getattr(vec_env, "venv", None)
    needed = ("num_envs", "observation_space", "action_space", "reset")
    return inside if all(hasattr(inside, name) for name in needed) else None


def layers_of(vec_env: Any) -> Iterator[Any]:
    """The wrappers around a `VecEnv`, the outermost first, and the one inside of them."""
    while vec_env is not None:
        yield vec_env
        vec_env = inside_of(vec_env)


def _is_sb3s(vec_env: object, method: str) -> bool:
    module = getattr(_of_class(vec_env, method), "__module__", None) or ""
    return module.partition(".")[0] in ("stable_baselines3", "sb3compat")


def _of_class(vec_env: object, method: str) -> Any:
    """What its class has under that name; None where the object has a method of its own."""
    own = method in getattr(vec_env, "__dict__", {})
    return None if own else getattr(type(vec_env), method, None)


def is_vec_env(vec_env: object) -> bool:
    """Whether this is a `VecEnv`, not only an object with its methods."""
    return isinstance(vec_env, tuple(_base_classes()))


def waiting_seeds(vec_env: object) -> list[int | None]:
    """The seeds that were set for the next reset, one for each row; empty if unknown."""
    return list(_waiting(vec_env, "_seeds", "_reset_seeds"))


def waiting_options(vec_env: object) -> list[Options]:
    """The options that were set for the next reset, one dict for each row; empty if unknown."""
    return list(_waiting(vec_env, "_options", "_reset_options"))


def set_waiting_seeds(vec_env: Any, seeds: Sequence[int | None]) -> None:
    """Set the seed of each row for the next reset; `VecEnv.seed` takes the first row's only."""
    set_private(vec_env, "_seeds", list(seeds))


def set_waiting_options(vec_env: Any, options: Sequence[Options]) -> None:
    """Set the options of each row for the next reset; `VecEnv.set_options` would copy them."""
    set_private(vec_env, "_options", list(options))


def set_waiting(vec_env: Any, seeds: Sequence[int | None], options: Sequence[Options]) -> None:
    """Set both, as `waiting_seeds` and `waiting_options` returned them."""
    if seeds:
        set_waiting_seeds(vec_env, seeds)
    if options:
        set_waiting_options(vec_env, options)


def passes_seeds_and_options(vec_env: object) -> bool:
    """Whether its reset passes the stored seed and options to each row."""
    return derives_from(vec_env, "DummyVecEnv") or derives_from(vec_env, "SubprocVecEnv")


def forget_waiting(vec_env: object) -> None:
    """Discard the stored seeds and options: they are used once."""
    for name in ("_reset_seeds", "_reset_options") if is_vec_env(vec_env) else ():
        private(vec_env, name)()


def _waiting(vec_env: object, name: str, forget: str) -> Any:
    if not is_vec_env(vec_env):
        return []  # what it has under that name is its own
    if not hasattr(vec_env, name):
        # A user's class may have skipped the `__init__` of SB3's, which calls this method.
        private(vec_env, forget)()
    return private(vec_env, name)


def _base_classes() -> list[type]:
    found = [sb3_class("VecEnv"), sb3_class("VecEnvWrapper")]
    stand_in = sys.modules.get(STAND_IN)
    found.append(getattr(stand_in, "VecEnv", None))
    return [cls for cls in found if cls is not None]


def converted(env: Any) -> Any:
    """An environment of the old `gym`, converted as by SB3's `DummyVecEnv` and `make_vec_env`.

    Any other object is returned unchanged, without importing SB3.

    Raises:
        ImportError: If SB3 or shimmy is missing.
    """
    old = getattr(sys.modules.get("gym"), "Env", None)
    if not isinstance(old, type) or not isinstance(env, old):
        return env
    # Here, as workers do without SB3 and torch.
    from sb3compat._upstream.sb3 import patched_env

    return patched_env(env)
