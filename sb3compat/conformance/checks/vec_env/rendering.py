"""Rendering, and what it must leave alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from sb3compat.conformance.checks.tools import scenes
from sb3compat.conformance.checks.tools.scenes import for_a_picture, frames_apart, frames_of_now
from sb3compat.conformance.checks.vec_env.marks import DETERMINISTIC, marked
from sb3compat.conformance.contract import SB3_SOURCE
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.scene import Recorded, Scene
from sb3compat.conformance.subject.interface import offers
from sb3compat.conformance.values import Value

equal = PRELUDE["equal"]

error, warning = marked(group="rendering", source=SB3_SOURCE)


@error(needs=("render",))
def get_images_n_frames(scene: Scene) -> Iterator[Demand]:
    """With the render mode `rgb_array`, `get_images()` gives n frames, one for each row.

    Each is an array of bytes of shape (height, width, 3), and no two share memory. `render()` tiles
    them to one image. Typical mistakes: the frames of other rows, as in a list that is back to
    front; frames that are drawn over earlier ones; a `render()` that returns the list, which no
    recorder of videos takes.
    """
    env, _ = scene.start()
    if scene.choose((False, True)):
        env.step(scene.actions())
    frames = env.get_images().whole
    yield expect(f"len({{0}}) == {scene.n}", frames, what="len({0})", should=f"{scene.n}")
    for i in scene.rows:
        yield _is_image(frames[i], i)
    yield from frames_apart(frames)
    if offers(env.live, "render"):
        yield _is_image(env.render(**for_a_picture(env)).whole)
    if scene.subject.capabilities["sub_envs"]:
        yield from _of_their_own_rows(env)
    yield from frames_of_now(env, env.get_images)


def _is_image(frame: Value, i: int | None = None) -> Demand:
    return expect(
        "isinstance({0}, np.ndarray) and {0}.dtype == np.uint8"
        " and {0}.ndim == 3 and {0}.shape[2] == 3",
        frame,
        should="an image, as an array of bytes of shape (height, width, 3)",
        row=i,
    )


def _of_their_own_rows(env: Recorded) -> Iterator[Demand]:
    """No frame is that of another row, where single environments render, and twice the same.

    A frame that differs from both may have been scaled, or written on.
    """
    scene = env.scene
    own = []
    for i in scene.rows:
        one, other = (scene.caught(env.env_method, "render", indices=[i]) for _ in range(2))
        if one.failure or other.failure or np.shape(one.result)[:1] != (1,):
            return
        if not equal(one.result, other.result):
            return
        own.append(one.asked[0])
    frames = env.get_images().whole
    for i in scene.rows:
        for j in scene.rows:
            yield expect(
                "equal({0}, {1}) or not equal({0}, {2})",
                frames[i],
                own[i],
                own[j],
                should=f"the frame of row {i}, not that of row {j}",
                row=i,
            )


@warning()
def render_mismatch_warns(scene: Scene) -> Iterator[Demand]:
    """`render(mode)` with another mode than `render_mode` warns and returns None.

    Render modes are chosen when the environment is made. An exception would end a training for
    the sake of a picture, and without a warning nobody knows why there is none.
    """
    env, _ = scene.start()
    if not offers(env.live, "render"):
        raise NotExercisedError("it has no method render")
    mode = "rgb_array" if env.attribute("render_mode").value == "ansi" else "ansi"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        picture = scene.caught(env.render, mode=mode)
    yield expect("{0} is None", picture.error, should="None, and a warning")
    should = f"None, as there are no frames of mode {mode!r}"
    yield expect("{0} is None", picture.asked, should=should)
    asked = f"warned(lambda: {picture.op.source('env')})"
    warned = Value(-1, asked, (picture.result, len(seen)), None)
    yield expect("{0}[1] > 0", warned, what="{0}[1]", should="at least one warning")


frames_of_own_rows = warning(
    needs=("render", "seeding", "separate_rows"),
    after=(*DETERMINISTIC, "get_images_n_frames", "rows_independent"),
)(scenes.frames_of_own_rows)


reading_changes_nothing = error(needs=("seeding",), after=DETERMINISTIC)(
    scenes.reading_changes_nothing
)
