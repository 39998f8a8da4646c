"""What a VectorEnv is made of: its declarations, its spaces, what `reset` and `step` return."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from sb3compat.conformance.checks.tools.clauses import dtypes_fit
from sb3compat.conformance.checks.vector_env.marks import RESET, STEP, VECTOR_ENV, marked
from sb3compat.conformance.contract import BASICS, GYM_AUTORESET, GYM_VECTOR
from sb3compat.conformance.findings import short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Record
from sb3compat.conformance.scene import Scene

# Random actions by which spaces are compared.
_SAMPLES = 20

error, warning = marked(group="step", source=STEP)


@error(group="declarations", source=GYM_AUTORESET, after=())
def autoreset_mode_declared(scene: Scene) -> Iterator[Demand]:
    """`metadata["autoreset_mode"]` is a member of `gymnasium.vector.AutoresetMode`.

    Training code and Gymnasium's own wrappers read there what the observation of an ending step
    is. Without it they guess; with a string, their comparisons with the enum are false. Set it in
    the constructor, on a copy of the class's dict:
    `self.metadata = {**self.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}`.
    """
    metadata = scene.make().attribute("metadata")
    yield expect(
        "type({0}.get('autoreset_mode')).__name__ == 'AutoresetMode'",
        metadata,
        what="{0}.get('autoreset_mode')",
        should="a member of gymnasium.vector.AutoresetMode",
    )


@warning(group="declarations", source=VECTOR_ENV, after=("autoreset_mode_declared",), new=True)
def metadata_not_shared(scene: Scene) -> Iterator[Demand]:
    """Making another environment does not write into the `metadata` of the first.

    `metadata` is a dict of the class unless an instance makes its own. A constructor that writes
    its autoreset mode there changes what every other instance declares. Copy it first:
    `self.metadata = {**self.metadata, "autoreset_mode": mode}`. Gymnasium's own environments do
    so since 1.4.
    """
    env = scene.make()
    if not isinstance(env.live.metadata, MutableMapping):
        scene.judged = True  # nobody can write into it
        return
    mode = env.metadata.pop("autoreset_mode").result
    if "autoreset_mode" in env.live.metadata:
        scene.judged = True  # each look makes the dict anew
        return
    try:
        scene.make("twin")
        written = env.metadata.copy().whole
    finally:
        env.live.metadata["autoreset_mode"] = mode
    yield expect(
        "'autoreset_mode' not in {0}",
        written,
        what="'autoreset_mode' in {0}",
        should="False: the second environment wrote its mode into the metadata of the first",
    )


@error(group="spaces", source=f"{GYM_VECTOR}#attributes", after=())
def batched_spaces_match_single(scene: Scene) -> Iterator[Demand]:
    """The batched spaces hold `num_envs` rows of the single ones: structure, shapes and types.

    Networks and buffers are built from the single spaces and fed from the batched ones. Make them
    with `gymnasium.vector.utils.batch_space(single_space, num_envs)`.
    """
    env = scene.make()
    for kind in ("observation", "action"):
        single = env.attribute(f"single_{kind}_space")
        yield expect(
            f"batched({{0}}, {{1}}, {scene.n})",
            env.attribute(f"{kind}_space"),
            single,
            should=f"{scene.n} rows of env.single_{kind}_space={single.value}",
        )
    env.action_space.seed(0)
    env.single_action_space.seed(0)
    spaces = env.attribute("action_space"), env.attribute("single_action_space")
    yield expect(
        f"all(inside({{0}}, stacked({{1}}, [{{1}}.sample() for _ in range({scene.n})])) for _ in "
        f"range({_SAMPLES}))",
        *spaces,
        should="with room for any actions of env.single_action_space",
    )
    yield expect(
        f"all(inside({{1}}, part({{1}}, {{0}}.sample(), i)) for i in range({scene.n}) for _ in "
        f"range({_SAMPLES}))",
        *spaces,
        should="with actions of env.single_action_space only",
    )


@error(group="reset", source=RESET, after=())
def reset_returns_two(record: Record) -> Iterator[Demand]:
    """`reset()` returns a tuple of observations and infos.

    Interfaces older than Gym 0.26 returned the observations alone: a caller that unpacks them
    gets the first two rows. Return `(observations, {})` if there are no infos.
    """
    for reset in record.resets:
        yield expect(
            "isinstance({0}, tuple) and len({0}) == 2 and isinstance({0}[1], dict)",
            reset.whole,
            should="a tuple of observations and a dict",
        )


@error(after=("reset_returns_two",))
def step_returns_five(record: Record) -> Iterator[Demand]:
    """`step(actions)` returns observations, rewards, terminations, truncations and infos.

    Four values, with `dones` in place of the two flags, are the interface of Gym before 0.26. It
    does not tell a termination from a truncation.
    """
    for step in record.all_steps:
        yield expect(
            "isinstance({0}, tuple) and len({0}) == 5 and isinstance({0}[4], dict)",
            step.whole,
            should="a tuple of five: observations, rewards, terminations, truncations and a dict",
        )


@error(after=(*BASICS["vector_env"], "batched_spaces_match_single"))
def obs_in_batched_space(record: Record) -> Iterator[Demand]:
    """Observations of `reset` and `step` are inside `observation_space`.

    Networks and buffers are built for the structure, the shapes and the bounds of that space. A
    common mistake: the observation of an ending step is out of bounds. Widen the space, or clip.
    """
    space = record.attribute("observation_space")
    should = f"inside {record.num_envs} rows of its space: {short(space.value)}"
    for call in record.batches:
        yield expect("inside({1}, {0})", call.obs, space, should=should)


@error(after=(*BASICS["vector_env"], "obs_in_batched_space"))
def obs_dtype_matches_space(record: Record) -> Iterator[Demand]:
    """Observations have the dtype of `observation_space`.

    A dtype that is cast to it without loss is right, too: `Box.contains` decides. Buffers that are
    made from the space cast silently, so that an observation is float64 in one place and float32 in
    another. Cast once, where the observation is made.
    """
    yield from dtypes_fit(record)


@error()
def rewards_shape(record: Record) -> Iterator[Demand]:
    """`rewards` is a numeric array of shape `(num_envs,)`.

    A column of shape (n, 1) broadcasts against the flags to (n, n) without an error, and the
    losses are wrong. Rewards of several objectives need an interface of their own.
    """
    shape = f"({record.num_envs},)"
    for step in record.steps:
        yield expect(
            f"tuple(getattr({{0}}, 'shape', ())) == {shape} "
            "and np.asarray({0}).dtype.kind in 'fiu'",
            step.rewards,
            should=f"an array of numbers of shape {shape}",
        )


@error(after=("step_returns_five",))
def flags_shape(record: Record) -> Iterator[Demand]:
    """`terminations` and `truncations` are arrays of shape `(num_envs,)`.

    NumPy broadcasts a single flag, or a column, over the rows of other arrays.
    """
    shape = f"({record.num_envs},)"
    for step in record.steps:
        for flags in (step.terminations, step.truncations):
            yield expect(
                f"tuple(getattr({{0}}, 'shape', ())) == {shape}",
                flags,
                should=f"an array of shape {shape}",
            )


@error()
def flags_are_bool(record: Record) -> Iterator[Demand]:
    """`terminations` and `truncations` are arrays of bools.

    With ints, `~terminations` is -1 or -2, true either way, and as an index they select rows 0
    and 1. Cast where they are made: `.astype(bool)`.
    """
    for step in record.steps:
        for flags in (step.terminations, step.truncations):
            yield expect("np.asarray({0}).dtype == bool", flags, should="an array of bools")
