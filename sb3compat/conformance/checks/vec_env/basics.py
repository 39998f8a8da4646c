"""What a VecEnv is made of: its spaces, what `reset` returns."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.clauses import batch_in_space, dtypes_fit
from sb3compat.conformance.checks.tools.spaces import arrays
from sb3compat.conformance.checks.tools.twins import Twins
from sb3compat.conformance.checks.vec_env.marks import DETERMINISTIC, error, warning
from sb3compat.conformance.contract import BASICS, SB3_GUIDE, SB3_SOURCE
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.play import Play
from sb3compat.conformance.record import Record

_BASICS = BASICS["vec_env"]


@error(group="spaces", source=SB3_SOURCE, after=())
def num_envs_positive(play: Play) -> None:
    """`num_envs` is an integer, and at least 1.

    Algorithms multiply it, make arrays of this length and iterate over it.
    """
    play.make()
    play.demand(
        "isinstance(env.num_envs, (int, np.integer)) and env.num_envs >= 1",
        "env.num_envs",
        "an integer of at least 1",
    )


@error(group="spaces", source=SB3_GUIDE, after=("reset_returns_obs_only",))
def spaces_are_single(play: Play) -> None:
    """`observation_space` and `action_space` are those of one environment, not of the batch.

    In a Gymnasium `VectorEnv` these spaces are batched, and there is a `single_observation_space`
    besides. Networks are built from these spaces: with a batched one they take all rows for one
    observation.
    """
    play.make()
    play.run("obs = env.reset()")
    for path, space in arrays(play.value("env.observation_space")):
        if space.shape[:1] != (play.n,):  # a space of one row beside observations of all
            continue
        play.demand(
            f"np.shape(obs{path}) != env.observation_space{path}.shape",
            f"env.observation_space{path}.shape",
            f"{space.shape[1:]}, without the axis of the {play.n} rows",
        )
    if play.n > 1 and not play.subject.missing(("sub_envs",)):
        # Rows with attributes need not be environments.
        play.run("asked = []")
        play.run("error = caught(lambda: asked.extend(env.get_attr('action_space')))")
        if play.value("isinstance(error, AttributeError)"):
            return
        play.demand("error is None", "error", "None, or an AttributeError where rows have no space")
        single = play.value("getattr(asked[0], 'shape', None)")
        if single is not None:
            play.demand(
                f"env.action_space.shape != {(play.n, *single)}",
                "env.action_space.shape",
                f"{single}, as in the single environments",
            )


@error(group="spaces", source=SB3_SOURCE, needs=("sub_envs",), after=())
def render_mode_uniform(play: Play) -> None:
    """All sub-environments have the same render mode, and `env.render_mode` is that one.

    Images of all rows are tiled to one; a row that renders nothing, or text, does not fit in.
    """
    play.make()
    try:
        play.value("env.get_attr('render_mode')")
    except Exception as reason:  # then it is None by SB3's rule
        raise NotExercisedError("render modes of rows cannot be reached") from reason
    play.run("modes = env.get_attr('render_mode')")
    play.demand(
        "all(mode == env.render_mode for mode in modes)",
        "modes",
        f"{play.value('env.render_mode')!r} in each row, as env.render_mode is",
    )


@warning(group="spaces", source=SB3_SOURCE, after=())
def metadata_is_dict(play: Play) -> None:
    """`metadata` is a dict.

    Video recorders look up `render_fps` and `render_modes` there.
    """
    play.make()
    play.demand("isinstance(env.metadata, dict)", "env.metadata", "a dict")


@error(group="spaces", source=SB3_SOURCE, needs=("sb3",), after=())
def subclasses_vec_env(play: Play) -> None:
    """Where Stable-Baselines3 is installed, the environment is an instance of its `VecEnv`.

    SB3's algorithms test for it, and take any other object for a single environment. If this
    check fails, the checks of working with SB3 are skipped.
    """
    play.run("from stable_baselines3.common.vec_env import VecEnv")
    play.make()
    play.demand("isinstance(env, VecEnv)", "type(env).__mro__", "with SB3's VecEnv among them")


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


@warning(group="reset", source=SB3_SOURCE)
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


@error(
    group="reset", source=SB3_SOURCE, needs=("seeding", "repeatable"), after=DETERMINISTIC, new=True
)
def reset_starts_fresh_episodes(play: Play) -> None:
    """`reset()` begins a new episode in every row, whatever happened before.

    Nothing of the episodes that it cuts off goes on: no position, no step counter, no end that
    was due. Typical mistakes: only the rows that are done are reset, or a step counter is not
    set back, so that the next episode is too short. If running statistics or the like must
    last, declare the capability `repeatable` as missing.
    """
    known = not play.subject.missing(("reference",))
    if known and play.subject.traits.continuous and play.draw(st.booleans()):
        _leaves_the_episode(play)
        return
    ending = play.known_ending()
    twins = Twins(play, ending)
    twins.reset()
    for _ in range(play.draw(st.integers(1, 5))):
        twins.choose()
        play.step("deepcopy(actions)")
        if play.ended():  # one episode more than the twin, which may matter even under a seed
            raise NotExercisedError("an episode ended too early")
    twins.reset()
    for i in range(play.n):
        play.demand(
            f"equal(row(obs, {i}), row(twin_obs, {i}))",
            f"row(obs, {i})",
            "the same as in an instance that has made no steps before",
            i,
        )
    for _ in twins.steps():
        twins.demand_same("as in an instance that has made no steps before")


def _leaves_the_episode(play: Play) -> None:
    """The same without a seed, if a reset moves the single environments."""
    seed = play.draw_seed()
    play.make()
    play.run("singles = [make() for make in reference]")
    play.run(f"env.seed({seed})")
    play.run("obs = env.reset()")
    play.run(f"alone = [single.reset(seed={seed} + i)[0] for i, single in enumerate(singles)]")
    for _ in range(play.draw(st.integers(1, 5))):
        play.run(f"actions = {play.actions()}")
        play.step("deepcopy(actions)")
        play.run("alone = [single.step(a)[0] for single, a in zip(singles, actions)]")
        if play.ended():
            raise NotExercisedError("an episode ended too early")
    play.run("before = snapshot(obs)")
    play.run("obs = env.reset()")
    play.run("starts = [single.reset()[0] for single in singles]")
    for i in range(play.n):
        same = play.value(f"close(row(before, {i}), alone[{i}])")
        if not same or play.value(f"close(starts[{i}], alone[{i}])"):
            continue
        start = short(play.value(f"starts[{i}]"), 80)
        play.demand(
            f"not equal(row(obs, {i}), row(before, {i}))",
            f"row(obs, {i})",
            f"the first observation of an episode, such as {start}, not the last one of the old",
            i,
        )
