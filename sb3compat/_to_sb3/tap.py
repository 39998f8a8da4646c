"""Drive an environment with vector wrappers, with a tap inside of the wrappers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as vector_wrappers

from sb3compat._convert.arrays import row_array, to_numpy
from sb3compat._convert.infos import own_info
from sb3compat._convert.options import is_uniform, same_value
from sb3compat._convert.split_infos import mask_of
from sb3compat._convert.types import (
    Action,
    AnyVectorEnv,
    Array,
    Flags,
    Function,
    Kwargs,
    Options,
    Rows,
    StandsFor,
    VectorInfos,
    VectorResetResult,
    VectorStepResult,
    inside_wrappers,
    wrappers_of,
)
from sb3compat._to_sb3.bases import Base, checked
from sb3compat._to_sb3.partial_reset import same_rows
from sb3compat._upstream.inherited import is_exactly
from sb3compat._upstream.vector_wrappers import paused
from sb3compat.errors import PartialResetError, UnsupportedEnvError, shown


class MaskOptions(dict[str, Any]):
    """Options that keep their mask when a wrapper pops it.

    Gymnasium's wrappers and environments share one options dict and each pops `reset_mask` from
    it. The second one then finds no mask, and treats the reset as one of all rows
    (`RecordEpisodeStatistics` then forgets the running episodes).
    """

    def pop(self, key: str, *default: Any) -> Any:
        """Like `dict.pop`, but the mask stays."""
        return self[key] if key == "reset_mask" and key in self else super().pop(key, *default)


# Names that no environment has.
_WITHIN = "_sb3compat_within"
_BASE = "_sb3compat_base"
# What a tap has itself; all other names are those of the environment.
_OWN = frozenset(("reset", "step", "render", "sb3compat_inside", _BASE, _WITHIN))


class Tap(StandsFor):
    """Stands directly around the base environment, inside of all vector wrappers of the user.

    It forwards every call to the environment, and each attribute that is read, set or deleted; it
    is of the class of the environment, too, as far as `isinstance` says. Only during a call of an
    adapter, `Wrapped` gets the calls, as it drives the environment in its own way, and the wrappers
    may have changed the arguments.
    """

    sb3compat_inside: AnyVectorEnv
    _sb3compat_base: Base
    _sb3compat_within: Wrapped | None

    def __init__(self, base: Base) -> None:
        vars(self).update({_BASE: base, _WITHIN: None, "sb3compat_inside": base.env})

    def reset(self, *args: Any, **kwargs: Any) -> VectorResetResult:
        """Reset all rows, or those under `options["reset_mask"]`."""
        within, base = self._sb3compat_within, self._sb3compat_base
        if within is None:
            return base.call_of_user(base.env.reset, *args, **kwargs)  # type: ignore[no-any-return]
        return within.reset_arrived(**_by_name(base.env.reset, args, kwargs))

    def step(self, *args: Any, **kwargs: Any) -> VectorStepResult:
        """Step all rows."""
        within, base = self._sb3compat_within, self._sb3compat_base
        if within is None:
            return base.call_of_user(base.env.step, *args, **kwargs)  # type: ignore[no-any-return]
        return within.step_arrived(*args, **kwargs)

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """The frames."""
        within, base = self._sb3compat_within, self._sb3compat_base
        return base.env.render(*args, **kwargs) if within is None else base.render()

    def __getattribute__(self, name: str) -> Any:
        # Wrappers read attributes that only the environment has, `self.env.envs` for instance.
        if _is_own(name) and name != "__class__":
            return super().__getattribute__(name)
        return getattr(super().__getattribute__("sb3compat_inside"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        # Wrappers also set them. A wrapper that replaces a method of the tap's own by a function
        # calls the one that it has read here.
        if _is_own(name):
            super().__setattr__(name, value)
        else:
            setattr(self.sb3compat_inside, name, value)

    def __delattr__(self, name: str) -> None:
        if _is_own(name):
            super().__delattr__(name)
        else:
            delattr(self.sb3compat_inside, name)

    def __repr__(self) -> str:
        return repr(self.sb3compat_inside)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tap, (self._sb3compat_base,)


def _by_name(method: Function, args: tuple[Any, ...], kwargs: Kwargs) -> Kwargs:
    """The arguments of a method by their names.

    Raises:
        TypeError: If the method does not take them, or takes one by its place only.
    """
    if not args:
        return kwargs
    signature = inspect.signature(method)
    signature.bind(*args, **kwargs)  # raises what the method would raise
    by_place = signature.parameters.values()
    names = [each.name for each in by_place if each.kind is each.POSITIONAL_OR_KEYWORD]
    if len(args) > len(names):
        raise TypeError(
            f"Expected arguments of reset that have names, got {shown(args)} for {names} from a "
            "vector wrapper. Let the wrapper pass them by name."
        )
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _is_own(name: str) -> bool:
    return name in _OWN or name.startswith("__")


def without_tap(env: AnyVectorEnv) -> AnyVectorEnv:
    """The environment inside, where a user has read a tap from the wrapper around it."""
    return inside_wrappers(env) if isinstance(env, Tap) else env


def _keys_of(infos: VectorInfos, num_envs: int) -> Mapping[str, Flags | None]:
    masks = {key: mask_of(infos, key, num_envs) for key in infos}
    return {key: None if mask is None else mask.copy() for key, mask in masks.items()}


class Wrapped:
    """Steps and resets a vector environment through its wrappers.

    Args:
        env: The environment with its wrappers; a `Tap` is put inside of them, and stays there.
        base: The environment inside.

    Attributes:
        env: As given.
        base: As given.
        own_keys: The info keys that the environment itself returned last, each with a copy of its
            mask, or None if it has no mask.
    """

    def __init__(self, env: AnyVectorEnv, base: Base) -> None:
        self.env, self.base = env, base
        *_, innermost = wrappers_of(env)
        self._tap: Any = innermost.env
        if not isinstance(self._tap, Tap):
            self._tap = innermost.env = Tap(base)  # type: ignore[assignment]
        self.own_keys: Mapping[str, Flags | None] = {}
        # Whether the adapter resets, or steps; how often the wrappers have stepped and reset since.
        self._resetting = False
        self._steps = self._resets = 0
        # The rows that were reset since.
        self._arrived = np.zeros(env.num_envs, np.bool_)

    @property
    def hands_out_new_arrays(self) -> bool:
        """Whether the observations of a step, through the wrappers, share memory with no others."""
        return self.base.hands_out_new_arrays and all(
            any(is_exactly(wrapper, kind) for kind in _TRANSPARENT)
            for wrapper in wrappers_of(self.env)
        )

    def _through(self, call: Function, *args: Any, **kwargs: Any) -> Any:
        """Call the wrappers, while the tap inside gives its calls to this object."""
        held = vars(self._tap)
        # A wrapper, or a signal handler, may call the adapter within a call of it.
        before = held[_WITHIN]
        try:
            held[_WITHIN] = self
            return call(*args, **kwargs)
        finally:
            held[_WITHIN] = before

    def reset_arrived(
        self, *, seed: Any = None, options: Options | None = None, **more: Any
    ) -> VectorResetResult:
        """Reset the environment, as the wrappers pass on a reset of the adapter.

        Args:
            seed: As the wrappers pass it.
            options: As the wrappers pass them, with the mask if only some rows are to be reset.
            **more: Arguments that only this environment takes.
        """
        if not self._resetting:
            self._resets += 1
            return self.base.env.reset(  # type: ignore[no-any-return]
                seed=seed, options=options, **more
            )
        arrived = None if options is None else dict(options)
        mask = None if arrived is None else arrived.pop("reset_mask", None)
        row_options = self._options_of(arrived)
        if mask is None:
            result = self.base.reset(seed, row_options, **more)
            self._arrived[:] = True
        else:
            mask = self._checked_mask(mask)
            result = self.base.reset_rows(mask, seed, row_options, **more)
            self._arrived |= mask
        self.own_keys = _keys_of(result[1], self.env.num_envs)
        return result

    def _checked_mask(self, given: Any) -> Flags:
        """A copy of a mask, as the one who has made it may change it.

        Raises:
            PartialResetError: If it is none, or names no row: Gymnasium's own reset, which may be
                bypassed, refuses these as well.
        """
        mask = np.array(to_numpy(given))
        if mask.dtype == np.bool_ and mask.shape == self._arrived.shape and mask.any():
            return mask
        raise PartialResetError(
            f"Expected options['reset_mask'] of a wrapper in {self.env} to be a bool array of "
            f"shape {self._arrived.shape} with at least one True, got {shown(given)}. Let the "
            "wrapper pass such a mask, or none for a reset of all rows."
        )

    def step_arrived(self, *args: Any, **kwargs: Any) -> VectorStepResult:
        """Step the environment, and record the endings and the keys of the infos."""
        result = self.base.step(*args, **kwargs)
        # Copies, as a wrapper may write into the arrays that it gets.
        self.base.flags = np.array(to_numpy(result[2])), np.array(to_numpy(result[3]))
        self.own_keys = _keys_of(result[4], self.env.num_envs)
        self._steps += 1
        own = getattr(self.base.env, "copy", True)
        return result if own else (deepcopy(result[0]), *result[1:])

    def step(self, actions: Action) -> VectorStepResult:
        """Step through the wrappers; they may not reset the environment, or step it again."""
        inner = self.base.env
        self._resetting, self._steps, self._resets = False, 0, 0
        result = self._through(self.env.step, actions)
        if self._resets:
            raise UnsupportedEnvError(
                f"Expected a step of {self.env} not to reset {inner}, but a wrapper has "
                "done so: the last observations are lost, and rows would be reset twice. Remove "
                "that wrapper: to_sb3 resets the rows that have ended, in every autoreset mode."
            )
        if self._steps != 1:
            raise UnsupportedEnvError(
                f"Expected one step of {self.env} to be one step of {inner}, through the "
                f"wrappers' attribute `env`; it was {self._steps}. A wrapper in between steps "
                "more than once, or keeps its own reference to the environment. Let its step call "
                "self.env.step once, or put it around each sub-environment."
            )
        return checked("step", result, self.env)  # type: ignore[no-any-return]

    def check_endings(self, ended: Flags, *, any_row: bool) -> None:
        """Refuse wrappers that hide an ending, or end episodes early in SAME_STEP mode.

        Args:
            ended: The rows that end, as the wrappers say.
            any_row: Whether a row can be reset that the environment itself has not ended.
        """
        both = zip(("terminations", "truncations"), self.base.flags or (), strict=True)
        flags = (row_array(array, len(ended), name) for name, array in both)
        below = np.logical_or(*flags).astype(np.bool_, copy=False)
        wrong = below & ~ended if any_row else below != ended
        if wrong.any():
            raise UnsupportedEnvError(
                f"Expected {self.env} to end the episodes that {self.base.env} ends, got "
                f"dones={shown(ended.tolist())} from {shown(below.tolist())}: rows "
                f"{shown(np.flatnonzero(wrong).tolist())} would end for SB3 and not for the "
                "environment, or the other way round. End episodes in wrappers around the "
                "sub-environments instead."
            )

    def reset(self, seed: Any, options: Sequence[Options]) -> VectorResetResult:
        """Reset all rows; the wrappers see the options of the first row if all have the same.

        If they change these options, the environment gets what they pass on, as in Gymnasium.

        Raises:
            UnsupportedEnvError: If the wrappers change options that differ by row or do not pass
                the reset on to the environment, or step it to the end of an episode.
        """
        self._is_shared = is_uniform(options)
        shared = dict(options[0]) if self._is_shared else {}
        result = self._reset(options, seed=seed, options=shared or None)
        if not (self._is_shared or self._arrived.any()):
            raise UnsupportedEnvError(
                f"Expected a reset of {self.env} to reset {self.base.env} through the wrappers' "
                "attribute `env`, as the options differ by row, but it has not: a wrapper keeps "
                "its own reference to the environment. Let its reset call self.env.reset, or set "
                "one dict for all rows."
            )
        self._check_start()
        return result

    def reset_rows(self, mask: Flags) -> VectorResetResult:
        """Reset some rows through the wrappers, and check that the mask has reached the base."""
        # Videos show the first row, whose current frame would otherwise be there twice.
        with paused(() if mask[0] else wrappers_of(self.env)):
            none: list[Options] = [{}] * self.env.num_envs
            self._is_shared = True
            result = self._reset(none, options=MaskOptions(reset_mask=mask.copy()))
        if self._steps and not mask.all():
            raise PartialResetError(
                f"Expected a reset of the rows {shown(np.flatnonzero(mask).tolist())} to step no "
                f"row, but a wrapper in {self.env} has stepped {self.base.env} in its reset: the "
                "other rows, whose episodes continue, were stepped as well. Take these steps in a "
                "wrapper around each sub-environment, or build the environment with "
                "autoreset_mode=AutoresetMode.SAME_STEP."
            )
        if not np.array_equal(self._arrived, mask):
            wanted, rows = (np.flatnonzero(each).tolist() for each in (mask, self._arrived))
            raise PartialResetError(
                f"Expected options['reset_mask'] to reach {self.base.env}, for the rows "
                f"{shown(wanted)}, but a wrapper in {self.env} did not pass it on: the rows "
                f"{shown(rows)} were reset through its attribute `env`. Let the "
                "wrapper's reset pass `options` to the environment inside, or build the "
                "environment with autoreset_mode=AutoresetMode.SAME_STEP."
            )
        if mask.all():
            self._check_start()
        return result

    def check_others(self, before: list[Array], after: list[Array], rows: Rows) -> None:
        """Refuse a wrapper that treated a masked reset as one of all rows, if this can be detected.

        It can be detected if the environment itself returns the other rows unchanged.
        """
        if not self.base.keeps_others:
            return
        others = np.ones(self.env.num_envs, np.bool_)
        others[rows] = False
        for array, values in zip(before, after, strict=True):
            if not same_rows(array, values, others):
                raise PartialResetError(
                    f"Expected a reset of the rows {shown(rows.tolist())} to leave the "
                    f"observations of all others as they were, but it has changed them: a wrapper "
                    f"in {self.env} resets its state for all rows, or draws noise. Let it reset "
                    "its state for the rows in options['reset_mask'] only, put the noise into a "
                    "wrapper around each sub-environment or around the result of to_sb3, or build "
                    "the environment with autoreset_mode=AutoresetMode.SAME_STEP."
                )

    def render(self) -> Any:
        """The frames of the environment, as its wrappers return them."""
        return self._through(self.env.render)

    def _check_start(self) -> None:
        """Refuse a reset in which a wrapper has ended an episode: no one would reset that row."""
        ended = np.logical_or(*map(to_numpy, self.base.flags or (False, False)))
        if ended.any() and self.base.mode != AutoresetMode.SAME_STEP:
            raise UnsupportedEnvError(
                f"Expected a reset of {self.env} to return the observations of running episodes, "
                f"but a wrapper has stepped {self.base.env} in its reset until the episodes of "
                f"rows {shown(np.flatnonzero(ended).tolist())} have ended. Take those steps in a "
                "wrapper around each sub-environment, or let the wrapper take fewer steps."
            )

    def _reset(self, row_options: Sequence[Options], **kwargs: Any) -> VectorResetResult:
        self._resetting, self._steps, self._arrived[:] = True, 0, False
        # What the environment gets, and what the wrappers are passed, who may change it.
        self._row_options, self._passed = row_options, own_info(kwargs["options"] or {})
        self._passed.pop("reset_mask", None)
        result = self._through(self.env.reset, **kwargs)
        return checked("reset", result, self.env)  # type: ignore[no-any-return]

    def _options_of(self, arrived: Options | None) -> Sequence[Options]:
        """The options of each row, where the wrappers have passed on these.

        Where a wrapper passes on None, the environment gets what the user has set all the same.

        Raises:
            UnsupportedEnvError: If they have changed the options, and these differ by row.
        """
        if arrived is None or same_value(arrived, self._passed):
            return self._row_options
        if not self._is_shared:
            raise UnsupportedEnvError(
                "Expected vector wrappers that leave the options of a reset alone, as these differ "
                f"by row, but a wrapper has passed on options={shown(arrived)}. Set one dict for "
                "all rows, or let a wrapper around each sub-environment change the options. "
                "The environment was not reset."
            )
        return [arrived] * len(self._row_options)


# Wrappers that do not change observations.
_TRANSPARENT = (
    Tap,
    vector_wrappers.RecordEpisodeStatistics,
    vector_wrappers.ClipReward,
    vector_wrappers.TransformReward,
    vector_wrappers.NormalizeReward,
    vector_wrappers.ClipAction,
    vector_wrappers.RescaleAction,
    vector_wrappers.TransformAction,
)
