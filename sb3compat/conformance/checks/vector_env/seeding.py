"""Seeds, options and resets of a whole VectorEnv."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.comparing import alike
from sb3compat.conformance.checks.tools.singles import obs_like_single
from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.checks.tools.twins import demand_like_twin, start_at, step_both
from sb3compat.conformance.checks.vector_env.marks import (
    DETERMINISTIC,
    RESET,
    SYNC,
    error,
    warning,
)
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.calls import opening
from sb3compat.conformance.program.script import to_source
from sb3compat.conformance.record import Record
from sb3compat.conformance.replays import beside
from sb3compat.conformance.subject.subject import Ending
from sb3compat.conformance.variants import again

_RESULTS = ("obs", "rewards", "terminations", "truncations")


@error(group="seeding", source=RESET, needs=("seeding",), variant=again)
def same_seed_same_trajectory(record: Record, twin: Record) -> Iterator[Demand]:
    """Two environments with the same seed and the same actions return the same.

    Otherwise no experiment can be repeated. A typical mistake is to draw from `random`, from
    NumPy's global generator, or from a generator that `reset(seed=...)` does not replace. Draw
    from `self.np_random`. Infos are not compared, as they often contain clock times.
    """
    yield from alike(record, twin, "as in another environment with the same seed and actions")


@warning(group="seeding", source=RESET, needs=("seeding",), after=DETERMINISTIC)
def seed_used_once(play: Play) -> None:
    """A seed is for the reset that it is given to: resets without one draw anew.

    An environment that uses the seed again in each reset plays the same episode for ever, without
    an error. Make the generator in a reset with a seed, and keep it in resets without one.
    """
    seed = play.draw_seed()
    play.make()
    play.run(f"first = deepcopy(env.reset(seed={seed})[0])")
    play.run("later = [deepcopy(env.reset()[0]) for _ in range(4)]")
    play.run(f"others = [deepcopy(env.reset(seed={seed} + k)[0]) for k in range(1, 5)]")
    if play.value("distinct([first, *others])") < 3:  # it does not start at random
        raise NotExercisedError("it does not start at random")
    play.demand(
        "distinct([first, *later]) > 1",
        "later",
        "not the same four times over, the same as after reset(seed=...)",
    )


@error(group="seeding", source=RESET, needs=("seeding",), after=DETERMINISTIC, new=True)
def seed_works_again(play: Play) -> None:
    """A second seed on one instance is heeded as the first one was.

    Evaluations seed an environment that has been in use. Typical mistake: the generator is made
    with the first seed, and later ones are ignored.
    """
    seed = play.draw_seed()
    play.run("first, again = [], []")
    for other in range(seed + 1, seed + 5):
        play.run("env = make_env()")
        play.run(f"first.append(deepcopy(env.reset(seed={other})[0]))")
        play.run("env = make_env()")
        play.run(f"env.reset(seed={seed})")
        play.run(f"again.append(deepcopy(env.reset(seed={other})[0]))")
    if play.value("distinct(first)") < 3:  # it does not start at random
        raise NotExercisedError("it does not start at random")
    should = f"another with another seed after the first one, {seed}"
    play.demand("distinct(again) > 1", "again", should)


@warning(
    group="seeding", source=RESET, needs=("seeding",), after=(*DETERMINISTIC, "seed_works_again")
)
def large_seeds_accepted(play: Play) -> None:
    """`reset(seed=s)` takes any seed that fits into 32 bits, and None, which draws one.

    Seeds that are drawn, or made of hashes, are as large. Typical mistake: the seed goes through a
    signed 32-bit integer.
    """
    play.make()
    seed = play.draw(st.sampled_from(["2**31", f"2**32 - {play.n}", "None"]))
    play.run(f"error = caught(lambda: env.reset(seed={seed}))")
    play.demand("error is None", "error", f"None, as {seed} is a seed")
    if seed != "2**31":
        return
    play.run("starts = [deepcopy(env.reset(seed=1000 * k)[0]) for k in range(4)]")
    if play.value("distinct(starts)") < 3:  # it does not start at random
        return
    play.run("large = [deepcopy(env.reset(seed=2**31 + 1000 * k)[0]) for k in range(4)]")
    play.demand("distinct(large) > 1", "large[0]", "another under another large seed")


def _varied_starts(play: Play, seed: int) -> list[int]:
    """The rows that begin differently under different seeds; `starts` in the script.

    Raises:
        NotExercisedError: If there is none.
    """
    play.run(f"starts = [deepcopy(env.reset(seed={seed} + 1000 * k)[0]) for k in range(6)]")
    rows = [i for i in range(play.n) if play.value(f"distinct({_row_of_each(play, i)})") > 3]
    if not rows:
        raise NotExercisedError("it does not start at random")
    return rows


def _row_of_each(play: Play, i: int, name: str = "starts") -> str:
    return f"[{at(play, 'obs', i)} for obs in {name}]"


@error(group="seeding", source=SYNC, needs=("seeding", "separate_rows"), after=DETERMINISTIC)
def seeds_differ_by_row(play: Play) -> None:
    """`reset(seed=s)` gives each row a seed of its own, so that the rows differ.

    With the same seed in every row, n environments play one episode n times, and the batch holds
    no more than a single row.
    """
    play.make()
    rows = _varied_starts(play, play.draw_seed())
    for i in rows[1:]:
        first, own = (_row_of_each(play, row) for row in (rows[0], i))
        should = f"other than those of row {rows[0]}, as the rows have different seeds"
        play.demand(f"not equal({own}, {first})", own, should, i)


@error(group="seeding", source=SYNC, needs=("seeding",), after=DETERMINISTIC)
def seed_list_by_row(play: Play) -> None:
    """If `reset(seed=[...])` takes a list, it holds the seed of each row.

    Typical mistake: only the first one is used, and the caller who repeats a row by its own seed
    gets another episode. An environment without seeds by row refuses a list.
    """
    play.make()
    seed = play.draw_seed()
    rows = _varied_starts(play, seed)
    i = play.draw(st.sampled_from(rows))
    before, after = list(range(seed, seed + i)), list(range(seed + i + 1, seed + play.n))
    lists = [[*before, seed + 100 * k, *after] for k in range(1, 7)]
    if play.value(f"caught(lambda: env.reset(seed={lists[0]}))") is not None:
        raise NotExercisedError("it takes no list of seeds")
    play.run(f"listed = [deepcopy(env.reset(seed=seeds)[0]) for seeds in {lists}]")
    got = _row_of_each(play, i, "listed")
    play.demand(f"distinct({got}) > 1", got, "different, as the seeds of the row are", i)


def _as_with_a_list(play: Play) -> None:
    if not play.subject.capabilities.get("row_seeds"):
        raise NotExercisedError("rows have no seeds of their own")
    seed = play.draw_seed()
    play.make()
    play.run(f"obs, infos = env.reset(seed={seed})")
    play.run("twin = make_env()")
    play.run(f"twin_obs, twin_infos = twin.reset(seed={list(range(seed, seed + play.n))})")
    play.demand("equal(obs, twin_obs)", "obs", f"{short(play.value('twin_obs'))}, as with the list")


@warning(
    group="seeding",
    source=SYNC,
    needs=("seeding",),
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


@error(
    group="reset",
    source=RESET,
    needs=("seeding", "repeatable"),
    after=(*DETERMINISTIC, "autoreset_mode_matches_behaviour"),
    new=True,
)
def reset_clears_pending_autoreset(play: Play) -> None:
    """After `reset()` every row is at the start of an episode, also one that had just ended.

    In NEXT_STEP mode an environment notes that the next step must reset a row. If `reset` keeps
    that note, the row's first action is ignored and its episode begins twice. Clear the note in
    `reset`.
    """
    rows = play.to_ending()
    _reset_like_new(play, play.ending())
    play.run(f"actions = {play.actions()}")
    if play.subject.mode == "Disabled":
        play.run("error = caught(lambda: env.step(actions))")
        play.demand("error is None", "error", "None: every row has just been reset")
    else:
        play.go_on("deepcopy(actions)")
        play.step("actions", "twin")
        for i in rows:
            for name in _RESULTS:
                demand_like_twin(play, name, i, "as in an environment without a past")


@error(group="reset", source=RESET, needs=("seeding",), after=DETERMINISTIC, new=True)
def reset_clears_counters(play: Play) -> None:
    """After `reset()` an episode has its full time limit.

    A step counter that goes on counting truncates the next episode too soon. Set it to zero in
    `reset`, also in the middle of an episode.
    """
    ending = play.ending()
    if ending.steps < 2:
        raise NotExercisedError("an episode ends in its first step")
    start_at(play, ending)
    for _ in range(min(play.draw(st.integers(1, ending.steps - 1)), 50)):
        play.run(f"actions = {ending.actions}")
        play.go_on("actions")
    _reset_like_new(play, ending)
    for _ in range(ending.steps):
        step_both(play, ending.actions)
        for name in ("terminations", "truncations"):
            why = f"{short(play.value(name))}, as in an environment that was reset before any step"
            play.demand(f"equal(twin_{name}, {name})", f"twin_{name}", why)
        if play.ended():
            return
        if not play.value("equal(obs, twin_obs)"):
            raise NotExercisedError("two instances under one seed are not alike")
    raise NotExercisedError("the episode did not end again")


def _reset_like_new(play: Play, ending: Ending) -> None:
    """Reset, and make a twin that is reset for the first time.

    Raises:
        NotExercisedError: If something lasts over a reset that may last.
    """
    if ending.seed is None:
        raise NotExercisedError("it takes no seeds")
    for line in opening(play.family, ending.setup, ending.seed):
        play.run(line)
    play.run("twin = make_env()")
    play.run(f"twin_obs, twin_infos = twin.reset(seed={ending.seed})")
    if not play.value("equal(obs, twin_obs)"):
        raise NotExercisedError("something lasts over a reset")


@warning(group="options", source=RESET)
def options_not_mutated(play: Play) -> None:
    """`reset(options=...)` leaves the caller's dict as it is.

    After a `pop` from it the caller's second reset differs from the first, and wrappers that read
    the dict later miss the option. Copy the dict first:
    `options = dict(options or {})`. Gymnasium's own environments pop `reset_mask` up to 1.4.
    """
    choices = []
    if play.subject.options is not None:
        choices.append(to_source(dict(play.subject.options)))
    if play.subject.capabilities.get("masked_reset"):
        choices.append(f"{{'reset_mask': np.ones({play.n}, bool)}}")
    play.start()
    play.run(f"options = {play.draw(st.sampled_from(choices or ['{}']))}")
    play.run("before = deepcopy(options)")
    play.run("obs, infos = env.reset(options=options)")
    play.demand("equal(options, before)", "options", f"{short(play.value('before'))}, as before")


@error(group="options", source=RESET, needs=("options", "seeding"), after=DETERMINISTIC)
def options_reach_env(play: Play) -> None:
    """`reset(options=...)` heeds options that the environment is declared to understand.

    Options that are dropped on the way to the sub-environments have no effect, without an error.
    With the same seed and actions, the results must differ from those of a reset without options.
    """
    seed = play.draw_seed()
    options = to_source(dict(play.subject.options or {}))
    play.run("env, twin = make_env(), make_env()")
    # Twice, as infos may contain clock times.
    play.run(f"_, infos = env.reset(seed={seed}, options={options})")
    play.run("before = snapshot(infos)")
    play.run(f"obs, infos = env.reset(seed={seed}, options={options})")
    play.run(f"twin_obs, twin_infos = twin.reset(seed={seed})")
    play.run(
        "differs = infos.keys() != twin_infos.keys() or "
        "not starts_like((twin_obs, twin_infos), (obs, stable(infos, before)))"
    )
    for _ in range(4):
        if play.value("differs"):
            return
        step_both(play, play.actions())
        play.run(
            "differs = not equal((obs, rewards, terminations, truncations), "
            "(twin_obs, twin_rewards, twin_terminations, twin_truncations))"
        )
    play.demand("differs", "differs", "True: options change observations or infos")
