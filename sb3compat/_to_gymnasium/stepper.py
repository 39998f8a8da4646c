"""What steps and resets a `VecEnv`: the choice of the right one."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from sb3compat._convert.infos import own_info
from sb3compat._convert.options import same_value
from sb3compat._convert.types import (
    Options,
    Space,
    SubEnvs,
    holds_rows,
    is_own_vec_env,
)
from sb3compat._ipc.subproc_vec_env import GuardedWorkers, terminate
from sb3compat._rows.commands import run_command
from sb3compat._rows.subenvs import LocalSubEnvs, WorkerSubEnvs
from sb3compat._rows.vec_env_subenvs import vec_env_subenvs
from sb3compat._to_gymnasium.presented import normalizes
from sb3compat._to_gymnasium.rows import LocalRows, RowByRow, WorkerRows
from sb3compat._to_gymnasium.whole import WholeSteps
from sb3compat._upstream.vec_env import derives_from, is_plain
from sb3compat.errors import (
    AutoresetModeError,
    ConversionError,
    UnsupportedEnvError,
    UnsupportedSpaceError,
    WorkerError,
)

# Steps and resets a `VecEnv` in one autoreset mode: row by row, or as a whole.
Stepper = RowByRow | WholeSteps


def make_stepper(
    vec_env: Any,
    mode: AutoresetMode,
    *,
    missing_truncation: str | None,
    require_final_obs: bool,
) -> tuple[Stepper, SubEnvs]:
    """The stepper of this environment, and the access to its sub-environments.

    Raises:
        AutoresetModeError: If the environment cannot be driven in that mode.
        UnsupportedEnvError: If its wrappers present other rows than it has.
        ValueError: If the value of an option is not known, or does not go with the mode.
    """
    if missing_truncation not in (None, "terminated"):
        raise ConversionError(
            "Expected missing_truncation to be None or 'terminated', got "
            f"missing_truncation={missing_truncation!r} ({type(missing_truncation).__name__}). "
            "Pass one of these."
        )
    if is_plain(vec_env, "DummyVecEnv"):
        return LocalRows(vec_env, mode), LocalSubEnvs(vec_env)
    if is_plain(vec_env, "SubprocVecEnv"):
        workers = GuardedWorkers(vec_env, run_command)
        return WorkerRows(vec_env, mode, workers), WorkerSubEnvs(workers.ask)
    commands = vec_env.row_commands() if holds_rows(vec_env) else None
    if commands is not None:
        return WorkerRows(vec_env, mode, commands), WorkerSubEnvs(commands.ask)
    base = getattr(vec_env, "unwrapped", vec_env)
    # The innermost object may be a simulator, which counts no rows.
    inside = getattr(base, "num_envs", vec_env.num_envs)
    if inside != vec_env.num_envs:
        raise UnsupportedEnvError(
            f"Expected wrappers that present each row of {base} as one row, got "
            f"num_envs={vec_env.num_envs} of {vec_env} and num_envs={inside} of the VecEnv "
            "inside. Derive a class from VecEnv that holds the environment and drives it, in the "
            "place of the VecEnvWrapper."
        )
    if mode == AutoresetMode.NEXT_STEP:
        raise AutoresetModeError(
            f"Expected autoreset_mode='SameStep' or 'Disabled' for {vec_env}, got 'NextStep': its "
            "step() steps all rows, while in NEXT_STEP mode a row that is being reset must not be "
            "stepped. Only a DummyVecEnv, SubprocVecEnv or ParallelVecEnv (of single environments) "
            "without wrappers, and no subclass, can be stepped row by row: adapt that environment, "
            "and put Gymnasium's wrappers around the result instead of SB3's wrappers inside of it."
        )
    if mode == AutoresetMode.DISABLED and not require_final_obs:
        raise ConversionError(
            "Expected require_final_obs=True in DISABLED mode, where the last observation of an "
            "episode is what its last step returns, got require_final_obs=False. Use "
            "autoreset_mode='SameStep'."
        )
    steps = WholeSteps(
        vec_env,
        mode,
        assume_terminated=missing_truncation == "terminated",
        require_final_obs=require_final_obs,
    )
    return steps, vec_env_subenvs(vec_env)


def read_if_any(subenvs: SubEnvs, name: str, num_envs: int) -> list[Any] | None:
    """The attribute of each sub-environment, called if it is a method; None if that fails.

    In many hand-written environments without sub-environments, `get_attr` and similar methods are
    stubs.
    """
    try:
        return subenvs.ask(("read", name, (), {}), range(num_envs))
    except WorkerError:
        raise
    except Exception:
        return None


def metadata_of(vec_env: Any, subenvs: SubEnvs) -> Options:
    """The metadata of the sub-environments, as `SyncVectorEnv` has them, or of the `VecEnv`."""
    values = read_if_any(subenvs, "metadata", vec_env.num_envs)
    if values and isinstance(values[0], dict):
        return own_info(values[0])
    return own_info(getattr(vec_env, "metadata", None) or {})


def spec_of(vec_env: Any, subenvs: SubEnvs) -> EnvSpec | None:
    """The `EnvSpec` of the `VecEnv`, or the one that its sub-environments share, or None."""
    spec = getattr(vec_env, "spec", None)
    if spec is None and isinstance(subenvs, LocalSubEnvs):
        first, *others = subenvs.ask(("read", "spec", (), {}), range(vec_env.num_envs))
        spec = first if all(same_value(other, first) for other in others) else None
    return spec if isinstance(spec, EnvSpec) else None


def check_rows_alike(vec_env: Any, subenvs: SubEnvs, observation_space: Space) -> None:
    """Refuse sub-environments whose spaces are not those of the first one.

    Args:
        vec_env: The environment. If a wrapper declares a space, the spaces of the sub-environments
            may differ.
        subenvs: Its sub-environments.
        observation_space: The space that is presented.

    Raises:
        UnsupportedSpaceError: If one has another space; SB3 itself does not look.
    """
    base = getattr(vec_env, "unwrapped", vec_env)
    shown = {"observation_space": observation_space, "action_space": vec_env.action_space}
    if normalizes(vec_env):  # which writes its range for images into the space of the first one
        del shown["observation_space"]
    if not isinstance(subenvs, LocalSubEnvs | WorkerSubEnvs):
        return
    is_known = is_own_vec_env(base) or any(
        is_plain(base, name) for name in ("DummyVecEnv", "SubprocVecEnv")
    )
    for name, first in shown.items():
        if first is not getattr(base, name):
            continue
        spaces = subenvs.ask(("read", name, (), {}), range(vec_env.num_envs))
        if spaces[0] != first and not is_known:  # a subclass with a space of its own
            continue
        for row, space in enumerate(spaces):
            if space != first:
                raise UnsupportedSpaceError(
                    f"Expected all sub-environments of {vec_env} to have the {name} of the first "
                    f"one, {first}, got {space} in row {row}. Give them one space by a wrapper "
                    "around each."
                )


def close_vec_env(vec_env: Any, *, broken: bool) -> None:
    """Close the environment; if a worker is gone, terminate the others."""
    base = getattr(vec_env, "unwrapped", vec_env)
    if getattr(base, "closed", False) or not hasattr(vec_env, "close"):
        return
    workers = derives_from(base, "SubprocVecEnv")
    if broken and workers:
        # SB3 would wait for workers that wait until their answers are received.
        terminate(base)
    try:
        vec_env.close()  # of the wrappers, too
    except BaseException as error:
        if workers and not getattr(base, "closed", False):
            terminate(base)
        if not isinstance(error, WorkerError):
            raise
