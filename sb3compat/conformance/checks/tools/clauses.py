"""Demands that several clauses make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gymnasium import spaces

from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import last_of
from sb3compat.conformance.values import Value

_WORDS = {"obs": "observations"}
_EQUAL_SAVE_FINAL_OBS = (
    "equal(*({{k: each[k] for k in each if k != 'final_obs'}} for each in ({0}, {1})))"
)


def parts(space: Value, batch: Value) -> Iterator[tuple[Value, Value]]:
    """The simple spaces whose batches are arrays, each with its part of a batch."""
    if not isinstance(space.value, spaces.Dict | spaces.Tuple):
        if space.value.shape is not None:
            yield space, batch
        return
    inner = space.value.spaces
    for key in inner if isinstance(inner, dict) else range(len(inner)):
        yield from parts(space[key], batch[key])


def dtypes_fit(record: Record) -> Iterator[Demand]:
    """Observations have dtypes that their space takes, as its `contains` says."""
    whole = record.attribute("observation_space")
    for call in record.batches:
        for space, obs in parts(whole, call.obs):
            yield _dtype_fits(space, obs)
    raise NotExercisedError("no part of the observations is an array")


def dtypes_of_lasts_fit(record: Record) -> Iterator[Demand]:
    """Last observations have dtypes that the space of a single observation takes."""
    single = "single_" if record.family == "vector_env" else ""
    whole = record.attribute(f"{single}observation_space")
    for end in record.endings:
        for i in end.ended:
            for space, last in parts(whole, last_of(record, end, i)):
                yield _dtype_fits(space, last, i)
    raise NotExercisedError("no episode ended, or no part of its last observation is an array")


def _dtype_fits(space: Value, obs: Value, i: int | None = None) -> Demand:
    # A Box compares dtypes, the other spaces only ask for integers.
    casting = "safe" if isinstance(space.value, spaces.Box) else "same_kind"
    return expect(
        f"np.can_cast(np.asarray({{0}}).dtype, {{1}}.dtype, {casting!r})",
        obs,
        space,
        what="{0}.dtype" if i is None else "np.asarray({0}).dtype",
        should=f"{space.value.dtype}, the dtype of its space",
        row=i,
    )


def batch_in_space(record: Record, call: Call) -> Iterator[Demand]:
    """The observations of a `VecEnv` are a batch of n observations of its space."""
    n, whole = record.num_envs, record.attribute("observation_space")
    try:
        pairs = list(parts(whole, call.obs))
    except (KeyError, IndexError, TypeError):  # another structure, which the rows show
        pairs = []
    for space, obs in pairs:
        shape = (n, *space.value.shape)
        yield expect("isinstance({0}, np.ndarray)", obs, what="type({0})", should="an array")
        yield expect(
            f"{{0}}.shape == {shape}",
            obs,
            what="{0}.shape",
            should=f"{shape}: {n} rows, each of shape {space.value.shape}",
        )
    for i in record.rows:
        yield in_space(record, call.obs.row(i), i)


def in_space(record: Record, obs: Value, i: int) -> Demand:
    """An observation of row i is one of the space of a `VecEnv`."""
    space = record.attribute("observation_space")
    bounds = bool(_unbounded(space.value, obs.value))
    should = f"in {short(space.value, 80)}"
    return expect("inside({1}, {0})", obs, space, should=should, row=i, bounds=bounds)


def _unbounded(space: Any, obs: Any) -> bool:
    try:
        return bool(PRELUDE["inside"](space, obs, bounded=False))
    except Exception:  # the demand tells
        return False


def unchanged_by(record: Record, call: Call, method: str, by: str) -> Iterator[Demand]:
    """What a call has returned is not changed by a later call of a method."""
    names = ["obs", "rewards", "dones", "terminations", "truncations"]
    # Last observations, and the infos of a VecEnv, have checks of their own.
    names += ["infos"] if record.family == "vector_env" else []
    for name in names:
        changed = record.changed_by(call, name)
        if name not in call.copies or changed not in ("", method):
            continue
        if changed or record.follows(call, method):
            value = getattr(call, name)
            should = f"the {_WORDS.get(name, name)} that were returned, not changed by {by}"
            final = name == "infos" and "final_obs" in value.value
            condition = _EQUAL_SAVE_FINAL_OBS if final else "equal({0}, {1})"
            yield expect(condition, value.held, value, should=should, like=value)


def actions_unchanged(record: Record) -> Iterator[Demand]:
    """`step` does not write into the actions that it is given.

    The caller stores the actions after the step. If they are clipped or scaled in place, an agent
    learns from actions that it did not choose.
    """
    for step in record.steps:
        was = step.actions
        yield expect("equal({0}, {1})", was.held, was, should="as the caller made them")
