"""The worlds as the rows of correct vector environments, which no check may accuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np

from conformance.specimens.points import Config, Points
from conformance.specimens.registry import Specimen, enter
from conformance.specimens.rows_env import MODES, Form, RowsEnv
from conformance.specimens.worlds import ACTIONS, SHOWS, Kind, World


class WorldsVecEnv(Points):
    """A VecEnv of worlds."""

    def __init__(self, make: Callable[[int], Any], rows: int) -> None:
        self.make_world = make
        super().__init__(Config(rows=rows))

    def make_row(self, row: int) -> Any:
        return self.make_world(row)


class Masked(Points):
    """Has the masks of the actions that lead somewhere, as SB3-Contrib asks for them."""

    def __init__(self, config: Config | None = None) -> None:
        super().__init__(config)
        self.masks = [self.allowed(i) for i in range(self.num_envs)]

    def make_row(self, row: int) -> Any:
        return World(Kind(size=3, start="random"), row)

    def allowed(self, i: int) -> Any:
        x, y = self.envs[i].at
        return np.array([y < 2, y > 0, x < 2, x > 0])

    def start(self, i: int) -> Any:
        first = super().start(i)
        self.masks[i] = self.allowed(i)
        return first

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.masks[i] = self.allowed(i)
        return first

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        if not done:
            self.masks[i] = self.allowed(i)
        return obs, reward, done, info

    def has_attr(self, attr_name: str) -> bool:
        return attr_name == "action_masks" or super().has_attr(attr_name)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        if method_name == "action_masks":
            return [self.masks[i] for i in self.named(indices)]
        return super().env_method(method_name, *args, indices=indices, **kwargs)


class WorldsVectorEnv(RowsEnv):
    """A VectorEnv of worlds."""

    def __init__(self, make: Callable[[int], Any], mode: str, rows: int) -> None:
        self.make_world = make
        super().__init__(Form(mode=mode), rows)
        self.render_mode = self.rows[0].render_mode

    def make_row(self, i: int) -> Any:
        return self.make_world(i)

    def check_actions(self, actions: Any) -> None:
        while isinstance(actions, dict | tuple):
            actions = next(iter(actions.values())) if isinstance(actions, dict) else actions[0]
        super().check_actions(actions)


def _world(kind: Kind, row: int) -> World:
    return World(kind, row)


def _made(name: str, arguments: dict[str, Any], row: int) -> Any:
    return gym.make(name, **arguments)


def _kinds() -> Iterator[tuple[str, Kind]]:
    for size, limit, start in product((2, 3, 5), (1, 3, 6, 11), ("fixed", "random")):
        obs = "point" if size == 3 else "index"
        kind = Kind(size=size, limit=limit, start=start, goal=start == "random", obs=obs)
        yield f"grid-{size}-{limit}-{start}", kind
    for world, limit in product(("pit", "clock", "late", "door", "still"), (3, 4, 7)):
        yield f"{world}-{limit}", Kind(world, 4, limit, "point", goal=False)
        yield f"{world}-{limit}-limits", Kind(world, 4, limit, goal=False, limits_differ=True)
    for slip, reward in product((0.0, 0.4), ("sparse", "zero", "drawn", "int", "large")):
        yield f"slip-{slip}-{reward}", Kind(slip=slip, reward=reward, start="random", size=4)
    for obs in SHOWS:
        yield f"shows-{obs}", Kind(obs=obs, start="random", reward="dense")
        yield f"shows-{obs}-plane", Kind("plane", 4, 4, obs, start="random", reward="dense")
    for actions in ACTIONS:
        yield f"acts-{actions}", Kind(obs="point", actions=actions, start="random")
        yield f"acts-{actions}-plane", Kind("plane", 9, 5, "double", actions, start="random")
    for infos, limit in product(("some", "last", "wild", "masks"), (2, 5)):
        yield f"infos-{infos}-{limit}", Kind(limit=limit, infos=infos, start="random")
    for more in ("flags", "answers", "both", "chance"):
        for obs in ("index", "point"):
            yield f"{more}-{obs}", Kind(obs=obs, more=frozenset({more}), start="random")
    for obs in ("dict", "goal", "point", "image"):
        yield f"shared-{obs}", Kind(obs=obs, more=frozenset({"shared"}), start="random")
    yield "noise", Kind("noise", 5, 6, "point", start="random", goal=False)
    yield "noise-chance", Kind("noise", 5, 0, "point", more=frozenset({"chance"}))
    yield "endless-goal", Kind(size=2, limit=0, start="random")
    yield "limits", Kind("plane", 9, 3, "double", start="random", limits_differ=True)
    yield "timed", Kind(obs="timed", limit=4, goal=False)
    for limit in (20, 25, 30):  # time to reach a wall, and to stay there with the same action
        yield f"hall-{limit}", Kind("grid", 9, limit, "point", start="random", goal=False)
    parks = frozenset({"parks"})
    yield "parks-goal", Kind("grid", 2, 7, more=parks)
    for obs in ("index", "point", "image"):
        for start in ("fixed", "random"):
            yield (
                f"parks-{obs}-{start}",
                Kind("grid", 4, 7, obs, "discrete", start, False, more=parks),
            )


_GYMNASIUM: tuple[tuple[str, dict[str, Any]], ...] = (
    ("CliffWalking", {"max_episode_steps": 4}),
    ("CliffWalking", {"max_episode_steps": 9}),
    ("CliffWalking", {"max_episode_steps": 20}),
    ("FrozenLake", {"is_slippery": False, "max_episode_steps": 5}),
    ("FrozenLake", {"is_slippery": True}),
    ("Taxi", {"max_episode_steps": 6}),
    ("Blackjack", {}),
    ("CartPole", {"max_episode_steps": 7}),
    ("CartPole", {}),
    ("MountainCar", {"max_episode_steps": 12}),
    ("MountainCarContinuous", {"max_episode_steps": 12}),
    ("Pendulum", {"max_episode_steps": 5}),
    ("Acrobot", {"max_episode_steps": 15}),
)


def _makers() -> Iterator[tuple[str, Callable[[int], Any]]]:
    for name, kind in _kinds():
        yield name, partial(_world, kind)
    for env_id, arguments in _GYMNASIUM:
        words = "-".join([env_id, *map(str, arguments.values())])
        newest = max(known for known in gym.registry if known.rpartition("-v")[0] == env_id)
        yield words, partial(_made, newest, arguments)


# Actions in dicts are beyond SB3.
_NO_VEC_ENV = ("acts-dict", "acts-tuple")


for _number, (_name, _make) in enumerate(_makers()):
    _rows = (3, 2, 4, 1)[_number % 4]
    _reference = None if _number % 3 else [partial(_make, row) for row in range(_rows)]
    # Each world in one autoreset mode, in turn.
    _mode = MODES[_number % 3]
    _vec_env = partial(WorldsVecEnv, _make, _rows)
    _vector_env = partial(WorldsVectorEnv, _make, _mode, _rows)
    if not _name.startswith(_NO_VEC_ENV):
        enter(Specimen("world", _name, "vec_env", _vec_env, __name__, reference=_reference))
    enter(
        Specimen("world", _name, "vector_env", _vector_env, __name__, _mode, reference=_reference)
    )

enter(Specimen("world", "masked", "vec_env", Masked, __name__))
