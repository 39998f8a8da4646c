"""What several scenarios do: the way to an end, and two instances that get the same calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from sb3compat.conformance.checks.tools.comparing import calls_alike, same
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.programs import opening
from sb3compat.conformance.record import Call
from sb3compat.conformance.rows import Episode, by_row, obs_of
from sb3compat.conformance.scene import Recorded, Scene
from sb3compat.conformance.subject.interface import offers
from sb3compat.conformance.subject.subject import Ending
from sb3compat.conformance.values import Several, Value, constant
from sb3compat.conformance.variants import with_another_action

equal = PRELUDE["equal"]

# The results of a step of a `VectorEnv` without its infos.
RESULTS = ("obs", "rewards", "terminations", "truncations")
# Draws the actions of a step.
Acting = Callable[[], Any]

# For two resets.
_SEEDS = (3, 50)
# Steps before a reset, and the most time for them.
_LONG, _MOST_SECONDS = (6, 12, 25, 50), 0.3
# So often is an environment led to an end under one seed.
_ROUNDS = 3
# So many steps are made besides a multiple of those to an end.
_MORE_STEPS = 20


def seeded_start(env: Recorded, ending: Ending) -> Acting:
    """Reset with the seed of an ending; returns what draws its actions."""
    if ending.seed is None:
        raise NotExercisedError("it takes no seeds")
    act = env.acting(ending)
    env.restart(ending.seed)
    return act


def step_both(env: Recorded, twin: Recorded, actions: Any) -> tuple[Call, Call]:
    """Step two instances, and reset rows in both where the caller has to."""
    rows = env.due
    if rows:
        env.reset_rows(rows)
        twin.reset_rows(rows)
    return env.step(actions), twin.step(actions)


def later_ends_alike(
    env: Recorded, twin: Recorded, over: Iterable[int], ending: Ending, act: Acting, why: str
) -> Iterator[Demand]:
    """Other rows than those that have ended since a reset end where they do in a twin.

    A step counter shows there, where few episodes last until their time limit. What follows an
    end is not compared, as one episode more before the reset may matter to it.

    Args:
        env: The environment.
        twin: The twin, which has got the same calls since the reset.
        over: The rows that have ended.
        ending: The ending that was led to.
        act: Draws the actions of a step.
        why: The end of a sentence: why they have to.
    """
    known = env.scene.subject.capabilities
    apart = known.get("own_generators") and known.get("separate_rows")
    left = set(env.scene.rows).difference(over) if apart else set()
    most = 2 * ending.steps + _MORE_STEPS
    while left and most:
        one, other = step_both(env, twin, act())
        for name in ("dones", "terminations", "truncations"):
            for i in sorted(left) if name in one.copies else ():
                got, expected = getattr(one, name)[i], getattr(other, name)[i]
                should = f"{short(expected.value)}, {why}"
                yield expect("equal({0}, {1})", got, expected, should=should, row=i)
        left.difference_update(one.ended, other.ended)
        most -= 1


def unseeded_resets_repeatable(scene: Scene) -> Iterator[Demand]:
    """After a seed, resets without one are repeatable, too.

    `reset()` keeps the generator that the seed has made: else of a seeded run only the part up to
    the second reset can be repeated. Typical mistake: `self.rng = np.random.default_rng(seed)` in
    each reset, which draws from the system's entropy where `seed` is None.
    """
    twins = Twins(scene)
    twins.reset()
    for _ in range(2):
        pairs = [(twins.env.restart(), twins.twin.restart()), twins.step(), twins.step()]
        for one, other in pairs:
            should = "as in another environment with the same seed, resets and actions"
            yield from twins.same(other, one, should)


def second_episodes_alike(scene: Scene) -> Iterator[Demand]:
    """Under a seed, the second episode is always the same, if the first one is.

    What changes by design at some number of ends, such as a level, changes once only, or is seen in
    the first episode.
    """
    subject = scene.subject
    if subject.missing(("repeatable",)) or not subject.endings:
        return
    ending, actions = scene.ending(), scene.actions()
    if ending.seed is None or _ROUNDS * ending.steps * subject.step_seconds > _MOST_SECONDS:
        return
    env = scene.make()
    # An end under the seed, and the step after it, with the autoreset.
    rounds = [(env.to_an_end(ending), env.go_on(actions)) for _ in range(_ROUNDS)]
    for i, found in enumerate(by_row(env.record)):
        ways = [
            _way_of(each)
            for each in found
            if each.over and any(each.end is end for end, _ in rounds)
        ]
        starts = [obs_of(env.record, after, i) for _, after in rounds]
        others = [start for start in starts[1:] if not equal(start.value, starts[0].value)]
        alike = len(ways) == _ROUNDS and all(equal(way, ways[0]) for way in ways)
        if alike and len(others) == _ROUNDS - 1:
            got, start = others[-1], starts[0]
            yield same(
                got, start, "as the first time: under one seed, the first episodes are alike", i
            )


def _way_of(episode: Episode) -> list[Any]:
    """The observations of an episode before its end, and the reward of that."""
    # A check reports rewards that are no array.
    reward = np.ravel(episode.end.copies["rewards"])[episode.row : episode.row + 1]
    calls = (episode.start, *episode.before_end)
    return [*(obs_of(episode.record, call, episode.row).value for call in calls), reward]


def row_alike(
    env: Recorded, one: Call, twin: Recorded, other: Call, i: int, why: str
) -> Iterator[Demand]:
    """Row i of the resets of an environment and its twin, or of a `VectorEnv`'s steps, is the same.

    Infos are left out.

    Args:
        env: The environment.
        one: Its call.
        twin: The twin.
        other: The call of the twin.
        i: The row.
        why: The end of a sentence: why it has to.
    """
    pairs = [(obs_of(env.record, one, i), obs_of(twin.record, other, i))]
    if one.is_step:
        names = RESULTS[1:]
        pairs += [(getattr(one, name)[i], getattr(other, name)[i]) for name in names]
    for got, expected in pairs:
        should = f"{short(expected.value)}, {why}"
        yield expect("equal({0}, {1})", got, expected, should=should, row=i)


def long_pasts(scene: Scene) -> list[int]:
    """Numbers of steps before a reset, in which something may be made ready for a later episode."""
    return [few for few in _LONG if few * scene.subject.step_seconds < _MOST_SECONDS]


def starts_alike_where_none_ended(
    env: Recorded, twin: Recorded, seed: int | None, past: list[Call], why: str
) -> Iterator[Demand]:
    """Rows that have ended no episode before a reset under a seed begin like those of a new twin.

    Args:
        env: The environment, after the reset.
        twin: The twin, after a reset under the same seed.
        seed: That seed.
        past: The steps before the reset. An episode more may matter to a row even under a seed.
        why: The end of a sentence: why rows have to begin so.

    Raises:
        NotExercisedError: If each row has ended an episode, or may depend on one that has; or if
            resets of the twin under the seed are not alike.
    """
    over = {i for step in past for i in step.ended}
    rows = set(env.scene.rows) - over
    if not rows or not env.scene.subject.capabilities.get("separate_rows"):
        raise NotExercisedError("an episode ended too early")
    if not equal(twin.last.obs.value, twin.restart(seed).obs.value):
        raise NotExercisedError("a seed does not repeat a start")
    for i in sorted(rows):
        yield from row_alike(env, env.last, twin, twin.last, i, why)


def returns(call: Call, expected: list[Any], what: str = "{0}", why: str = "") -> Demand:
    """A call has returned these values.

    Args:
        call: The call.
        expected: The values.
        what: The expression that must be equal to them.
        why: The end of a sentence: why it has to.
    """
    condition = f"{what} == {{1}}"
    should = f"{expected}{why}"
    return expect(condition, call.asked, constant(expected), what=what, should=should)


def attributes_of_now(scene: Scene, env: Recorded) -> Iterator[Demand]:
    """`get_attr` reads the values of now: the seeds of rows change with each seeded reset."""
    for number, seed in enumerate(_SEEDS if scene.subject.capabilities["seeding"] else ()):
        env.restart(seed)
        seeds = scene.caught(env.get_attr, "np_random_seed")
        expected = [seed + i for i in scene.rows]
        told = seeds.failure is None and isinstance(seeds.result, list | tuple)
        if number == 0 and not (told and list(seeds.result) == expected):
            return
        yield returns(seeds, expected, "list({0})", ": the seeds of the last reset")


def access_or_refusal(env: Recorded, *others: Callable[[], Call]) -> Iterator[Demand]:
    """`set_attr` and `get_attr` work, or say in the same way that they do not.

    What `set_attr` has taken, `get_attr` gives: otherwise it has no effect, or nobody sees it.

    Args:
        env: The environment.
        others: Calls that may also raise a ValueError.
    """
    scene = env.scene
    if not all(offers(env.live, name) for name in ("get_attr", "set_attr")):
        raise NotExercisedError("it has no such methods")
    refusals = "NotImplementedError, AttributeError"
    calls: list[tuple[Callable[[], Call], str]] = [
        (lambda: scene.caught(env.set_attr, "kit_mark", 0), refusals),
        (lambda: scene.caught(env.get_attr, "kit_mark"), ""),
        *((other, f"{refusals}, ValueError") for other in others),
    ]
    made = []
    for make, refusal in calls:
        call = make()
        made.append(call)
        should = f"None or NotImplementedError, {call.op.source()}"
        yield expect(
            f"{{0}} is None or isinstance({{0}}, ({refusal}))",
            call.error,
            should=should if refusal else f"None, {call.op.source()}, as `set_attr` has taken it",
        )
        if call.failure is not None:
            return
    values = made[1].asked
    should = f"{scene.n} values, one for each row"
    yield expect(f"len({{0}}) == {scene.n}", values, should=should)


def frames_apart(frames: Value) -> Iterator[Demand]:
    """The first and the last frame are arrays of their own."""
    if len(frames.value) > 1:
        yield expect(
            "not np.shares_memory({0}, {1})",
            frames[0],
            frames[-1],
            what="np.shares_memory({0}, {1})",
            should="False, as a frame for each row needs memory of its own",
        )


def frames_of_now(env: Recorded, render: Callable[[], Call]) -> Iterator[Demand]:
    """The frames of one state are the same when they are asked for again.

    Those that differ each time may have noise, or be of an animation. If only the first ones do, in
    two states, they are not of the same state, or the second ones have something left over.
    """
    frames = []
    for _ in range(2):
        env.go_on(env.scene.actions())
        frames += [render().whole for _ in range(3)]
    yield expect(
        "any(equal(a, b) or not equal(b, c) for a, b, c in ({0}[:3], {0}[3:]))",
        Several(frames),
        what="int(np.not_equal({0}[3], {0}[4]).sum())",
        should="0 values that differ from those of the next frames, as there is no step between",
    )


def frames_of_own_rows(scene: Scene) -> Iterator[Demand]:
    """The frame of a row does not depend on what the other rows do.

    Typical mistakes: what is drawn, such as a trail, is an attribute of the class; or all rows draw
    on one canvas. It is a warning, as a camera may show the neighbours as well.
    """
    if scene.n < 2:
        raise NotExercisedError("there is one row")
    env, seed, actions = scene.make(), scene.seed(), scene.actions()
    changed, count = scene.choose(scene.rows), scene.choose(range(1, 5))
    frames = []
    for given in (actions, actions, with_another_action(env.record, changed, actions)):
        env.restart(seed)
        if any(env.step(given).ended for _ in range(count)):
            raise NotExercisedError("episodes end after few steps")
        frames.append((env.get_images() if scene.family == "vec_env" else env.render()).whole)
    for i in scene.rows:
        if i != changed:
            one, again, other = (some[i] for some in frames)
            should = f"the frame as before, with other actions in row {changed} alone"
            # Some frames are never the same.
            condition = "equal({0}, {1}) or not equal({1}, {2})"
            what = "int(np.not_equal({0}, {1}).sum())"
            yield expect(condition, other, one, again, what=what, should=should, row=i)


def reading_changes_nothing(scene: Scene) -> Iterator[Demand]:
    """Rendering and reading attributes change nothing that later steps return.

    Videos are recorded, and attributes logged, in some runs and not in others. Typical mistakes:
    rendering draws from the generator of the environment, or makes a step of the simulator.
    """
    vec_env, able = scene.family == "vec_env", scene.subject.capabilities
    ways: list[tuple[str, tuple[Any, ...]]] = []
    if able["render"]:
        ways += [("get_images", ())] * vec_env + [("render", ())]
    if able["sub_envs"]:
        place = ("get_attr", ("action_space", 0)) if vec_env else ("call", ("action_space",))
        ways += [("get_attr", ("render_mode",)), place]
    if not ways:
        raise NotExercisedError("it neither renders nor has sub-environments")
    reading, args = scene.choose(ways)
    twins = Twins(scene, scene.ending() if scene.subject.endings else None)
    twins.reset()
    kwargs = for_a_picture(twins.env) if reading == "render" else {}
    scene.caught(getattr(twins.env, reading), *args, **kwargs)
    for one, other in twins.steps():
        yield from twins.same(one, other, "as in an instance that was not rendered or read")
        scene.caught(getattr(twins.env, reading), *args, **kwargs)


def for_a_picture(env: Recorded) -> dict[str, str]:
    """The arguments of `render`, whose own default may open a window."""
    try:
        takes_mode = "mode" in inspect.signature(env.live.render).parameters
    except Exception:  # it is missing, or no function that tells its parameters
        takes_mode = False
    return {"mode": "rgb_array"} if takes_mode else {}


def telling_options(scene: Scene, name: str = "env") -> Recorded:
    """A new instance whose resets show the options that get to the rows."""
    env = scene.make(name)
    if scene.subject.options is None:
        scene.made_by("tell_options", "_", env)
    return env


def options_of(scene: Scene) -> dict[str, Any]:
    """Options that a reset shows: the user's, or else one that `telling_options` is for."""
    return {"probe": 1} if scene.subject.options is None else dict(scene.subject.options)


def not_out_of_one_dict(scene: Scene, options: Recorded) -> Demand:
    """Where one dict is for all rows, no row has taken out of it what the others look for.

    Args:
        scene: The scene, of two rows at least.
        options: Made by `noting_options`, and given to a reset.
    """
    should = "[]: all rows have one dict, out of which the first row takes the option of the others"
    again = options.attribute("again")
    return expect(f"len({{0}}) < {scene.n - 1}", again, what="{0}", should=should)


class Twins:
    """Two new instances that get the same calls save for one difference.

    Args:
        scene: The scene.
        ending: A way to an end; None to draw actions.
    """

    def __init__(self, scene: Scene, ending: Ending | None = None) -> None:
        self._scene, self._ending = scene, ending
        seed = ending.seed if ending is not None else None
        self.seed = scene.seed() if seed is None else seed
        self.env, self.twin = scene.make(), scene.make("twin")
        self._act: Acting | None = None

    def reset(self) -> tuple[Call, Call]:
        """Reset both under the seed."""
        # Two VecEnvs are seeded first: if they share a generator, one would look seeded otherwise.
        for op in opening(self._scene.subject, self.seed):
            one, other = (
                self._scene.call(each.record, each.live, op) for each in (self.env, self.twin)
            )
        return one, other

    def actions(self) -> Any:
        """The actions of the next step."""
        if self._ending is None:
            return self._scene.actions()
        if self._act is None:
            self._act = self.env.acting(self._ending)
        return self._act()

    def step(self) -> tuple[Call, Call]:
        """Step both with the same actions."""
        return step_both(self.env, self.twin, self.actions())

    def steps(self, after: int = 3, most: int = 6) -> Iterator[tuple[Call, Call]]:
        """Step both: until some steps after an end, or some steps if no ending is known."""
        ending = self._ending
        left = self._scene.choose(range(1, most + 1)) if ending is None else -1
        for _ in range(1, 1000 if ending is None else 3 * ending.steps + _MORE_STEPS):
            one, other = self.step()
            yield one, other
            if left < 0 and one.ended:
                left = after + 1
            left -= 1
            if left == 0:
                return

    def same(self, one: Call, other: Call, should: str) -> Iterator[Demand]:
        """Both have returned the same."""
        yield from calls_alike(self.twin.record, other, self.env.record, one, should)
