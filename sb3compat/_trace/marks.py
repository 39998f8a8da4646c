"""What looks wrong around the end of an episode, under the ids of the kit's checks.

A mark is only a hint, because it is based on the few calls that the trace shows. The check with the
same id runs many programs, and gives the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from sb3compat._trace.record import Call, CallValue, Ending, Mark


def marked(ending: Ending, api: str, space: Any) -> Ending:
    """The ending with a mark at each call that looks wrong.

    Args:
        ending: The ending, as this API sees it.
        api: The API, as in `Layout.api`.
        space: The space of one observation.
    """
    calls = [
        replace(call, marks=tuple(_marks(call, after, api, space)))
        for call, after in zip_longest(ending.calls, ending.calls[1:])
    ]
    return replace(ending, calls=calls)


def _marks(call: Call, after: Call | None, api: str, space: Any) -> Iterator[Mark]:
    if call.name.startswith("reset"):
        return
    if api.startswith("SB3"):
        yield from _of_vec_env(call, space)
    elif not call.acted:
        yield from _of_reset_step(call)
    elif call.ended and _role(call) == "first":
        yield from _of_same_step(call, space)
    elif call.ended and after is not None and _same(call.value("obs"), after.value("obs")):
        text = "The observation did not change when the row was reset."
        yield Mark("done_step_returns_final_obs", text)


def _of_vec_env(call: Call, space: Any) -> Iterator[Mark]:
    terminal = call.value("infos['terminal_observation']")
    if (terminal is not None) != call.ended:
        state = "has ended" if call.ended else "goes on"
        has = "has no" if terminal is None else "has a"
        text = f"The episode {state}, and the info {has} terminal_observation."
        yield Mark("terminal_observation_iff_done", text)
    if call.ended and "TimeLimit.truncated" not in call.infos:
        text = "The info does not say whether the episode was truncated: no TimeLimit.truncated."
        yield Mark("truncated_flag_present", text)
    if terminal is None:
        return
    if call.ended and _same(terminal, call.value("obs")):
        text = "terminal_observation equals obs, which is the first of the next episode."
        yield Mark("terminal_observation_not_reset_obs", text)
    if not space.contains(terminal.value):
        text = f"{terminal.name} is not in the observation space."
        yield Mark("terminal_observation_in_space", text)


def _of_same_step(call: Call, space: Any) -> Iterator[Mark]:
    """What looks wrong where an episode has ended, and `obs` is the first one of the next."""
    final = call.value("infos['final_obs']")
    if final is None:
        yield Mark("final_obs_present", "The episode has ended, and infos has no final_obs.")
    elif _same(final, call.value("obs")):
        text = "final_obs equals obs, which is the first observation of the next episode."
        yield Mark("obs_is_reset_obs", text)
    elif not space.contains(final.value):
        yield Mark("final_obs_in_space", f"{final.name} is not in the observation space.")


def _of_reset_step(call: Call) -> Iterator[Mark]:
    """What looks wrong in the step in which a NEXT_STEP environment resets the row."""
    found = {value.name: value.value for value in call.values}
    if float(found["reward"]):
        yield Mark("reset_step_reward_zero", "The step that resets the row has a reward.")
    if found["terminated"] or found["truncated"]:
        yield Mark("reset_step_flags_false", "The step that resets the row ends an episode.")


def _role(call: Call) -> str:
    obs = call.value("obs")
    return "" if obs is None else obs.role


def _same(one: CallValue | None, other: CallValue | None) -> bool:
    return one is not None and other is not None and _equal(one.value, other.value)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return np.array_equal(np.asarray(one), np.asarray(other))
