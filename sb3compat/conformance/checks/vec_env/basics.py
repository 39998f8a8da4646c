"""What a VecEnv is made of: its spaces, what `reset` returns."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools.clauses import batch_in_space, dtypes_fit, parts
from sb3compat.conformance.checks.tools.scenes import (
    Twins,
    later_ends_alike,
    long_pasts,
    starts_alike_where_none_ended,
)
from sb3compat.conformance.checks.vec_env.marks import DETERMINISTIC, marked
from sb3compat.conformance.contract import BASICS, SB3_GUIDE, SB3_SOURCE
from sb3compat.conformance.findings import MalformedError, NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Record
from sb3compat.conformance.scene import Scene
from sb3compat.conformance.values import Value

close = PRELUDE["close"]

_BASICS = BASICS["vec_env"]

error, warning = marked(group="spaces", source=SB3_SOURCE)


@error(after=())
def num_envs_positive(scene: Scene) -> Iterator[Demand]:
    """`num_envs` is an integer, and at least 1.

    Algorithms multiply it, make arrays of this length and iterate over it.
    """
    yield expect(
        "isinstance({0}, (int, np.integer)) and {0} >= 1",
        scene.make().attribute("num_envs"),
        should="an integer of at least 1",
    )


@error(source=SB3_GUIDE, after=("reset_returns_obs_only",))
def spaces_are_single(scene: Scene) -> Iterator[Demand]:
    """`observation_space` and `action_space` are those of one environment, not of the batch.

    In a Gymnasium `VectorEnv` these spaces are batched, and there is a `single_observation_space`
    besides. Networks are built from these spaces: with a batched one they take all rows for one
    observation.
    """
    env = scene.make()
    obs = env.reset().obs
    scene.judged = True
    whole = env.attribute("observation_space")
    try:
        pairs = list(parts(whole, obs))
    except MalformedError:  # `reset_obs_in_space` reports it
        pairs = []
    for space, part in pairs:
        if space.value.shape[:1] == (scene.n,):  # or a space of one row beside observations of all
            yield expect(
                "np.shape({1}) != {0}.shape",
                space,
                part,
                what="{0}.shape",
                should=f"{space.value.shape[1:]}, without the axis of the {scene.n} rows",
            )
    if scene.n > 1 and not scene.subject.missing(("sub_envs",)):
        # Rows with attributes need not be environments.
        asked = scene.caught(env.get_attr, "action_space")
        if isinstance(asked.failure, AttributeError):
            return
        should = "None, or an AttributeError where rows have no space"
        yield expect("{0} is None", asked.error, should=should)
        single = getattr(asked.result[0], "shape", None)
        if single is not None:
            yield expect(
                f"{{0}}.shape != {(scene.n, *single)}",
                env.attribute("action_space"),
                what="{0}.shape",
                should=f"{single}, as in the single environments",
            )


@error(needs=("sub_envs",), after=())
def render_mode_uniform(scene: Scene) -> Iterator[Demand]:
    """All sub-environments have the same render mode, and `env.render_mode` is that one.

    Images of all rows are tiled to one; a row that renders nothing, or text, does not fit in.
    """
    env = scene.make()
    modes = scene.caught(env.get_attr, "render_mode")
    if modes.failure is not None:  # then it is None by SB3's rule
        raise NotExercisedError("render modes of rows cannot be reached")
    own = env.attribute("render_mode")
    yield expect(
        "all(mode == {1} for mode in {0})",
        modes.asked,
        own,
        should=f"{own.value!r} in each row, as env.render_mode is",
    )


@warning(after=())
def metadata_is_dict(scene: Scene) -> Iterator[Demand]:
    """`metadata` is a dict.

    Video recorders look up `render_fps` and `render_modes` there.
    """
    metadata = scene.make().attribute("metadata")
    yield expect("isinstance({0}, dict)", metadata, should="a dict")


@error(needs=("sb3",), after=())
def subclasses_vec_env(scene: Scene) -> Iterator[Demand]:
    """Where Stable-Baselines3 is installed, the environment is an instance of its `VecEnv`.

    SB3's algorithms test for it, and take any other object for a single environment. If this
    check fails, the checks of working with SB3 are skipped.
    """
    base = scene.imported("stable_baselines3.common.vec_env", "VecEnv")[0]
    yield expect(
        "isinstance({0}, {1})",
        scene.make().value,
        Value(-1, base.source, base.value, base.value),
        what="type({0}).__mro__",
        should="with SB3's VecEnv among them",
    )


@error(group="reset", source=SB3_GUIDE, after=())
def reset_returns_obs_only(record: Record) -> Iterator[Demand]:
    """`reset()` returns the observations alone, not a tuple of observations and infos.

    SB3's VecEnv kept the older signature when Gymnasium changed. The infos of resets are in
    `env.reset_infos`, a list with a dict for each row.
    """
    for reset in record.resets:
        yield expect(
            "not (isinstance({0}, tuple) and len({0}) == 2 and isinstance({0}[1], (dict, list)))",
            reset.whole,
            what="type({0})",
            should="the observations alone; the infos belong into env.reset_infos",
        )


@error(group="reset", source=SB3_GUIDE, after=("reset_returns_obs_only", "spaces_are_single"))
def reset_obs_in_space(record: Record) -> Iterator[Demand]:
    """`reset()` returns a batch of n observations, each of them in `observation_space`.

    For a Dict space that is a dict with exactly its keys, for a Tuple space a tuple, of arrays
    whose first axis has length n. Typical mistakes: an axis too few for n = 1, a list of
    observations, keys that the space does not have, values out of its bounds.
    """
    for reset in record.resets:
        yield from batch_in_space(record, reset)


@error(group="reset", source=SB3_GUIDE, after=(*_BASICS, "reset_obs_in_space"))
def obs_dtype_matches_space(record: Record) -> Iterator[Demand]:
    """Observations have the dtype of their space, after resets and after steps.

    A dtype that is cast to it without loss is right, too: `Box.contains` decides, as it does in
    Stable-Baselines3's `check_env`. A float64 batch for a float32 space doubles the memory of
    buffers or is converted in each step, and images that have become floats are not recognised.
    """
    yield from dtypes_fit(record)


@warning(group="reset")
def reset_infos_n_dicts(record: Record) -> Iterator[Demand]:
    """`env.reset_infos` has n elements, each a dict, after a reset and after steps.

    The infos of resets are in no other place, though SB3's algorithms do not read them.
    """
    n = record.num_envs
    for call in record.batches:
        yield expect(
            f"len({{0}}) == {n} and all(isinstance(info, dict) for info in {{0}})",
            call.reset_infos,
            should=f"{n} dicts",
        )


@error(group="reset", needs=("seeding", "repeatable"), after=DETERMINISTIC, new=True)
def reset_starts_fresh_episodes(scene: Scene) -> Iterator[Demand]:
    """`reset()` begins a new episode in every row, whatever happened before.

    Nothing of the episodes that it cuts off goes on: no position, no step counter, no end that
    was due. Typical mistakes: only the rows that are done are reset, or a step counter is not
    set back, so that the next episode is too short. If running statistics or the like must
    last, declare the capability `repeatable` as missing.
    """
    known = not scene.subject.missing(("reference",))
    if known and scene.subject.traits.continuous and scene.choose((False, True)):
        yield from _leaves_the_episode(scene)
        return
    ending = scene.ending() if scene.subject.endings else None
    twins = Twins(scene, ending)
    twins.reset()
    most = 6 if ending is None else max(6, min(ending.steps, 50))
    few = scene.choose([*range(1, most), *long_pasts(scene)])
    past = [twins.env.step(twins.actions()) for _ in range(few)]
    why = "the same as in an instance that has made no steps before"
    one, other = twins.reset()
    if any(step.ended for step in past):
        yield from starts_alike_where_none_ended(twins.env, twins.twin, twins.seed, past, why)
        return
    yield from twins.same(one, other, why)
    over = set[int]()
    for one, other in twins.steps():
        yield from twins.same(one, other, why)
        over.update(one.ended)
    if ending is not None:
        yield from later_ends_alike(twins.env, twins.twin, over, ending, twins.actions, why)


def _leaves_the_episode(scene: Scene) -> Iterator[Demand]:
    """The same without a seed, if a reset moves the single environments."""
    seed = scene.seed()
    env = scene.make()
    singles = [scene.single(i) for i in scene.rows]
    env.restart(seed)
    alone = [single.reset(seed=seed + i) for i, single in enumerate(singles)]
    for _ in range(scene.choose(range(1, 6))):
        actions = scene.actions()
        last = env.step(actions)
        alone = [single.step(a) for single, a in zip(singles, actions, strict=True)]
        if last.ended:
            raise NotExercisedError("an episode ended too early")
    first = env.reset()
    starts = [single.reset() for single in singles]
    scene.judged = True
    for i in scene.rows:
        before, start = last.obs.row(i), starts[i].obs
        if not close(before.value, alone[i].obs.value) or close(start.value, alone[i].obs.value):
            continue
        should = f"such as {short(start.value, 80)}, not the last one of the old"
        yield expect(
            "not equal({0}, {1})",
            first.obs.row(i),
            before,
            should=f"the first observation of an episode, {should}",
            row=i,
        )
