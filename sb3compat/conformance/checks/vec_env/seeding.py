"""What `seed` does, and when."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sb3compat.conformance.checks.tools import scenes
from sb3compat.conformance.checks.tools.comparing import alike, alike_under_a_seed
from sb3compat.conformance.checks.tools.evidence import (
    distinct,
    not_all_alike,
    too_much_alike,
    values,
)
from sb3compat.conformance.checks.tools.scenes import second_episodes_alike
from sb3compat.conformance.checks.vec_env.marks import DETERMINISTIC, marked
from sb3compat.conformance.contract import GYM_RESET, SB3_SOURCE
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Drawn, Record
from sb3compat.conformance.scene import Recorded, Scene
from sb3compat.conformance.values import Several, Value
from sb3compat.conformance.variants import again, seeded_late

_SEEDED = (*DETERMINISTIC, "seed_returns_n")

# So often is an environment reset under no new seed; less often if that takes so many seconds.
_ROUNDS, _FEW_ROUNDS, _LONG_RESET = 16, 6, 0.1
# That so many seeds are all kept by chance is not to be expected.
_SEEDS = 3

equal = PRELUDE["equal"]

error, warning = marked(group="seeding", source=SB3_SOURCE, needs=("seeding",))


@error(needs=("seed_method",), after=())
def seed_returns_n(scene: Scene) -> Iterator[Demand]:
    """`seed(s)` returns a sequence of n seeds, one for each row.

    SB3's base class returns `[s, s + 1, …]`; elements may be None where an environment tells
    nothing. Typical mistake: `seed` is overridden and returns nothing.
    """
    seeds = scene.make().seed(scene.seed()).asked
    known = f"{{0}} is not None and len({{0}}) == {scene.n}"
    yield expect(known, seeds, should=f"a list of {scene.n} seeds")


@error(variant=again)
def same_seed_same_trajectory(record: Record, twin: Record) -> Iterator[Demand]:
    """The same seed and the same actions give the same observations, rewards and dones.

    Each row's seed goes into the reset of its environment, and all random numbers come from it.
    Typical mistakes: `seed` is not passed on; numbers are drawn from `random` or `np.random`, whose
    state other code moves, also where the seed goes there; a step returns the results of another
    step's actions. If this check fails, the checks that compare two runs are skipped. For an
    environment that takes no seeds, declare the capability `seeding` as missing.
    """
    yield from alike_under_a_seed(
        record, twin, "as in another instance under the same seed and actions"
    )


unseeded_resets_repeatable = warning(source=GYM_RESET, after=DETERMINISTIC)(
    scenes.unseeded_resets_repeatable
)


@error(after=_SEEDED, variant=seeded_late)
def seed_applies_at_next_reset_only(record: Record, twin: Record) -> Iterator[Demand]:
    """`seed(s)` changes nothing until the next `reset()`, the rows' own resets included.

    A seed belongs to the next call of `reset()`. Typical mistakes: `seed` resets the environment
    or its generators at once, or the seed is used up by the first row whose episode ends.
    """
    yield from alike(record, twin, "as without the call of seed, since there was no reset")


@error(after=_SEEDED)
def seed_used_once(scene: Scene) -> Iterator[Demand]:
    """A seed is used for one reset; the next one draws something new.

    Otherwise all episodes are the same, and an agent learns one start by heart. Typical mistake:
    the seeds are not set back to None after the reset, or not after one that has options.
    """
    subject, env, actions = scene.subject, scene.make(), scene.actions()
    rounds = _ROUNDS if subject.reset_seconds < _LONG_RESET else _FEW_ROUNDS
    env.reset()
    without, stepped, later = [], [], []
    for _ in range(rounds):
        env.step(actions)
        without.append(env.reset())
    first = env.restart(scene.seed())
    for _ in range(rounds):
        stepped.append(env.step(actions))
        later.append(env.reset())
    judged = False
    for i in scene.rows:
        start, starts, again = first.obs.row(i), _of_row(without, i), _of_row(later, i)
        # If neither a step nor a reset moves anything, as with a real robot, nothing can be told;
        # and a row may keep what it has drawn, such as a map, until it gets another seed.
        if all(equal(start.value, obs.value) for obs in _of_row(stepped, i)):
            continue
        drawn = subject.traits.continuous and distinct(values(starts)) == rounds
        if drawn or too_much_alike(values(starts), [start.value] * (rounds + 1)):
            judged = True
            yield expect(
                "not all(equal({1}, obs) for obs in {2})",
                again[0],
                start,
                Several(again),
                should="another first observation than under the seed before",
                row=i,
            )
    yield from _not_kept_by_options(scene, env, without)
    if not judged:
        raise NotExercisedError("without a seed episodes begin alike too often")


def _not_kept_by_options(scene: Scene, env: Recorded, without: list[Call]) -> Iterator[Demand]:
    """A seed is not kept by a reset that has options, too."""
    if not scene.subject.unnamed:
        return
    options, seed, actions = (
        scene.made_by("noting_options", "options"),
        scene.seed(),
        scene.actions(),
    )
    first, later = [], []
    for k in range(_SEEDS):
        env.set_options(options)
        first.append(env.restart(seed + k))
        env.step(actions)
        later.append(env.reset())
    for i in scene.rows:
        if distinct(values(_of_row(without, i))) == len(without):
            should = "another first observation than under the seed and options before"
            yield not_all_alike(_of_row(later, i), _of_row(first, i), should, i)


def _of_row(calls: list[Call], i: int) -> list[Value]:
    return [call.obs.row(i) for call in calls]


@error(after=_SEEDED, new=True)
def seed_works_again(scene: Scene) -> Iterator[Demand]:
    """A second seed has an effect on the same instance, as the first seed had.

    Algorithms and evaluations seed an environment that has been in use. Typical mistakes: the
    generator is made with the first seed, and later ones are ignored; or it is made for each
    episode, from the seed and a count that goes on.
    """
    if not scene.subject.traits.seeds_vary:
        raise NotExercisedError("episodes under the seeds that were tried begin alike")
    seed = scene.seed()
    again = []
    for other in range(seed + 1, seed + 5):
        env = scene.make()
        env.restart(seed)
        again.append(env.restart(other))
        # Making instances may take long.
        if all(distinct([obs.value for obs in _of_row(again, i)]) > 1 for i in scene.rows):
            break
    for i in scene.rows:
        yield expect(
            "distinct({1}) > 1",
            again[-1].obs.row(i),
            Several(_of_row(again, i)),
            should=f"another with another seed after the first one, {seed}",
            row=i,
        )
    yield from second_episodes_alike(scene)


@warning(after=(*_SEEDED, "seed_works_again"))
def large_seeds_accepted(scene: Scene) -> Iterator[Demand]:
    """`seed(s)` takes any seed that fits into 32 bits, and None, which draws one.

    SB3's base class draws seeds up to 2**32 - 2 where it is given None. Typical mistake: the seed
    goes through a signed 32-bit integer.
    """
    env = scene.make()
    seed = scene.choose(("2**31", f"2**32 - {scene.n}", "None"))
    for call in (partial(scene.caught, env.seed, Drawn(seed)), partial(scene.caught, env.reset)):
        yield expect("{0} is None", call().error, should=f"None, as {seed} is a seed")
    if seed != "2**31" or not scene.subject.traits.seeds_vary:
        return
    starts = []
    for k in range(4):
        env.seed(Drawn(f"2**31 + {1000 * k}"))
        starts.append(env.reset().obs)
    should = "another under another large seed"
    yield expect("distinct({1}) > 1", starts[0], Several(starts), should=should)


@error(needs=("seeding", "separate_rows"), after=_SEEDED)
def seeds_differ_by_row(scene: Scene) -> Iterator[Demand]:
    """Row i is reset with the seed `s + i`, so that the rows differ.

    With the same seed in every row, n environments play one episode n times, and the batch holds
    no more than a single row.
    """
    if scene.n < 2 or not scene.subject.traits.seeds_vary:
        raise NotExercisedError("there is one row, or episodes under different seeds begin alike")
    env = scene.make()
    seed = scene.seed()
    firsts = [env.restart(each).obs for each in range(seed, seed + 6)]
    starts = [Several([obs.row(i) for obs in firsts]) for i in scene.rows]
    for i in range(1, scene.n):
        j = next((j for j in range(i) if equal(starts[j].value, starts[i].value)), 0)
        yield expect(
            "not all(map(equal, {2}, {3}))",
            firsts[0].row(j),
            firsts[0].row(i),
            starts[j],
            starts[i],
            what="[{0}, {1}]",
            should=f"different, as rows {j} and {i} have different seeds",
            row=i,
        )
