"""Access to the sub-environments of a VectorEnv, rendering, and its life."""

from __future__ import annotations

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.closing import demand_close_returns
from sb3compat.conformance.checks.vector_env.marks import SYNC, error, warning
from sb3compat.conformance.contract import BASICS, GYM_VECTOR
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.play import Play


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
        raise NotExercisedError
    if play.value("below is env"):
        play.run("env = VectorWrapper(env)")
    play.script.opened[:] = [play.value("below")]
    play.run("del env")
    play.run("gc.collect()")
    play.demand("not below.closed", "below.closed", "False: only its wrapper was deleted")
