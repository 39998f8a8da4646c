"""What looks wrong around the end of an episode, under the ids of the kit's checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sb3compat._convert.types import Value
from sb3compat._trace.record import Call, Ending, Mark


def marked(ending: Ending, api: str, space: Any) -> Ending:
    """The ending with a mark at each call that looks wrong.

    A mark is a hint, as it is made from the few calls that the trace shows. The check of its id
    tries many programs, and gives the verdict.

    Args:
        ending: The ending, as this API sees it.
        api: The API, as in `Layout.api`.
        space: The space of one observation.
    """
    rules = _VEC_ENV if api.startswith("SB3") else _VECTOR_ENV
    calls = [
        call.marked([mark for rule in rules for mark in rule(call, _after(ending, k), space)])
        for k, call in enumerate(ending.calls)
    ]
    return replace(ending, calls=tuple(calls))


def _after(ending: Ending, k: int) -> Call | None:
    """The call after this one; None if the trace ends here."""
    return ending.calls[k + 1] if k + 1 < len(ending.calls) else None


def _terminal_observation(call: Call, after: Call | None, space: Any) -> list[Mark]:
    has = "terminal_observation" in call.infos
    if call.name.startswith("reset") or has == call.ended:
        return []
    what = "has a" if has else "has no"
    state = "has ended" if call.ended else "goes on"
    text = f"The episode {state}, and the info {what} terminal_observation."
    return [Mark("terminal_observation_iff_done", text)]


def _terminal_is_first(call: Call, after: Call | None, space: Any) -> list[Mark]:
    if not call.ended or not _equal(call, "infos['terminal_observation']", "obs"):
        return []
    text = "terminal_observation equals obs, which is the first observation of the next episode."
    return [Mark("terminal_observation_not_reset_obs", text)]


def _terminal_in_space(call: Call, after: Call | None, space: Any) -> list[Mark]:
    return _outside(call, "infos['terminal_observation']", space, "terminal_observation_in_space")


def _flag(call: Call, after: Call | None, space: Any) -> list[Mark]:
    if not call.ended or "TimeLimit.truncated" in call.infos:
        return []
    text = "The info does not say whether the episode was truncated: no TimeLimit.truncated."
    return [Mark("truncated_flag_present", text)]


def _final_obs(call: Call, after: Call | None, space: Any) -> list[Mark]:
    if not call.ended or not _is_first(call):
        return []
    if "final_obs" not in call.infos:
        return [Mark("final_obs_present", "The episode has ended, and infos has no final_obs.")]
    if _equal(call, "infos['final_obs']", "obs"):
        text = "final_obs equals obs, which is the first observation of the next episode."
        return [Mark("obs_is_reset_obs", text)]
    return _outside(call, "infos['final_obs']", space, "final_obs_in_space")


def _reset_step(call: Call, after: Call | None, space: Any) -> list[Mark]:
    reward, ignored = call.part("reward"), call.part("action (ignored)")
    if ignored is None:
        return []
    marks = []
    if reward is not None and float(reward.value):
        text = "The step that resets the row has a reward."
        marks.append(Mark("reset_step_reward_zero", text))
    flags = [call.part("terminated"), call.part("truncated")]
    if any(flag is not None and flag.value for flag in flags):
        text = "The step that resets the row ends an episode."
        marks.append(Mark("reset_step_flags_false", text))
    return marks


def _not_reset(call: Call, after: Call | None, space: Any) -> list[Mark]:
    if after is None or not call.ended or _is_first(call) or not _is_first(after):
        return []
    final, first = call.part("obs"), after.part("obs")
    if final is None or first is None or not _same(final.value, first.value):
        return []
    text = "The observation did not change when the row was reset."
    return [Mark("done_step_returns_final_obs", text)]


def _is_first(call: Call) -> bool:
    obs = call.part("obs")
    return obs is not None and obs.role == "first"


def _equal(call: Call, one: str, other: str) -> bool:
    first, second = call.part(one), call.part(other)
    return first is not None and second is not None and _same(first.value, second.value)


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return np.array_equal(np.asarray(one), np.asarray(other))


def _outside(call: Call, name: str, space: Any, check: str) -> list[Mark]:
    part = call.part(name)
    if part is None or space.contains(part.value):
        return []
    return [Mark(check, f"{name} is not in the observation space.")]


_VEC_ENV = (_terminal_observation, _terminal_is_first, _terminal_in_space, _flag)
_VECTOR_ENV = (_final_obs, _reset_step, _not_reset)
