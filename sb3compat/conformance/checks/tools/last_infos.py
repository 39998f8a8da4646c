"""What the infos of last steps are: those of the step, not of the reset that follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from sb3compat.conformance.checks.tools.evidence import STEPS, equal, has, is_close
from sb3compat.conformance.checks.tools.leaks import ADDED, keys_of_all_steps, same_entry
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Record
from sb3compat.conformance.rows import by_row, info_of

# So often must something be seen, so that chance is no explanation.
_FEWEST = 3


def infos_unlike_those_of_resets(record: Record) -> Iterator[Demand]:
    """Where a row of a `VecEnv` ends, its info is not that of the reset that follows."""
    for i, found in enumerate(by_row(record)):
        usual = keys_of_all_steps(record, found, i)
        for episode in found if usual else ():
            if not episode.over:
                continue
            record.judged = True
            info, reset = episode.end.infos[i], episode.end.reset_infos[i]
            own = {key: value for key, value in info.value.items() if key not in ADDED}
            lost = usual - set(own) - ADDED
            if own and lost and equal(own, reset.value):
                key = min(lost, key=str)
                should = (
                    f"the info of the step, with {key!r} as in all other steps, not the "
                    "info of the reset"
                )
                yield has(info, key, should, i)
    yield from infos_count_the_last_step(record)
    raise NotExercisedError("no episode ended, or steps have no infos")


def infos_count_the_last_step(record: Record) -> Iterator[Demand]:
    """A number in the infos that grows with each step is not set back before an end shows it.

    It grows by one amount, or by the reward.
    """
    for i, found in enumerate(by_row(record)):
        over = [episode for episode in found if episode.over and len(episode.steps) > 1]
        if len(over) < _FEWEST:
            continue
        vec_env = record.family == "vec_env"
        starts = [e.end.reset_infos[i] if vec_env else e.end.infos.info(i) for e in over]
        finals = [e.end.infos[i] if vec_env else e.end.infos["final_info"].info(i) for e in over]
        lasts = [
            (info_of(record, e.steps[-2], i).value, float(e.end.copies["rewards"][i])) for e in over
        ]
        moves = [
            (info_of(record, a, i).value, info_of(record, b, i).value, b.copies["rewards"][i])
            for episode in found
            for a, b in pairwise(episode.before_end)
        ]
        for key in sorted(set.intersection(*(set(s.value) for s in (*starts, *finals))), key=str):
            grown = _growth(key, moves)
            back = [
                (start, final)
                for start, final, (last, reward) in zip(starts, finals, lasts, strict=True)
                if grown and _is_number(last.get(key)) and not equal(last[key], start.value[key])
                if not (
                    _is_number(number := final.value[key])
                    and any(is_close(float(number) - float(last[key]), by(reward)) for by in grown)
                )
            ]
            if len(back) >= _FEWEST and all(same_entry(*pair, key) for pair in back):
                start, final = back[-1]
                yield expect(
                    "not equal({0}, {1})",
                    final[key],
                    start[key],
                    should="that of the last step, as it grows with each step; at each end it is "
                    "that of the next episode",
                    row=i,
                )


def _growth(key: Any, moves: list[tuple[Any, Any, Any]]) -> list[Callable[[float], float]]:
    """By what a number grows in each step, as functions of the reward; none if nothing is known."""
    known = [(a[key], b[key], float(r)) for a, b, r in moves if key in a and key in b]
    if len(known) < STEPS or not all(_is_number(a) and _is_number(b) for a, b, _ in known):
        return []
    steps = [(float(b) - float(a), reward) for a, b, reward in known]
    first = steps[0][0]
    grown: list[Callable[[float], float]] = []
    if first and all(is_close(step, first) for step, _ in steps):
        grown.append(lambda _: first)
    if sum(step != 0 for step, _ in steps) >= _FEWEST and all(is_close(*step) for step in steps):
        grown.append(lambda reward: reward)
    return grown


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int | np.number) and not isinstance(value, bool)
