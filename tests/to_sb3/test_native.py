"""The fast path of plain native environments; `test_modes` compares it with `DummyVecEnv`."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import sb3compat
from sb3compat._to_sb3.partial_reset import partial_reset_of
from tests.envs import Identity, fns
from tests.lockstep import same
from tests.native import RestartsRows
from tests.to_sb3.driving import NEXT_STEP

FLOATS = spaces.Box(0, 1, (2,))


def cartpole() -> Any:
    return gym.make_vec("CartPole-v1", 3, vectorization_mode="vector_entry_point").unwrapped


def restarting() -> RestartsRows:
    ends = {"lengths": (2, 3), "endings": ("terminated", "truncated", "both")}
    return RestartsRows(fns(3, **ends, observation_space=FLOATS), NEXT_STEP)


def played(env: Any, steps: int, *, copy: bool = True) -> list[Any]:
    """The results; observations that the next step may overwrite are copied here."""
    env.seed(3)
    found = [env.reset()]
    rng = np.random.default_rng(0)
    for _ in range(steps):
        obs, *others = env.step(rng.integers(0, 2, 3))
        found.append((obs if copy else deepcopy(obs), *others, list(env.reset_infos)))
    return found


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("make", [cartpole, restarting])
def test_both_paths_give_the_same(make: Any, copy: bool) -> None:
    fast = played(sb3compat.to_sb3(make(), copy=copy), 150, copy=copy)
    assert sum(step[2].sum() for step in fast[1:]) > 10
    same(fast, played(sb3compat.to_sb3(Identity(make()), copy=copy), 150, copy=copy))


@pytest.mark.parametrize("wrap", [lambda env: env, Identity], ids=["fast", "below a wrapper"])
def test_arrays_of_the_environment_are_not_written_to(wrap: Any) -> None:
    class Frozen(RestartsRows):
        def step(self, actions: Any) -> Any:
            obs, *others = super().step(actions)
            obs = obs.view()
            obs.flags.writeable = False
            return obs, *others

    sb3compat.register_partial_reset(Frozen, partial_reset_of(restarting()))
    source = Frozen(fns(lengths=(1,), observation_space=FLOATS), NEXT_STEP)
    env = sb3compat.to_sb3(wrap(source), copy=False)
    env.reset()
    assert env.step([0, 0])[2].all()


ODD: dict[str, Any] = {
    "observations of another dtype": lambda *r: (r[0].astype(np.float64), *r[1:]),
    "observations of another shape": lambda *r: (r[0][:, :1], *r[1:]),
    "rewards of another dtype": lambda *r: (r[0], r[1].astype(complex), *r[2:]),
    "rewards of another shape": lambda *r: (r[0], r[1][:, None], *r[2:]),
    "rewards in a list": lambda *r: (r[0], r[1].tolist(), *r[2:]),
    "numbers for terminations": lambda *r: (*r[:2], r[2].astype(int), *r[3:]),
    "terminations of another shape": lambda *r: (*r[:2], r[2][:, None], *r[3:]),
    "truncations in a list": lambda *r: (*r[:3], r[3].tolist(), r[4]),
    "truncations of another shape": lambda *r: (*r[:3], r[3][:2], r[4]),
    "another name of the last observation": lambda *r: (*r[:4], {"final_observation": r[0]}),
    "infos": lambda *r: (*r[:4], [{}, {}, {}]),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_result_of_another_form_is_treated_as_below_a_wrapper(odd: str) -> None:
    class Changes(RestartsRows):
        turn = 0

        def step(self, actions: Any) -> Any:
            self.turn += 1
            result = super().step(actions)
            return ODD[odd](*result) if self.turn in (2, 4) else result

    sb3compat.register_partial_reset(Changes, partial_reset_of(restarting()))

    def outcome(wrap: Any) -> Any:
        made = Changes(fns(3, lengths=(2, 3), observation_space=FLOATS), NEXT_STEP)
        try:
            return played(sb3compat.to_sb3(wrap(made)), 6)
        except (sb3compat.ConversionError, sb3compat.AutoresetModeError) as error:
            return type(error), str(error).replace(str(Identity(made)), str(made))

    same(outcome(lambda env: env), outcome(Identity))


FIRST = np.zeros((1, 2), np.float32)


@pytest.mark.parametrize(
    "returned",
    [(np.zeros((2, 2), np.float32), {}), (FIRST.astype(float), {}), (FIRST, None), FIRST],
)
def test_restarted_rows_of_another_form_are_refused(returned: Any) -> None:
    class Odd(RestartsRows): ...

    def reset(env: Any, mask: Any) -> Any:
        return env.reset_rows(mask, None, None)

    reset.restart_rows = lambda env, rows: returned
    sb3compat.register_partial_reset(Odd, reset)
    env = sb3compat.to_sb3(Odd(fns(2, lengths=(1, 5), observation_space=FLOATS), NEXT_STEP))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match=r"Expected restart_rows of .* \(1, 2\)"):
        env.step([0, 0])
