"""What has to be done directly above the base environment, below every vector wrapper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, iterate

from sb3compat._to_sb3.partial_reset import PartialReset
from sb3compat._to_sb3.rows_sync import reset_kwargs
from sb3compat._upstream import async_vector_env as workers

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


def resets_rows_itself(env: AnyVectorEnv) -> bool:
    """Whether a tap above `env` resets its rows one by one, each with its own arguments.

    For Gymnasium's own two, and subclasses that reset as they do: their reset has one options dict
    for all rows, and passes it (empty) where `DummyVecEnv`, like their own autoreset, passes
    nothing.
    """
    for cls in (SyncVectorEnv, AsyncVectorEnv):
        if isinstance(env, cls):
            own = ("reset", "reset_async", "reset_wait")
            return all(getattr(type(env), name, 0) is getattr(cls, name, 0) for name in own)
    return False


def _reset_rows(
    env: Any, rows: Sequence[int], kwargs: Sequence[dict[str, Any]], *, copy: bool
) -> tuple[Any, dict[str, Any]]:
    """What a masked `env.reset` does, but with arguments for each row."""
    if isinstance(env, SyncVectorEnv):
        results = [env.envs[i].reset(**row) for i, row in zip(rows, kwargs, strict=True)]
        for flags in (env._terminations, env._truncations, env._autoreset_envs):
            flags[rows] = False
        held, out = env._env_obs, env._observations
    else:
        results = workers.reset(env, rows, kwargs)
        held, out = None, env.observations
        if not env.shared_memory:
            # Copied, as they are views of what is written to below.
            held = deepcopy(list(iterate(env.observation_space, out)))
    infos: dict[str, Any] = {}
    for i, (obs, info) in zip(rows, results, strict=True):
        if held is not None:
            held[i] = obs
        infos = env._add_info(infos, info, i)
    if held is not None:
        concatenate(env.single_observation_space, held, out)
    return (deepcopy(out) if copy else out), infos


# The environments whose step calls two methods and does nothing else.
_HALVES = {
    "gymnasium.vector.async_vector_env.AsyncVectorEnv": ("step_async", "step_wait"),
    "ale_py.vector_env.AtariVectorEnv": ("send", "recv"),
    "envpool.python.envpool.EnvPoolMixin": ("send", "recv"),
}
Halves = tuple[Callable[[Any], None], Callable[[], Any]]


def _halves_of(env: AnyVectorEnv) -> Halves | None:
    """What starts and what finishes a step."""
    if isinstance(env, AsyncVectorEnv) and _has_own(env, "step", "step_async", "step_wait"):
        return partial(workers.start_step, env), partial(workers.finish_step, env)
    cls = next(cls for cls in type(env).__mro__ if "step" in vars(cls))
    names = _HALVES.get(f"{cls.__module__}.{cls.__qualname__}")
    return None if names is None else (getattr(env, names[0]), getattr(env, names[1]))


def _has_own(env: AsyncVectorEnv[Any, Any], *names: str) -> bool:
    """Whether these methods are `AsyncVectorEnv`'s own."""
    return all(getattr(type(env), name) is getattr(AsyncVectorEnv, name) for name in names)


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
        # Whether a reset comes from the adapter; the user's own go straight to the environment.
        self.adapting = False
        self.foreign_resets = 0
        # What has come down here: the steps, what the last one ended, and what the last reset
        # asked for.
        self.steps = 0
        self.ended: Any = None
        self.reset_mask: Mask | None = None
        self.row_options: Sequence[dict[str, Any]] | None = None
        # Whether Gymnasium's environment is to keep its own arrays, built with copy=False, to
        # itself: an observation wrapper writes its results into what it is given.
        self.copies = False
        self._halves = _halves_of(env)
        self._started = False

    def start(self, actions: Any) -> None:
        """Start a step, where the environment can; `step` with the same actions finishes it."""
        if self._halves is not None:
            self._halves[0](actions)
            self._started = True

    def cancel(self) -> None:
        """Finish a step that was started, and drop what it returns."""
        if self._halves is not None and self._started:
            self._started = False
            self._halves[1]()

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        """Reset all rows, or those under `options["reset_mask"]` by the registered function."""
        if not self.adapting:
            self.foreign_resets += 1
            return self.env.reset(seed=seed, options=options)
        options = dict(options or {})
        mask = options.pop("reset_mask", None)
        row_options = options.pop(ROW_OPTIONS, None)
        env: Any = self.env
        if isinstance(env, AsyncVectorEnv):
            workers.check_ready(env)
        n = env.num_envs
        if resets_rows_itself(env):
            if mask is None:
                seeds = [None] * n if seed is None else seed
                options_of = [options] * n if row_options is None else row_options
                rows = list(range(n))
                kwargs = [reset_kwargs(seeds[i], options_of[i]) for i in rows]
            else:
                rows = np.flatnonzero(mask).tolist()
                kwargs = [{}] * len(rows)
            result = _reset_rows(env, rows, kwargs, copy=env.copy or self.copies)
        elif mask is not None:
            assert self.partial_reset is not None
            result = self.partial_reset(env, mask, seed=seed, options=options or None)
        else:
            result = env.reset(seed=seed, options=options or None)
            after_reset = getattr(self.partial_reset, "after_reset", None)
            if after_reset is not None:
                after_reset(env)
        self.reset_mask, self.row_options = mask, row_options
        self._note(result, 2)
        return result

    def step(self, actions: Any) -> Any:
        """Step, and note the keys of the infos."""
        if self._halves is None:
            result = self.env.step(actions)
        else:
            if not self._started:
                self.start(actions)
            self._started = False
            result = self._halves[1]()
        if self.copies:
            result = (deepcopy(result[0]), *result[1:])
        self.steps += 1
        # A wrapper may make five values of an environment's own form.
        self.ended = result[2:4] if isinstance(result, tuple) and len(result) == 5 else None
        self._note(result, 5)
        return result

    def render(self) -> Any:
        """The frames as a tuple, as the interface has it.

        To a list, which `CartPoleVectorEnv` returns, `RecordVideo.render` would help itself.
        """
        if isinstance(self.env, AsyncVectorEnv) and _has_own(self.env, "render"):
            return tuple(workers.call(self.env, "render", (), {}, range(self.num_envs)))
        frames = self.env.render()
        return tuple(frames) if isinstance(frames, list) else frames

    def _note(self, result: Any, length: int) -> None:
        """Note the keys of the infos, if there are any; the form is checked further up."""
        if isinstance(result, tuple) and len(result) == length and isinstance(result[-1], Mapping):
            self.info_keys = frozenset(result[-1])

    def __getattr__(self, name: str) -> Any:
        # Wrappers reach for what only the environment has, `self.env.envs` for instance.
        if name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    def __repr__(self) -> str:
        return repr(self.env)

    def __del__(self) -> None:
        # Up to Gymnasium 1.2, a VectorEnv closes itself here; this one was opened by the user.
        pass


def wrappers_of(env: AnyVectorEnv) -> Iterator[VectorWrapper[Any, Any, Any, Any, Any]]:
    """The vector wrappers around an environment, the outermost first."""
    while isinstance(env, VectorWrapper):
        yield env
        env = env.env


def groups_of(options: Sequence[dict[str, Any]]) -> list[npt.NDArray[np.intp]]:
    """The rows that share their options, as index arrays."""
    groups: list[tuple[dict[str, Any], list[int]]] = []
    for i, row in enumerate(options):
        for held, rows in groups:
            if _same(held, row):
                rows.append(i)
                break
        else:
            groups.append((row, [i]))
    return [np.array(rows, np.intp) for _, rows in groups]


def _same(a: Any, b: Any) -> bool:
    """Whether two options are equal; arrays within are compared as wholes."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and type(a) is type(b):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # values that cannot be compared are not known to be the same
        return a is b
