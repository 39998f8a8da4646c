"""Access to the sub-environments of a VectorEnv, rendering, and its life."""

from __future__ import annotations

from collections.abc import Iterator

from gymnasium.vector import VectorEnv, VectorWrapper

from sb3compat.conformance.checks.tools import life, scenes
from sb3compat.conformance.checks.tools.scenes import (
    access_or_refusal,
    attributes_of_now,
    frames_apart,
    frames_of_now,
    returns,
)
from sb3compat.conformance.checks.vector_env.marks import CLOSE, DETERMINISTIC, RENDER, SYNC, marked
from sb3compat.conformance.contract import BASICS, GYM_VECTOR
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Call, Drawn
from sb3compat.conformance.scene import Scene

error, warning = marked(group="life", source=SYNC)


@warning(group="sub-environments", after=())
def access_works_or_is_refused(scene: Scene) -> Iterator[Demand]:
    """`set_attr` and `get_attr` work, or there are none.

    An environment without sub-environments does not have them, or raises NotImplementedError or
    AttributeError, and the checks of this group are skipped. Any other exception, or another number
    of values than rows, is a mistake, and so is a refusal to read what was set. It must not pass
    for a missing ability.
    """
    yield from access_or_refusal(scene.make())


@error(group="sub-environments", needs=("sub_envs",))
def call_get_set_attr(scene: Scene) -> Iterator[Demand]:
    """`set_attr` sets a list row by row, another value in all; `get_attr`, `call` return n values.

    If the whole list goes into each row, or the order of the rows is wrong, a curriculum changes
    the wrong rows. A tuple is taken as a list, and one whose length is not the number of rows is an
    error. `call` passes all
    arguments on to a method. `get_attr` reads the values of now, not those of an earlier call.
    """
    env, _ = scene.start()
    marks = scene.shuffled()
    listed = scene.choose((list, tuple))
    env.set_attr("kit_mark", listed(marks))
    yield returns(env.get_attr("kit_mark"), marks, "list({0})", ": one value for each row")
    called = scene.caught(env.call, "kit_mark")
    if called.failure is None:  # `call` may be for methods only
        yield returns(called, marks, "list({0})", ": one value for each row")
    mark = scene.choose((7, "r" * scene.n))
    env.set_attr("kit_mark", mark)
    yield returns(env.get_attr("kit_mark"), [mark] * scene.n, "list({0})", ": the same in each row")
    error = scene.caught(env.set_attr, "kit_mark", listed([0] * (scene.n + 1))).error
    yield expect("{0} is not None", error, should=f"an exception: not {scene.n} values")
    env.set_attr("kit_echo", Drawn(f"[partial(dict, row=i) for i in range({scene.n})]"))
    echoes = scene.caught(env.call, "kit_echo", [("a", 1)], b=2)
    # Rows in arrays may have no methods but their own: what was set is refused, or handed out.
    refused = isinstance(echoes.failure, AttributeError | NotImplementedError)
    if not (refused or _are_uncalled(echoes)):
        expected = [{"row": i, "a": 1, "b": 2} for i in scene.rows]
        yield returns(echoes, expected, "list({0})", ": a method gets all arguments")
    yield from attributes_of_now(scene, env)


def _are_uncalled(echoes: Call) -> bool:
    """Whether `call` has returned the functions themselves."""
    found = echoes.whole.value
    return isinstance(found, list | tuple) and all(map(callable, found))


@error(group="rendering", source=RENDER, needs=("render",))
def render_n_frames(scene: Scene) -> Iterator[Demand]:
    """`render()` returns one RGB frame for each row.

    A single frame, or one picture of all rows, cannot be split by row: videos show the wrong
    episode. Return a tuple of arrays of shape (height, width, 3). Typical mistake: all rows are
    drawn on one canvas, so that each frame shows the last row; frames are drawn over earlier ones.
    """
    env, _ = scene.start()
    for number in range(scene.choose((1, 2))):
        if number:
            env.step(scene.actions())
        frames = env.render().whole
        yield expect(
            f"len({{0}}) == {scene.n}",
            frames,
            what="[np.shape(frame) for frame in {0}]",
            should=f"{scene.n} frames, one for each row",
        )
        for i in scene.rows:
            yield expect(
                "np.ndim({0}) == 3 and np.shape({0})[2] == 3",
                frames[i],
                what="np.shape({0})",
                should="(height, width, 3)",
                row=i,
            )
        yield from frames_apart(frames)
    yield from frames_of_now(env, env.render)


frames_of_own_rows = warning(
    group="rendering",
    source=RENDER,
    needs=("render", "seeding", "separate_rows"),
    after=(*DETERMINISTIC, "render_n_frames", "rows_independent"),
)(scenes.frames_of_own_rows)


reading_changes_nothing = error(
    group="rendering",
    source=RENDER,
    needs=("seeding",),
    after=DETERMINISTIC,
)(scenes.reading_changes_nothing)


close_returns = error(source=CLOSE, after=())(life.close_returns)


@warning(
    source=CLOSE,
    after=(*BASICS["vector_env"], "close_returns"),
)
def close_idempotent(scene: Scene) -> Iterator[Demand]:
    """`close()` sets `closed`, and a second one does nothing.

    Wrappers, `with` blocks and clean-up code all close, and an error there hides an earlier one.
    Return at once if the environment is closed. `VectorEnv.close` does both: leave that as it is,
    and clean up in `close_extras`.
    """
    if scene.choose((False, True)):
        env, _ = scene.start()
    else:
        env = scene.make()
    env.close()
    error = scene.caught(env.close).error
    yield expect("{0} is None", error, should="None: it is closed already")
    if hasattr(env.live.unwrapped, "closed"):
        closed = env.read("unwrapped.closed")
        yield expect(
            "{0}", closed, should="True: it is closed, and deleting it closes again if not"
        )


close_closes_what_it_wraps = error(
    source=f"{GYM_VECTOR}#gymnasium.vector.VectorWrapper",
    after=(*BASICS["vector_env"], "close_returns"),
)(life.close_closes_what_it_wraps)


@warning(source=f"{GYM_VECTOR}#gymnasium.vector.VectorWrapper")
def wrapper_deletion_keeps_env_open(scene: Scene) -> Iterator[Demand]:
    """A wrapper that is garbage collected does not close the environment below it.

    A caller who wraps an environment for a while, to record or to evaluate, and goes on with it
    finds it closed. Close in `close()` only. Up to Gymnasium 1.2 `VectorEnv.__del__` closes, and
    so does every vector wrapper.
    """
    env = scene.make()
    below, wrapper = env, env
    if isinstance(env.live, VectorWrapper):
        below = scene.part(env, "unwrapped", "below")
    # What is innermost may be a simulator, which is no vector environment and closes otherwise.
    if not isinstance(below.live, VectorEnv):
        raise NotExercisedError("what is innermost is no VectorEnv")
    if below is env:
        (vector_wrapper,) = scene.imported("gymnasium.vector", "VectorWrapper")
        wrapper = scene.made_by(vector_wrapper, "wrapper", env)
    scene.delete(wrapper, kept=below)
    closed = below.attribute("closed")
    yield expect("not {0}", closed, should="False: only its wrapper was deleted")


nothing_left_after_close = error(
    source=CLOSE,
    after=(*BASICS["vector_env"], "close_idempotent"),
    new=True,
)(life.nothing_left_after_close)


memory_does_not_grow = warning(after=(*BASICS["vector_env"], "autoreset_mode_matches_behaviour"))(
    life.memory_does_not_grow
)
