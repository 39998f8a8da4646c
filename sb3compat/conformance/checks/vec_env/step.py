"""What `step` returns, and what comes of calling its two halves in another order."""

from __future__ import annotations

from sb3compat.conformance.checks.tools.spaces import demand_batch_in_space
from sb3compat.conformance.checks.tools.twins import Twins
from sb3compat.conformance.checks.vec_env.marks import DETERMINISTIC, error, warning
from sb3compat.conformance.contract import BASICS, SB3_GUIDE, SB3_SOURCE
from sb3compat.conformance.play import Play
from sb3compat.conformance.subject.actions import batch_source

_BASICS = BASICS["vec_env"]


@error(group="step", source=SB3_GUIDE, after=("reset_returns_obs_only",))
def step_returns_four(play: Play) -> None:
    """`step(actions)` returns observations, rewards, dones and infos.

    Gymnasium returns five values. Here `infos[i]["TimeLimit.truncated"]` says whether an episode
    was truncated.
    """
    play.start()
    play.run(f"result = env.step({play.actions()})")
    play.demand(
        "isinstance(result, tuple) and len(result) == 4",
        "len(result)",
        "4: observations, rewards, dones, infos",
    )


@error(group="step", source=SB3_SOURCE)
def rewards_shape(play: Play) -> None:
    """`rewards` is a NumPy array of n numbers.

    A list is wrong, and so are the shapes (n, 1) and (n, k): broadcast against `dones` of shape
    (n,) they become n-by-n matrices without an error.
    """
    play.start()
    for _ in play.steps():
        play.demand(
            f"isinstance(rewards, np.ndarray) and rewards.shape == ({play.n},)"
            " and rewards.dtype.kind in 'fiu'",
            "rewards",
            f"an array of numbers of shape ({play.n},)",
        )


@warning(group="step", source=SB3_SOURCE, after=(*_BASICS, "rewards_shape"))
def rewards_float32(play: Play) -> None:
    """`rewards` has the dtype float32, as in `DummyVecEnv`.

    Sums over float64 rewards differ in the last digits, so that a run is not the same as with
    `DummyVecEnv`; integer rewards raise where a value is added to them in place.
    """
    play.start()
    for _ in play.steps(3):
        play.demand("rewards.dtype == np.float32", "rewards.dtype", "float32")


@error(group="step", source=SB3_SOURCE)
def dones_shape(play: Play) -> None:
    """`dones` has n elements, each true or false.

    One flag for all rows is wrong, and so is a column, which NumPy broadcasts over the rows.
    """
    play.start()
    for _ in play.steps():
        play.demand(
            f"np.shape(dones) == ({play.n},) and all(done in (0, 1) for done in dones)",
            "dones",
            f"of shape ({play.n},), each true or false",
        )


@error(group="step", source=SB3_SOURCE, after=(*_BASICS, "dones_shape"))
def dones_bool_array(play: Play) -> None:
    """`dones` is a NumPy array of bools.

    It is used as a mask: with integers, `returns[dones] = 0` sets the rows 0 and 1 to zero, and
    `~dones` is no negation.
    """
    play.start()
    for _ in play.steps():
        play.demand(
            "isinstance(dones, np.ndarray) and dones.dtype == bool",
            "dones",
            f"a bool array of shape ({play.n},)",
        )


@error(group="step", source=SB3_GUIDE)
def infos_n_dicts(play: Play) -> None:
    """`infos` has n elements, each a dict.

    Gymnasium's vector environments have one dict of arrays instead.
    """
    play.start()
    for _ in play.steps(3):
        play.demand(
            f"isinstance(infos, (list, tuple)) and len(infos) == {play.n}"
            " and all(isinstance(info, dict) for info in infos)",
            "infos",
            f"a list of {play.n} dicts",
        )


@warning(group="step", source=SB3_SOURCE, after=(*_BASICS, "infos_n_dicts"))
def infos_is_list(play: Play) -> None:
    """`infos` is a list.

    That is its type by SB3's annotations; a wrapper that replaces one info by another fails on a
    tuple.
    """
    play.start()
    for _ in play.steps(2):
        play.demand("isinstance(infos, list)", "type(infos)", "list")


@error(group="step", source=SB3_SOURCE, after=(*_BASICS, "infos_n_dicts"))
def infos_distinct(play: Play) -> None:
    """Each row has an info dict of its own.

    Wrappers write into them: `terminal_observation` or `episode` of one row would show in others.
    Typical mistake: `[{}] * n`.
    """
    play.start()
    for _ in play.steps(3):
        play.demand(
            f"len({{id(info) for info in infos}}) == {play.n}",
            "[id(info) for info in infos]",
            f"{play.n} different dicts",
        )


@error(group="step", source=SB3_GUIDE, after=(*_BASICS, "dones_shape", "reset_obs_in_space"))
def step_obs_in_space(play: Play) -> None:
    """`step` returns a batch of n observations, each of them in `observation_space`.

    This holds before and after ends of episodes. For typical mistakes see `reset_obs_in_space`.
    """
    if play.subject.endings:
        for _ in play.through_ending():
            demand_batch_in_space(play)
        return
    play.start()
    for _ in play.steps():
        demand_batch_in_space(play)


@error(group="step", source=SB3_SOURCE, needs=("seeding",), after=DETERMINISTIC)
def step_equals_async_wait(play: Play) -> None:
    """`step(actions)` returns the results of `step_async(actions)` and `step_wait()`.

    Wrappers override the two halves, and algorithms call the whole.
    """
    twins = Twins(play, play.known_ending())
    twins.reset()
    ending = twins.ending
    for _ in range(6 if ending is None else min(ending.steps + 2, 100)):
        twins.choose()
        play.step("deepcopy(actions)")
        play.run("twin.step_async(actions)")
        play.run("twin_obs, twin_rewards, twin_dones, twin_infos = twin.step_wait()")
        twins.demand_same("as from step_async and step_wait")


@warning(group="step", source=SB3_GUIDE)
def wrong_action_count_rejected(play: Play) -> None:
    """Fewer actions than rows raise an error.

    Otherwise one action is broadcast to all rows, or some rows are not stepped, and a mistake in
    the caller's code goes unseen.
    """
    play.start()
    known = play.subject.actions
    few = batch_source("vec_env", [known[0]] * max(play.n - 1, 1))
    if play.n == 1:
        few = f"{few}[:0]"
    play.run(f"error = caught(lambda: env.step({few}))")
    play.demand("error is not None", "error", f"an exception, as there are {play.n} rows")


@warning(group="step", source=SB3_SOURCE, needs=("seeding",), after=DETERMINISTIC)
def double_step_async_rejected(play: Play) -> None:
    """A second `step_async` while one is pending raises an error, or takes the place of the first.

    If both are carried out and their results come one after the other, each `step_wait` from then
    on returns the results of an earlier step, which belong to other actions.
    """
    known = play.subject.actions
    once, then = (batch_source("vec_env", [action] * play.n) for action in (known[0], known[1]))
    twins = Twins(play)
    twins.reset()
    play.run(f"env.step_async({once})")
    play.run(f"error = caught(lambda: env.step_async({once}))")
    if play.value("error is not None"):
        return
    play.run("env.step_wait()")
    play.run(f"twin.step({once})")
    play.run(f"actions = {then}")
    play.step("deepcopy(actions)")
    play.step("actions", "twin")
    twins.demand_same("as after one step, not the result of the second step_async")


@warning(group="step", source=SB3_SOURCE)
def step_wait_without_async_rejected(play: Play) -> None:
    """`step_wait()` before any `step_async` raises an error.

    Otherwise it hangs, as there is nothing to wait for, or makes a step without actions.
    """
    play.start()
    play.run("error = within(2, env.step_wait)")
    play.demand("isinstance(error, Exception)", "error", "an exception")


@warning(group="step", source=SB3_SOURCE, needs=("seeding",), after=DETERMINISTIC)
def reset_cancels_pending_step(play: Play) -> None:
    """`reset()` cancels a pending step: nothing of it shows afterwards.

    SB3's base class demands it. Typical mistake: both results come through the same pipe, and
    `reset` returns the result of the step.
    """
    twins = Twins(play)
    twins.reset()
    for name in ("env", "twin"):
        play.run(f"{name}.seed({twins.seed + 1})")
    play.run("results = []")
    play.run(f"env.step_async({play.actions()})")
    play.run("error = caught(lambda: results.append(env.reset()))")
    play.demand("error is None", "error", "None, as the step is cancelled")
    play.run("obs, twin_obs = results[0], twin.reset()")
    twins.demand_same("the first observation of a new episode")
    twins.step()
    twins.demand_same("as if no step had been pending")
