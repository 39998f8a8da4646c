"""Seeds, options and resets of a whole VectorEnv."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sb3compat.conformance.checks.tools import scenes
from sb3compat.conformance.checks.tools.comparing import alike_under_a_seed, same
from sb3compat.conformance.checks.tools.scenes import (
    later_ends_alike,
    long_pasts,
    row_alike,
    second_episodes_alike,
    seeded_start,
    starts_alike_where_none_ended,
    step_both,
)
from sb3compat.conformance.checks.tools.singles import obs_like_single
from sb3compat.conformance.checks.vector_env.marks import (
    DETERMINISTIC,
    EPISODES,
    RESET,
    SYNC,
    marked,
)
from sb3compat.conformance.contract import GYM_RESET
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Drawn, Record
from sb3compat.conformance.replays import beside
from sb3compat.conformance.rows import obs_of
from sb3compat.conformance.scene import Recorded, Scene
from sb3compat.conformance.subject.subject import Ending
from sb3compat.conformance.values import Several, Value
from sb3compat.conformance.variants import again

_NO_RANDOM_START = "it does not start at random"
_LASTS = "something lasts over a reset"

equal, stable, starts_like = map(PRELUDE.__getitem__, ("equal", "stable", "starts_like"))

error, warning = marked(group="seeding", source=RESET, needs=("seeding",), after=DETERMINISTIC)


@error(after=EPISODES, variant=again)
def same_seed_same_trajectory(record: Record, twin: Record) -> Iterator[Demand]:
    """Two environments with the same seed and the same actions return the same.

    Otherwise no experiment can be repeated. A typical mistake is to draw from `random`, from
    NumPy's global generator, or from a generator that `reset(seed=...)` does not replace. Draw
    from `self.np_random`. Infos are not compared, as they often contain clock times.
    """
    yield from alike_under_a_seed(
        record, twin, "as in another environment with the same seed and actions"
    )


unseeded_resets_repeatable = warning(
    source=GYM_RESET, after=(*DETERMINISTIC, "reset_clears_pending_autoreset")
)(scenes.unseeded_resets_repeatable)


@warning()
def seed_used_once(scene: Scene) -> Iterator[Demand]:
    """A seed is used for one reset; a reset without a seed draws new random numbers.

    An environment that uses the seed again in each reset plays the same episode for ever, without
    an error. Make the generator in a reset with a seed, and keep it in resets without one.
    """
    fresh = scene.make("fresh")
    if _distinct([fresh.reset().obs for _ in range(4)]) == 1:
        # A map, say, that is kept until there is another seed.
        raise NotExercisedError("without a seed all episodes begin alike")
    env = scene.make()
    seed = scene.seed()
    first = env.reset(seed=seed).obs
    later = [env.reset().obs for _ in range(4)]
    others = [env.reset(seed=seed + k).obs for k in range(1, 5)]
    if _distinct([first, *others]) < 3:
        raise NotExercisedError(_NO_RANDOM_START)
    should = "not the same four times over, the same as after reset(seed=...)"
    yield expect("distinct([{1}, *{0}]) > 1", Several(later), first, should=should)


@error(after=(*DETERMINISTIC, "reset_clears_pending_autoreset"), new=True)
def seed_works_again(scene: Scene) -> Iterator[Demand]:
    """A second seed has an effect on the same instance, as the first seed had.

    Evaluations seed an environment that has been in use. Typical mistakes: the generator is made
    with the first seed, and later ones are ignored; or it is made for each episode, from the seed
    and a count that goes on.
    """
    seed = scene.seed()
    others = range(seed + 1, seed + 5)
    again: list[Value] = []
    first: list[Value] = []
    for other in others:
        env = scene.make()
        env.reset(seed=seed)
        again.append(env.reset(seed=other).obs)
        # Making instances may take long, so new ones are asked only where it matters.
        if _distinct(again) > 1:
            break
        first.append(scene.make("new").reset(seed=other).obs)
        if _distinct(first) <= len(first) // 2:
            raise NotExercisedError(_NO_RANDOM_START)
    should = f"another with another seed after the first one, {seed}"
    yield expect("distinct({0}) > 1", Several(again), should=should)
    yield from second_episodes_alike(scene)


@warning(after=(*DETERMINISTIC, "seed_works_again"))
def large_seeds_accepted(scene: Scene) -> Iterator[Demand]:
    """`reset(seed=s)` takes any seed that fits into 32 bits, and None, which draws one.

    Seeds that are drawn, or made of hashes, are as large. Typical mistake: the seed goes through a
    signed 32-bit integer.
    """
    env = scene.make()
    seed = scene.choose(("2**31", f"2**32 - {scene.n}", "None"))
    error = scene.caught(env.reset, seed=Drawn(seed)).error
    yield expect("{0} is None", error, should=f"None, as {seed} is a seed")
    if seed != "2**31":
        return
    if _distinct([env.reset(seed=1000 * k).obs for k in range(4)]) < 3:
        return
    large = [env.reset(seed=Drawn(f"2**31 + {1000 * k}")).obs for k in range(4)]
    should = "another under another large seed"
    yield expect("distinct({1}) > 1", large[0], Several(large), should=should)


def _distinct(values: Sequence[Value]) -> int:
    found: int = PRELUDE["distinct"]([value.value for value in values])
    return found


def _varied_starts(scene: Scene, env: Recorded, seed: int) -> dict[int, Several]:
    """The starts of the rows that begin differently under different seeds."""
    starts = [env.reset(seed=seed + 1000 * k) for k in range(6)]
    rows = {i: Several([obs_of(env.record, start, i) for start in starts]) for i in scene.rows}
    varied = {i: several for i, several in rows.items() if _distinct(several.parts) > 3}
    if not varied:
        raise NotExercisedError(_NO_RANDOM_START)
    return varied


@error(source=SYNC, needs=("seeding", "separate_rows"))
def seeds_differ_by_row(scene: Scene) -> Iterator[Demand]:
    """`reset(seed=s)` gives each row a seed of its own, so that the rows differ.

    With the same seed in every row, n environments play one episode n times, and the batch holds
    no more than a single row.
    """
    starts = _varied_starts(scene, scene.make(), scene.seed())
    if len(starts) == 1:
        raise NotExercisedError("one row alone starts at random")
    for i, own in list(starts.items())[1:]:
        before = [j for j in starts if j < i]
        j = next((j for j in before if equal(starts[j].value, own.value)), before[0])
        should = f"other than those of row {j}, as the rows have different seeds"
        yield expect("not equal({0}, {1})", own, starts[j], should=should, row=i)


@error(source=SYNC)
def seed_list_by_row(scene: Scene) -> Iterator[Demand]:
    """If `reset(seed=[...])` takes a list, it holds the seed of each row.

    Typical mistakes: only the first one is used, or all are mixed into one, and the caller who
    repeats a row by its own seed gets another episode. An environment without seeds by row refuses
    a list.
    """
    env = scene.make()
    seed = scene.seed()
    i = scene.choose(list(_varied_starts(scene, env, seed)))
    before, after = list(range(seed, seed + i)), list(range(seed + i + 1, seed + scene.n))
    # So many that chance does not repeat one start: an empty board may be half of all starts.
    lists = [[*before, seed + 100 * k, *after] for k in range(1, 17)]
    if scene.caught(env.reset, seed=lists[0]).failure is not None:
        raise NotExercisedError("it takes no list of seeds")
    listed = [env.reset(seed=seeds) for seeds in lists]
    got = Several([obs_of(env.record, start, i) for start in listed])
    should = "different, as the seeds of the row are"
    yield expect("distinct({0}) > 1", got, should=should, row=i)
    # The seed of the row stays, and those of all others change, after a first repetition.
    others = [([s + k for s in before], [s + k for s in after]) for k in (0, 0, 1000, 2000)]
    starts = [env.reset(seed=[*low, seed + i, *high]) for low, high in others]
    first, again, *later = (obs_of(env.record, start, i) for start in starts)
    if equal(first.value, again.value) and scene.subject.capabilities.get("separate_rows"):
        should = "the same, as only the seeds of other rows are others"
        yield expect("distinct([{0}, *{1}]) == 1", first, Several(later), should=should, row=i)


def _as_with_a_list(scene: Scene) -> Iterator[Demand]:
    if not scene.subject.capabilities.get("row_seeds"):
        raise NotExercisedError("rows have no seeds of their own")
    seed = scene.seed()
    start = scene.make().reset(seed=seed)
    other = scene.make("twin").reset(seed=list(range(seed, seed + scene.n)))
    should = f"{short(other.obs.value)}, as with the list"
    yield expect("equal({0}, {1})", start.obs, other.obs, should=should)


@warning(
    source=SYNC,
    after=(*DETERMINISTIC, "seeds_differ_by_row", "obs_in_batched_space"),
    without_reference=_as_with_a_list,
)
def seed_int_is_seed_plus_i(record: Record) -> Iterator[Demand]:
    """`reset(seed=s)` seeds row i with s + i.

    Gymnasium's vector environments do so, and by that rule single environments repeat a result.
    The rows are compared with single environments if there is a reference, else with
    `reset(seed=[s, s + 1, ...])`. An environment with one generator for all rows cannot follow
    the rule, and is not judged.
    """
    for start in beside(record):
        if start.seeded:
            seed = start.alone.op.kwargs["seed"]
            yield obs_like_single(start, f"as in its single environment with seed {seed}")


@error(group="reset", needs=("seeding", "repeatable"), new=True)
def reset_clears_pending_autoreset(scene: Scene) -> Iterator[Demand]:
    """After `reset()` every row is at the start of an episode, also one that had just ended.

    In NEXT_STEP mode an environment notes that the next step must reset a row. If `reset` keeps
    that note, the row's first action is ignored and its episode begins twice. Clear the note in
    `reset`.
    """
    ending = scene.ending()
    env = scene.make()
    rows = env.to_an_end(ending).ended
    _, twin = _reset_like_new(scene, env, ending)
    # It has ended an episode more, which may matter even under a seed.
    if not equal(env.last.obs.value, twin.last.obs.value):
        raise NotExercisedError(_LASTS)
    actions = scene.actions()
    if scene.disabled:
        error = scene.caught(env.step, actions).error
        yield expect("{0} is None", error, should="None: every row has just been reset")
        return
    one, other = env.step(actions), twin.step(actions)
    for i in rows:
        yield from row_alike(env, one, twin, other, i, "as in an environment without a past")


@error(
    group="reset",
    # Other rows may end before the reset.
    after=(*DETERMINISTIC, "reset_clears_pending_autoreset", "seed_works_again"),
    new=True,
)
def reset_clears_counters(scene: Scene) -> Iterator[Demand]:
    """After `reset()` an episode has its full time limit; under a seed it is a new instance's.

    A step counter that goes on counting truncates the next episode too soon. Set it to zero in
    `reset`, also in the middle of an episode. A random number that is drawn ahead and kept makes
    the next seeded episode another one, and so does a generator that a seed seen before does not
    make anew; Gymnasium's `check_env` demands the same one as well. If something must last, declare
    the capability `repeatable` as missing.
    """
    ending = scene.ending()
    if ending.steps < 2:
        raise NotExercisedError("an episode ends in its first step")
    env = scene.make()
    act = seeded_start(env, ending)
    few = scene.choose([*range(1, min(ending.steps, 50)), *long_pasts(scene)])
    if few >= ending.steps:
        env.restart(scene.seed())
    past = [env.go_on(act()) for _ in range(few)]
    act, twin = _reset_like_new(scene, env, ending)
    why = "as in an environment that was reset before any step"
    repeatable = scene.subject.capabilities.get("repeatable")
    if repeatable and any(step.ended for step in past):
        under = f"{why}, under the same seed"
        yield from starts_alike_where_none_ended(env, twin, ending.seed, past, under)
        return
    yield from _start_alike(env, twin, f"{why}, under the same seed")
    for _ in range(ending.steps):
        one, other = step_both(env, twin, act())
        for a, b in ((other.terminations, one.terminations), (other.truncations, one.truncations)):
            yield expect("equal({0}, {1})", a, b, should=f"{short(b.value)}, {why}")
        if one.ended:
            yield from later_ends_alike(env, twin, one.ended, ending, act, why)
            return
        yield from _start_alike(env, twin, f"{why}, under the same seed and actions")
    raise NotExercisedError("the episode did not end again")


def _reset_like_new(
    scene: Scene, env: Recorded, ending: Ending
) -> tuple[Callable[[], Any], Recorded]:
    """Reset, and make a twin that is reset for the first time; what draws actions, and the twin."""
    act = seeded_start(env, ending)
    twin = scene.make("twin")
    twin.reset(seed=ending.seed)
    return act, twin


def _start_alike(env: Recorded, twin: Recorded, should: str) -> Iterator[Demand]:
    """Both observe the same; or else nothing can be told, where something may last over a reset."""
    got, expected = env.last.obs, twin.last.obs
    if env.scene.subject.capabilities.get("repeatable"):
        yield same(got, expected, should)
    elif not equal(got.value, expected.value):
        raise NotExercisedError(_LASTS)
