"""Drive a `VecEnv` as a whole, whatever it is: wrapped, custom, or only like one.

Such an environment resets ended rows within the step, and has no way to reset some rows only. So
SAME_STEP is what it does already, DISABLED holds each new episode's beginning until it is asked
for, and NEXT_STEP cannot be had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from multiprocessing.connection import wait
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from sb3compat._convert.arrays import copy_value, to_numpy
from sb3compat._convert.infos import TERMINAL_OBSERVATION, TRUNCATED, Info, same_step_info
from sb3compat._convert.observations import Array, Observations, action_batch, cast_safely
from sb3compat._to_gymnasium.rows import Transition
from sb3compat._to_sb3.rows_sync import RepeatWatch
from sb3compat.errors import (
    ConversionError,
    MissingFinalObservationError,
    MissingTruncationError,
    PartialResetError,
    WorkerError,
)


class WholeSteps:
    """Steps and resets of all rows at once.

    Args:
        vec_env: The environment.
        mode: SAME_STEP or DISABLED.
        assume_terminated: Whether an ending that does not say what it is counts as termination.
        require_final_obs: Whether every ending must come with its last observation.
    """

    def __init__(
        self,
        vec_env: Any,
        mode: AutoresetMode,
        *,
        assume_terminated: bool,
        require_final_obs: bool,
    ) -> None:
        self._vec_env = vec_env
        # Wrappers have a `reset_infos` of their own, which nobody fills.
        self._base = getattr(vec_env, "unwrapped", vec_env)
        self._holding = mode == AutoresetMode.DISABLED
        self._repeats = RepeatWatch(
            "Return copies from the sub-environments; or adapt the DummyVecEnv or SubprocVecEnv "
            "without wrappers, which copies them in time."
        )
        self._assume_terminated = assume_terminated
        self._require_final_obs = require_final_obs
        self._n: int = vec_env.num_envs
        self._layout = Observations(vec_env.observation_space, self._n, from_zero=False)
        # In DISABLED mode: what was returned last, and how the next episodes of ended rows begin.
        self._observed: list[Array] = []
        self._held: dict[int, tuple[list[Any], Info]] = {}
        self.ended = np.zeros(self._n, np.bool_)
        self.broken = False

    def prepare(self, actions: Any) -> Any:
        """The actions as a `VecEnv` takes them."""
        return action_batch(self._vec_env.action_space, actions, self._n)

    def step(self, actions: Any) -> Transition:
        """Step all rows."""
        with self._worker_errors():
            result = self._call_step(actions)
        observations, rewards, dones, infos = self._checked(result)
        truncations = np.zeros(self._n, np.bool_)
        if dones.any():
            for i in np.flatnonzero(dones).tolist():
                truncations[i] = self._is_truncated(infos[i], i)
                infos[i] = self._end(i, observations, infos[i])
        if self._holding:
            self._observed, self.ended = [array.copy() for array in observations], dones
        return Transition(
            self._layout.pack(observations), rewards, dones & ~truncations, truncations, infos
        )

    def check_reset(
        self, rows: list[int], seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> None:
        """Refuse what the `VecEnv` has no way to do.

        Raises:
            PartialResetError: If some rows are to be reset that have not ended, or that have been
                without the seed or options asked for.
            ConversionError: If it takes no options, no seed, or none for each row.
        """
        if self._hands_out(rows, seeds, options):
            return
        if len(rows) < self._n:
            self._refuse(rows, _asks_nothing(rows, seeds, options))
        if options and not hasattr(self._vec_env, "set_options"):
            raise ConversionError(
                f"Expected options=None, as {self._vec_env} has no method set_options to pass them "
                f"to, got options={options!r:.200}."
            )
        if all(seed is None for seed in seeds):
            return
        if not self._counts_up(seeds) and not _seeds_by_row(self._vec_env):
            raise ConversionError(
                f"Expected one int as seed, from which {self._vec_env} derives those of its rows, "
                f"got seed={list(seeds)}."
            )
        if not hasattr(self._vec_env, "seed"):
            raise ConversionError(
                f"Expected seed=None, as {self._vec_env} has no method seed to pass it to, got "
                f"seed={seeds[0]}."
            )

    def _counts_up(self, seeds: Sequence[int | None]) -> bool:
        first = seeds[0]
        return first is not None and list(seeds) == [first + i for i in range(self._n)]

    def _hands_out(
        self, rows: list[int], seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> bool:
        """Whether these rows are to begin as the `VecEnv` has begun them already."""
        # Seeds and options that were set on the VecEnv wait for a reset of all rows.
        waits = len(rows) == self._n and self._has_pending()
        held = all(i in self._held for i in rows)
        return _asks_nothing(rows, seeds, options) and held and not waits

    def reset(
        self, rows: list[int], seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> tuple[Any, list[Info]]:
        """Reset all rows, or hand out the beginnings that are held.

        Only once `check_reset` has let it through.
        """
        infos: list[Info] = [{} for _ in range(self._n)]
        if self._hands_out(rows, seeds, options):
            for i in rows:
                first, infos[i] = self._held.pop(i)
                for array, value in zip(self._observed, first, strict=True):
                    array[i] = value
            self.ended[rows] = False
            return self._layout.pack([array.copy() for array in self._observed]), infos
        self._prepare_reset(seeds, options)
        try:
            with self._worker_errors():
                batch = self._vec_env.reset()
        finally:
            # Used once, also by those that do not see to it, or that have failed.
            for forget in ("_reset_seeds", "_reset_options"):
                getattr(self._base, forget, lambda: None)()
        observations = self._owned(batch)
        self.settle()
        if self._holding:
            self._observed = [array.copy() for array in observations]
        return self._layout.pack(observations), [self._reset_info(i) for i in range(self._n)]

    def settle(self) -> None:
        """Forget what is held: the `VecEnv` itself has reset those rows long ago."""
        self._held.clear()
        self.ended[:] = False

    @contextmanager
    def _worker_errors(self) -> Iterator[None]:
        """Say what has happened where a worker of a wrapped `SubprocVecEnv` has died."""
        try:
            yield
        except (EOFError, OSError) as error:
            if not hasattr(self._base, "processes"):
                raise
            self.broken = True
            # Or its `close` would wait for answers that were taken already.
            self._base.waiting = False
            raise WorkerError(
                f"A worker process of {self._base} has died without an answer; what it said last "
                "is in its own output. Close this environment and build a new one."
            ) from error

    def _call_step(self, actions: Any) -> Any:
        step = getattr(type(self._vec_env), "step", None)
        as_subproc = hasattr(self._base, "processes") and hasattr(self._base, "remotes")
        if as_subproc and getattr(step, "__module__", None) in _BASES:
            self._vec_env.step_async(actions)
            self._await_workers()
            return self._vec_env.step_wait()
        if hasattr(self._vec_env, "step"):
            return self._vec_env.step(actions)
        self._vec_env.step_async(actions)
        return self._vec_env.step_wait()

    def _await_workers(self) -> None:
        """Wait for the answers of all workers, for which SB3 waits for ever if one has ended.

        A forked worker holds the pipes of those forked after it, so that their end shows in the
        process only.
        """
        for remote, process in zip(self._base.remotes, self._base.processes, strict=True):
            if remote not in wait([remote, process.sentinel]):
                raise EOFError(f"process {process.pid} has ended")

    def _checked(
        self, result: Any
    ) -> tuple[list[Array], npt.NDArray[np.float64], npt.NDArray[np.bool_], list[Info]]:
        if not isinstance(result, tuple) or len(result) != 4:
            raise ConversionError(
                f"Expected {self._vec_env}.step to return (observations, rewards, dones, infos), "
                f"got {result!r:.200} ({type(result).__name__} of "
                f"{len(result) if isinstance(result, tuple) else 1})."
            )
        batch, rewards, dones, infos = result
        observations = self._owned(batch)
        rewards, dones = np.array(to_numpy(rewards), np.float64), np.array(to_numpy(dones))
        for name, array in (("rewards", rewards), ("dones", dones)):
            if array.shape != (self._n,):
                raise ConversionError(
                    f"Expected {name} of shape ({self._n},), one for each row, got "
                    f"{name}.shape={array.shape}."
                )
        listed = isinstance(infos, list | tuple) and len(infos) == self._n
        if not listed or not all(isinstance(info, dict) for info in infos):
            raise ConversionError(
                f"Expected infos as a list of {self._n} dicts, one for each row, got "
                f"infos={infos!r:.200} ({type(infos).__name__})."
            )
        return observations, rewards, dones.astype(np.bool_), list(infos)

    def _owned(self, batch: Any) -> list[Array]:
        """The leaf arrays of a batch of observations, copied, in the dtypes of the space."""
        arrays = []
        try:
            values = list(map(to_numpy, self._layout.unpack(batch)))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            keys = self._layout.keys
            raise ConversionError(
                f"Expected a batch of observations{f' with the keys {keys}' if keys else ''}, got "
                f"observations={batch!r:.200} ({type(batch).__name__}). A VecEnv returns them "
                "alone from reset, and keeps the infos in reset_infos."
            ) from error
        for leaf, array in zip(self._layout.leaves, values, strict=True):
            shape = (self._n, *leaf.shape)
            if array.shape != shape:
                raise ConversionError(
                    f"Expected a batch of {leaf.name.replace('_space', '')} of shape {shape} "
                    f"(num_envs, *single shape), got shape={array.shape} "
                    f"({type(batch).__name__})."
                )
            same_kind = np.can_cast(array.dtype, leaf.dtype, "same_kind")
            cast = array.astype(leaf.dtype) if same_kind else cast_safely(array, leaf.dtype)
            if cast is None:
                raise ConversionError(
                    f"Expected observations of dtype {leaf.dtype}, as {leaf.name} says, got "
                    f"dtype={array.dtype} from {self._vec_env}, which that cannot hold. Give the "
                    "wrapper that changes them an observation_space of its own."
                )
            arrays.append(cast)
        return arrays

    def _is_truncated(self, info: Info, row: int) -> bool:
        if TRUNCATED not in info and not self._assume_terminated:
            raise MissingTruncationError(
                f"Expected infos[{row}][{TRUNCATED!r}] at the end of an episode, got the keys "
                f"{sorted(map(str, info))} from {self._vec_env}: without it, nobody can tell a "
                f"truncated episode from a terminated one. Add info[{TRUNCATED!r}] = truncated and "
                "not terminated to the VecEnv or, if its episodes only ever terminate, pass "
                "missing_truncation='terminated'. DummyVecEnv loses it where a sub-environment "
                "returns the same info dict from each step and reset: return a new one."
            )
        return bool(info.get(TRUNCATED, False))

    def _end(self, row: int, observations: list[Array], step_info: Info) -> Info:
        """Take note of an ending, and return the info that the row gives in this step."""
        final = self._final(row, step_info)
        if final is not None:
            self._repeats.note(row, self._layout, final, observations)
        if not self._holding:
            return same_step_info(final, step_info, self._reset_info(row))
        first = [array[row].copy() for array in observations]
        for array, value in zip(observations, self._layout.unpack(final), strict=True):
            np.copyto(array[row : row + 1], value, casting="same_kind")
        self._held[row] = first, self._reset_info(row)
        return step_info

    def _final(self, row: int, info: Info) -> Any:
        final = info.get(TERMINAL_OBSERVATION)
        if final is None:
            if self._require_final_obs:
                raise MissingFinalObservationError(
                    f"Expected infos[{row}][{TERMINAL_OBSERVATION!r}] at the end of an episode, "
                    f"got the keys {sorted(map(str, info))} from {self._vec_env}. Add it to the "
                    "VecEnv, before it resets the row; or, in SAME_STEP mode, pass "
                    "require_final_obs=False to go without."
                )
            return None
        final = self._layout.to_numpy(final)
        self._layout.check_shape(final, f"{TERMINAL_OBSERVATION!r} of row {row}")
        return final

    def _reset_info(self, row: int) -> Info:
        infos = getattr(self._base, "reset_infos", None)
        info: Info = copy_value(dict(infos[row])) if infos is not None else {}
        return info

    def _refuse(self, rows: list[int], plain: bool) -> None:
        running = [i for i in rows if i not in self._held]
        reason = f"rows {running} have not ended" if running else "they have been reset already"
        raise PartialResetError(
            f"Expected a reset of all rows of {self._vec_env}, or of rows that have ended and "
            f"without seed or options, got reset_mask for the rows {rows}, of which {reason}"
            f"{'' if plain else ', with a seed or options'}. A VecEnv resets rows by itself when "
            "their episodes end, and has no other way to reset some of them. A plain DummyVecEnv "
            "or SubprocVecEnv does: adapt that, and put Gymnasium's wrappers on top instead."
        )

    def _has_pending(self) -> bool:
        """Whether seeds or options were set on the `VecEnv` itself, for its next reset."""
        seeds = getattr(self._base, "_seeds", [])
        return any(seed is not None for seed in seeds) or any(getattr(self._base, "_options", []))

    def _prepare_reset(self, seeds: Sequence[int | None], options: dict[str, Any] | None) -> None:
        if options:
            self._vec_env.set_options(deepcopy(options))
        if all(seed is None for seed in seeds):
            return
        if self._counts_up(seeds):
            self._vec_env.seed(seeds[0])
        else:
            self._base._seeds = list(seeds)


def _asks_nothing(
    rows: list[int], seeds: Sequence[int | None], options: dict[str, Any] | None
) -> bool:
    """Whether neither seeds nor options are asked for."""
    return not options and all(seeds[i] is None for i in rows)


def _seeds_by_row(vec_env: Any) -> bool:
    """Whether seeds are kept by row, by SB3's own `seed` and that of its wrappers."""
    while True:
        seed = getattr(type(vec_env), "seed", None)
        if getattr(seed, "__module__", None) not in _BASES:
            return False
        if not hasattr(vec_env, "venv"):
            return hasattr(vec_env, "_seeds")
        vec_env = vec_env.venv


# SB3's, and what stands in for it where it is not installed.
_BASES = ("stable_baselines3.common.vec_env.base_vec_env", "sb3compat._upstream.sb3")
