"""The ends of episodes in a record: the calls around them, as one row sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sb3compat._convert.arrays import is_foreign_array, to_numpy
from sb3compat._convert.split_infos import split_infos
from sb3compat._convert.types import Info
from sb3compat._trace.marks import Judgement
from sb3compat._trace.record import Call, CallValue, Ending, Role
from sb3compat.conformance import record as kit
from sb3compat.conformance.rows import Episode, by_row, obs_of
from sb3compat.conformance.variants import action_of


def endings_of(
    record: kit.Record, rows: Sequence[int], *, episodes: int, calls: int
) -> tuple[Ending, ...]:
    """The ends of the first episodes of some rows, judged by the kit.

    Args:
        record: The record.
        rows: The rows.
        episodes: How many episodes of each row.
        calls: How many calls of the record to show.

    Raises:
        ValueError: If no episodes can be found in what the environment has returned.
    """
    judgement = Judgement(record)
    # How many calls after an ending are needed to see the start of the next episode.
    after = 2 if record.mode in ("NextStep", "Disabled") else 1
    endings = []
    for row in rows:
        seen = [each for each in _seen(by_row(record)[row]) if each[0].number < calls]
        ends = [k for k, (call, episode) in enumerate(seen) if _ends(call, episode)]
        for number, k in enumerate(ends[:episodes], 1):
            around = [_shown(*each, judgement) for each in seen[k - 1 : k + after + 1]]
            endings.append(Ending(row, number, len(seen[k][1].steps), around))
    return tuple(endings)


def _seen(episodes: Sequence[Episode]) -> list[tuple[kit.Call, Episode]]:
    """The calls that a row sees, each with its episode; one that ends an episode with that."""
    seen: list[tuple[kit.Call, Episode]] = []
    for episode in episodes:
        if not seen or seen[-1][0] is not episode.start:
            seen.append((episode.start, episode))
        seen += [(call, episode) for call in episode.steps]
    return seen


def _ends(call: kit.Call, episode: Episode) -> bool:
    return episode.over and call is episode.end


def _shown(call: kit.Call, episode: Episode, judgement: Judgement) -> Call:
    record, i, ended = episode.record, episode.row, _ends(call, episode)
    name = "reset" if episode.by == "reset" else "reset of the row"
    info = _info(record, call, i)
    if call.is_step:
        name, values = f"step {call.step}", _of_step(call, episode, info)
    else:
        start = CallValue("obs", _obs(call, episode), _role(call, episode))
        values = [start, *_rest(info, "reset_infos" if record.family == "vec_env" else "infos")]
    marks = judgement.marks(i, call.number, ended=ended)
    acted = call is not episode.start
    return Call(name, tuple(values), info, ended, acted, marks)


def _of_step(call: kit.Call, episode: Episode, info: Info) -> list[CallValue]:
    """What a row got from a step, in the order in which it is shown."""
    i, results = episode.row, call.copies
    ignored = " (ignored)" * (call is episode.start)
    values = [
        CallValue(f"action{ignored}", action_of(episode.record, call.copies["actions"], i)),
        CallValue("obs", _obs(call, episode), _role(call, episode)),
        CallValue("reward", results["rewards"][i]),
    ]
    if episode.record.family == "vector_env":
        return [
            *values,
            CallValue("terminated", bool(results["terminations"][i])),
            CallValue("truncated", bool(results["truncations"][i])),
            *_infos(info, "final_obs", "final_info"),
        ]
    values.append(CallValue("done", bool(results["dones"][i])))
    values += _infos(info, "terminal_observation", "TimeLimit.truncated")
    return values + (_rest(_reset_info(call, i), "reset_infos") if _ends(call, episode) else [])


def _role(call: kit.Call, episode: Episode) -> Role:
    if call is episode.start:
        return "" if episode.by == "reset" else "first"
    if not _ends(call, episode):
        return ""
    # A VecEnv has no mode.
    return "first" if episode.record.mode in (None, "SameStep") else "final"


def _info(record: kit.Record, call: kit.Call, i: int) -> Info:
    if record.family == "vector_env":
        return split_infos(call.copies["infos"], record.num_envs)[i]
    info: Info = call.copies["infos"][i] if call.is_step else _reset_info(call, i)
    return info


def _reset_info(call: kit.Call, i: int) -> Info:
    infos: Sequence[Info] = call.copies["reset_infos"] or ()
    return infos[i] if i < len(infos) else {}


def _infos(info: Info, final: str, other: str) -> list[CallValue]:
    """The infos of a step, with the last observation and another entry by themselves."""
    roles: dict[str, Role] = {final: "final", other: ""}
    named = [CallValue(f"infos[{key!r}]", info[key], roles[key]) for key in roles if key in info]
    return named + _rest({key: info[key] for key in info if key not in roles}, "infos")


def _rest(info: Info, name: str) -> list[CallValue]:
    return [CallValue(name, info)] if info else []


def _obs(call: kit.Call, episode: Episode) -> Any:
    return _as_numpy(obs_of(episode.record, call, episode.row).value)


def _as_numpy(obs: Any) -> Any:
    if isinstance(obs, dict):
        return {key: _as_numpy(each) for key, each in obs.items()}
    if isinstance(obs, tuple):
        return tuple(map(_as_numpy, obs))
    return to_numpy(obs) if is_foreign_array(obs) else obs
