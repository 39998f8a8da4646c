"""What has to be done directly above the base environment, below every vector wrapper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from sb3compat.errors import PartialResetError
from sb3compat.partial_reset import PartialReset
from sb3compat.rows import reset_kwargs

Mask = npt.NDArray[np.bool_]
AnyVectorEnv = VectorEnv[Any, Any, Any]

if TYPE_CHECKING:
    _Wrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:
    _Wrapper = VectorWrapper  # not generic before Gymnasium 1.4

# The key under which options for each row travel down to the tap.
ROW_OPTIONS = "sb3compat.row_options"


class MaskOptions(dict[str, Any]):
    """Options that keep their mask when a wrapper pops it.

    Gymnasium's wrappers and environments share one options dict and each pops `reset_mask` from
    it: whoever comes second no longer sees a mask, and takes the reset for one of all rows
    (`RecordEpisodeStatistics` then forgets the running episodes).
    """

    def pop(self, key: str, *default: Any) -> Any:
        """Like `dict.pop`, but the mask stays."""
        return self[key] if key == "reset_mask" and key in self else super().pop(key, *default)


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
    empty: Any = create_empty_array(env.single_observation_space, env.num_envs)
    env.observations = concatenate(env.single_observation_space, observations, empty)
    return env.observations, infos


def takes_row_options(env: AnyVectorEnv) -> bool:
    """Whether a tap above `env` can reset every row with options of its own."""
    return type(env) is SyncVectorEnv or (type(env) is AsyncVectorEnv and env.worker is None)


def _reset_each(
    env: Any, seeds: Sequence[int | None] | None, options: Sequence[dict[str, Any]]
) -> tuple[Any, dict[str, Any]]:
    """What `env.reset` does, but with options for each row, for which Gymnasium has no way."""
    n = env.num_envs
    seeds = [None] * n if seeds is None else seeds
    kwargs = [reset_kwargs(seed, row) for seed, row in zip(seeds, options, strict=True)]
    if isinstance(env, SyncVectorEnv):
        env._env_obs = observations = [None] * n
        results: Any = []
        for i, single in enumerate(env.envs):
            results.append(single.reset(**kwargs[i]))
            observations[i] = results[-1][0]
        for flags in (env._terminations, env._truncations, env._autoreset_envs):
            flags[:] = False
        out = env._observations
    else:
        for i in range(n):
            env.parent_pipes[i].send(("reset", kwargs[i]))
        results, successes = zip(*[pipe.recv() for pipe in env.parent_pipes], strict=True)
        env._raise_if_errors(successes)
        observations = [obs for obs, _ in results]
        out = env.observations
    if isinstance(env, SyncVectorEnv) or not env.shared_memory:
        concatenate(env.single_observation_space, observations, out)
    infos: dict[str, Any] = {}
    for i, (_, info) in enumerate(results):
        infos = env._add_info(infos, info, i)
    return (deepcopy(out) if env.copy else out), infos


class BaseTap(_Wrapper):
    """Seated directly above the base environment, below every vector wrapper.

    It does what has to be done down there: it sends a masked reset that came down through the
    wrappers to the registered function, and notes which info keys the environment itself gave,
    as those that come up in addition were added by wrappers.
    """

    def __init__(self, env: AnyVectorEnv) -> None:
        super().__init__(env)
        self.partial_reset: PartialReset | None = None
        self.info_keys: frozenset[str] = frozenset()
        # What the last reset asked for, once it had come down here.
        self.reset_mask: Mask | None = None
        self.row_options: Sequence[dict[str, Any]] | None = None
        self._lingers = _autoreset_lingers(env)
        self._pending = np.zeros(env.num_envs, np.bool_)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all rows, or those under `options["reset_mask"]` by the registered function."""
        options = dict(options or {})
        mask = options.pop("reset_mask", None)
        row_options = options.pop(ROW_OPTIONS, None)
        if mask is None:
            if row_options is None:
                obs, infos = self.env.reset(seed=seed, options=options or None)
            else:
                obs, infos = _reset_each(self.env, seed, row_options)
            after_reset = getattr(self.partial_reset, "after_reset", None)
            if after_reset is not None:
                after_reset(self.env)
            self._pending[:] = False
        else:
            obs, infos = self._reset_rows(mask, seed, options or None)
            self._pending[mask] = False
        self.reset_mask, self.row_options = mask, row_options
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

    def __del__(self) -> None:
        # Up to Gymnasium 1.3, a VectorEnv closes itself here; this one was opened by the user.
        pass


def wrappers_of(env: AnyVectorEnv) -> Iterator[VectorWrapper[Any, Any, Any, Any, Any]]:
    """The vector wrappers around an environment, the outermost first."""
    while isinstance(env, VectorWrapper):
        yield env
        env = env.env
