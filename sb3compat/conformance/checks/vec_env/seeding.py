"""What `seed` and `set_options` do, and when."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.comparing import alike
from sb3compat.conformance.checks.vec_env.marks import (
    DETERMINISTIC,
    error,
    warning,
)
from sb3compat.conformance.contract import SB3_SOURCE
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.script import to_source
from sb3compat.conformance.record import Record
from sb3compat.conformance.variants import again, seeded_late

_SEEDED = (*DETERMINISTIC, "seed_returns_n")
_RESET_INFOS = (*DETERMINISTIC, "reset_infos_n_dicts")
_WITH_OPTIONS = ("options", "seeding")


@error(group="seeding", source=SB3_SOURCE, needs=("seed_method",), after=())
def seed_returns_n(play: Play) -> None:
    """`seed(s)` returns a sequence of n seeds, one for each row.

    SB3's base class returns `[s, s + 1, …]`; elements may be None where an environment tells
    nothing. Typical mistake: `seed` is overridden and returns nothing.
    """
    play.make()
    play.run(f"seeds = env.seed({play.draw_seed()})")
    play.demand(
        f"seeds is not None and len(seeds) == {play.n}", "seeds", f"a list of {play.n} seeds"
    )


@error(group="seeding", source=SB3_SOURCE, needs=("seeding",), variant=again)
def same_seed_same_trajectory(record: Record, twin: Record) -> Iterator[Demand]:
    """The same seed and the same actions give the same observations, rewards and dones.

    Each row's seed goes into the reset of its environment, and all random numbers come from it.
    Typical mistakes: `seed` is not passed on; numbers are drawn from `random` or `np.random`;
    a step returns the results of another step's actions. If this check fails, the checks that
    compare two runs are skipped. For an environment that takes no seeds, declare the capability
    `seeding` as missing.
    """
    yield from alike(record, twin, "as in another instance under the same seed and actions")


@error(group="seeding", source=SB3_SOURCE, needs=("seeding",), after=_SEEDED, variant=seeded_late)
def seed_applies_at_next_reset_only(record: Record, twin: Record) -> Iterator[Demand]:
    """`seed(s)` changes nothing until the next `reset()`, the rows' own resets included.

    A seed belongs to the next call of `reset()`. Typical mistakes: `seed` resets the environment
    or its generators at once, or the seed is used up by the first row whose episode ends.
    """
    yield from alike(record, twin, "as without the call of seed, since there was no reset")


@error(group="seeding", source=SB3_SOURCE, needs=("seeding",), after=_SEEDED)
def seed_used_once(play: Play) -> None:
    """A seed is used for one reset; the next one draws something new.

    Otherwise all episodes are the same, and an agent learns one start by heart. Typical mistake:
    the seeds are not set back to None after the reset.
    """
    # If a reset moves nothing, as with a real robot, there is only one start.
    if not (play.subject.traits.seeds_vary and play.subject.traits.resets_move):
        raise NotExercisedError(
            "episodes under different seeds begin alike, or a reset moves nothing"
        )
    play.make()
    play.run(f"env.seed({play.draw_seed()})")
    play.run("first = snapshot(env.reset())")
    play.run(
        "again = []\nfor _ in range(6):\n"
        f"    env.step({play.actions()})\n    again.append(snapshot(env.reset()))"
    )
    for i in range(play.n):
        play.demand(
            f"not all(equal(row(first, {i}), row(obs, {i})) for obs in again)",
            f"row(again[0], {i})",
            "another first observation than under the seed before",
            i,
        )


@error(group="seeding", source=SB3_SOURCE, needs=("seeding",), after=_SEEDED, new=True)
def seed_works_again(play: Play) -> None:
    """A second seed on one instance is heeded as the first one was.

    Algorithms and evaluations seed an environment that has been in use. Typical mistake: the
    generator is made with the first seed, and later ones are ignored.
    """
    if not play.subject.traits.seeds_vary:
        raise NotExercisedError("episodes under different seeds begin alike")
    seed = play.draw_seed()
    play.run("again = []")
    for other in range(seed + 1, seed + 5):
        play.run("env = make_env()")
        for each in (seed, other):
            play.reset(each)
        play.run("again.append(snapshot(obs))")
    for i in range(play.n):
        play.demand(
            f"distinct([row(obs, {i}) for obs in again]) > 1",
            f"row(obs, {i})",
            f"another with another seed after the first one, {seed}",
            i,
        )


@warning(
    group="seeding", source=SB3_SOURCE, needs=("seeding",), after=(*_SEEDED, "seed_works_again")
)
def large_seeds_accepted(play: Play) -> None:
    """`seed(s)` takes any seed that fits into 32 bits, and None, which draws one.

    SB3's base class draws seeds up to 2**32 - 2 where it is given None. Typical mistake: the seed
    goes through a signed 32-bit integer.
    """
    play.make()
    seed = play.draw(st.sampled_from(["2**31", f"2**32 - {play.n}", "None"]))
    play.run(f"error = caught(lambda: (env.seed({seed}), env.reset()))")
    play.demand("error is None", "error", f"None, as {seed} is a seed")
    if seed != "2**31" or not play.subject.traits.seeds_vary:
        return
    play.run("starts = []")
    play.run(
        "for k in range(4):\n    env.seed(2**31 + 1000 * k)\n"
        "    starts.append(snapshot(env.reset()))"
    )
    play.demand("distinct(starts) > 1", "starts[0]", "another under another large seed")


@error(group="seeding", source=SB3_SOURCE, needs=("seeding", "separate_rows"), after=_SEEDED)
def seeds_differ_by_row(play: Play) -> None:
    """Row i is reset with the seed `s + i`, so that the rows differ.

    With the same seed in every row, n environments play one episode n times, and the batch holds
    no more than a single row.
    """
    if play.n < 2 or not play.subject.traits.seeds_vary:
        raise NotExercisedError("there is one row, or episodes under different seeds begin alike")
    play.make()
    seed = play.draw_seed()
    play.run(
        f"firsts = []\nfor seed in range({seed}, {seed + 6}):\n"
        "    env.seed(seed)\n    firsts.append(snapshot(env.reset()))"
    )
    for i in range(1, play.n):
        play.demand(
            f"not all(equal(row(obs, 0), row(obs, {i})) for obs in firsts)",
            f"[row(firsts[0], j) for j in (0, {i})]",
            "different, as the rows have different seeds",
            i,
        )


def _options(play: Play) -> str:
    return to_source(dict(play.subject.options or {}))


def _make_with_and_without(play: Play) -> int:
    """Assign `plain` and `special`: a reset without and one with options, under a seed."""
    seed = play.draw_seed()
    for name, options in (("plain", ""), ("special", _options(play))):
        # Twice, as infos may contain clock times.
        for each in (name, "once_more"):
            play.run("env = make_env()")
            if options:
                play.run(f"env.set_options({options})")
            _reset_as(play, each, seed)
        _keep_what_agrees(play, name)
    return seed


def _keep_what_agrees(play: Play, name: str) -> None:
    play.run(
        f"{name} = [(obs, stable(info, other)) "
        f"for (obs, info), (_, other) in zip({name}, once_more)]"
    )


def _reset_as(play: Play, name: str, seed: int) -> None:
    play.run(f"env.seed({seed})")
    play.run("obs = env.reset()")
    # SB3's wrappers have `reset_infos` of their own, which stay empty.
    wrapped = play.value("'venv' in vars(env)")
    infos = "env.unwrapped.reset_infos" if wrapped else "env.reset_infos"
    play.run(f"{name} = snapshot([(row(obs, i), {infos}[i]) for i in range({play.n})])")


@error(group="options", source=SB3_SOURCE, needs=_WITH_OPTIONS, after=_RESET_INFOS)
def options_reach_env(play: Play) -> None:
    """Options given to `set_options` reach every row's environment at the next reset.

    A dict is for all rows. The user gives the options of this check, and knows that they make a
    visible difference. Typical mistake: `reset` does not pass them on.
    """
    _make_with_and_without(play)
    for i in range(play.n):
        play.demand(
            f"not equal(special[{i}], plain[{i}])",
            f"special[{i}]",
            "another observation or info than without options",
            i,
        )


@error(
    group="options",
    source=SB3_SOURCE,
    needs=_WITH_OPTIONS,
    after=(*_RESET_INFOS, "options_reach_env"),
)
def options_per_row(play: Play) -> None:
    """A list given to `set_options` holds the options of each row.

    Typical mistakes: the list is passed on whole, or its first element to all rows.
    """
    seed = _make_with_and_without(play)
    chosen = play.draw(st.sets(st.integers(0, play.n - 1)).map(lambda rows: rows or {play.n - 1}))
    options = ", ".join(_options(play) if i in chosen else "{}" for i in range(play.n))
    play.run("env = make_env()")
    play.run(f"env.set_options([{options}])")
    _reset_as(play, "mixed", seed)
    for i in range(play.n):
        name = "special" if i in chosen else "plain"
        got = short(play.value(f"{name}[{i}]"), 80)
        given = "its options" if i in chosen else "no options"
        should = f"{got}, for {given}"
        play.demand(f"starts_like(mixed[{i}], {name}[{i}])", f"mixed[{i}]", should, i)


@error(
    group="options",
    source=SB3_SOURCE,
    needs=_WITH_OPTIONS,
    after=(*_RESET_INFOS, "options_reach_env"),
)
def options_used_once(play: Play) -> None:
    """Options are used for one reset; the next one has none.

    Typical mistake: they are kept after the reset, and apply to all episodes of the run.
    """
    seed = play.draw_seed()
    for name, options in (("plain", ""), ("once_more", ""), ("again", _options(play))):
        play.run("env = make_env()")
        if options:
            play.run(f"env.set_options({options})")
        play.run(f"env.seed({seed})")
        play.run("env.reset()")
        _reset_as(play, name, seed)
    _keep_what_agrees(play, "plain")
    for i in range(play.n):
        got = short(play.value(f"plain[{i}]"), 80)
        should = f"{got}, as without options"
        play.demand(f"starts_like(again[{i}], plain[{i}])", f"again[{i}]", should, i)


@warning(
    group="options",
    source=SB3_SOURCE,
    needs=_WITH_OPTIONS,
    after=(*_RESET_INFOS, "options_reach_env"),
)
def options_copied(play: Play) -> None:
    """`set_options` copies the dict: later changes by the caller make no difference.

    Nor does the environment change the caller's dict. SB3's base class makes deep copies.
    """
    seed = _make_with_and_without(play)
    play.run("env = make_env()")
    play.run(f"options = {_options(play)}")
    play.run("env.set_options(options)")
    if play.draw(st.booleans()):
        _reset_as(play, "later", seed)
        play.demand(f"equal(options, {_options(play)})", "options", "as the caller made it")
        return
    play.run("options.clear()")
    _reset_as(play, "later", seed)
    for i in range(play.n):
        got = short(play.value(f"special[{i}]"), 80)
        should = f"{got}, for the options as they were given"
        play.demand(f"starts_like(later[{i}], special[{i}])", f"later[{i}]", should, i)
