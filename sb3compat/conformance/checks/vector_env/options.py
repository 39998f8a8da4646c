"""What the options of a VectorEnv's reset do, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sb3compat.conformance.checks.tools.comparing import calls_alike, same
from sb3compat.conformance.checks.tools.scenes import (
    RESULTS,
    not_out_of_one_dict,
    options_of,
    seeded_start,
    step_both,
    telling_options,
)
from sb3compat.conformance.checks.vector_env.marks import DETERMINISTIC, RESET, marked
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.scene import Recorded, Scene
from sb3compat.conformance.subject.subject import Ending
from sb3compat.conformance.values import Several, constant

equal, stable, starts_like = map(PRELUDE.__getitem__, ("equal", "stable", "starts_like"))

error, warning = marked(group="options", source=RESET)


@error()
def options_not_mutated(scene: Scene) -> Iterator[Demand]:
    """`reset(options=...)` leaves the caller's dict as it is.

    After a `pop` from it the caller's second reset differs from the first, and wrappers that read
    the dict later miss the option. Copy the dict first:
    `options = dict(options or {})`. Gymnasium's own environments pop `reset_mask` up to 1.4.
    """
    choices: list[dict[str, Any]] = []
    if scene.subject.options is not None:
        choices.append(dict(scene.subject.options))
    if scene.subject.capabilities.get("masked_reset"):
        choices.append({"reset_mask": np.ones(scene.n, bool)})
    env, _ = scene.start()
    given = scene.choose([*choices, {"nothing": 0}])  # what no environment looks for
    options = scene.let("options", given)
    if scene.caught(env.reset, options=options).failure is not None and given not in choices:
        raise NotExercisedError("it refuses options that it does not know")
    should = f"{short(given)}, as before"
    yield expect("equal({0}, {1})", options.value, constant(given), should=should)


@error(needs=("options", "seeding"), after=DETERMINISTIC)
def options_reach_env(scene: Scene) -> Iterator[Demand]:
    """`reset(options=...)` hands the options to the rows.

    Options that are dropped on the way to the sub-environments have no effect, without an error.
    With the same seed and actions, the results must differ from those of a reset without options.
    All rows must find them: if they share one dict, the first row must not pop an option from it.
    """
    seed = scene.seed()
    if scene.n > 1:
        shared = scene.made_by("noting_options", "shared")
        if scene.caught(scene.make("another").reset, options=shared).failure is None:
            yield not_out_of_one_dict(scene, shared)
    env, twin = telling_options(scene), telling_options(scene, "twin")
    options = options_of(scene)
    # Twice, as infos may contain clock times.
    before = env.reset(seed=seed, options=options).infos
    one, other = env.reset(seed=seed, options=options), twin.reset(seed=seed)
    pairs = [(one, other)]
    differs = other.infos.value.keys() != one.infos.value.keys() or not starts_like(
        (other.obs.value, other.infos.value),
        (one.obs.value, stable(one.infos.value, before.value)),
    )
    while not differs and len(pairs) < 5:
        one, other = step_both(env, twin, scene.actions())
        pairs.append((one, other))
        differs = not all(
            equal(getattr(one, name).value, getattr(other, name).value) for name in RESULTS
        )
    scene.judged = True
    if not differs and not scene.subject.guessed:
        yield expect(
            "not equal({0}, {1})",
            Several([one.obs for one, _ in pairs]),
            Several([other.obs for _, other in pairs]),
            should="others than without options: they change observations or infos",
        )


@warning(
    needs=("options", "seeding", "repeatable"),
    after=(*DETERMINISTIC, "options_reach_env", "reset_clears_pending_autoreset"),
)
def options_used_once(scene: Scene) -> Iterator[Demand]:
    """The options of a reset do not apply to later episodes, whoever begins them.

    Typical mistake: a simulator stays configured, as the next reset does not set it back. It is a
    warning, as Gymnasium does not say for how long options hold: the autoresets of its own
    `CartPoleVectorEnv` keep the bounds of the reset before. Where the user gives no options, the
    check passes a probe option, which only the infos of the resets show.
    """
    env, twin = telling_options(scene), telling_options(scene, "twin")
    unknown = scene.subject.options is None and not scene.disabled
    if unknown and scene.subject.endings and scene.choose((False, True)):
        yield from _not_in_the_next_episode(env, twin, scene.ending())
        return
    seed = scene.seed()
    env.reset(seed=seed, options=options_of(scene))
    one = env.reset(seed=seed)
    # Twice, as infos may contain clock times.
    again, other = twin.reset(seed=seed), twin.reset(seed=seed)
    why = "as without the options, which an earlier reset had"
    yield same(one.obs, other.obs, why)
    yield expect(
        "carries({0}, stable({1}, {2}))",
        *(one.infos, other.infos, again.infos),
        what="{0}",
        should=f"{short(stable(other.infos.value, again.infos.value))}, {why}",
    )
    for _ in range(scene.choose(range(1, 9))):
        one, other = step_both(env, twin, scene.actions())
        yield from calls_alike(twin.record, other, env.record, one, why)


def _not_in_the_next_episode(env: Recorded, twin: Recorded, ending: Ending) -> Iterator[Demand]:
    """A row that begins its next episode by itself has no options."""
    act = seeded_start(env, ending)
    env.reset(seed=ending.seed, options=options_of(env.scene))
    twin.reset(seed=ending.seed)
    ended: list[int] = []
    for _ in range(3 * ending.steps):
        one, other = step_both(env, twin, act())
        if ended or (one.ended and env.record.mode == "SameStep"):
            break
        ended = one.ended
    for i in ended or one.ended:
        got, expected = (call.infos.info(i).get("probe", 0) for call in (one, other))
        should = f"{expected.value}: the row began this episode without options"
        yield expect("{0} == {1}", got, expected, should=should, row=i)
