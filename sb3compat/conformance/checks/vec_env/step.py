"""What `step` returns, and what comes of calling its two halves in another order."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools.clauses import batch_in_space
from sb3compat.conformance.checks.tools.comparing import alike
from sb3compat.conformance.checks.tools.scenes import Twins
from sb3compat.conformance.checks.vec_env.marks import DETERMINISTIC, marked
from sb3compat.conformance.contract import BASICS, SB3_GUIDE, SB3_SOURCE
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Record
from sb3compat.conformance.scene import Scene
from sb3compat.conformance.subject.actions import batch
from sb3compat.conformance.variants import in_two_halves

_BASICS = BASICS["vec_env"]

error, warning = marked(group="step", source=SB3_SOURCE)


@error(source=SB3_GUIDE, after=("reset_returns_obs_only",))
def step_returns_four(record: Record) -> Iterator[Demand]:
    """`step(actions)` returns observations, rewards, dones and infos.

    Gymnasium returns five values. Here `infos[i]["TimeLimit.truncated"]` says whether an episode
    was truncated.
    """
    for step in record.all_steps:
        yield expect(
            "isinstance({0}, tuple) and len({0}) == 4",
            step.whole,
            what="len({0})",
            should="4: observations, rewards, dones, infos",
        )


@error()
def rewards_shape(record: Record) -> Iterator[Demand]:
    """`rewards` is a NumPy array of n numbers.

    A list is wrong, and so are the shapes (n, 1) and (n, k): broadcast against `dones` of shape
    (n,) they become n-by-n matrices without an error.
    """
    n = record.num_envs
    for step in record.steps:
        yield expect(
            f"isinstance({{0}}, np.ndarray) and {{0}}.shape == ({n},)"
            " and {0}.dtype.kind in 'fiu'",
            step.rewards,
            should=f"an array of numbers of shape ({n},)",
        )


@warning(after=(*_BASICS, "rewards_shape"))
def rewards_float32(record: Record) -> Iterator[Demand]:
    """`rewards` has the dtype float32, as in `DummyVecEnv`.

    Sums over float64 rewards differ in the last digits, so that a run is not the same as with
    `DummyVecEnv`; integer rewards raise where a value is added to them in place.
    """
    for step in record.steps:
        yield expect("{0}.dtype == np.float32", step.rewards, what="{0}.dtype", should="float32")


@error()
def dones_shape(record: Record) -> Iterator[Demand]:
    """`dones` has n elements, each true or false.

    One flag for all rows is wrong, and so is a column, which NumPy broadcasts over the rows.
    """
    n = record.num_envs
    for step in record.steps:
        yield expect(
            f"np.shape({{0}}) == ({n},) and all(done in (0, 1) for done in {{0}})",
            step.dones,
            should=f"of shape ({n},), each true or false",
        )


@error(after=(*_BASICS, "dones_shape"))
def dones_bool_array(record: Record) -> Iterator[Demand]:
    """`dones` is a NumPy array of bools.

    It is used as a mask: with integers, `returns[dones] = 0` sets the rows 0 and 1 to zero, and
    `~dones` is no negation.
    """
    for step in record.steps:
        yield expect(
            "isinstance({0}, np.ndarray) and {0}.dtype == bool",
            step.dones,
            should=f"a bool array of shape ({record.num_envs},)",
        )


@error(source=SB3_GUIDE)
def infos_n_dicts(record: Record) -> Iterator[Demand]:
    """`infos` has n elements, each a dict.

    Gymnasium's vector environments have one dict of arrays instead.
    """
    n = record.num_envs
    for step in record.steps:
        yield expect(
            f"isinstance({{0}}, (list, tuple)) and len({{0}}) == {n}"
            " and all(isinstance(info, dict) for info in {0})",
            step.infos,
            should=f"a list of {n} dicts",
        )


@warning(after=(*_BASICS, "infos_n_dicts"))
def infos_is_list(record: Record) -> Iterator[Demand]:
    """`infos` is a list.

    That is its type by SB3's annotations; a wrapper that replaces one info by another fails on a
    tuple.
    """
    for step in record.steps:
        yield expect("isinstance({0}, list)", step.infos.held, what="type({0})", should="list")


@error(after=(*_BASICS, "infos_n_dicts"))
def infos_distinct(record: Record) -> Iterator[Demand]:
    """Each row has an info dict of its own.

    Wrappers write into them: `terminal_observation` or `episode` of one row would show in others.
    Typical mistake: `[{}] * n`.
    """
    n = record.num_envs
    for step in record.steps:
        yield expect(
            f"len({{{{id(info) for info in {{0}}}}}}) == {n}",
            step.infos.held,
            what="[id(info) for info in {0}]",
            should=f"{n} different dicts",
        )


@error(source=SB3_GUIDE, after=(*_BASICS, "dones_shape", "reset_obs_in_space"))
def step_obs_in_space(record: Record) -> Iterator[Demand]:
    """`step` returns a batch of n observations, each of them in `observation_space`.

    This holds before and after ends of episodes. For typical mistakes see `reset_obs_in_space`.
    """
    for step in record.steps:
        yield from batch_in_space(record, step)


@error(needs=("seeding",), after=DETERMINISTIC, variant=in_two_halves)
def step_equals_async_wait(record: Record, twin: Record) -> Iterator[Demand]:
    """`step(actions)` returns the results of `step_async(actions)` and `step_wait()`.

    Wrappers override the two halves, and algorithms call the whole.
    """
    yield from alike(record, twin, "as from step")


@warning(source=SB3_GUIDE)
def wrong_action_count_rejected(scene: Scene) -> Iterator[Demand]:
    """Fewer actions than rows raise an error.

    Otherwise one action is broadcast to all rows, or some rows are not stepped, and a mistake in
    the caller's code goes unseen.
    """
    env, _ = scene.start()
    count = scene.choose(list(dict.fromkeys((max(scene.n - 1, 1), 1))))
    few = batch(scene.subject, [scene.subject.actions[0]] * count)
    error = scene.caught(env.step, few[:0] if scene.n == 1 else few).error
    yield expect("{0} is not None", error, should=f"an exception, as there are {scene.n} rows")


@warning(needs=("seeding",), after=DETERMINISTIC)
def double_step_async_rejected(scene: Scene) -> Iterator[Demand]:
    """A second `step_async` while one is pending raises an error, or takes the place of the first.

    If both are carried out and their results come one after the other, each `step_wait` from then
    on returns the results of an earlier step, which belong to other actions.
    """
    known = scene.subject.actions
    once, then = (batch(scene.subject, [action] * scene.n) for action in (known[0], known[1]))
    twins = Twins(scene)
    twins.reset()
    twins.env.step_async(once)
    scene.judged = True
    if scene.caught(twins.env.step_async, once).failure is not None:
        return
    twins.env.step_wait()
    twins.twin.step(once)
    one, other = twins.env.step(then), twins.twin.step(then)
    why = "as after one step, not the result of the second step_async"
    yield from twins.same(one, other, why)


@warning()
def step_wait_without_async_rejected(scene: Scene) -> Iterator[Demand]:
    """`step_wait()` before any `step_async` raises an error.

    Otherwise it hangs, as there is nothing to wait for, or makes a step without actions.
    """
    env, _ = scene.start()
    error = env.within(2, env.step_wait).error
    yield expect("isinstance({0}, Exception)", error, should="an exception")


@error(needs=("seeding",), after=DETERMINISTIC)
def reset_cancels_pending_step(scene: Scene) -> Iterator[Demand]:
    """`reset()` cancels a pending step: nothing of it shows afterwards.

    SB3's base class demands it. Typical mistake: both results come through the same pipe, and
    `reset` returns the result of the step.
    """
    twins = Twins(scene)
    twins.reset()
    for each in (twins.env, twins.twin):
        each.seed(twins.seed + 1)
    twins.env.step_async(scene.actions())
    start = scene.caught(twins.env.reset)
    yield expect("{0} is None", start.error, should="None, as the step is cancelled")
    yield from twins.same(start, twins.twin.reset(), "the first observation of a new episode")
    yield from twins.same(*twins.step(), "as if no step had been pending")
