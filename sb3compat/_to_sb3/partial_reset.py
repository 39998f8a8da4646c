"""Registered functions by which a `VectorEnv` class resets some of its rows.

SB3 resets an ended sub-environment within the step, so a NEXT_STEP environment can only be
presented exactly if its ended rows can be reset on demand. Users can register functions for their
classes. Further properties of a class are attributes of the same function, so that each library
needs only one module.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol, TypeVar, overload

import numpy as np
from gymnasium.vector import (
    AsyncVectorEnv,
    SyncVectorEnv,
    VectorEnv,
    VectorWrapper,
)

from sb3compat._convert.arrays import leaves_of, to_numpy
from sb3compat._convert.types import (
    AnyVectorEnv,
    Array,
    Flags,
    HoldsVecEnv,
    Options,
    VectorInfos,
    VectorResetResult,
)
from sb3compat._ipc import by_value
from sb3compat._upstream.inherited import changed
from sb3compat.errors import PartialResetError, UnsupportedEnvError, shown


class PartialReset(Protocol):
    """Reset the rows in `mask`, and nothing else.

    Args:
        env: The vector environment, without wrappers.
        mask: Which rows to reset, bool of shape `(n,)`, at least one true.

    The function returns what `env.reset` returns: the observations of all `n` rows (those outside
    `mask` are ignored) and the infos. Where the environment is in NEXT_STEP mode, the function also
    cancels the autoreset that is pending for the rows in `mask`, so that the next step is an
    ordinary one.

    Attributes that the function may have:

    - `restart(env, mask, ended)`: for an environment whose autoreset differs from its reset. It
      does the autoreset of the rows in `mask & ended`, as the environment itself would in the next
      step, and resets the rows in `mask & ~ended`. It returns the same as the function.
    - `restart_rows(env, rows)`: the same for the rows with these numbers, all of which the
      environment itself has ended. It returns the observations and infos of these rows only. It
      makes steps faster.
    - `after_reset(env)`: cancels the autoresets that the environment's own `reset` of all rows
      leaves pending.
    - `keeps_others`: True if the function returns the observations of the rows outside `mask`
      unchanged. `to_sb3` can then detect a wrapper that treats a reset of some rows as a reset of
      all rows, and raises an error.
    - `watch(env, autoreset_mode)`: refuses settings under which the environment reports endings
      that it does not act on; if they cannot be read, it returns an `EndingWatch`.
    - `largest_seed`: the largest seed of a row that the environment takes, the smallest being 0.
    - `needs_valid_actions`: True if the environment hangs or crashes when it gets a number that is
      not in its `Discrete` action space. Such actions then raise a `ValueError`.

    `watch`, `largest_seed` and `needs_valid_actions` also apply to subclasses that override
    methods, for which the function itself is not used.
    """

    def __call__(self, env: Any, mask: Flags) -> VectorResetResult: ...


class EndingWatch(Protocol):
    """Looks at what an environment returns, for endings that cannot be presented exactly."""

    def reset(self, infos: VectorInfos) -> None:
        """Take note of the infos of a reset."""

    def step(self, terminations: Flags, truncations: Flags, infos: VectorInfos) -> None:
        """Refuse the endings of a step, or take note of its infos."""


class MaskPromise:
    """Looks whether the reset of an environment takes `options["reset_mask"]`.

    DISABLED mode promises that, but many environments ignore options that they do not know: they
    would reset all rows.

    Args:
        env: The environment, for which no partial reset is registered.
        wrapped: Whether there are wrappers around it, which may end episodes as well.
    """

    def __init__(self, env: AnyVectorEnv, *, wrapped: bool) -> None:
        self._env, self._wrapped = env, wrapped
        # The observations of the last step, if an episode may have ended in it; copied, as the
        # reset may write into the same arrays.
        self._before: dict[tuple[Any, ...], Array] = {}

    def step(self, obs: Any, terminations: Any, truncations: Any) -> None:
        """Keep the observations of a step in which an episode may end."""
        ends = self._wrapped or to_numpy(terminations).any() or to_numpy(truncations).any()
        leaves = leaves_of(obs).items() if ends else ()
        self._before = {at: to_numpy(leaf).copy() for at, leaf in leaves}

    def forget(self) -> None:
        """Forget the observations, as a reset of all rows changes them."""
        self._before = {}

    def check(self, obs: Any, mask: Flags) -> None:
        """Refuse the reset of these rows if it has changed the observations of others.

        Raises:
            PartialResetError: If it has.
        """
        after = leaves_of(obs) if self._before else {}
        if all(
            same_rows(before, to_numpy(after[at]), ~mask)
            for at, before in self._before.items()
            if at in after
        ):
            # A wrapper may reset the rows one after the other.
            self._before = {at: to_numpy(leaf).copy() for at, leaf in after.items()}
            return
        raise PartialResetError(
            f"Expected reset(options={{'reset_mask': mask}}) of {self._env}, which is in DISABLED "
            f"mode, to leave the observations of all rows but {np.flatnonzero(mask).tolist()} as "
            "they were, but it has changed others. If the environment ignores the mask, register a "
            "function that resets some of its rows: sb3compat.register_partial_reset("
            f"{type(self._env).__name__}, function). If it takes the mask, and only returns other "
            "observations of the same state each time, pass sb3compat.reset_with_mask as that "
            "function."
        )


def same_rows(before: Array, after: Array, rows: Flags) -> bool:
    """Whether two batches are equal in the rows under a mask; True if they are no batches."""
    if not before.shape[:1] == after.shape[:1] == rows.shape:
        return True
    return np.array_equal(before[rows], after[rows], equal_nan=before.dtype.kind in "fc")


def refuse_partial_batches(env: AnyVectorEnv, batch_size: int) -> None:
    """Refuse an environment whose steps return some of its rows, whichever are ready first.

    Raises:
        UnsupportedEnvError: If it is one.
    """
    if batch_size != env.num_envs:
        raise UnsupportedEnvError(
            f"Expected {env} to return all rows in each step, got batch_size={batch_size} for "
            f"num_envs={env.num_envs}. Build it with batch_size={env.num_envs}."
        )


F = TypeVar("F", bound=PartialReset)

_REGISTRY: dict[type, PartialReset] = {}
# In a worker: what the program has registered, pickled, by the name of the class.
_OF_THE_PROGRAM: dict[str, bytes] = {}

# The modules of `backends` by the class, which exists only after its library was imported.
_BACKENDS = {
    "gymnasium.envs.classic_control.cartpole.CartPoleVectorEnv": "cartpole",
    "gymnasium.envs.functional_jax_env.FunctionalJaxVectorEnv": "jax",
    "ale_py.vector_env.AtariVectorEnv": "ale",
    "envpool.python.gymnasium_envpool.GymnasiumEnvPoolMixin": "envpool",
}


@overload
def register_partial_reset(cls: type, function: F) -> F: ...
@overload
def register_partial_reset(cls: type, function: None = None) -> Callable[[F], F]: ...
def register_partial_reset(cls: type, function: F | None = None) -> F | Callable[[F], F]:
    """Register the function by which instances of `cls` (and its subclasses) reset some rows.

    Like `functools.singledispatch`: the function of the nearest class in the method resolution
    order is used, and a later registration replaces an earlier one. A subclass may use the function
    of its base class if it overrides none of its methods, except for those that concern no
    transition, such as `render` and `close`. Any other subclass needs its own registration, as the
    function would bypass its code.

    Args:
        cls: A subclass of `gymnasium.vector.VectorEnv`, not a wrapper.
        function: `function(env, mask)` resets the rows under `mask`, a bool array of shape `(n,)`,
            and returns `(observations, infos)` as `reset` does, for all rows. It may have
            attributes: see the guide *Register a partial reset*. For an
            environment whose `reset` supports `options["reset_mask"]`,
            `sb3compat.reset_with_mask` is that function. When left out, a decorator is returned.

    Returns:
        The function, or the decorator.

    Raises:
        TypeError: If `cls` is not a class of vector environments, or is Gymnasium's own
            `SyncVectorEnv` or `AsyncVectorEnv`, or `function` cannot be called.

    Example:
        >>> import sb3compat
        >>> from gymnasium.vector import VectorEnv
        >>> class MyVectorEnv(VectorEnv): ...
        >>> @sb3compat.register_partial_reset(MyVectorEnv)
        ... def reset_some(env, mask):
        ...     env.state[mask] = env.initial_state(mask.sum())
        ...     env.pending_autoreset[mask] = False
        ...     return env.state.copy(), {}
    """
    if not (isinstance(cls, type) and issubclass(cls, VectorEnv)):
        raise TypeError(
            f"Expected a subclass of gymnasium.vector.VectorEnv, got cls={shown(cls)}. "
            "Pass the class itself."
        )
    if issubclass(cls, VectorWrapper):
        raise TypeError(
            f"Expected the class of a vector environment, got the wrapper cls={cls!r}. "
            "Register the class that the wrapper is put around."
        )
    if cls in (SyncVectorEnv, AsyncVectorEnv):
        raise TypeError(
            f"Expected a class of your own, got cls={cls.__name__}, whose rows to_sb3 resets one "
            "by one: a registered function would not be called. Register a subclass, or leave it "
            "out."
        )
    if function is None:
        return lambda decorated: register_partial_reset(cls, decorated)
    if not callable(function):
        raise TypeError(
            f"Expected a function, got function={shown(function)} ({type(function).__name__}). "
            "Pass one that takes (env, mask)."
        )
    _REGISTRY[cls] = function
    return function


def partial_reset_of(env: AnyVectorEnv) -> PartialReset | None:
    """The function registered for the class of `env` (without wrappers), or None.

    None as well where `env` overrides a method of that class.
    """
    found = next(iter(_registered(env)), None)
    return None if found is None or changed(env, found[0]) else found[1]


def override_of(env: AnyVectorEnv) -> tuple[type, str] | None:
    """Why a registered function does not hold for `env`: its class, and the method overridden."""
    cls = next((cls for cls, _ in _registered(env)), None)
    name = None if cls is None else changed(env, cls)
    return None if cls is None or name is None else (cls, name)


def attribute_of(env: AnyVectorEnv, name: str) -> Any:
    """An attribute of `PartialReset` that holds for `env`, or None.

    That of the nearest function that has it; others need not repeat it.
    """
    functions = (function for _, function in _registered(env) if hasattr(function, name))
    return getattr(next(functions, None), name, None)


def _registered(env: AnyVectorEnv) -> Iterator[tuple[type, PartialReset]]:
    """The classes of `env` with registered functions, the nearest first; users' before ours."""
    for cls in type(env).__mro__:
        name = f"{cls.__module__}.{cls.__qualname__}"
        if cls not in _REGISTRY and name in _OF_THE_PROGRAM:
            _REGISTRY[cls] = pickle.loads(_OF_THE_PROGRAM[name])
        if cls in _REGISTRY:
            yield cls, _REGISTRY[cls]
        module = _BACKENDS.get(name)
        if module is not None:
            yield cls, import_module(f"sb3compat._to_sb3.backends.{module}").ResetRows()


def registered_by_users() -> dict[str, bytes]:
    """The functions that were registered, pickled, by the name of the class, for workers.

    Those of classes that a function has made are left out: other classes may have their names.
    """
    found = {}
    for cls, function in _REGISTRY.items():
        if cls not in _OWN and "<locals>" not in cls.__qualname__:
            with suppress(Exception):  # a worker of a class that needs it will say so
                found[f"{cls.__module__}.{cls.__qualname__}"] = by_value.dumps(function)
    return found


def take_over(found: dict[str, bytes]) -> None:
    """Take over what the program has registered, for classes of which there is nothing here."""
    _OF_THE_PROGRAM.update(found)


def reset_with_mask(
    env: AnyVectorEnv, mask: Flags, *, seed: Any = None, options: Options | None = None
) -> VectorResetResult:
    """The partial reset of an environment that supports `options["reset_mask"]`.

    Gymnasium's convention for masked resets, which `SyncVectorEnv`, `AsyncVectorEnv` and ale-py's
    `AtariVectorEnv` follow.

    Args:
        env: The environment, without wrappers.
        mask: The rows to reset, a bool array of shape `(n,)`.
        seed: Passed to `env.reset`.
        options: Passed to `env.reset`, with the mask.

    Returns:
        The observations of all rows, and infos, as `env.reset` returns them.

    Raises:
        UnsupportedEnvError: If it is no `VectorEnv`.
    """
    if not isinstance(env, VectorEnv):
        raise UnsupportedEnvError(
            f"Expected a gymnasium.vector.VectorEnv, got env={shown(env)} ({type(env).__name__}). "
            "A VecEnv resets ended rows itself: pass the VectorEnv inside it."
        )
    return env.reset(seed=seed, options={**(options or {}), "reset_mask": mask})


# The last one presents a VecEnv as a VectorEnv: the protocol promises masked resets.
_OWN = (SyncVectorEnv, AsyncVectorEnv, HoldsVecEnv)
for _cls in _OWN:
    _REGISTRY[_cls] = reset_with_mask
