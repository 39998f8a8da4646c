"""A VecEnv, and the single environments that it is made of, stepped beside it."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.play import Play
from sb3compat.conformance.subject.subject import Ending

# Rewards of another shape are for another check.
_SAME_REWARD = "np.size(rewards) != {1} or close(np.ravel(rewards)[{0}], alone[{0}]['reward'])"


def beside(play: Play) -> bool:
    """Whether there are single environments which can be brought to the same state."""
    return not play.subject.missing(("reference", "seeding"))


class Beside:
    """The vector environment, and the single environments that it is made of, stepped beside it.

    In the script these are `singles`, and what they gave is `alone`, one dict for each row.

    Attributes:
        pace: The rows which so far have returned what the single environments returned.
        ended: Those of them that ended in this step, here and there.
        episodes: How many episodes of each row have ended before this step.

    Args:
        play: The run.
        ending: What to do with them; drawn actions if it is None.
        infos: Whether infos are looked at: those that a second run gives otherwise, such as clock
            times, are left out.
    """

    def __init__(self, play: Play, ending: Ending | None, *, infos: bool = False) -> None:
        self.play, self.ending, self.infos = play, ending, infos
        seed = ending.seed if ending is not None and ending.seed is not None else play.draw_seed()
        play.make()
        play.run("singles = [make() for make in reference]")
        play.run(f"env.seed({seed})")
        play.run("obs = env.reset()")
        play.run(f"alone = [single.reset(seed={seed} + i) for i, single in enumerate(singles)]")
        if infos:
            play.run("others = [make() for make in reference]")
            play.run(f"for i, single in enumerate(others):\n    single.reset(seed={seed} + i)")
        self.pace = {i for i in range(play.n) if play.value(f"close(row(obs, {i}), alone[{i}][0])")}
        self.ended: list[int] = []
        self.episodes = [0] * play.n
        if ending is not None and ending.setup:
            play.run(ending.setup)

    def steps(self, after: int = 3, episodes: int = 1) -> Iterator[int]:
        """Step until each row has ended so many times, and some more."""
        play = self.play
        most = 8 if self.ending is None else episodes * (4 * self.ending.steps + 20)
        left = after
        for number in range(1, most):
            before = set(self.pace)
            play.run(f"actions = {play.actions() if self.ending is None else self.ending.actions}")
            play.step("deepcopy(actions)")
            play.run("alone = [step_alone(single, a) for single, a in zip(singles, actions)]")
            if self.infos:
                play.run(
                    "alone = [settled(a, step_alone(single, action))"
                    " for a, single, action in zip(alone, others, actions)]"
                )
            dones = [bool(play.value(f"dones[{i}]")) for i in range(play.n)]
            alone = [play.value(f"alone[{i}]['done']") for i in range(play.n)]
            self.ended = [i for i in sorted(before) if dones[i] and alone[i]]
            yield number
            for i in before:
                same = dones[i] == alone[i]
                same = same and play.value(f"close(row(obs, {i}), alone[{i}]['obs'])")
                if not (same and play.value(_SAME_REWARD.format(i, play.n))):
                    self.pace.discard(i)
            self.episodes = [k + d for k, d in zip(self.episodes, dones, strict=True)]
            if min(self.episodes) >= episodes:
                left -= 1
            if left < 0 or not self.pace:
                return

    def endings(self) -> Iterator[int]:
        """The rows whose first episode ends, as it does; or whose second one does.

        Raises:
            NotExercisedError: If there are none.
        """
        seen = False
        # Where all episodes begin alike, that one began alike says nothing of what it draws.
        later = self.play.subject.traits.starts_vary
        for _ in self.steps(0, self.play.draw(st.integers(1, 2)) if later else 1):
            for i in self.ended:
                if later or not self.episodes[i]:
                    seen = True
                    yield i
        if not seen:
            raise NotExercisedError

    def demand(self, what: str, key: str, should: str, i: int) -> None:
        """Ask that an expression equals what the single environment gave under this key."""
        alone = f"alone[{i}]['{key}']"
        got = short(self.play.value(alone), 80)
        self.play.demand(f"close({what}, {alone})", what, f"{got}, {should}", i)
