"""The environment inside all wrappers: what is known of it, and the form of its results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import sb3compat
from sb3compat._rows.subenvs import REACHING
from sb3compat._to_sb3.bases import AsyncBase, SyncBase
from tests.closing import closed_later
from tests.envs import Identity, fns
from tests.native import NativeEnv, UnknownEnv
from tests.to_sb3.driving import (
    DISABLED,
    NEXT_STEP,
    SAME_STEP,
    Changed,
    Passes,
    class_of,
    step,
)

# What becomes of the results of a step and of a reset, and what the message says of that.
FORMS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a list of infos": (lambda result: (*result[:-1], [{}, {}]), "infos to be a dict .* list"),
    "no infos": (lambda result: (*result[:-1], None), "infos to be a dict .* NoneType"),
    "one value less": (lambda result: result[:-1], r"to return \(obs.* of length [14]"),
    "one value more": (lambda result: (*result, None), r"to return \(obs.* of length [36]"),
    "a list": (list, r"to return \(obs.* got list of length [25]"),
}


def of_our_form(env: Any) -> Any:
    """Hides from the adapter of which form the results below are."""
    return Changed(env, step=lambda *result: (*result[:4], {}), reset=lambda *result: result[:2])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("within", ["step", "reset"])
@pytest.mark.parametrize("place", ["bare", "below a wrapper", "wrapper"])
def test_results_of_another_form_are_refused(place: str, within: str, form: str) -> None:
    change, text = FORMS[form]

    def of_another_form(cls: Any) -> Any:
        def changed(self: Any, *args: Any, **kwargs: Any) -> Any:
            return change(getattr(cls, within)(self, *args, **kwargs))

        return type("Odd", (cls,), {within: changed})

    if place == "wrapper":
        source = of_another_form(Identity)(NativeEnv(fns(), SAME_STEP))
    else:
        source = of_another_form(NativeEnv)(fns(), SAME_STEP)
    env = sb3compat.to_sb3(of_our_form(source) if place == "below a wrapper" else source)
    if within == "step":
        env.reset()
    with pytest.raises(sb3compat.ConversionError, match=text):
        step(env) if within == "step" else env.reset()


def test_endings_are_looked_at_as_the_environment_gives_them() -> None:
    class Watched(UnknownEnv):
        pass

    seen: list[Any] = []

    def watch(env: Any, mode: AutoresetMode) -> Any:
        seen.append((type(env), mode))
        return SimpleNamespace(
            reset=lambda infos: seen.append("reset"),
            step=lambda ended, cut, infos: seen.append((list(ended), list(cut), "shared" in infos)),
        )

    function = functools.partial(sb3compat.reset_with_mask)
    function.watch = watch
    sb3compat.register_partial_reset(Watched, function)
    env = sb3compat.to_sb3(Identity(Watched(fns(lengths=(2, 3)), SAME_STEP)))
    env.reset()
    for _ in range(2):
        step(env)
    assert seen == [
        (Watched, SAME_STEP),
        "reset",
        ([False, False], [False, False], True),
        ([False, True], [False, False], True),
    ]


def test_restart_is_for_rows_that_the_environment_has_ended() -> None:
    class Restarts(UnknownEnv):
        pass

    calls: list[Any] = []

    def function(env: Any, mask: Any, ended: Any = None) -> Any:
        calls.append((mask.tolist(), None if ended is None else ended.tolist()))
        return env.reset_rows(mask, None, None)

    function.restart = function
    sb3compat.register_partial_reset(Restarts, function)
    twice = Passes(Restarts(fns(lengths=(2, 3), endings=("truncated",)), NEXT_STEP))
    twice.change = lambda options: (twice.env.reset(options=options), options)[1]
    first = iter([True])
    ends_row_1 = Changed(twice, step=lambda *r: (*r[:3], r[3] | [False, next(first, False)], r[4]))
    env = sb3compat.to_sb3(ends_row_1)
    env.reset()
    for _ in range(2):
        step(env)
    # The wrapper has ended the second row. What it resets once more has not ended.
    one, other, none = [True, False], [False, True], [False, False]
    assert calls == [(other, none), (other, none), (one, one), (one, none)]


def called_by(cls: type, name: str) -> set[str]:
    """A method, and the public ones of its class that it calls, at any depth."""
    found, waiting = set(), [name]
    while waiting:
        found.add(one := waiting.pop())
        names = {*getattr(cls, one).__code__.co_names} - found
        waiting += [n for n in names if n[0] != "_" and hasattr(getattr(cls, n, None), "__code__")]
    return found


@class_of
def test_methods_that_are_bypassed_are_all_asked_for(cls: Any) -> None:
    base = {SyncVectorEnv: SyncBase, AsyncVectorEnv: AsyncBase}[cls]
    assert called_by(cls, "reset") <= {*base.reset_methods}
    for name in ("call", "get_attr", "set_attr", "render"):
        assert called_by(cls, name) <= {*REACHING, "render"}


@pytest.mark.parametrize("mode", [SAME_STEP, DISABLED])
@pytest.mark.parametrize("name", ["reset", "reset_async", "reset_wait"])
def test_reset_that_is_overridden_in_part_is_not_bypassed(name: str, mode: AutoresetMode) -> None:
    calls: list[str] = []

    def own(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return getattr(AsyncVectorEnv, name)(self, *args, **kwargs)

    cls = type("Own", (AsyncVectorEnv,), {name: own})
    replaced = AsyncVectorEnv(fns(), autoreset_mode=mode)
    setattr(replaced, name, functools.partial(own, replaced))
    for source in (cls(fns(), autoreset_mode=mode), replaced):
        env = sb3compat.to_sb3(closed_later(source))
        calls.clear()
        env.reset()
        assert calls == [name]


class Halves(UnknownEnv):
    """Steps in two halves, as EnvPool does; the first one refuses numbers that are no integers."""

    def send(self, actions: Any) -> None: ...

    def recv(self) -> None: ...

    def step(self, actions: Any) -> Any:
        assert actions.dtype == np.int64
        return super().step(actions)


def test_mistake_in_a_step_of_the_user_stops_the_adapter_only() -> None:
    source = Identity(Halves(fns(), SAME_STEP))
    env = sb3compat.to_sb3(source)
    source.reset()
    with pytest.raises(AssertionError):
        source.step(np.zeros(2))
    source.step(np.zeros(2, np.int64))
    with pytest.raises(sb3compat.WorkerError, match="its results may still come"):
        env.reset()
