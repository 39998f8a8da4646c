"""A row of a VectorEnv, and its single environment, stepped together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.checks.tools.twins import start_at
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.play import Play
from sb3compat.conformance.subject.subject import Ending

Event = Literal["step", "end", "reset"]


def lockstep(
    play: Play, i: int, more: int = 0, *, infos: bool = False, episodes: int = 1
) -> Iterator[Event]:
    """Step row i and its single environment together, until its episode ends and some more.

    In the script the results of the single environment are `expected`, `reward`, `terminated`,
    `truncated` and `info`. In SAME_STEP mode `final` and `final_info` are its last observation and
    info.

    Args:
        play: The run of the check.
        i: The row.
        more: The number of steps after that.
        infos: Whether to compare infos, without clock times.
        episodes: The number of episodes, as far as they begin alike.

    Raises:
        NotExercisedError: If they do not begin alike, or no episode of the row ends.
    """
    ending = play.ending()
    single = _start(play, ending, i, infos)
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
        play.go_on("deepcopy(actions)")
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
            if over != (i in play.ended()):  # another check reports it
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
        raise NotExercisedError("no episode of the row ended")


def _start(play: Play, ending: Ending, i: int, infos: bool) -> _Single:
    """Make the environment and the single environment of row i, and reset both.

    Raises:
        NotExercisedError: If they do not begin alike.
    """
    seed = start_at(play, ending)
    single = _Single(play, i, infos)
    single.make(seed + i)
    # Row j must begin like its own, too: one generator for all rows would suit only one of them.
    j = (i + 1) % play.n
    own = play.value(f"reference[{j}]().reset(seed={seed + j})[0]")
    if not play.value(f"agrees({at(play, 'obs', i)}, expected)") or not play.value("agrees")(
        play.value(at(play, "obs", j)), own
    ):
        raise NotExercisedError("rows do not begin as their single environments do")
    return single


def demand_like_single(play: Play, i: int, why: str) -> None:
    """Demand that the observation of row i is that of its single environment."""
    got = at(play, "obs", i)
    play.demand(f"agrees({got}, expected)", got, f"{short(play.value('expected'))}, {why}", i)


def _begins_alike(play: Play, i: int) -> bool:
    """Whether a later episode begins like the single environment's, and unlike the first."""
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
