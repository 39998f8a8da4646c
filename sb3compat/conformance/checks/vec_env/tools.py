"""What the checks of a VecEnv share: two instances side by side, and the single environments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from hypothesis import strategies as st

from sb3compat.conformance.contract import BASICS, check
from sb3compat.conformance.findings import EnvFailureError, NotExercisedError, ViolationError, short
from sb3compat.conformance.program.calls import opening
from sb3compat.conformance.subject.actions import batch_source
from sb3compat.conformance.subject.subject import Ending

if TYPE_CHECKING:
    from sb3compat.conformance.play import Play

error = partial(check, "vec_env", severity="error")
warning = partial(check, "vec_env", severity="warning")

DETERMINISTIC = (*BASICS["vec_env"], "same_seed_same_trajectory")
ENDINGS = (*BASICS["vec_env"], "dones_shape", "infos_n_dicts", "terminal_observation_iff_done")

# For a single program with several endings in it.
_MOST_SECONDS = 2.0

# Rewards of another shape are for another check.
_SAME_REWARD = "np.size(rewards) != {1} or close(np.ravel(rewards)[{0}], alone[{0}]['reward'])"

# With a copy, as some environments write into what they are given.
STEP = "obs, rewards, dones, infos = env.step(deepcopy(actions))"
STEP_BOTH = (
    STEP,
    "obs2, rewards2, dones2, infos2 = other.step(actions)",
)


def leaves(space: Any, path: str = "") -> list[tuple[str, Any]]:
    """The simple spaces within a space, each with the source of the index that leads there."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return [(path, space)]
    parts = space.spaces
    items = parts.items() if isinstance(parts, dict) else enumerate(parts)
    return [leaf for key, part in items for leaf in leaves(part, f"{path}[{key!r}]")]


def arrays(space: Any) -> list[tuple[str, Any]]:
    """Likewise, those that are batched as arrays: no texts or graphs."""
    return [(path, leaf) for path, leaf in leaves(space) if leaf.shape is not None]


def draw_seed(play: Play) -> int:
    """A small seed."""
    return play.draw(st.integers(0, 9))


def demand_in_space(play: Play, what: str, at_row: int) -> None:
    """Ask that an expression is an observation of a single environment."""
    try:
        play.demand(
            f"inside(env.observation_space, {what})",
            what,
            f"in {short(play.value('env.observation_space'), 80)}",
            at_row,
        )
    except ViolationError as error:
        with suppress(EnvFailureError):
            bounds = bool(play.value(f"inside(env.observation_space, {what}, bounded=False)"))
            error.finding = replace(error.finding, bounds=bounds) if error.finding else None
        raise


def demand_batch_in_space(play: Play) -> None:
    """Ask that `obs` is a batch of n observations."""
    for path, space in arrays(play.value("env.observation_space")):
        shape = (play.n, *space.shape)
        play.demand(f"isinstance(obs{path}, np.ndarray)", f"type(obs{path})", "an array")
        play.demand(
            f"obs{path}.shape == {shape}",
            f"obs{path}.shape",
            f"{shape}: {play.n} rows, each of shape {space.shape}",
        )
    for i in range(play.n):
        demand_in_space(play, f"row(obs, {i})", i)


def several_endings(play: Play, wanted: int = 3, keep: str = "") -> Iterator[list[int]]:
    """Start and step until some rows have ended; yields those that did, after each such step.

    Args:
        play: The run.
        wanted: How many endings.
        keep: A statement to run before each step.

    Raises:
        NotExercisedError: If there were fewer.
    """
    if not play.subject.endings:
        raise NotExercisedError
    ending = play.subject.endings[0]  # the traits were found with the same actions
    play.make()
    for line in opening("vec_env", ending.setup, ending.seed):
        play.run(line)
    affordable = int(_MOST_SECONDS / max(play.subject.step_seconds, 1e-6))
    for _ in range(min(3 * wanted * ending.steps + 20, max(affordable, ending.steps))):
        if keep:
            play.run(keep)
        play.step(ending.actions)
        ended = play.ended()
        if ended:
            wanted -= len(ended)
            yield ended
        if wanted <= 0:
            return
    raise NotExercisedError


def beside(play: Play) -> bool:
    """Whether there are single environments which can be brought to the same state."""
    return not play.subject.missing(("reference", "seeding"))


def known_ending(play: Play) -> Ending | None:
    """A way to the end of an episode, or None."""
    return play.ending() if play.subject.endings else None


class Twins:
    """Two new instances, `env` and `other`, to which the same is done, save for one thing.

    Args:
        play: The run.
        ending: What to do with them; drawn actions if it is None.
    """

    def __init__(self, play: Play, ending: Ending | None = None) -> None:
        self.play, self.ending = play, ending
        seed = ending.seed if ending is not None else None
        self.seed = draw_seed(play) if seed is None else seed
        play.run("env, other = make_env(), make_env()")

    def reset(self, *, seeded: bool = True) -> None:
        """Reset both."""
        if seeded:
            self.play.run(f"env.seed({self.seed})")
            self.play.run(f"other.seed({self.seed})")
        self.play.run("obs = env.reset()")
        self.play.run("obs2 = other.reset()")

    def step(self) -> None:
        """Step both with the same actions."""
        self.choose()
        for line in STEP_BOTH:
            self.play.run(line)

    def choose(self) -> None:
        """Assign the actions of the next step."""
        if self.ending is None:
            self.play.run(f"actions = {self.play.actions()}")
        else:
            if self.ending.setup and not self.play.script.steps:
                self.play.run(self.ending.setup)
            self.play.run(f"actions = {self.ending.actions}")

    def steps(self, after: int = 3, most: int = 6) -> Iterator[int]:
        """Step both, until some steps after an end, or some steps where no ending is known."""
        left = self.play.draw(st.integers(1, most)) if self.ending is None else -1
        for number in range(1, 1000 if self.ending is None else 3 * self.ending.steps + 20):
            self.step()
            yield number
            if left < 0 and self.play.ended():
                left = after + 1
            left -= 1
            if left == 0:
                return

    def demand_same(self, should: str) -> None:
        """Ask that both have returned the same, row by row."""
        for i in range(self.play.n):
            self.play.demand(
                f"equal(row(obs, {i}), row(obs2, {i}))",
                f"row(obs, {i})",
                self._as("obs", i, should),
                i,
            )
        if self.play.script.steps:
            for name in ("rewards", "dones"):
                if np.shape(self.play.value(name))[:1] != (self.play.n,):
                    # Of another shape, which is for other checks.
                    other = short(self.play.value(f"{name}2"), 80)
                    self.play.demand(f"equal({name}, {name}2)", name, f"{other}, {should}")
                    continue
                for i in range(self.play.n):
                    self.play.demand(
                        f"equal({name}[{i}], {name}2[{i}])",
                        f"{name}[{i}]",
                        self._as(name, i, should),
                        i,
                    )

    def _as(self, name: str, i: int, should: str) -> str:
        expression = f"row(obs2, {i})" if name == "obs" else f"{name}2[{i}]"
        return f"{short(self.play.value(expression), 80)}, {should}"


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
        seed = ending.seed if ending is not None and ending.seed is not None else draw_seed(play)
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


def other_actions(play: Play, i: int) -> tuple[str, str]:
    """Two batches of actions which differ in all rows but one."""
    known = play.subject.actions
    mine, one, two = (play.draw(st.integers(0, len(known) - 1)) for _ in range(3))
    if one == two:
        two = (one + 1) % len(known)
    batches = [
        [known[mine] if j == i else known[action] for j in range(play.n)] for action in (one, two)
    ]
    first, second = (batch_source("vec_env", batch) for batch in batches)
    return first, second
