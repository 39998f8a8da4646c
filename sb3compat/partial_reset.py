"""How a `VectorEnv` class resets some of its rows and leaves the others alone.

A registry, open to users: SB3 resets an ended sub-environment within the step, so a NEXT_STEP
environment can only be presented exactly when its ended rows can be reset on demand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Protocol, TypeVar, overload

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from sb3compat.errors import PartialResetError

Mask = npt.NDArray[np.bool_]
AnyVectorEnv = VectorEnv[Any, Any, Any]


class PartialReset(Protocol):
    """Reset the rows in `mask`, and nothing else.

    Args:
        env: The vector environment, without wrappers.
        mask: Which rows to reset, bool of shape `(n,)`, at least one true.
        seed: What `env.reset` would take, or None.
        options: The options for these rows, or None.

    The function returns what `env.reset` returns: the observations of all `n` rows (those outside
    `mask` are ignored) and the infos. Where the environment is in NEXT_STEP mode, the function also
    cancels the autoreset that is pending for the rows in `mask`, so that the next step is an
    ordinary one.
    """

    def __call__(  # noqa: D102
        self,
        env: Any,
        mask: Mask,
        *,
        seed: Any = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]: ...


F = TypeVar("F", bound=PartialReset)

# By the class's qualified name, so that nothing has to be imported to be known.
_REGISTRY: dict[str, PartialReset] = {}

# Our own functions for the classes of a library; imported once the library is.
_BACKENDS = {"ale_py": "ale", "envpool": "envpool", "jax": "jax"}


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


@overload
def register_partial_reset(cls: type, function: F) -> F: ...
@overload
def register_partial_reset(cls: type, function: None = None) -> Callable[[F], F]: ...
def register_partial_reset(cls: type, function: F | None = None) -> F | Callable[[F], F]:
    """Teach `to_sb3` how instances of `cls` (and its subclasses) reset some of their rows.

    Like `functools.singledispatch`: the function of the nearest class in the method resolution
    order is used, and a later registration replaces an earlier one.

    Args:
        cls: A subclass of `gymnasium.vector.VectorEnv`, not a wrapper.
        function: A `PartialReset`: `function(env, mask, *, seed=None, options=None)` returns
            `(observations, infos)`. For an environment whose `reset` honours
            `options["reset_mask"]`, `sb3compat.reset_with_mask` is that function. When left out,
            a decorator is returned.

    Returns:
        The function, or the decorator.

    Raises:
        TypeError: If `cls` is not a class of vector environments, or `function` cannot be called.

    Example:
        >>> import sb3compat
        >>> from gymnasium.vector import VectorEnv
        >>> class MyVectorEnv(VectorEnv): ...
        >>> @sb3compat.register_partial_reset(MyVectorEnv)
        ... def reset_some(env, mask, *, seed=None, options=None):
        ...     env.state[mask] = env.initial_state(mask.sum())
        ...     env.pending_autoreset[mask] = False
        ...     return env.state.copy(), {}
    """
    if not (isinstance(cls, type) and issubclass(cls, VectorEnv)):
        raise TypeError(f"Expected a subclass of gymnasium.vector.VectorEnv, got cls={cls!r}.")
    if issubclass(cls, VectorWrapper):
        raise TypeError(
            f"Expected the class of a vector environment, got the wrapper cls={cls!r}. "
            "Register the class that the wrapper is put around."
        )
    if function is None:
        return lambda decorated: register_partial_reset(cls, decorated)
    if not callable(function):
        raise TypeError(f"Expected a function, got function={function!r}.")
    register_by_name(_name(cls), function)
    return function


def register_by_name(name: str, function: PartialReset) -> None:
    """Register a function for a class by its qualified name; for the modules in `backends`."""
    _REGISTRY[name] = function


def partial_reset_of(env: AnyVectorEnv) -> PartialReset | None:
    """The function registered for the class of `env` (without wrappers), or None."""
    for library, module in _BACKENDS.items():
        if library in sys.modules:
            import_module(f"sb3compat.backends.{module}")
    for cls in type(env).__mro__:
        if _name(cls) in _REGISTRY:
            return _REGISTRY[_name(cls)]
    return None


def reset_with_mask(
    env: Any, mask: Mask, *, seed: Any = None, options: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    """The partial reset of an environment that honours `options["reset_mask"]`.

    Gymnasium's convention for masked resets, which `SyncVectorEnv`, `AsyncVectorEnv` and ale-py's
    `AtariVectorEnv` follow.
    """
    result: tuple[Any, dict[str, Any]] = env.reset(
        seed=seed, options={**(options or {}), "reset_mask": mask}
    )
    return result


def _autoreset_lingers(env: AnyVectorEnv) -> bool:
    """Whether a reset leaves the autoreset of an ended row pending, by an upstream bug.

    As of Gymnasium 1.4, the worker of `AsyncVectorEnv` clears that flag on a reset only with shared
    memory (`_async_worker`); without, the step after the reset would reset the row once more.
    """
    return (
        isinstance(env, AsyncVectorEnv)
        and env.worker is None
        and not env.shared_memory
        and env.autoreset_mode == AutoresetMode.NEXT_STEP
    )


def _let_autoreset(env: Any, mask: Mask) -> tuple[Any, dict[str, Any]]:
    """Make the workers of the rows in `mask` do their pending autoreset, and no other worker."""
    chosen = np.flatnonzero(mask)
    for i in chosen:
        env.parent_pipes[i].send(("step", None))
    results, successes = zip(*[env.parent_pipes[i].recv() for i in chosen], strict=True)
    env._raise_if_errors([*successes, *[True] * (env.num_envs - len(chosen))])
    observations = list(iterate(env.observation_space, env.observations))
    infos: dict[str, Any] = {}
    for i, (obs, _, _, _, info) in zip(chosen, results, strict=True):
        observations[i] = obs
        infos = env._add_info(infos, info, i)
    # A new output: the rows that stay are views of the old one.
    empty = create_empty_array(env.single_observation_space, env.num_envs)
    env.observations = concatenate(env.single_observation_space, observations, empty)
    return env.observations, infos


def _reset_cartpole(
    env: Any, mask: Mask, *, seed: Any = None, options: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    """Gymnasium's native `CartPoleVectorEnv`, whose own reset ignores the mask."""
    from gymnasium.envs.classic_control.utils import maybe_parse_reset_bounds

    if seed is not None:
        VectorEnv.reset(env, seed=seed)
    low, high = maybe_parse_reset_bounds(options, -0.05, 0.05)
    env.state[:, mask] = env.np_random.uniform(low=low, high=high, size=(4, int(mask.sum())))
    env.steps[mask] = 0
    env.prev_done[mask] = False
    return env.state.T.astype(np.float32), {}


register_by_name("gymnasium.vector.sync_vector_env.SyncVectorEnv", reset_with_mask)
register_by_name("gymnasium.vector.async_vector_env.AsyncVectorEnv", reset_with_mask)
register_by_name("gymnasium.envs.classic_control.cartpole.CartPoleVectorEnv", _reset_cartpole)


class MaskOptions(dict[str, Any]):
    """Options that keep their mask when a wrapper pops it.

    Gymnasium's wrappers and environments share one options dict and each pops `reset_mask` from
    it: whoever comes second no longer sees a mask, and takes the reset for one of all rows
    (`RecordEpisodeStatistics` then forgets the running episodes).
    """

    def pop(self, key: str, *default: Any) -> Any:
        """Like `dict.pop`, but the mask stays."""
        return self[key] if key == "reset_mask" and key in self else super().pop(key, *default)


class BaseTap(VectorWrapper[Any, Any, Any, Any, Any]):
    """Seated directly above the base environment, below every vector wrapper.

    It does what has to be done down there: it sends a masked reset that came down through the
    wrappers to the registered function, and notes which info keys the environment itself gave,
    as those that come up in addition were added by wrappers.
    """

    def __init__(self, env: AnyVectorEnv) -> None:
        super().__init__(env)
        self.partial_reset: PartialReset | None = None
        self.info_keys: frozenset[str] = frozenset()
        self.reset_mask: Mask | None = None
        self._lingers = _autoreset_lingers(env)
        self._pending = np.zeros(env.num_envs, np.bool_)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all rows, or those under `options["reset_mask"]` by the registered function."""
        mask = None if options is None else options.get("reset_mask")
        if options is not None:
            options = {key: value for key, value in options.items() if key != "reset_mask"} or None
        if mask is None:
            if self._pending.any():
                _let_autoreset(self.env, self._pending)
            obs, infos = self.env.reset(seed=seed, options=options)
            self._pending[:] = False
        else:
            obs, infos = self._reset_rows(mask, seed, options)
            self._pending[mask] = False
        self.reset_mask = mask
        self.info_keys = frozenset(infos)
        return obs, infos

    def _reset_rows(
        self, mask: Mask, seed: Any, options: dict[str, Any] | None
    ) -> tuple[Any, dict[str, Any]]:
        ended = mask & self._pending
        if not ended.any():
            assert self.partial_reset is not None
            return self.partial_reset(self.env, mask, seed=seed, options=options)
        if seed is not None or options or not ended[mask].all():
            raise PartialResetError(
                "Expected a reset of ended rows only, without seed and options: that is all that "
                "AsyncVectorEnv(shared_memory=False) can do right in NEXT_STEP mode. "
                "Build it with shared_memory=True or with autoreset_mode=AutoresetMode.SAME_STEP."
            )
        return _let_autoreset(self.env, mask)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step, and note the keys of the infos."""
        result = self.env.step(actions)
        self.info_keys = frozenset(result[4])
        if self._lingers:
            self._pending = result[2] | result[3]
        return result


def wrappers_of(env: AnyVectorEnv) -> Iterator[VectorWrapper[Any, Any, Any, Any, Any]]:
    """The vector wrappers around an environment, the outermost first."""
    while isinstance(env, VectorWrapper):
        yield env
        env = env.env
