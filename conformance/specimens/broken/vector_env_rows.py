"""Mutants of rows, access, rendering and closing of a VectorEnv."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorWrapper

from conformance.specimens.registry import vector_env_mutant as mutant
from conformance.specimens.rows_env import Form, RowsEnv

# Rows


class _Freezes(RowsEnv):
    """Leaves a step of all rows out while one of them ends or is reset."""

    def advance(self, actions: list[Any]) -> None:
        before = [(row.x, row.done) for row in self.rows]
        held, resetting = list(self.obs), self.pending.copy()
        super().advance(actions)
        moved = resetting if self.form.mode == "NextStep" else self.flags.any(axis=0)
        if moved.any():
            for i in np.flatnonzero(~moved):
                self.obs[i] = held[i]
                self.rows[i].x, self.rows[i].done = before[i]
                self.flags[:, i] = False


@mutant("rows_independent", lengths=(3, 20, 30), may_fail=("autoreset_like_reset",))
class OthersFreeze(_Freezes):
    pass


@mutant("rows_independent", lengths=(15, 60, 70), one_generator=True, sub_envs=False)
class OthersFreezeWithOneGenerator(_Freezes):
    pass


@mutant(
    "rows_match_reference",
    referenced=True,
    untold="rewards may be whole numbers: only the single environments say that they are not",
)
class RewardsAreInts(RowsEnv):
    def step(self, actions: Any) -> Any:
        obs, rewards, *rest = super().step(actions)
        return obs, rewards.astype(int), *rest


@mutant(
    "rows_match_reference",
    referenced=True,
    untold="an episode may be truncated or terminate in any state: only its own flags say which",
)
class NeverTruncates(RowsEnv):
    def step_row(self, i: int, action: Any) -> None:
        super().step_row(i, action)
        if self.flags[1, i]:
            self.flags[:, i] = True, False


# Access, rendering, life


@mutant("call_get_set_attr")
class ListInEachRow(RowsEnv):
    def set_attr(self, name: str, values: Any) -> None:
        for row in self.rows:
            setattr(row, name, values)


@mutant("call_get_set_attr")
class TupleInEachRow(RowsEnv):
    def set_attr(self, name: str, values: Any) -> None:
        super().set_attr(name, [values] * self.num_envs if isinstance(values, tuple) else values)


@mutant("call_get_set_attr")
class LetterInEachRow(RowsEnv):
    def set_attr(self, name: str, values: Any) -> None:
        super().set_attr(name, list(values) if isinstance(values, str) else values)


@mutant("call_get_set_attr")
class BackToFront(RowsEnv):
    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return super().call(name, *args, **kwargs)[::-1]


@mutant("call_get_set_attr")
class AttributesOfEarlierCalls(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.found: dict[str, tuple[Any, ...]] = {}

    def get_attr(self, name: str) -> tuple[Any, ...]:
        self.found[name] = self.found.get(name) or super().get_attr(name)
        return self.found[name]

    def set_attr(self, name: str, values: Any) -> None:
        super().set_attr(name, values)
        self.found.clear()


@mutant("call_get_set_attr")
class DropsArguments(RowsEnv):
    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return super().call(name)


@mutant("render_n_frames")
class OneFrame(RowsEnv):
    def render(self) -> Any:
        return np.concatenate(super().render())


@mutant("render_n_frames")
class FramesWithoutColour(RowsEnv):
    def render(self) -> Any:
        return tuple(frame[..., 0] for frame in super().render())


@mutant("render_n_frames")
class OneCanvasForAll(RowsEnv):
    def render(self) -> Any:
        frames = super().render()
        for frame in frames:
            frames[0][:] = frame
        return (frames[0],) * len(frames)


@mutant("frames_of_own_rows")
class FramesShowAllRows(RowsEnv):
    def render(self) -> Any:
        far = sum(abs(row.x) for row in self.rows)
        return tuple(frame + np.uint8(4 * far % 200) for frame in super().render())


@mutant("close_idempotent")
class NeverSaysThatItIsClosed(RowsEnv):
    def close(self, **kwargs: Any) -> None:
        self.close_extras(**kwargs)


class _ClosesItselfOnly(VectorWrapper):
    def close(self, **kwargs: Any) -> None:
        pass


@mutant("close_closes_what_it_wraps", "close_idempotent", wrap=_ClosesItselfOnly)
class WrapperClosesItselfOnly(RowsEnv):
    pass


class _Window(gym.Env[Any, Any]):
    def close(self) -> None:
        super().close()


@mutant("close_closes_what_it_wraps")
class LeavesItsRowsOpen(RowsEnv):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.envs = [_Window() for _ in self.rows]


class _Closing(VectorWrapper):  # not generic in Gymnasium 1.1
    def __del__(self) -> None:
        self.env.close()


@mutant("wrapper_deletion_keeps_env_open", wrap=_Closing)
class ClosedByWrapper(RowsEnv):
    pass
