"""Correct VectorEnvs that a check took for broken once, each with that check.

Those of `accused.py` are VecEnvs. Someone who had read the checks wrote them, to be accused by
them.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from conformance.specimens.registry import Specimen, accused, enter
from conformance.specimens.rows_env import Form, RowEnv, RowsEnv

Rows = TypeVar("Rows", bound="type[RowEnv] | type[RowsEnv]")


def _form(*checks: str, mode: str = "NextStep", n: int = 3, **form: Any) -> Callable[[Rows], Rows]:
    """Enter an environment of this form, by its class or by that of its rows."""

    def register(cls: Rows) -> Rows:
        name = cls.__name__
        envs: Any = cls if issubclass(cls, RowsEnv) else type(name, (RowsEnv,), {"row": cls})
        make = partial(envs, Form(mode, **form), n)
        wrongly = frozenset(checks)
        enter(Specimen("accused", name, "vector_env", make, cls.__module__, mode, wrongly=wrongly))
        return cls

    return register


@_form("rows_independent", kind="counted", one_generator=True, sub_envs=False)
class SlipsOnIceOnly(RowEnv):
    """One generator for all rows, which nobody needs in the beginning."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        self.x = self.start = 0.0
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        slip = self.np_random.integers(2) if self.x >= 20 else 0
        self.x += 1 + float(action) + float(slip)
        return self.observe(), -1.0 - slip, self.x >= 30, False, {}


class _LoopRow(RowEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        self.x = float(self.np_random.integers(3))
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        self.x = (self.x + 1 + float(action)) % 4
        self.done += 1
        return self.observe(), -1.0, False, self.done >= 3, {}


@_form("no_reset_unasked", mode="Disabled", kind="discrete", sub_envs=False)
class WalksOnInALoop(RowsEnv):
    """If nobody resets it, and often to where a reset would lead."""

    row = _LoopRow

    def refuse_ended(self) -> None:
        self.pending[:] = False


@_form("done_step_returns_final_obs", lengths=(4,), infos=False, sub_envs=False)
class HearsNothingButNoise(RowEnv):
    """Steps draw as many numbers as a reset, but for a half of one in the beginning."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        self.np_random.integers(8)
        self.x = float(self.np_random.uniform())
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        _, *results = super().step(action)
        if self.done <= 2:
            self.np_random.integers(8)
        self.np_random.uniform()
        self.np_random.uniform()
        self.x = float(self.np_random.uniform())
        return self.observe(), *results


@_form("options_reach_env", n=1)
class OneRowLooksTwice(RowsEnv):
    """There is no other row whose option it could take."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        given = {} if options is None else copy(options)
        for _ in range(2):
            given.pop("offset", 0)
        return super().reset(seed=seed, options=options)


class DrivenRow(RowEnv):
    """It moves by itself, too."""

    drift = 0.0

    def step(self, action: Any) -> Any:
        self.x += self.drift
        return super().step(action)


@_form("one_reset_per_episode")
class DrawsTheWindBeforeItResets(RowsEnv):
    """That of all rows, also of those that it then resets."""

    row = DrivenRow

    def advance(self, actions: list[Any]) -> None:
        for row in self.rows:
            row.drift = float(row.np_random.uniform())  # type: ignore[attr-defined]
        super().advance(actions)


class CoinRow(RowEnv):
    coin = 0

    def step(self, action: Any) -> Any:
        _, _, *rest = super().step(1)
        self.x = float(self.coin * int(action))
        return self.observe(), 0.0, *rest


@_form("no_stale_result_after_error", kind="counted", lengths=(30,), sub_envs=False)
class TossesBeforeItRaises(RowsEnv):
    """A coin for each row, before it looks at the number of actions."""

    row = CoinRow

    def check_actions(self, actions: Any) -> None:
        for row in self.rows:
            row.coin = int(row.np_random.integers(2))  # type: ignore[attr-defined]
        super().check_actions(actions)


@_form("reset_step_ignores_action", one_generator=True, sub_envs=False)
class DrawsSlipsOfAllWhoRun(RowsEnv):
    """Also of those that it then resets; one generator for all rows."""

    row = DrivenRow

    def advance(self, actions: list[Any]) -> None:
        for row, action in zip(self.rows, actions, strict=True):
            slip = float(row.np_random.uniform(0, 0.3)) if action else 0.0
            row.drift = -slip  # type: ignore[attr-defined]
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


_SHORT: dict[str, Any] = {"mode": "SameStep", "lengths": (6,), "sub_envs": False}
_counted = _form("last_obs_like_others", endings=("truncated",), **_SHORT)


@_counted
class CountsItsEpisodes(EndsElsewhereRow):
    """The last observation has the new number, and so has the next first one."""

    count = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.count *= seed is None
        return super().reset(seed=seed, options=options)

    def end(self) -> None:
        self.count += 1

    def observe(self) -> Any:
        return np.array([self.x, self.count], np.float32)


@_counted
class KnowsTheNextSeasonAtTheEnd(CountsItsEpisodes):
    """Giving up changes nothing."""

    def end(self) -> None:
        self.count = int(self.np_random.integers(9))


@_counted
class CountsWhoGivesUpToo(CountsItsEpisodes):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.count += 0 < self.done < self.length
        return super().reset(seed=seed, options=options)


class ClimbsAtEachEnd(EndsElsewhereRow):
    """Its level is kept over all resets, also under a seed, and observed from the start on."""

    level = 0

    def end(self) -> None:
        self.level += 1

    def observe(self) -> Any:
        return np.array([self.x, self.level], np.float32)


class ClimbsUntilItGetsASeed(ClimbsAtEachEnd):
    """Its episodes are longer at a higher level."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.level = min(self.level, 5) if seed is None else 0
        self.length = 1 + 4 * self.level
        return super().reset(seed=seed, options=options)


class AgesUntilItGetsASeed(ClimbsAtEachEnd):
    """Its level is its age, which is the same a number of steps after any seed."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.level *= seed is None
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        self.level += 1
        return super().step(action)


for _mode in ("NextStep", "SameStep", "Disabled"):
    for _names, _row, _lengths in (
        (("seed_works_again", "masked_reset_restarts_masked"), ClimbsAtEachEnd, (6,)),
        (("autoreset_like_reset",), ClimbsUntilItGetsASeed, (6,)),
        (("autoreset_like_reset",), AgesUntilItGetsASeed, (5, 7)),
    ):
        _form(*_names, mode=_mode, lengths=_lengths, infos=False)(
            type(f"{_row.__name__}{_mode}", (_row,), {})
        )


@_form("rows_are_alike", "endings_together", infos=False, **_SHORT)
class OpensABoxAtTheEnd(EndsElsewhereRow):
    """The box of a higher row holds more, and only last observations show that."""

    def __init__(self, form: Form, row: int) -> None:
        super().__init__(form, row)
        self.most, self.found = 10 + 5 * row, 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.found = 0
        return super().reset(seed=seed, options=options)

    def end(self) -> None:
        self.found = min(int(self.np_random.integers(30)), self.most)

    def observe(self) -> Any:
        return np.array([self.x, self.found], np.float32)


@_form("last_obs_like_others", endings=("terminated",), infos=False, **_SHORT)
class FallsFarDownAtTheEnd(EndsElsewhereRow):
    def end(self) -> None:
        self.x *= 50

    def observe(self) -> Any:
        return np.array([self.x, self.done], np.float32)


@_form("last_obs_like_others", sub_envs=False)
class NamesTheEnd(RowEnv):
    """By one of three entries; which action is right is hidden, and the right one ends all."""

    name = time = 0

    def __init__(self, form: Form, row: int) -> None:
        super().__init__(form, row)
        self.observation_space: Any = spaces.Box(0, 99, (4,), np.int64)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        self.code, self.name, self.time = int(self.np_random.integers(3)), 0, 0
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        right = int(action) == self.code
        self.name, self.time = 1 if right else 2, self.time + 1
        return self.observe(), float(right), right, self.time == 25, {}

    def observe(self) -> Any:
        return np.array([*np.eye(3, dtype=np.int64)[self.name], self.time])


@_form("infos_of_the_autoreset", infos=False, sub_envs=False)
class TellsTheSeedAndTheDevice(RowsEnv):
    """Where there is a seed; and the device in each reset of all rows."""

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        super().begin(i, seed, options)
        return {"device": "cpu"} | ({} if seed is None else {"seed": seed})


@_form("call_get_set_attr")
class HasAttributesButNoMethods(RowsEnv):
    def get_attr(self, name: str) -> tuple[Any, ...]:
        return tuple(getattr(row, name) for row in self.rows)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        raise NotImplementedError(name)


@_form("call_get_set_attr")
class HandsOutWhatWasSet(RowsEnv):
    """Its methods are its own; what was set is handed out, and not called."""

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return tuple(getattr(row, name) for row in self.rows)


@_form("metadata_not_shared")
class MetadataThatNobodyCanWrite(RowsEnv):
    def __init__(self, form: Form, n: int) -> None:
        super().__init__(form, n)
        self.metadata: Any = MappingProxyType(self.metadata)


@_form(
    "nothing_kept_over_ends",
    mode="SameStep",
    lengths=(12, 15, 15),
    kind="counted",
    sub_envs=False,
)
class ShowsTheNearestPlaceOnly(RowEnv):
    """A reset a step later draws two of the three places once more, and shows the same."""

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


class BettingRow(RowEnv):
    """Takes no card, one or two, or bets some money: one of these."""

    def __init__(self, form: Form, row: int) -> None:
        super().__init__(form, row)
        either = spaces.OneOf((spaces.Discrete(3), spaces.Box(0, 1, (1,))))
        self.action_space: Any = spaces.Dict(move=either)

    def step(self, action: Any) -> Any:
        kind, value = action["move"]
        return super().step(value if kind == 0 else float(value[0]))


class InSync(SyncVectorEnv):
    """Its rows need the options as a dict."""

    row: type[RowEnv] = RowEnv

    def __init__(self, **given: Any) -> None:
        super().__init__([partial(self.row, Form(), i) for i in range(3)], **given)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=seed, options=dict(options or {}))


@accused("vector_env", "rows_independent", mode="NextStep")
class TakesOneOfTwoKindsOfActions(InSync):
    row = BettingRow


@_form(
    "last_reward_like_others",
    mode="SameStep",
    lengths=(12, 15, 15),
    endings=("terminated",),
    noise=True,
)
class ACrashPaysNothing(RowEnv):
    """It starts standing, and the reward is its speed; a crash pays nothing."""

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed, options=options)
        self.x = 0.0
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        obs, _, terminated, truncated, info = super().step(action)
        return obs, 0.0 if terminated else self.x, terminated, truncated, info


@_form("infos_of_the_autoreset", mode="SameStep", lengths=(6, 8, 9))
class CountsAllSteps(RowEnv):
    """Infos have the number of its steps, over all episodes."""

    total = 0

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        obs, info = super().reset(seed=seed, options=options)
        return obs, info | {"total": self.total}

    def step(self, action: Any) -> Any:
        self.total += 1
        *results, info = super().step(action)
        return (*results, info | {"total": self.total})


@accused("vector_env", "outputs_unchanged_by_later_steps", mode="NextStep")
class WithoutCopiesOnRequest(InSync):
    """It fills one array again and again, as `copy=False` says."""

    def __init__(self) -> None:
        super().__init__(copy=False)


class AnswersRow(RowEnv):
    """Something is shown, and answered."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        gym.Env.reset(self, seed=seed)
        self.done = 0
        self.ask()
        return self.observe(), self.info()

    def step(self, action: Any) -> Any:
        self.done += 1
        over = self.done >= self.length
        self.answer(int(action), over)
        return self.observe(), 0.0, False, over, self.info()

    def ask(self) -> None:
        self.x = float(self.np_random.integers(50))

    def answer(self, action: int, over: bool) -> None:
        self.ask()

    def observe(self) -> Any:
        return np.array([self.x, self.x % 7], np.float32)

    def info(self) -> dict[str, Any]:
        return {}


@_form("done_step_returns_final_obs", lengths=(5,), sub_envs=False)
class ReadsAGaugeThroughNoise(AnswersRow):
    """Each step gives what a reset in its place gives, the last one, too."""

    def ask(self) -> None:
        self.x = float(self.np_random.normal(4, 0.3))


@_form("final_obs_is_last", mode="SameStep", lengths=(3, 4, 5), sub_envs=False)
class LeavesTheLastQuestion(AnswersRow):
    """There is no further one."""

    def answer(self, action: int, over: bool) -> None:
        if not over:
            self.ask()


@_form("rows_are_alike", mode="SameStep", kind="discrete", lengths=(1, 25), sub_envs=False)
class WaitsForTheRightAnswer(AnswersRow):
    """Beside a row that asks anew after each answer."""

    def answer(self, action: int, over: bool) -> None:
        if action == self.x % 3:
            self.ask()

    def observe(self) -> Any:
        return np.int64(self.x)


@_form("rows_are_alike", mode="SameStep", kind="counted", sub_envs=False)
class PlanksOfSomeLengths(RowEnv):
    """The planks differ by design, and one action moves none of them."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        found = super().reset(seed=seed, options=options)
        self.length = int(self.np_random.integers(1, 5))
        return found

    def step(self, action: Any) -> Any:
        self.x += (1 + self.row) * float(action)
        self.done += 1
        return self.observe(), 1.0, self.done >= self.length, False, {}


@_form("infos_of_the_autoreset", mode="SameStep", lengths=(1, 3, 14), sub_envs=False)
class TellsTheDeviceAlways(AnswersRow):
    def info(self) -> dict[str, Any]:
        return {"device": "cpu"}
