"""`ParallelVecEnv`: the stream of `DummyVecEnv`, its rows in a few worker processes."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from numbers import Real
from typing import Any, SupportsIndex

from gymnasium.envs.registration import EnvSpec

from sb3compat._convert.arguments import (
    check_fits,
    check_flag,
    check_one_of,
    check_timeout,
    plain_count,
)
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import HoldsRows, Options, RowCommands
from sb3compat._parallel.cores import usable_cores
from sb3compat._parallel.made_once import check_made_once
from sb3compat._parallel.parts import EnvFn, check_same_spaces, layouts
from sb3compat._parallel.processes import Processes
from sb3compat._parallel.source import ParallelRows, WorkerTimes
from sb3compat._parallel.workers import Workers
from sb3compat._rows.subenvs import WorkerSubEnvs
from sb3compat._to_sb3.driven import DrivenVecEnv
from sb3compat._upstream.inherited import is_exactly
from sb3compat.errors import cannot_copy, install_line, shown

_BACKENDS = ("processes", "ray")
_POLICIES = ("raise", "restart")
# More would be a sleepless worker; whoever writes it means milliseconds or microseconds.
_LONGEST_SPIN = 0.1


class ParallelVecEnv(DrivenVecEnv, HoldsRows):
    """Many environments in a few worker processes, as a Stable-Baselines3 `VecEnv`.

    For the same environments, seeds and actions, it returns what SB3's `DummyVecEnv` returns, value
    for value and dtype for dtype, with any number of workers. Each worker runs several
    environments, so there is one process for each core, not for each environment. Arrays of fixed
    size are in shared memory.

    Args:
        env_fns: Functions that make the parts: each returns a `gymnasium.Env` (one row), a
            `gymnasium.vector.VectorEnv` in any autoreset mode (its rows), or a `VecEnv` (its rows).
            The spaces of all parts must be equal except for their bounds; those of the first part
            are used. Parts of several rows keep the dtype that they return, which must be the same
            for all parts. Functions and the objects that they refer to are pickled by
            `cloudpickle`, so lambdas work.
        workers: The number of workers, at most one for each part. By default the number of cores
            that this process may use, taking container limits into account; with Ray, as many as
            the free resources of the cluster allow. Required where Ray places the actors in a
            placement group, as in a trial of Ray Tune.
        backend: Where the workers run: `"processes"` of this machine, or `"ray"` for actors of a
            Ray cluster. If Ray is not initialised yet, `ray.init()` is called. Ray keeps running
            after `close`.
        start_method: How processes are started: `"fork"`, `"forkserver"` or `"spawn"`, as in
            `multiprocessing`. By default, each is a fresh interpreter that does not import the
            main module: a script needs no `if __name__ == "__main__"` unless its functions import
            the script itself, and workers import torch only if their functions do. Workers know
            what is registered with Gymnasium when they start. On Windows, the default is `"spawn"`.
            Not for Ray.
        timeout: How many seconds a step, a reset or any other answer may take before
            `WorkerTimeoutError` is raised; also how long workers may take to make their parts, once
            they have started. None waits forever.
        on_worker_lost: What happens if a worker dies. `"raise"`: every call raises
            `WorkerError`. `"restart"`: the next step recreates its environments and ends the
            episodes of its rows, with reward 0, `TimeLimit.truncated=True`, the last known
            observation as `terminal_observation`, and `infos[i]["sb3compat.worker_lost"]=True`.
            That transition did not happen, so the results are not exact. If a reset comes first,
            it recreates the environments, and sets `reset_infos[i]["sb3compat.worker_lost"]=True`.
            The functions have to make the same rows and spaces again.
        parent_steps: Whether this process steps some of the rows as well, the last ones, while its
            workers step the others; there is then one worker less by default. The drawbacks: an
            environment that crashes ends this process, `timeout` does not apply to these rows, and
            modules that the environments import are imported here. Not for Ray.
        spin_seconds: For how many seconds this process and its workers poll for a message before
            they sleep until it arrives, such as `50e-6`. Waking up takes longer than a quick step.
            Polling needs a core for each process, so by default, processes sleep at once. After
            several unsuccessful polls, a process sleeps at once for a while. At most 0.1. No effect
            on Windows. Not for Ray.
        copy: Whether returned values stay unchanged. With False, the observations are views of the
            shared memory, which the next step overwrites. SB3's algorithms need True: they use the
            observations after the next step, and would silently learn from wrong ones.
        actor_options: Options of each Ray actor, as its `options()` takes them: `num_cpus` (1 by
            default), `num_gpus`, `memory`, `resources`, `runtime_env`, `scheduling_strategy`.
        schedule_timeout: How many seconds Ray may take to schedule the actors before `WorkerError`
            is raised. None waits forever.

    Attributes:
        row_of_part: The number of the first row of each part.
        rows_of_worker: The rows of each worker.
        num_envs: The number of rows, n.
        observation_space: The space of a single observation.
        action_space: The space of a single action.
        reset_infos: The info of the last reset of each row.

    After `seed(s)`, row i gets the seed `s + i`. A vector environment that takes one seed gets the
    seed of its first row. Options are passed by row.

    Raises:
        ValueError: If an argument is not valid.
        UnsupportedEnvError: If a function returns no environment, returns the same one as another
            function, or cannot be pickled.
        UnsupportedSpaceError: If the spaces differ, or SB3 has no way to batch one of them.
        AutoresetModeError, PartialResetError: If a vector environment in a worker cannot be
            adapted: see `to_sb3`.
        TypeError: If an argument has a wrong type.
        WorkerError: If a worker dies while it makes its parts, cannot be started, or imports the
            program's script, which starts workers again; or if a Ray actor cannot be scheduled.
        WorkerTimeoutError: If workers take longer than `timeout` to make their parts.
        ImportError: If Ray is missing.

    Example:
        >>> import gymnasium as gym, sb3compat
        >>> env = sb3compat.ParallelVecEnv([lambda: gym.make("CartPole-v1")] * 4, workers=2)
        >>> env.reset().shape
        (4, 4)
        >>> env.close()
    """

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        workers: int | None = None,
        *,
        backend: str = "processes",
        start_method: str | None = None,
        timeout: float | None = None,
        on_worker_lost: str = "raise",
        parent_steps: bool = False,
        spin_seconds: float = 0.0,
        copy: bool = True,
        actor_options: Mapping[str, Any] | None = None,
        schedule_timeout: float | None = 60.0,
    ) -> None:
        check_timeout(timeout)
        env_fns = _functions(env_fns)
        if workers is not None:
            workers = plain_count("workers", workers)
        # Refused before a process is started.
        check_one_of("backend", backend, _BACKENDS)
        methods = None, *multiprocessing.get_all_start_methods()
        check_one_of("start_method", start_method, methods)
        check_one_of("on_worker_lost", on_worker_lost, _POLICIES)
        check_flag("parent_steps", parent_steps)
        check_flag("copy", copy)
        is_mapping = actor_options is None or isinstance(actor_options, Mapping)
        wanted = "a dict or None", "Pass what ray.remote(...).options() takes."
        check_fits(is_mapping, "actor_options", actor_options, *wanted)
        check_timeout(schedule_timeout, "schedule_timeout")
        _check_spin(spin_seconds)
        self._closed = True  # until there is something to close
        restart = on_worker_lost == "restart"
        team: Workers
        if backend == "ray":
            others = {"parent_steps": parent_steps or None, "spin_seconds": spin_seconds or None}
            _check_absent(backend, start_method=start_method, **others)
            _check_ray()
            from sb3compat._parallel.ray_actors import Actors
            from sb3compat._parallel.ray_cluster import default_workers, options_for

            options = options_for(actor_options)
            shares = _shares(env_fns, workers or default_workers(options, Actors.ended_at))
            team = Actors(shares, options, timeout, schedule_timeout, restarts=restart)
        else:
            _check_absent(backend, actor_options=actor_options)
            workers = workers or max(1, usable_cores() - parent_steps)
            # The last share is stepped by this process. It is as large as the others: measured from
            # 5 to 500 us a step, equal shares were as fast as a smaller one, or faster.
            shares = _shares(env_fns, workers + parent_steps)
            team = Processes(
                shares,
                start_method,
                timeout,
                restarts=restart,
                parent_steps=parent_steps,
                spin_seconds=spin_seconds,
            )
        try:
            self._present(team, env_fns, len(shares), copy=copy, restart=restart)
        except BaseException:
            team.close(patient=False)
            raise

    def _present(
        self,
        team: Workers,
        env_fns: Sequence[EnvFn],
        count: int,
        *,
        copy: bool,
        restart: bool,
    ) -> None:
        described = team.start()
        parts = [described[worker] for worker in range(count)]
        check_made_once(env_fns, list(chain.from_iterable(part.returned for part in parts)))
        spaces, counts = parts[0].spaces, [n for part in parts for n in part.rows]
        number = 0
        for part in parts:  # each worker has compared its own
            check_same_spaces(spaces, part.spaces, number)
            number += len(part.rows)
        self.row_of_part = list(accumulate(counts, initial=0))[:-1]
        observations, actions = layouts(spaces, sum(counts))
        source = ParallelRows(team, parts, observations, copy=copy, restart=restart)
        self._parallel = source
        team.attach(observations, actions, source.rows, parts)
        self.rows_of_worker = [range(own.start, own.stop) for own in source.rows]
        self._shifted = (observations.presented, actions.presented) != spaces
        self._spec = parts[0].spec
        largest = [part.largest_seed for part in parts if part.largest_seed is not None]
        self._largest_seed = min(largest, default=None)
        shown = [part.shown_space for part in parts]
        same = all(space == shown[0] for space in shown)
        self.shown_space = Observations(shown[0], 1).presented if same else observations.presented
        metadata: Options = parts[0].metadata
        super().__init__(source, WorkerSubEnvs(source.ask), observations, actions, metadata)

    @property
    def largest_seed(self) -> int | None:
        """The largest seed that each row takes; None if all rows take any."""
        return self._largest_seed

    @property
    def spec(self) -> EnvSpec | None:
        """The `EnvSpec` of the first part; None if it has none, or one that only workers know."""
        try:
            spec = None if self._spec is None else pickle.loads(self._spec)
        except Exception:  # what it names may be installed in the workers only
            spec = None
        return spec if isinstance(spec, EnvSpec) else None

    def worker_times(self) -> WorkerTimes:
        """The time that steps take in workers and in this process; see `sb3compat.WorkerStats`.

        The first call begins to measure, which takes each step some microseconds from then on.

        Returns:
            Times since the first call, in seconds: `stepped`, how long each worker has stepped its
            rows, float64 of shape `(workers,)`; `waited`, how long this process has waited for the
            workers; and `steps`, the number of steps. `restarts` is how many lost workers were
            replaced since the environment was made. With `parent_steps`, the last worker is this
            process, and `waited` includes the time in which it steps its rows.

        Raises:
            ClosedError: If the environment was closed.
            CallOrderError: If a step is under way.
            WorkerError: If a worker has died.
        """
        self._rows(None)
        return self._parallel.times()

    def row_commands(self) -> RowCommands | None:
        """Steps rows one by one, for `to_gymnasium`.

        None if parts have several rows; if a space starts at another number, which is shifted for
        SB3; if lost workers are replaced, which takes a step of all rows; and for a subclass, or an
        object with a method replaced, which may step differently.
        """
        source: Any = self._source
        other = source.restarts or self._shifted or not is_exactly(self, ParallelVecEnv)
        if other or not source.single:
            return None
        self._was_reset = True  # whoever takes them resets the rows
        commands: RowCommands = source
        return commands

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        raise cannot_copy(self)

    def __repr__(self) -> str:
        workers = len(self.rows_of_worker)
        plural = "worker" if workers == 1 else "workers"
        return f"<{type(self).__name__}, {self.num_envs} rows in {workers} {plural}>"


def _functions(env_fns: object) -> list[EnvFn]:
    """The functions, as a list."""
    listed = list(env_fns) if isinstance(env_fns, Iterable) else []
    if not listed or not all(map(callable, listed)):
        raise ValueError(
            "Expected env_fns to be a list of functions, each of which makes an environment, got "
            f"env_fns={shown(env_fns)} ({type(env_fns).__name__}). Write "
            "[lambda: gym.make(id)] * n."
        )
    return listed


def _check_absent(backend: str, **arguments: Any) -> None:
    """Refuse arguments that only another backend takes."""
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(
                f"Expected no {name} with backend={backend!r}, got {name}={value!r}. Leave it out."
            )


def _check_spin(seconds: object) -> None:
    if isinstance(seconds, int | float) and seconds == 0:
        return
    check_timeout(seconds, "spin_seconds", "Pass 0 to sleep at once.")
    if not (isinstance(seconds, Real) and seconds <= _LONGEST_SPIN):
        raise ValueError(
            f"Expected spin_seconds to be at most {_LONGEST_SPIN}, got spin_seconds="
            f"{shown(seconds)}. It is in seconds. Pass 50e-6 for 50 microseconds."
        )


def _check_ray() -> None:
    """Say how to install Ray where it is missing."""
    try:
        import ray  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ImportError(
            "Expected Ray to be installed for backend='ray'. Install it, on each machine of the "
            f"cluster: {install_line('ray')}"
        ) from error


def _shares(env_fns: Sequence[EnvFn], workers: int) -> list[Sequence[EnvFn]]:
    """Consecutive functions for each worker; the first workers get one more if some remain."""
    workers = min(workers, len(env_fns))
    each, more = divmod(len(env_fns), workers)
    ends = accumulate((each + (worker < more) for worker in range(workers)), initial=0)
    return [env_fns[start:stop] for start, stop in pairwise(ends)]
