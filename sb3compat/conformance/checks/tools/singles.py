"""A VecEnv, and the single environments that it is made of, stepped beside it."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.play import Play
from sb3compat.conformance.subject.subject import Ending

# Another check judges the shape of rewards.
_SAME_REWARD = "np.size(rewards) != {1} or close(np.ravel(rewards)[{0}], alone[{0}]['reward'])"


def beside(play: Play) -> bool:
    """Whether there are single environments that can be brought to the same state."""
    return not play.subject.missing(("reference", "seeding"))


class Beside:
    """A VecEnv, and its single environments, stepped beside it with the same actions.

    In the script these are `singles`, and their results are `alone`, one dict for each row.

    Attributes:
        pace: The rows that have returned the results of their single environments so far.
        ended: The rows in `pace` that ended in this step, here and there.
        episodes: The number of episodes of each row that ended before this step.

    Args:
        play: The run of the check.
        ending: The actions; None to draw them.
        infos: Whether to compare infos, without the entries that differ in a second run, such as
            clock times.
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
        """Step until each row has ended `episodes` times, and `after` steps more."""
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
        """Step, and yield each row whose first episode ends, or its second if starts vary.

        Raises:
            NotExercisedError: If there are none.
        """
        seen = False
        # If all episodes begin alike, an equal start says nothing about the random numbers.
        later = self.play.subject.traits.starts_vary
        for _ in self.steps(0, self.play.draw(st.integers(1, 2)) if later else 1):
            for i in self.ended:
                if later or not self.episodes[i]:
                    seen = True
                    yield i
        if not seen:
            raise NotExercisedError(
                "no row agrees with its single environment up to the end of an episode"
            )

    def demand(self, what: str, key: str, should: str, i: int) -> None:
        """Demand that an expression equals a result of the single environment."""
        alone = f"alone[{i}]['{key}']"
        got = short(self.play.value(alone), 80)
        self.play.demand(f"close({what}, {alone})", what, f"{got}, {should}", i)
