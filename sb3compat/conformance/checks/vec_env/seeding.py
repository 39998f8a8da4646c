"""What `seed` and `set_options` do, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from sb3compat.conformance.checks.tools.comparing import alike
from sb3compat.conformance.checks.tools.evidence import distinct, too_much_alike, values
from sb3compat.conformance.checks.tools.scenes import (
    options_of,
    telling_options,
    unseeded_resets_alike,
)
from sb3compat.conformance.checks.vec_env.marks import (
    DETERMINISTIC,
    error,
    warning,
)
from sb3compat.conformance.contract import GYM_RESET, SB3_SOURCE
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Drawn, Given, Record
from sb3compat.conformance.scene import Recorded, Scene
from sb3compat.conformance.values import Several, Value, constant
from sb3compat.conformance.variants import again, seeded_late

_SEEDED = (*DETERMINISTIC, "seed_returns_n")
_RESET_INFOS = (*DETERMINISTIC, "reset_infos_n_dicts")
_WITH_OPTIONS = ("options", "seeding")
# Options that no environment looks for.
_MEANINGLESS = {"nothing": 0}

# So often is an environment reset under no new seed; less often if that takes so many seconds.
_ROUNDS, _FEW_ROUNDS, _LONG_RESET = 16, 6, 0.1

equal, stable = PRELUDE["equal"], PRELUDE["stable"]


@error(group="seeding", source=SB3_SOURCE, needs=("seed_method",), after=())
def seed_returns_n(scene: Scene) -> Iterator[Demand]:
    """`seed(s)` returns a sequence of n seeds, one for each row.

    SB3's base class returns `[s, s + 1, …]`; elements may be None where an environment tells
    nothing. Typical mistake: `seed` is overridden and returns nothing.
    """
    seeds = scene.make().seed(scene.seed()).asked
    known = f"{{0}} is not None and len({{0}}) == {scene.n}"
    yield expect(known, seeds, should=f"a list of {scene.n} seeds")


@error(group="seeding", source=SB3_SOURCE, needs=("seeding",), variant=again)
def same_seed_same_trajectory(record: Record, twin: Record) -> Iterator[Demand]:
    """The same seed and the same actions give the same observations, rewards and dones.

    Each row's seed goes into the reset of its environment, and all random numbers come from it.
    Typical mistakes: `seed` is not passed on; numbers are drawn from `random` or `np.random`, whose
    state other code moves, also where the seed goes there; a step returns the results of another
    step's actions. If this check fails, the checks that compare two runs are skipped. For an
    environment that takes no seeds, declare the capability `seeding` as missing.
    """
    yield from alike(record, twin, "as in another instance under the same seed and actions")


@warning(group="seeding", source=GYM_RESET, needs=("seeding",), after=DETERMINISTIC)
def unseeded_resets_repeatable(scene: Scene) -> Iterator[Demand]:
    """After a seed, resets without one are repeatable, too.

    `reset()` keeps the generator that the seed has made: else of a seeded run only the part up to
    the second reset can be repeated. Typical mistake: `self.rng = np.random.default_rng(seed)` in
    each reset, which draws from the system's entropy where `seed` is None.
    """
    yield from unseeded_resets_alike(scene)


@error(group="seeding", source=SB3_SOURCE, needs=("seeding",), after=_SEEDED, variant=seeded_late)
def seed_applies_at_next_reset_only(record: Record, twin: Record) -> Iterator[Demand]:
    """`seed(s)` changes nothing until the next `reset()`, the rows' own resets included.

    A seed belongs to the next call of `reset()`. Typical mistakes: `seed` resets the environment
    or its generators at once, or the seed is used up by the first row whose episode ends.
    """
    yield from alike(record, twin, "as without the call of seed, since there was no reset")


@error(group="seeding", source=SB3_SOURCE, needs=("seeding",), after=_SEEDED)
def seed_used_once(scene: Scene) -> Iterator[Demand]:
    """A seed is used for one reset; the next one draws something new.

    Otherwise all episodes are the same, and an agent learns one start by heart. Typical mistake:
    the seeds are not set back to None after the reset.
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
    if not judged:
        raise NotExercisedError("without a seed episodes begin alike too often")


def _of_row(calls: list[Call], i: int) -> list[Value]:
    return [call.obs.row(i) for call in calls]


@error(group="seeding", source=SB3_SOURCE, needs=("seeding",), after=_SEEDED, new=True)
def seed_works_again(scene: Scene) -> Iterator[Demand]:
    """A second seed has an effect on the same instance, as the first seed had.

    Algorithms and evaluations seed an environment that has been in use. Typical mistake: the
    generator is made with the first seed, and later ones are ignored.
    """
    if not scene.subject.traits.seeds_vary:
        raise NotExercisedError("episodes under the seeds that were tried begin alike")
    seed = scene.seed()
    again = []
    for other in range(seed + 1, seed + 5):
        env = scene.make()
        env.restart(seed)
        again.append(env.restart(other))
    for i in scene.rows:
        yield expect(
            "distinct({1}) > 1",
            again[-1].obs.row(i),
            Several([start.obs.row(i) for start in again]),
            should=f"another with another seed after the first one, {seed}",
            row=i,
        )


@warning(
    group="seeding", source=SB3_SOURCE, needs=("seeding",), after=(*_SEEDED, "seed_works_again")
)
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


@error(group="seeding", source=SB3_SOURCE, needs=("seeding", "separate_rows"), after=_SEEDED)
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
    for i in range(1, scene.n):
        yield expect(
            "not all(map(equal, {2}, {3}))",
            firsts[0].row(0),
            firsts[0].row(i),
            Several([obs.row(0) for obs in firsts]),
            Several([obs.row(i) for obs in firsts]),
            what="[{0}, {1}]",
            should="different, as the rows have different seeds",
            row=i,
        )


@dataclass(frozen=True)
class _Start:
    """What a reset has returned, with the infos."""

    obs: Value
    infos: Value

    def row(self, i: int) -> tuple[Value, Value]:
        """The observation and the info of a row."""
        return self.obs.row(i), self.infos[i]


def _start(env: Recorded, seed: int, options: Any = None) -> _Start:
    """Reset under a seed, and with options if some are given."""
    if options is not None:
        env.set_options(options)
    return _begun(env, env.restart(seed))


def _begun(env: Recorded, call: Call) -> _Start:
    """What a reset has returned, or a step in which rows were reset."""
    # SB3's wrappers have `reset_infos` of their own, which stay empty.
    wrapped = "venv" in vars(env.live)
    return _Start(call.obs, env.read("unwrapped.reset_infos") if wrapped else call.reset_infos)


def _twice(scene: Scene, seed: int, options: Any = None) -> tuple[_Start, _Start]:
    """The start of two instances, as infos may contain clock times."""
    one, other = (_start(telling_options(scene), seed, options) for _ in range(2))
    return one, other


def _stable(known: tuple[_Start, _Start], i: int) -> tuple[Value, Value, Value]:
    """The observation and the info of a row, and the info of the other instance."""
    return (*known[0].row(i), known[1].infos[i])


def _starts_like(
    start: _Start, known: tuple[_Start, _Start], i: int, given: str
) -> Iterator[Demand]:
    obs, info, other = _stable(known, i)
    got = short((obs.value, stable(info.value, other.value)), 80)
    condition = "starts_like(({0}, {1}), ({2}, stable({3}, {4})))"
    values = (*start.row(i), obs, info, other)
    yield expect(condition, *values, what="({0}, {1})", should=f"{got}, {given}", row=i)


@error(group="options", source=SB3_SOURCE, needs=_WITH_OPTIONS, after=_RESET_INFOS)
def options_reach_env(scene: Scene) -> Iterator[Demand]:
    """Options given to `set_options` reach every row's environment at the next reset.

    A dict is for all rows. Where the user gives none, the check passes a probe option, which only
    the infos of the resets show. Typical mistake: `reset` does not pass them on.
    """
    seed = scene.seed()
    plain, special = _twice(scene, seed), _twice(scene, seed, options_of(scene))
    for i in scene.rows:
        yield expect(
            "not equal(({0}, stable({1}, {2})), ({3}, stable({4}, {5})))",
            *_stable(special, i),
            *_stable(plain, i),
            what="({0}, {1})",
            should="another observation or info than without options",
            row=i,
        )


@error(
    group="options",
    source=SB3_SOURCE,
    needs=("seeding",),
    after=(*_RESET_INFOS, "options_reach_env"),
)
def options_per_row(scene: Scene) -> Iterator[Demand]:
    """A list given to `set_options` holds the options of each row.

    Where no options are known, the check passes some in which every name is missing, and asks
    which of them a reset looks for names in. Typical mistakes: the list is passed on whole, or its
    first element to all rows.
    """
    if scene.subject.missing(("options",)):
        yield from _not_all_rows_look_into_one(scene)
        return
    seed = scene.seed()
    plain, special = _twice(scene, seed), _twice(scene, seed, options_of(scene))
    chosen = scene.some_rows()
    options = [options_of(scene) if i in chosen else {} for i in scene.rows]
    mixed = _start(telling_options(scene), seed, options)
    for i in scene.rows:
        known, given = (special, "its options") if i in chosen else (plain, "no options")
        yield from _starts_like(mixed, known, i, f"for {given}")


def _not_all_rows_look_into_one(scene: Scene) -> Iterator[Demand]:
    """If a reset looks into the options of one row only, it does not do so for all rows."""
    if not scene.subject.asked or scene.n < 2:
        raise NotExercisedError("no reset looks for options by name, or there is one row")
    env = scene.make()
    options = [scene.made_by("noting_options", f"options_{i}") for i in scene.rows]
    listed = ", ".join(each.record.name for each in options)
    env.set_options(Given(f"[{listed}]", [each.live for each in options]))
    env.restart(scene.seed())
    names = [each.attribute("names") for each in options]
    asked = [i for i in scene.rows if names[i].value]
    yield from _not_all_rows_take_from_one(scene)
    if not asked:
        raise NotExercisedError("it takes no list of options")
    # A row may be the only one that takes options; it hardly looks for each name n times.
    counts = Counter(names[asked[0]].value).values()
    if len(asked) == 1 and all(count % scene.n == 0 for count in counts):
        i = next(i for i in scene.rows if i not in asked)
        should = f"not [], as row {asked[0]} alone has looked for each name {scene.n} times"
        yield expect("{0} != []", names[i], should=should, row=i)
    scene.judged = True


def _not_all_rows_take_from_one(scene: Scene) -> Iterator[Demand]:
    """Where one dict is for all rows, no row takes out of it what the others look for."""
    env = scene.make("another")
    options = scene.made_by("noting_options", "options")
    env.set_options(options)
    env.restart(scene.seed())
    should = "[]: all rows have one dict, out of which the first row takes the option of the others"
    again = options.attribute("again")
    yield expect(f"len({{0}}) < {scene.n - 1}", again, what="{0}", should=should)


@error(
    group="options",
    source=SB3_SOURCE,
    needs=("seeding",),
    after=(*_RESET_INFOS, "options_reach_env"),
)
def options_used_once(scene: Scene) -> Iterator[Demand]:
    """Options are used for one reset; no later reset has them, the rows' own resets included.

    Where no options are known, the check passes some in which every name is missing, and asks
    whether a later reset still looks for names in them. Typical mistake: they are kept after the
    reset, and apply to all episodes of the run.
    """
    if scene.subject.missing(("options",)):
        yield from _no_later_reset_looks_into_options(scene)
        return
    seed = scene.seed()
    # The rows' own resets come first. The user's options may lead to other episodes, though.
    known = scene.subject.endings and scene.subject.options is None
    ending = scene.ending() if known else None

    def later(options: Any = None) -> tuple[_Start, list[int], _Start]:
        env = telling_options(scene)
        if options is not None:
            env.set_options(options)
        step = env.restart(seed) if ending is None else env.to_an_end(ending)
        return _begun(env, step), step.ended, _start(env, seed)

    (first, ended, second), (other, _, another) = later(), later()
    by_itself, _, again = later(options_of(scene))
    for i in ended:
        yield from _starts_like(by_itself, (first, other), i, "as without options")
    for i in scene.rows:
        yield from _starts_like(again, (second, another), i, "as without options")


def _no_later_reset_looks_into_options(scene: Scene) -> Iterator[Demand]:
    if not scene.subject.asked:
        raise NotExercisedError("no reset looks for options by name")
    seed = scene.seed()
    env = scene.make()
    options = scene.made_by("noting_options", "options")
    env.set_options(options)
    env.restart(seed)
    scene.part(options, "names", "names").clear()
    if scene.subject.endings:
        env.to_an_end(scene.ending())
    else:
        env.restart(seed)
    should = "[], as these options are of an earlier reset"
    yield expect("{0} == []", options.attribute("names"), should=should)


@error(
    group="options",
    source=SB3_SOURCE,
    needs=("seeding",),
    after=(*_RESET_INFOS, "options_reach_env"),
)
def options_copied(scene: Scene) -> Iterator[Demand]:
    """`set_options` copies the dict: later changes by the caller make no difference.

    Nor does the environment change the caller's dict. SB3's base class makes deep copies. Where no
    options are known, the check passes one that means nothing, and looks whether it stays alone.
    """
    seed = scene.seed()
    if scene.subject.missing(("options",)):
        options = scene.let("options", _MEANINGLESS)
        env = scene.make()
        calls = scene.caught(env.set_options, options), scene.caught(env.reset)
        if any(call.failure is not None for call in calls):
            raise NotExercisedError("it refuses options that it does not know")
        given = constant(_MEANINGLESS)
        yield expect("equal({0}, {1})", options.value, given, should="as the caller made it")
        return
    special = _twice(scene, seed, options_of(scene))
    options = scene.let("options", options_of(scene))
    env = telling_options(scene)
    env.set_options(options)
    if scene.choose((False, True)):
        _start(env, seed)
        given = constant(options_of(scene))
        yield expect("equal({0}, {1})", options.value, given, should="as the caller made it")
        return
    options.clear()
    later = _start(env, seed)
    for i in scene.rows:
        yield from _starts_like(later, special, i, "for the options as they were given")
