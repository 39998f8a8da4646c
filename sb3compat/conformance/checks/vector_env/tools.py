"""What the checks of VectorEnvs share: two environments side by side, and a row held to its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Literal

from gymnasium import spaces
from hypothesis import strategies as st

from sb3compat.conformance.contract import BASICS, GYM_VECTOR, check
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.calls import opening
from sb3compat.conformance.program.script import to_source
from sb3compat.conformance.subject.subject import Ending

error = partial(check, "vector_env", severity="error")
warning = partial(check, "vector_env", severity="warning")

# Where two runs are compared, the environment has to be the same in both of them.
SEEDED = (*BASICS["vector_env"], "same_seed_same_trajectory")

GYMNASIUM = "https://github.com/Farama-Foundation/Gymnasium/blob/main/gymnasium/"
DICT_INFO = f"{GYMNASIUM}wrappers/vector/dict_info_to_list.py"
VECTOR_ENV = f"{GYMNASIUM}vector/vector_env.py"
SYNC = f"{GYMNASIUM}vector/sync_vector_env.py"
STEP = f"{GYM_VECTOR}#gymnasium.vector.VectorEnv.step"
RESET = f"{GYM_VECTOR}#gymnasium.vector.VectorEnv.reset"

TWIN_STEP = (
    "twin_obs, twin_rewards, twin_terminations, twin_truncations, twin_infos = twin.step({})"
)

Event = Literal["step", "end", "reset"]


def at(play: Play, name: str, i: int | None) -> str:
    """Source for row i of a batch: observations, unless it is called `actions`, or by results."""
    if name.split("_")[-1] in ("rewards", "terminations", "truncations"):
        return f"{name}[{i}]"
    space = "single_action_space" if name == "actions" else "single_observation_space"
    single = play.value(f"env.{space}")
    if not isinstance(single, spaces.Dict | spaces.Tuple):
        return f"{name}[{i}]"
    return f"part(env.{space}, {name}, {i})"


def seeded(play: Play) -> int:
    """A seed to reset with; 0 is the simplest."""
    return play.draw(st.integers(0, 9))


def some_steps(play: Play) -> Iterator[int]:
    """After a reset: a few steps, or from the start to the end of an episode."""
    through = play.draw(st.booleans())
    steps = play.through_ending(0) if through and play.subject.endings else play.steps()
    for number in steps:
        yield number
        if play.ended():
            return


def start_at(play: Play, ending: Ending, *, twin: bool = False) -> int:
    """Make the environment (and another one like it) and reset with the seed of an ending.

    Raises:
        NotExercisedError: If there is no seed.
    """
    if ending.seed is None:
        raise NotExercisedError
    play.make()
    if twin:
        play.run("twin = make_env()")
    for line in opening(play.family, ending.setup, ending.seed):
        play.run(line)
    if twin:
        play.run(f"twin_obs, twin_infos = twin.reset(seed={ending.seed})")
    return ending.seed


def step_both(play: Play, actions: str, other_in: int | None = None) -> None:
    """Step the environment and its twin; rows to be reset by the caller are, in both of them.

    Args:
        play: The run of the check.
        actions: Source for the actions.
        other_in: The row in which the twin gets another action.
    """
    rows = play.awaiting_reset()
    if rows:
        play.reset_rows(rows, "twin")
    play.run(f"actions = {actions}")
    twins = "actions" if other_in is None else other_action(play, other_in)
    play.go_on("actions")
    play.run(TWIN_STEP.format(twins))


def both_to_ending(play: Play, behind: int = 0) -> list[int]:
    """Both of them to the first end of an episode; returns the rows that ended.

    Args:
        play: The run of the check.
        behind: How many steps the twin stays behind.
    """
    ending = play.ending()
    start_at(play, ending, twin=True)
    for number in range(1, ending.steps + 1):
        if number <= ending.steps - behind:
            step_both(play, ending.actions)
        else:
            play.run(f"actions = {ending.actions}")
            play.go_on("actions")
        if play.ended() and number < ending.steps:
            raise NotExercisedError
    if not play.ended():
        raise NotExercisedError
    return play.ended()


def other_action(play: Play, i: int) -> str:
    """Source for `actions` with another one in row i."""
    current = play.value(at(play, "actions", i))
    others = [a for a in play.subject.actions if not play.value("equal")(a, current)]
    if not others:
        raise NotExercisedError
    return f"replaced(actions, {i}, {to_source(play.draw(st.sampled_from(others)))})"


def reset_like_env(play: Play, name: str) -> str:
    """Source that resets another environment with the seed of the first reset."""
    calls = (re.search(r"\benv\.reset\((.*)\)", line) for line in play.script.lines)
    return f"{name}.reset({next(call[1] for call in calls if call)})"


def episode_ends(play: Play) -> int:
    """Play until three episodes of a row have ended; returns the row.

    In the script their last observations are in the list `last`, and the first ones of the
    episodes after them in the list `first`.

    Raises:
        NotExercisedError: If not so many end, or the first ones are not different: nothing could
            be told from those that are the same as the last ones.
    """
    ending = play.ending()
    mode = play.subject.mode
    play.make()
    for line in opening(play.family, ending.setup, ending.seed):
        play.run(line)
    play.run("last, first = [], []")
    i = None
    over = False
    for _ in range(4 * ending.steps + 60):
        rows = play.awaiting_reset()
        if rows:
            play.reset_rows(rows)
            if i in rows:
                play.run(f"first.append(deepcopy({at(play, 'obs', i)}))")
        if play.value("len(first)") == 3:
            break
        play.step(ending.actions)
        if over:
            play.run(f"first.append(deepcopy({at(play, 'obs', i)}))")
            over = False
        elif ended := play.ended():
            i = play.draw(st.sampled_from(ended)) if i is None else i
            if i not in ended:
                continue
            got = f"row(infos['final_obs'], {i})" if mode == "SameStep" else at(play, "obs", i)
            play.run(f"last.append(deepcopy({got}))")
            if mode == "SameStep":
                play.run(f"first.append(deepcopy({at(play, 'obs', i)}))")
            over = mode == "NextStep"
    if i is None or play.value("len(first)") < 3 or play.value("distinct(first)") < 3:
        raise NotExercisedError
    return i


def lockstep(
    play: Play, i: int, more: int = 0, *, infos: bool = False, episodes: int = 1
) -> Iterator[Event]:
    """Step row i and its single environment together, until its episode ends and some more.

    In the script the single environment returned `expected`, `reward`, `terminated`, `truncated`
    and `info`. Where the mode resets in the same step, `final` and `final_info` are what they were
    before.

    Args:
        play: The run of the check.
        i: The row.
        more: How many steps to go on.
        infos: Whether infos are looked at; clock times among them are left out.
        episodes: How many end before that, as far as they begin alike.

    Raises:
        NotExercisedError: If they do not begin alike, or no episode of the row ends.
    """
    ending = play.ending()
    seed = start_at(play, ending)
    single = _Single(play, i, infos)
    single.make(seed + i)
    # Row j is to begin as its own does, too: one generator for all rows suits one of them.
    j = (i + 1) % play.n
    own = play.value(f"reference[{j}]().reset(seed={seed + j})[0]")
    if not play.value(f"agrees({at(play, 'obs', i)}, expected)") or not play.value("agrees")(
        play.value(at(play, "obs", j)), own
    ):
        raise NotExercisedError
    if episodes > 1:
        play.run("start = deepcopy(expected)")
    mode = play.subject.mode
    over = False
    ends = 0
    left: int | None = None
    for _ in range(episodes * (4 * ending.steps + 40)):
        if left == 0:
            return
        if over and mode == "Disabled":
            play.reset_rows(play.awaiting_reset())
            single.reset()
            yield "reset"
            if ends < episodes and not _begins_alike(play, i):
                return
            over = False
        play.run(f"actions = {ending.actions}")
        play.go_on("actions")
        if over and mode == "NextStep":
            single.reset()
            over = False
            yield "reset"
            if ends < episodes and not _begins_alike(play, i):
                return
        else:
            over = single.step()
            if over and mode == "SameStep":
                play.run("final, final_info = deepcopy(expected), snapshot(info)")
                single.reset()
            yield "end" if over else "step"
            if over != (i in play.ended()):  # another check tells
                return
        if left is not None:
            left -= 1
        elif over:
            ends += 1
            left = more if ends == episodes else None
        if mode == "SameStep":
            if over and ends < episodes and not _begins_alike(play, i):
                return
            over = False
    if not ends:
        raise NotExercisedError


def _begins_alike(play: Play, i: int) -> bool:
    """Whether a later episode does; where all begin with the same, that says nothing."""
    obs = at(play, "obs", i)
    return bool(play.value(f"agrees({obs}, expected) and not agrees(expected, start)"))


class _Single:
    """The single environment of a row, and another one like it if infos are to be compared."""

    def __init__(self, play: Play, i: int, infos: bool) -> None:
        self.play, self.i, self.infos = play, i, infos

    def make(self, seed: int) -> None:
        self.play.run(f"single = reference[{self.i}]()")
        if self.infos:
            self.play.run(f"again = reference[{self.i}]()")
        self.reset(f"seed={seed}")

    def reset(self, seed: str = "") -> None:
        self.play.run(f"expected, info = single.reset({seed})")
        if self.infos:
            self.play.run(f"info = stable(info, again.reset({seed})[1])")

    def step(self) -> bool:
        action = at(self.play, "actions", self.i)
        names = "expected, reward, terminated, truncated, info"
        self.play.run(f"{names} = single.step({action})")
        if self.infos:
            self.play.run(f"info = stable(info, again.step({action})[4])")
        return bool(self.play.value("terminated or truncated"))
