"""What a worker takes over from the program: arguments, and what is registered with Gymnasium."""

from __future__ import annotations

import copy
import inspect
import multiprocessing
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from types import FrameType
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from sb3compat._convert.options import same_value
from sb3compat._convert.types import Value
from sb3compat._ipc import by_value
from sb3compat._ipc.worker_locals import frame_of_thread
from sb3compat.errors import WorkerError

_GUARD = 'if __name__ == "__main__":'
# The loops of workers, which import what their functions need.
_LOOPS = ("sb3compat._parallel.serve", "sb3compat._parallel.ray_serve")
_MAIN = "__main__"


@dataclass
class Program:
    """The program, as its workers take it over.

    Attributes:
        argv: Its `sys.argv`.
        authkey: What opens its managers' connections, as `multiprocessing` passes it on.
        specs: What is registered with Gymnasium, by id, pickled.
        main: What of it is text that names something in the main module: that, pickled.
        missing: The registered ids that cannot be pickled, or not be unpickled, and why.
    """

    argv: list[str]
    authkey: bytes
    specs: dict[str, bytes]
    main: dict[str, bytes]
    missing: dict[str, str]
    _known: dict[str, EnvSpec] = field(default_factory=dict)

    @classmethod
    def this(cls) -> Program:
        """This program, as it is now."""
        key = bytes(multiprocessing.current_process().authkey)
        program = cls(list(sys.argv), key, {}, {}, {})
        for name, spec in gym.registry.items():
            try:
                program.specs[name] = by_value.dumps(_lazy(spec))
                program.main |= {one: by_value.dumps(value) for one, value in _in_main(spec)}
            except Exception as error:  # noqa: PERF203
                program.missing[name] = str(error)
                program.specs.pop(name, None)
        return program

    def take_over(self) -> None:
        """Have this process know what the program knows."""
        sys.argv[:] = self.argv
        multiprocessing.current_process().authkey = self.authkey
        for name, data in self.main.items():
            if not hasattr(sys.modules[_MAIN], name):
                setattr(sys.modules[_MAIN], name, pickle.loads(data))
        for name, data in self.specs.items():
            try:
                self._known[name] = pickle.loads(data)
            except Exception as error:  # noqa: PERF203 (a module that is not here, for instance)
                self.missing[name] = str(error)
        for name in gym.registry.keys() - self._known.keys() - self.missing.keys():
            del gym.registry[name]
        gym.registry.update(self._known)
        # Modules that are imported from now on register again what has come.
        warnings.filterwarnings("ignore", message=".*Overriding environment")

    def make(self, env_fn: Callable[[], Value]) -> Value:
        """Call a function that makes a part; then all ids mean again what the program means.

        Raises:
            WorkerError: If a module was imported that registers the environment in another way, and
                it was made in that way.
        """
        env = env_fn()
        for name, spec in self._known.items():
            now = gym.registry.get(name)
            if now is not spec:
                gym.registry[name] = spec
                if now is not None and _is_of(getattr(env, "spec", None), now, spec):
                    raise WorkerError(
                        f"Expected {name!r} to be made as the program has registered it, but the "
                        "worker has imported a module that registers it in another way. Take the "
                        f"spec along: spec = gymnasium.spec({name!r}), and gymnasium.make(spec) in "
                        "the function."
                    )
        return env

    def note(self, error: BaseException) -> None:
        """Say what to do about something that the worker does not know."""
        if not isinstance(error, gym.error.UnregisteredEnv | ImportError):
            return
        if hasattr(error, "add_note"):
            error.add_note(
                "A worker knows what was registered in the program when it was started"
                + (f", but for {self.missing}, which it cannot take over" if self.missing else "")
                + "; it imports modules by itself. Register before, or call gymnasium.register in "
                "the function that makes the environment."
            )


def _lazy(spec: EnvSpec) -> EnvSpec:
    """The spec, with the names of what can be imported, so that it is not before it is needed."""
    lazy = copy.copy(spec)
    for name in ("entry_point", "vector_entry_point"):
        value = getattr(spec, name)
        module, attribute = getattr(value, "__module__", _MAIN), getattr(value, "__name__", "")
        if module != _MAIN and getattr(sys.modules.get(module), attribute, None) is value:
            setattr(lazy, name, f"{module}:{attribute}")
    return lazy


def _in_main(spec: EnvSpec) -> Iterator[tuple[str, Value]]:
    """What the texts of a spec name in the main module, such as `__main__:MyEnv`."""
    points = [spec.entry_point, spec.vector_entry_point]
    points += [wrapper.entry_point for wrapper in spec.additional_wrappers]
    for point in points:
        if isinstance(point, str) and point.partition(":")[0] == _MAIN:
            name = point.partition(":")[2]
            if hasattr(sys.modules[_MAIN], name):
                yield name, getattr(sys.modules[_MAIN], name)


def _is_of(made: Any, one: EnvSpec, other: EnvSpec) -> bool:
    """Whether an environment was made by the one spec and not by the other one of the same id."""
    if not isinstance(made, EnvSpec) or made.id != one.id:
        return False
    specs = [dict(_flat(_lazy(spec))) for spec in (made, one, other)]
    got, first, second = (
        {name: spec.get(name) for name in {*specs[1], *specs[2]}} for spec in specs
    )
    return any(
        not same_value(first[name], second[name]) and same_value(got[name], first[name])
        for name in got
    )


def _flat(spec: EnvSpec) -> Iterator[tuple[str, Value]]:
    for each in fields(spec):
        if each.init and each.name != "kwargs":
            yield each.name, getattr(spec, each.name)
    for name, value in spec.kwargs.items():
        yield f"kwargs.{name}", value


def refuse_rerun() -> None:
    """Refuse to start workers where a worker is importing the program's own script.

    A script that starts workers whenever it is imported would be run again by each of them, and
    start workers there, without end.

    Raises:
        WorkerError: If a module is being imported to make the parts of a worker, by this thread or
            for it by the main one, or the main module by `multiprocessing`; the message names the
            guard.
    """
    main = threading.main_thread()
    elsewhere = None if threading.current_thread() is main else frame_of_thread(main)
    for frame in (inspect.currentframe(), elsewhere):
        script = _imported_by_worker(frame)
        if script is not None:
            raise WorkerError(
                f"Expected {script} to start workers only where it is run as the program, but a "
                "worker is importing it, and it starts workers again. Put what it does behind "
                f"{_GUARD!r}, as for multiprocessing."
            )


def _imported_by_worker(frame: FrameType | None) -> str | None:
    """The file that a worker is importing in these frames, if any."""
    script = None
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if frame.f_code.co_name == "<module>":
            script = frame.f_code.co_filename
            if name == "__mp_main__":
                return script
        if name in _LOOPS:
            return script
        frame = frame.f_back
    return None
