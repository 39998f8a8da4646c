"""Correct VectorEnvs that a check took for broken once, each with that check.

Those of `accused.py` are VecEnvs. Someone who had read the checks wrote them, to be accused by
them.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from conformance.specimens.registry import accused
from conformance.specimens.rows_env import Form, RowEnv, RowsEnv


class IceRow(RowEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        self.x = self.start = 0.0
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        slip = self.np_random.integers(2) if self.x >= 20 else 0
        self.x += 1 + float(action) + float(slip)
        return self.observe(), -1.0 - slip, self.x >= 30, False, {}


@accused("vector_env", "rows_independent", mode="NextStep")
class SlipsOnIceOnly(RowsEnv):
    """One generator for all rows, which nobody needs in the beginning."""

    def __init__(self) -> None:
        super().__init__(Form(kind="counted", one_generator=True, sub_envs=False))

    def make_row(self, i: int) -> RowEnv:
        return IceRow(self.form, i)


@accused("vector_env", "options_reach_env", mode="NextStep")
class OneRowLooksTwice(RowsEnv):
    """There is no other row whose option it could take."""

    def __init__(self) -> None:
        super().__init__(Form(), 1)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        given = {} if options is None else copy(options)
        for _ in range(2):
            given.pop("offset", 0)
        return super().reset(seed=seed, options=options)


class WindyRow(RowEnv):
    wind = 0.0

    def step(self, action: Any) -> Any:
        self.x += self.wind
        return super().step(action)


@accused("vector_env", "one_reset_per_episode", mode="NextStep")
class DrawsTheWindBeforeItResets(RowsEnv):
    """That of all rows, also of those that it then resets."""

    def __init__(self) -> None:
        super().__init__(Form())

    def make_row(self, i: int) -> RowEnv:
        return WindyRow(self.form, i)

    def advance(self, actions: list[Any]) -> None:
        for row in self.rows:
            row.wind = float(row.np_random.uniform())  # type: ignore[attr-defined]
        super().advance(actions)


class CoinRow(RowEnv):
    coin = 0

    def step(self, action: Any) -> Any:
        _, _, *rest = super().step(1)
        self.x = float(self.coin * int(action))
        return self.observe(), 0.0, *rest


@accused("vector_env", "no_stale_result_after_error", mode="NextStep")
class TossesBeforeItRaises(RowsEnv):
    """A coin for each row, before it looks at the number of actions."""

    def __init__(self) -> None:
        super().__init__(Form(kind="counted", lengths=(30,), sub_envs=False))

    def make_row(self, i: int) -> RowEnv:
        return CoinRow(self.form, i)

    def check_actions(self, actions: Any) -> None:
        for row in self.rows:
            row.coin = int(row.np_random.integers(2))  # type: ignore[attr-defined]
        super().check_actions(actions)


class SlipperyRow(RowEnv):
    slip = 0.0

    def step(self, action: Any) -> Any:
        self.x -= self.slip
        return super().step(action)


@accused("vector_env", "reset_step_ignores_action", mode="NextStep")
class DrawsSlipsOfAllWhoRun(RowsEnv):
    """Also of those that it then resets; one generator for all rows."""

    def __init__(self) -> None:
        super().__init__(Form(one_generator=True, sub_envs=False))

    def make_row(self, i: int) -> RowEnv:
        return SlipperyRow(self.form, i)

    def advance(self, actions: list[Any]) -> None:
        for row, action in zip(self.rows, actions, strict=True):
            row.slip = float(row.np_random.uniform(0, 0.3)) if action else 0.0  # type: ignore[attr-defined]
        super().advance(actions)


class EndsElsewhereRow(RowEnv):
    """Something changes in the last step."""

    def step(self, action: Any) -> Any:
        obs, reward, *flags, info = super().step(action)
        if any(flags):
            self.end()
            obs = self.observe()
        return obs, reward, *flags, info

    def end(self) -> None:
        """Change it."""


class CountedRow(EndsElsewhereRow):
    count = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.count *= seed is None
        return super().reset(seed=seed, options=options)

    def end(self) -> None:
        self.count += 1

    def observe(self) -> Any:
        return np.array([self.x, self.count], np.float32)


@accused("vector_env", "last_obs_like_others", mode="SameStep")
class CountsItsEpisodes(RowsEnv):
    """The last observation has the new number, and so has the next first one."""

    def __init__(self) -> None:
        super().__init__(Form("SameStep", (6,), ("truncated",), sub_envs=False))

    def make_row(self, i: int) -> RowEnv:
        return CountedRow(self.form, i)


class SeasonRow(CountedRow):
    def end(self) -> None:
        self.count = int(self.np_random.integers(9))


@accused("vector_env", "last_obs_like_others", mode="SameStep")
class KnowsTheNextSeasonAtTheEnd(CountsItsEpisodes):
    """Giving up changes nothing."""

    def make_row(self, i: int) -> RowEnv:
        return SeasonRow(self.form, i)


class AttemptedRow(CountedRow):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.count += 0 < self.done < self.length
        return super().reset(seed=seed, options=options)


@accused("vector_env", "last_obs_like_others", mode="SameStep")
class CountsWhoGivesUpToo(CountsItsEpisodes):
    def make_row(self, i: int) -> RowEnv:
        return AttemptedRow(self.form, i)


class FallingRow(EndsElsewhereRow):
    def end(self) -> None:
        self.x *= 50

    def observe(self) -> Any:
        return np.array([self.x, self.done], np.float32)


@accused("vector_env", "last_obs_like_others", mode="SameStep")
class FallsFarDownAtTheEnd(RowsEnv):
    def __init__(self) -> None:
        super().__init__(Form("SameStep", (6,), ("terminated",), infos=False, sub_envs=False))

    def make_row(self, i: int) -> RowEnv:
        return FallingRow(self.form, i)


@accused("vector_env", "infos_of_the_autoreset", mode="NextStep")
class TellsTheSeedAndTheDevice(RowsEnv):
    """Where there is a seed; and the device in each reset of all rows."""

    def __init__(self) -> None:
        super().__init__(Form(infos=False, sub_envs=False))

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        super().begin(i, seed, options)
        return {"device": "cpu"} | ({} if seed is None else {"seed": seed})


@accused("vector_env", "call_get_set_attr", mode="NextStep")
class HasAttributesButNoMethods(RowsEnv):
    def __init__(self) -> None:
        super().__init__(Form())

    def get_attr(self, name: str) -> tuple[Any, ...]:
        return tuple(getattr(row, name) for row in self.rows)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        raise NotImplementedError(name)


@accused("vector_env", "metadata_not_shared", mode="NextStep")
class MetadataThatNobodyCanWrite(RowsEnv):
    def __init__(self) -> None:
        super().__init__(Form())
        self.metadata: Any = MappingProxyType(self.metadata)


class SearchingRow(RowEnv):
    places = np.zeros(3)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x, self.places = 0.0, self.np_random.uniform(-10, 10, 3)
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        slips = self.np_random.random() < 0.25
        self.x += 0.0 if slips else float(action) - 1
        self.done += 1
        return self.observe(), float(-abs(self.x)), False, self.done >= self.length, {}

    def observe(self) -> Any:
        return np.array([np.abs(self.places - self.x).min(), self.done, 0.0])


@accused("vector_env", "nothing_kept_over_ends", mode="SameStep")
class ShowsTheNearestPlaceOnly(RowsEnv):
    """A reset a step later draws two of the three places once more, and shows the same."""

    def __init__(self) -> None:
        super().__init__(Form("SameStep", (12, 15, 15), kind="counted", sub_envs=False))

    def make_row(self, i: int) -> RowEnv:
        return SearchingRow(self.form, i)


class BettingRow(RowEnv):
    """Takes no card, one or two, or bets some money: one of these."""

    def __init__(self, form: Form, row: int) -> None:
        super().__init__(form, row)
        either = spaces.OneOf((spaces.Discrete(3), spaces.Box(0, 1, (1,))))
        self.action_space: Any = spaces.Dict(move=either)

    def step(self, action: Any) -> Any:
        kind, value = action["move"]
        return super().step(value if kind == 0 else float(value[0]))


@accused("vector_env", "rows_independent", mode="NextStep")
class TakesOneOfTwoKindsOfActions(SyncVectorEnv):
    def __init__(self) -> None:
        super().__init__([partial(BettingRow, Form(), i) for i in range(3)])

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=seed, options=dict(options or {}))


class RacingRow(RowEnv):
    """It starts standing, and the reward is its speed; a crash pays nothing."""

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed, options=options)
        self.x = 0.0
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        obs, _, terminated, truncated, info = super().step(action)
        return obs, 0.0 if terminated else self.x, terminated, truncated, info


@accused("vector_env", "last_reward_like_others", mode="SameStep")
class ACrashPaysNothing(RowsEnv):
    def __init__(self) -> None:
        super().__init__(Form("SameStep", (12, 15, 15), endings=("terminated",), noise=True))

    def make_row(self, i: int) -> RowEnv:
        return RacingRow(self.form, i)


class CountingRow(RowEnv):
    """Infos have the number of its steps, over all episodes."""

    total = 0

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        obs, info = super().reset(seed=seed, options=options)
        return obs, info | {"total": self.total}

    def step(self, action: Any) -> Any:
        self.total += 1
        *results, info = super().step(action)
        return (*results, info | {"total": self.total})


@accused("vector_env", "infos_of_the_autoreset", mode="SameStep")
class CountsAllSteps(RowsEnv):
    def __init__(self) -> None:
        super().__init__(Form("SameStep", (6, 8, 9)))

    def make_row(self, i: int) -> RowEnv:
        return CountingRow(self.form, i)


@accused("vector_env", "outputs_unchanged_by_later_steps", mode="NextStep")
class WithoutCopiesOnRequest(SyncVectorEnv):
    """It fills one array again and again, as `copy=False` says."""

    def __init__(self) -> None:
        super().__init__([partial(RowEnv, Form(), i) for i in range(3)], copy=False)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=seed, options=dict(options or {}))
