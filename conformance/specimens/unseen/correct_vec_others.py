"""Correct VecEnvs with odd infos, attributes and results."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from conformance.specimens.registry import unseen
from conformance.specimens.unseen.rows import Corridor
from conformance.specimens.unseen.vec_parts import NativeVecEnv, Step, Wrapper


@unseen("vec_env")
class AwkwardInfos(NativeVecEnv):
    """Three rows whose infos hold NaN, None, a class, nested and ragged things, and odd keys.

    All of it is new at each step, and the rows do not have the same keys.
    """

    def __init__(self) -> None:
        super().__init__(3, spaces.Box(0, 9, (1,), np.float32), spaces.Discrete(2))
        self.left = np.zeros((3, 1), np.float32)

    def reset(self) -> Any:
        self.take_seeds()
        self.left = self.draw(2, 8, 1).astype(np.float32)
        self.reset_infos = [{"first": float("nan"), f"of row {i}": [i] * i} for i in range(3)]
        return self.left.copy()

    def step_wait(self) -> Step:
        self.left -= 1
        dones = self.left[:, 0] <= 0
        rewards, infos = self.actions.astype(np.float32), self.infos()
        for i, info in enumerate(infos):
            count = int(self.left[i, 0])
            info.update({"_": None, "_left": count, "nan": float("nan"), "kind": Corridor})
            info["ragged"] = [np.arange(k) for k in range(count % 3)]
            info["nested"] = {"deep": {"er": np.float64(i), "": "empty"}, "of": {i, "row"}}
            if i == count:
                info["final_obs"] = "a key that means nothing here"
            if dones[i]:
                info["terminal_observation"] = self.left[i].copy()
                self.left[i] = self.dice[i].integers(2, 8)
                self.reset_infos[i] = {"again": count, "none": None}
        return self.left.copy(), rewards, dones, infos


class Motor:
    """A thing that is turned on and off; no Gymnasium environment, though it has an `unwrapped`."""

    render_mode = None

    def __init__(self, number: int) -> None:
        self.number = number
        self.heat = 0.0
        self.dice = np.random.default_rng()

    @property
    def unwrapped(self) -> Motor:
        """Return itself."""
        return self

    def turn(self, on: bool) -> bool:
        """Return whether it is too hot now."""
        self.heat = max(0.0, self.heat + (self.dice.uniform(0.5, 1.5) if on else -0.5))
        return self.heat > 4

    def celsius(self, factor: float = 10) -> float:
        """Return the heat in degrees."""
        return self.heat * factor


@unseen("vec_env")
class ForwardedAttributes(VecEnv):
    """Three motors, which are plain objects; unknown attributes are those of the first motor.

    get_attr, set_attr and env_method act on the motors, so that `unwrapped` is no environment.
    """

    def __init__(self) -> None:
        self.motors = [Motor(i) for i in range(3)]
        heat = spaces.Box(0, 20, (1,), np.float32)
        super().__init__(3, heat, spaces.Discrete(2))
        self.pending: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "motors":
            raise AttributeError(name)
        return getattr(self.motors[0], name)

    def look(self) -> Any:
        """Return how hot they are."""
        return np.array([[motor.heat] for motor in self.motors], np.float32)

    def reset(self) -> Any:
        for motor, seed in zip(self.motors, self._seeds, strict=True):
            if seed is not None:
                motor.dice = np.random.default_rng(seed)
            motor.heat = float(motor.dice.uniform(0, 1))
        self._reset_seeds()
        self._reset_options()
        return self.look()

    def step_async(self, actions: Any) -> None:
        self.pending = np.array(actions)

    def step_wait(self) -> Step:
        turned = zip(self.motors, self.pending, strict=True)
        dones = np.array([motor.turn(bool(on)) for motor, on in turned])
        last = self.look()
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in self.motors]
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = last[i].copy()
            self.motors[i].heat = float(self.motors[i].dice.uniform(0, 1))
        return self.look(), last[:, 0].copy(), dones, infos

    def close(self) -> None:
        pass

    def picked(self, indices: VecEnvIndices) -> list[Motor]:
        """Return the motors meant."""
        return [self.motors[i] for i in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [getattr(motor, attr_name) for motor in self.picked(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        for motor in self.picked(indices):
            setattr(motor, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        picked = self.picked(indices)
        return [getattr(motor, method_name)(*method_args, **kwargs) for motor in picked]

    def env_is_wrapped(
        self, wrapper_class: type[Wrapper], indices: VecEnvIndices = None
    ) -> list[bool]:
        return [False for _ in self.picked(indices)]


@unseen("vec_env")
class BareMinimum(VecEnv):
    """Two conveyor belts, with what training needs and nothing else.

    Nothing is drawn, so that there is nothing to seed: seed() returns None for each row. There are
    no attributes but render_mode, no methods to call, and nothing to render.
    """

    def __init__(self) -> None:
        self.loads, self.moves = np.zeros((2, 1), np.float32), np.zeros(2)
        super().__init__(2, spaces.Box(0, 50, (1,), np.float32), spaces.Box(-1, 1, (), np.float32))

    def seed(self, seed: int | None = None) -> list[None]:
        return [None, None]

    def reset(self) -> Any:
        self.loads = np.array([[1], [2]], np.float32)
        self._reset_options()
        return self.loads.copy()

    def step_async(self, actions: Any) -> None:
        self.moves = np.array(actions, np.float32)

    def step_wait(self) -> Step:
        self.loads = np.clip(self.loads + 1 + self.moves[:, None], 0, 50)
        dones = self.loads[:, 0] > 10
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in range(2)]
        rewards = self.moves.copy()
        obs = self.loads.copy()
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = self.loads[i].copy()
            obs[i] = self.loads[i] = i + 1
        return obs, rewards, dones, infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        if attr_name != "render_mode":
            raise AttributeError(attr_name)
        return [None for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        raise NotImplementedError

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(
        self, wrapper_class: type[Wrapper], indices: VecEnvIndices = None
    ) -> list[bool]:
        return [False for _ in self._get_indices(indices)]


@unseen("vec_env")
class ThreadedStep(NativeVecEnv):
    """Three kites that step_async lets fly in a thread, for which step_wait or reset wait."""

    def __init__(self) -> None:
        super().__init__(3, spaces.Box(-50, 50, (2,), np.float32), spaces.Discrete(3))
        self.kites, self.thread = np.zeros((3, 2)), threading.Thread()
        self.result: Step | None = None

    def settle(self) -> None:
        """Wait for a step that was begun."""
        if self.thread.is_alive():
            self.thread.join()

    def reset(self) -> Any:
        self.settle()
        self.result = None
        self.take_seeds()
        self.kites = np.stack([dice.normal(0, 1, 2) for dice in self.dice]).clip(-4, 4)
        return self.kites.astype(np.float32)

    def step_async(self, actions: Any) -> None:
        self.settle()
        self.thread = threading.Thread(target=self.fly, args=(np.array(actions),), daemon=True)
        self.thread.start()

    def fly(self, actions: Any) -> None:
        """Take the step."""
        gusts = np.stack([dice.normal(0, 1, 2) for dice in self.dice]).clip(-4, 4)
        self.kites = self.kites + gusts + (actions - 1)[:, None]
        down = self.kites[:, 1] < -3
        obs, infos = self.kites.astype(np.float32), self.infos()
        rewards = self.kites[:, 1].astype(np.float32)
        out = np.abs(self.kites).max(axis=1) > 20
        for i in np.flatnonzero(down | out):
            infos[i]["terminal_observation"] = obs[i].copy()
            self.kites[i] = self.dice[i].normal(0, 1, 2).clip(-4, 4)
            obs[i] = self.kites[i]
        self.result = obs, rewards, down | out, infos

    def step_wait(self) -> Step:
        self.settle()
        result, self.result = self.result, None
        if result is None:
            raise RuntimeError("There is no step to wait for")
        return result

    def close(self) -> None:
        self.settle()


@unseen("vec_env")
class ReadOnlyResults(NativeVecEnv):
    """Four rows of a spreadsheet, returned as read-only arrays in column order."""

    def __init__(self) -> None:
        super().__init__(4, spaces.Box(0, 99, (3,), np.float32), spaces.Discrete(3))
        self.columns = np.zeros((3, 4), np.float32)

    def look(self) -> Any:
        """Return a copy that nobody can write to."""
        obs = self.columns.copy().T
        obs.flags.writeable = False
        return obs

    def reset(self) -> Any:
        self.take_seeds()
        self.columns = np.ascontiguousarray(self.draw(0, 9, 3).T).astype(np.float32)
        return self.look()

    def step_wait(self) -> Step:
        self.columns[self.actions, np.arange(4)] += 4
        dones, last = self.columns.sum(axis=0) > 40, self.look()
        rewards, infos = self.columns[0].copy(), self.infos()
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = last[i]
            self.columns[:, i] = self.dice[i].integers(0, 9, 3)
        rewards.flags.writeable = dones.flags.writeable = False
        return self.look(), rewards, dones, infos
