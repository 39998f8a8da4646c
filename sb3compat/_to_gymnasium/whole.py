"""Drive any `VecEnv` as a whole: wrapped, custom, or an object with the same methods.

Such an environment resets ended rows within the step, and has no way to reset some rows only. So
SAME_STEP is what it does already. In DISABLED mode, the first observation of a new episode is held
until a reset of that row asks for it. NEXT_STEP is not possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from sb3compat._convert.actions import action_batch
from sb3compat._convert.arguments import counts_up
from sb3compat._convert.infos import (
    SB3_KEYS,
    TERMINAL_OBSERVATION,
    TRUNCATED,
    own_info,
    same_step_info,
)
from sb3compat._convert.observations import Observations
from sb3compat._convert.repeats import RepeatWatch
from sb3compat._convert.types import (
    Action,
    Array,
    Flags,
    Function,
    Info,
    Observation,
    Options,
    Rewards,
    RowOptions,
    Seeds,
    Transition,
    is_own_vec_env,
)
from sb3compat._ipc.subproc_vec_env import SubprocWorkers
from sb3compat._rows.vec_env_subenvs import inherits_to_base
from sb3compat._to_gymnasium.arguments import pass_seeds, rows_take_seeds
from sb3compat._to_gymnasium.presented import presented_space
from sb3compat._to_gymnasium.results import ResetInfos, checked_step
from sb3compat._upstream.vec_env import (
    derives_from,
    forget_waiting,
    keeps_infos,
    passes_seeds_and_options,
    set_waiting,
    set_waiting_options,
    shares_infos,
    waiting_options,
    waiting_seeds,
)
from sb3compat.errors import (
    CallOrderError,
    ConversionError,
    MissingFinalObservationError,
    MissingTruncationError,
    PartialResetError,
    shown,
)

_ALONE = " A VecEnv returns them alone from reset, and keeps the infos in reset_infos."


class WholeSteps:
    """Steps and resets of all rows at once.

    Args:
        vec_env: The environment.
        mode: SAME_STEP or DISABLED.
        assume_terminated: Whether an ending without `TimeLimit.truncated` counts as termination.
        require_final_obs: Whether every ending must come with its last observation.
    """

    added_keys: tuple[str, ...] = SB3_KEYS

    def __init__(
        self,
        vec_env: Any,
        mode: AutoresetMode,
        *,
        assume_terminated: bool,
        require_final_obs: bool,
    ) -> None:
        self._vec_env = vec_env
        self._base = getattr(vec_env, "unwrapped", vec_env)
        # `DummyVecEnv` writes into the dicts that the sub-environments return, and keeps these
        # dicts.
        self._marks_infos = keeps_infos(self._base, "DummyVecEnv", "buf_infos")
        self._holding = mode == AutoresetMode.DISABLED
        self._repeats = RepeatWatch(
            "Return copies from the sub-environments; or adapt the DummyVecEnv or SubprocVecEnv "
            "without wrappers, which copies them in time."
        )
        self._assume_terminated = assume_terminated
        self._require_final_obs = require_final_obs
        self._n: int = vec_env.num_envs
        self._layout = Observations(presented_space(vec_env), self._n, from_zero=False)
        self._reset_infos = ResetInfos(self._base, self._n)
        # In DISABLED mode: the last returned observations, and the first observations of ended
        # rows' next episodes.
        self._observed: list[Array] = []
        self._held: dict[int, tuple[list[Array], Info]] = {}
        self.ended = np.zeros(self._n, np.bool_)
        self._workers = None
        if derives_from(self._base, "SubprocVecEnv"):
            self._workers = SubprocWorkers(self._base)

    @property
    def broken(self) -> bool:
        """Whether a worker is lost."""
        return self._workers is not None and self._workers.lost

    def prepare(self, actions: Action) -> Action:
        """The actions as a `VecEnv` takes them."""
        return action_batch(self._vec_env.action_space, actions, self._n)

    def step(self, actions: Action) -> Transition:
        """Step all rows."""
        result = self._answer(self._call_step, actions)
        observations, rewards, ended, infos = self._checked(result)
        truncated = np.zeros(self._n, np.bool_)
        rows = ended.nonzero()[0].tolist()
        self._reset_infos.check(rows)
        for i in rows:
            truncated[i] = self._is_truncated(infos[i], i)
            infos[i] = self._end(i, observations, infos[i])
        if self._holding:
            self._observed, self.ended = [array.copy() for array in observations], ended
        return Transition(observations, rewards, ended, truncated, infos, {})

    @property
    def seeds_rows(self) -> bool:
        """Whether a reset gives each row a seed of its own; else the first one is for all rows."""
        return rows_take_seeds(self._vec_env)

    def check_reset(self, rows: list[int], seeds: Seeds, options: RowOptions) -> None:
        """Refuse a reset that the `VecEnv` cannot do.

        Raises:
            PartialResetError: If a masked reset includes a row that has not ended, or asks for a
                seed or options.
            ConversionError: If the `VecEnv` takes no options, no seed, or no seed for each row.
            CallOrderError: If it presents other observations than when it was adapted.
        """
        if self._hands_out(rows, seeds, options):
            return
        if (space := presented_space(self._vec_env)) != self._layout.presented:
            raise CallOrderError(
                f"Expected {self._vec_env} to present observations in {self._layout.presented}, as "
                f"when it was adapted, but a wrapper's settings were changed: now it is {space}. "
                "Adapt it again. Nothing was reset."
            )
        if len(rows) < self._n:
            self._refuse(rows, _asks_nothing(rows, seeds, options))
        if any(options) and not hasattr(self._vec_env, "set_options"):
            raise ConversionError(
                f"Expected options=None, as {self._vec_env} has no method set_options to pass them "
                f"to, got options={shown(_alike(options))}. Leave them out, or add that method."
            )
        if all(seed is None for seed in seeds):
            return
        if not counts_up(seeds) and not self.seeds_rows:
            raise ConversionError(
                f"Expected one int as seed, from which {self._vec_env} derives the seeds of its "
                "rows, because it cannot pass a separate seed to each row; got "
                f"seed={shown(list(seeds))}. Pass one int. Nothing was reset."
            )
        if not hasattr(self._vec_env, "seed"):
            raise ConversionError(
                f"Expected seed=None, as {self._vec_env} has no method seed to pass it to, got "
                f"seed={seeds[0]}. Leave it out, or add that method."
            )

    def _hands_out(self, rows: list[int], seeds: Seeds, options: RowOptions) -> bool:
        """Whether the held first observations of these rows are the result of this reset."""
        # Seeds and options that were set on the VecEnv wait for a reset of all rows.
        waits = len(rows) == self._n and self._has_pending()
        held = all(i in self._held for i in rows)
        return _asks_nothing(rows, seeds, options) and held and not waits

    def reset(
        self, rows: list[int], seeds: Seeds, options: RowOptions
    ) -> tuple[Observation, list[Info]]:
        """Reset all rows, or return the held first observations.

        Call `check_reset` before.
        """
        infos: list[Info] = [{} for _ in range(self._n)]
        if self._hands_out(rows, seeds, options):
            for i in rows:
                first, infos[i] = self._held.pop(i)
                for array, value in zip(self._observed, first, strict=True):
                    array[i] = value
            self.ended[rows] = False
            return self._layout.pack([array.copy() for array in self._observed]), infos
        waiting = waiting_seeds(self._base), waiting_options(self._base)
        try:
            batch = self._answer(self._call_reset, seeds, options)
        except BaseException:
            # What was set on the VecEnv waits on, as in SB3; what this reset was passed does not.
            set_waiting(self._base, *waiting)
            raise
        forget_waiting(self._base)  # also if its reset forgets to clear them
        observations = self._owned(batch)
        self.forget()
        if self._holding:
            self._observed = [array.copy() for array in observations]
        self._reset_infos.check(range(self._n))
        infos = [self._reset_infos.of(row, in_step=False) for row in range(self._n)]
        return self._layout.pack(observations), infos

    def forget(self) -> None:
        """Forget the held rows, and that they have ended."""
        self._held.clear()
        self.ended[:] = False

    settle = forget  # the `VecEnv` itself has reset them already

    def forget_options(self) -> None:
        """Forget the options that wait for the next reset, unless a user's class keeps them."""
        if inherits_to_base(self._vec_env, "set_options") and hasattr(self._base, "set_options"):
            self._base.set_options()

    def _answer(self, call: Function, *args: Any) -> Any:
        """Call the `VecEnv`, and note whether its workers are able to answer the next call.

        Raises:
            WorkerError: If a worker has died, or an earlier call was interrupted.
        """
        return call(*args) if self._workers is None else self._workers.call(call, *args)

    def _call_reset(self, seeds: Seeds, options: RowOptions) -> Observation:
        if any(options):
            self._set_options([own or {} for own in options])
        pass_seeds(self._vec_env, self._base, seeds)
        return self._vec_env.reset()

    def _call_step(self, actions: Action) -> Any:
        if hasattr(self._vec_env, "step"):
            return self._vec_env.step(actions)
        self._vec_env.step_async(actions)
        return self._vec_env.step_wait()

    def _checked(self, result: Any) -> tuple[list[Array], Rewards, Flags, list[Info]]:
        batch, rewards, ended, infos = checked_step(self._vec_env, result, self._n)
        observations = self._owned(batch)
        floats = rewards.astype(np.float64)
        if self._marks_infos and shares_infos(self._base):
            raise ConversionError(
                f"Expected each sub-environment of {self._base} to return its own info dict, got "
                "the same dict from several: DummyVecEnv reads it after all rows have stepped, so "
                f"that each row gets the infos and {TRUNCATED!r} of the last row. Return a "
                "new dict from each step; or adapt the DummyVecEnv without wrappers, which is "
                "read row by row."
            )
        # Nearly all infos contain only the flag, which has a meaning only at an ending.
        own = [
            own_info(info) if end or len(info) != 1 or TRUNCATED not in info else {}
            for info, end in zip(infos, ended.tolist(), strict=True)
        ]
        return observations, floats, ended, own

    def _owned(self, batch: Observation) -> list[Array]:
        """The leaf arrays of a batch of observations, copied, in the dtypes of the space."""
        return self._layout.batch(batch, copy=True, source=self._vec_env, advice=_ALONE)

    def _is_truncated(self, info: Info, row: int) -> bool:
        if TRUNCATED not in info and not self._assume_terminated:
            raise MissingTruncationError(
                f"Expected infos[{row}][{TRUNCATED!r}] at the end of an episode, got the keys "
                f"{shown(list(map(str, info)))} from {self._vec_env}: without it, a truncated "
                f"episode looks like a terminated one. Add info[{TRUNCATED!r}] = truncated and "
                "not terminated to the VecEnv or, if its episodes only ever terminate, pass "
                "missing_truncation='terminated'. DummyVecEnv loses it where a sub-environment "
                "returns the same info dict from each step and reset: return a new one."
            )
        return bool(info.get(TRUNCATED, False))

    def _end(self, row: int, observations: list[Array], step_info: Info) -> Info:
        """Take note of an ending, and return the info that the row gives in this step."""
        final = self._final(row, step_info)
        if final is not None:
            # What the space cannot hold, a `DummyVecEnv` has cut in the other observations.
            leaves = self._layout.cast(final, f"{TERMINAL_OBSERVATION!r} of {self._vec_env}")
            self._repeats.note(row, self._layout, final, observations)
        if not self._holding:
            own = {key: value for key, value in step_info.items() if key not in SB3_KEYS}
            return same_step_info(final, own, self._reset_infos.of(row, in_step=True))
        first = [array[row].copy() for array in observations]
        for array, value in zip(observations, leaves, strict=True):
            array[row] = value
        self._held[row] = first, self._reset_infos.of(row, in_step=True)
        return step_info

    def _final(self, row: int, info: Info) -> Observation:
        final = info.get(TERMINAL_OBSERVATION)
        if final is None:
            if self._require_final_obs:
                raise MissingFinalObservationError(
                    f"Expected infos[{row}][{TERMINAL_OBSERVATION!r}] at the end of an episode, "
                    f"got the keys {shown(list(map(str, info)))} from {self._vec_env}. Add it to "
                    "the VecEnv, before it resets the row; or, in SAME_STEP mode, pass "
                    "require_final_obs=False to go without."
                )
            return None
        what = f"{TERMINAL_OBSERVATION!r} of row {row}"
        self._layout.check_shape(final, what, TERMINAL_OBSERVATION)
        return self._layout.to_numpy(final)

    def _refuse(self, rows: list[int], plain: bool) -> None:
        running = [i for i in rows if i not in self._held]
        reason = f"rows {shown(running)} have not ended" if running else "they have been reset"
        raise PartialResetError(
            f"Expected a reset of all rows of {self._vec_env}, or of rows that have ended and "
            f"without seed or options, got reset_mask for the rows {shown(rows)}, of which {reason}"
            f"{'' if plain else ', with a seed or options'}. A VecEnv resets rows by itself when "
            "their episodes end, and has no other way to reset some of them. A plain DummyVecEnv "
            "or SubprocVecEnv does: adapt that, and put Gymnasium's wrappers on top instead."
        )

    def _has_pending(self) -> bool:
        """Whether seeds or options were set on the `VecEnv` itself, for its next reset."""
        seeds = waiting_seeds(self._base)
        return any(seed is not None for seed in seeds) or any(waiting_options(self._base))

    def _set_options(self, options: list[Options]) -> None:
        # The same objects, as in `SyncVectorEnv`: all rows draw from a generator among them.
        inherited = inherits_to_base(self._vec_env, "set_options")
        if inherited and is_own_vec_env(self._base):
            self._base.pass_options(options)
        elif inherited and passes_seeds_and_options(self._base):
            set_waiting_options(self._base, options)
        else:
            self._vec_env.set_options(_alike(options))


def _asks_nothing(rows: list[int], seeds: Seeds, options: RowOptions) -> bool:
    """Whether there are neither seeds nor options."""
    return not any(options[i] or seeds[i] is not None for i in rows)


def _alike(options: RowOptions) -> Any:
    """The one dict that is for all rows, or else the list."""
    return options[0] if all(own is options[0] for own in options) else list(options)
