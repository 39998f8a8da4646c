"""Access to the sub-environments of a VectorEnv, rendering, and its life."""

from __future__ import annotations

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.closing import demand_close_returns
from sb3compat.conformance.checks.tools.life import demand_no_growth, demand_nothing_left
from sb3compat.conformance.checks.tools.twins import start_at, step_both
from sb3compat.conformance.checks.vector_env.marks import DETERMINISTIC, SYNC, error, warning
from sb3compat.conformance.contract import BASICS, GYM_VECTOR
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.play import Play
from sb3compat.conformance.subject.interface import offers


@warning(group="sub-environments", source=SYNC, after=())
def access_works_or_is_refused(play: Play) -> None:
    """`set_attr` and `get_attr` work, or there are none.

    An environment without sub-environments does not have them, or raises NotImplementedError or
    AttributeError, and the checks of this group are skipped. Any other exception, or another number
    of values than rows, is a mistake. It must not pass for a missing ability.
    """
    play.make()
    if not all(offers(play.value("env"), name) for name in ("get_attr", "set_attr")):
        raise NotExercisedError("it has no such methods")
    play.run("values = []")
    for call in ("env.set_attr('kit_mark', 0)", "values.extend(env.get_attr('kit_mark'))"):
        play.run(f"error = caught(lambda: {call})")
        refused = "isinstance(error, (NotImplementedError, AttributeError))"
        play.demand(f"error is None or {refused}", "error", f"None or NotImplementedError, {call}")
        if play.value("error is not None"):
            return
    play.demand(f"len(values) == {play.n}", "values", f"{play.n} values, one for each row")


@warning(group="sub-environments", source=SYNC, needs=("sub_envs",))
def call_get_set_attr(play: Play) -> None:
    """`set_attr` sets a list row by row, another value in all; `get_attr`, `call` return n values.

    If the whole list goes into each row, or the order of the rows is wrong, a curriculum changes
    the wrong rows. A list whose length is not the number of rows is an error.
    """
    play.start()
    marks = play.draw(st.permutations(range(play.n)))
    play.run(f"env.set_attr('kit_mark', {list(marks)})")
    for got in ("list(env.get_attr('kit_mark'))", "list(env.call('kit_mark'))"):
        play.demand(f"{got} == {list(marks)}", got, f"{list(marks)}: one value for each row")
    play.run("env.set_attr('kit_mark', 7)")
    got = "list(env.get_attr('kit_mark'))"
    play.demand(f"{got} == {[7] * play.n}", got, f"{[7] * play.n}: the same in each row")
    play.run(f"error = caught(lambda: env.set_attr('kit_mark', {[0] * (play.n + 1)}))")
    play.demand("error is not None", "error", f"an exception: not {play.n} values")


@error(
    group="rendering", source=f"{GYM_VECTOR}#gymnasium.vector.VectorEnv.render", needs=("render",)
)
def render_n_frames(play: Play) -> None:
    """`render()` returns one RGB frame for each row.

    A single frame, or one picture of all rows, cannot be split by row: videos show the wrong
    episode. Return a tuple of arrays of shape (height, width, 3).
    """
    play.start()
    for number in range(play.draw(st.integers(1, 2))):
        if number:
            play.step()
        play.run("frames = env.render()")
        play.demand(
            f"len(frames) == {play.n}",
            "[np.shape(frame) for frame in frames]",
            f"{play.n} frames, one for each row",
        )
        for i in range(play.n):
            play.demand(
                f"np.ndim(frames[{i}]) == 3 and np.shape(frames[{i}])[2] == 3",
                f"np.shape(frames[{i}])",
                "(height, width, 3)",
                i,
            )


@error(
    group="rendering",
    source=f"{GYM_VECTOR}#gymnasium.vector.VectorEnv.render",
    needs=("seeding",),
    after=DETERMINISTIC,
)
def reading_changes_nothing(play: Play) -> None:
    """Rendering and reading attributes change nothing that later steps return.

    Videos are recorded, and attributes logged, in some runs and not in others. Typical mistakes:
    rendering draws from the generator of the environment, or makes a step of the simulator.
    """
    ways = ["env.render()"] if play.subject.capabilities["render"] else []
    if play.subject.capabilities["sub_envs"]:
        ways += ["env.get_attr('render_mode')", "env.call('action_space')"]
    ending = play.known_ending()
    if not ways or ending is None or ending.seed is None:
        raise NotExercisedError(
            "nothing is known to look at, or no end of an episode that can be repeated"
        )
    reading = f"caught(lambda: {play.draw(st.sampled_from(ways))})"
    start_at(play, ending, twin=True)
    play.run(reading)
    for _ in range(ending.steps + play.draw(st.integers(1, 4))):
        step_both(play, ending.actions)
        for name in ("obs", "rewards", "terminations", "truncations"):
            other = short(play.value(f"twin_{name}"), 80)
            should = f"{other}, as in an instance that nobody has looked at"
            play.demand(f"equal({name}, twin_{name})", name, should)
        play.run(reading)


@error(group="life", source=f"{GYM_VECTOR}#gymnasium.vector.VectorEnv.close", after=())
def close_returns(play: Play) -> None:
    """`close()` returns, in the middle of an episode too.

    Otherwise a script that has done its work never ends. Typical mistakes: `close` joins worker
    processes that wait for a command, or waits for a step that nobody has asked for.
    """
    play.make()
    play.run("caught(env.reset)")
    demand_close_returns(play)


@warning(
    group="life",
    source=f"{GYM_VECTOR}#gymnasium.vector.VectorEnv.close",
    after=(*BASICS["vector_env"], "close_returns"),
)
def close_idempotent(play: Play) -> None:
    """A second `close()` does nothing.

    Wrappers, `with` blocks and clean-up code all close, and an error there hides an earlier one.
    Return at once if the environment is closed.
    """
    play.make()
    if play.draw(st.booleans()):
        play.open()
    play.run("env.close()")
    play.run("error = caught(lambda: env.close())")
    play.demand("error is None", "error", "None: it is closed already")


@warning(group="life", source=f"{GYM_VECTOR}#gymnasium.vector.VectorWrapper")
def wrapper_deletion_keeps_env_open(play: Play) -> None:
    """A wrapper that is garbage collected does not close the environment below it.

    A caller who wraps an environment for a while, to record or to evaluate, and goes on with it
    finds it closed. Close in `close()` only. Up to Gymnasium 1.2 `VectorEnv.__del__` closes, and
    so does every vector wrapper.
    """
    play.run("import gc")
    play.make()
    play.run("from gymnasium.vector import VectorEnv, VectorWrapper")
    # What is innermost may be a simulator, which is no vector environment and closes otherwise.
    play.run("below = env.unwrapped if isinstance(env, VectorWrapper) else env")
    if not play.value("isinstance(below, VectorEnv)"):
        raise NotExercisedError("what is innermost is no VectorEnv")
    if play.value("below is env"):
        play.run("env = VectorWrapper(env)")
    play.script.opened[:] = [play.value("below")]
    play.run("del env")
    play.run("gc.collect()")
    play.demand("not below.closed", "below.closed", "False: only its wrapper was deleted")


@error(
    group="life",
    source=f"{GYM_VECTOR}#gymnasium.vector.VectorEnv.close",
    after=(*BASICS["vector_env"], "close_idempotent"),
    new=True,
)
def nothing_left_after_close(play: Play) -> None:
    """After `close()` no process, thread or shared memory of the environment is left.

    A search over hyperparameters makes hundreds of environments in one process. Typical mistakes:
    workers are told to end, but never joined; shared memory is closed, but not unlinked; a thread
    waits for work for ever.
    """
    demand_nothing_left(play)


@warning(
    group="life",
    source=SYNC,
    after=(*BASICS["vector_env"], "autoreset_mode_matches_behaviour"),
)
def memory_does_not_grow(play: Play) -> None:
    """The ends of episodes leave no memory behind, but for a few numbers.

    A training has millions of them. Typical mistake: a list of infos or last observations that
    nothing empties. The memory that Python has handed out is measured over a few hundred
    episodes, where episodes are short enough for that.
    """
    demand_no_growth(play)
