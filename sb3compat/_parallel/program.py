"""The state that a worker takes over from the program: its arguments, and what it registered."""

from __future__ import annotations

import copy
import gc
import inspect
import multiprocessing
import pickle
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from sb3compat._convert.options import same_value
from sb3compat._ipc import by_value
from sb3compat._to_sb3.partial_reset import registered_by_users, take_over
from sb3compat._upstream.private import private
from sb3compat.errors import WorkerError

GUARD = 'if __name__ == "__main__":'
# The loops of workers, which import what their functions need.
_LOOPS = "sb3compat._parallel.serve"
_MAIN = "__main__"


@dataclass
class Program:
    """The state of the program that its workers take over.

    Attributes:
        argv: Its `sys.argv`.
        authkey: The key for connections to its managers, as `multiprocessing` passes it on.
        specs: The specs in Gymnasium's registry, by id, pickled.
        missing: The registered ids that cannot be pickled, or not be unpickled, and why.
        resets: The partial resets that were registered, as `registered_by_users` returns them.
    """

    argv: list[str]
    authkey: bytes
    specs: dict[str, bytes]
    missing: dict[str, str]
    resets: dict[str, bytes] = field(default_factory=registered_by_users)
    _known: dict[str, EnvSpec] = field(default_factory=dict)

    @classmethod
    def this(cls) -> Program:
        """This program, as it is now."""
        program = cls(list(sys.argv), bytes(multiprocessing.current_process().authkey), {}, {})
        for name, spec in gym.registry.items():
            try:
                program.specs[name] = by_value.dumps(portable(spec))
            except Exception as error:  # noqa: PERF203
                program.missing[name] = str(error)
        return program

    def take_over(self) -> None:
        """Apply the state to this process."""
        sys.argv[:] = self.argv
        multiprocessing.current_process().authkey = self.authkey
        take_over(self.resets)
        for name, data in self.specs.items():
            try:
                self._known[name] = pickle.loads(data)
            except Exception as error:  # noqa: PERF203 (a module that is not here, for instance)
                self.missing[name] = str(error)
        for name in gym.registry.keys() - self._known.keys() - self.missing.keys():
            del gym.registry[name]
        gym.registry.update(self._known)
        # Modules that are imported from now on may register the same ids again.
        warnings.filterwarnings("ignore", message=".*Overriding environment")

    def make(self, env_fn: Callable[[], Any]) -> Any:
        """Call a function that makes a part, with ids registered as in the program.

        A module that the function imports may register an id differently from the program's present
        registry. As modules are imported only once, the function is then called again.
        """
        env = env_fn()
        if self._set_right():
            with suppress(Exception):
                env.close()
            env = env_fn()
            self._set_right()
        return env

    def _set_right(self) -> bool:
        """Restore the program's registration of all ids; returns whether one was different."""
        wrong = False
        for name, spec in self._known.items():
            now = gym.registry.get(name)
            if now is not spec:
                gym.registry[name] = spec
                wrong |= now is not None and not same_value(*map(vars, map(portable, (now, spec))))
        return wrong

    def note(self, error: BaseException) -> None:
        """Add a note that says what to do if the worker does not know an id."""
        if not isinstance(error, gym.error.UnregisteredEnv | ImportError):
            return
        if hasattr(error, "add_note"):
            error.add_note(
                "A worker knows what was registered in the program when it was started"
                + (f", but for {self.missing}, which it cannot take over" if self.missing else "")
                + "; it imports modules by itself. Write the id with the module that registers it, "
                "as 'ale_py:ALE/Pong-v5'. Or register before, or call gymnasium.register in the "
                "function that makes the environment."
            )


def portable(spec: EnvSpec) -> EnvSpec:
    """The spec with entry points that another process can find.

    Entry points that can be imported are passed by name, so that they are imported only when
    needed. Strings that name an object of the main module, such as `__main__:MyEnv`, are replaced
    by the object, as no worker imports the main module.
    """
    copied = copy.copy(spec)
    for name in ("entry_point", "vector_entry_point"):
        value = getattr(spec, name)
        module, attribute = getattr(value, "__module__", _MAIN), getattr(value, "__name__", "")
        if isinstance(value, str):
            if value.startswith(f"{_MAIN}:"):
                value = getattr(sys.modules[_MAIN], value.partition(":")[2], value)
        elif module != _MAIN and getattr(sys.modules.get(module), attribute, None) is value:
            value = f"{module}:{attribute}"
        setattr(copied, name, value)
    return copied


def refuse_rerun() -> None:
    """Refuse to start workers where a worker is importing the program's own script.

    A script that starts workers whenever it is imported would be run again by each of them, and
    start workers there, without end.

    Raises:
        WorkerError: If a module is being imported to make the parts of a worker, by this thread or
            for it by the main one, or the main module by `multiprocessing`; the message names the
            guard.
    """
    for frame in (inspect.currentframe(), _frame_of_the_main_thread()):
        script = _imported_by_worker(frame)
        if script is not None:
            raise WorkerError(
                f"Expected {script} to start workers only where it is run as the program, but a "
                "worker is importing it, and it starts workers again. Put its statements, except "
                f"imports and definitions, below {GUARD!r}, as for multiprocessing."
            )


def _frame_of_the_main_thread() -> FrameType | None:
    """What it runs, seen from another thread."""
    main = threading.main_thread()
    if main is threading.current_thread():
        return None
    collecting = gc.isenabled()
    # Before Python 3.12 it may hang if garbage is collected meanwhile (python/cpython #106883).
    gc.disable()
    try:
        frames: dict[int | None, FrameType] = private(sys, "_current_frames")()
    finally:
        if collecting:
            gc.enable()
    return frames.get(main.ident)


def _imported_by_worker(frame: FrameType | None) -> str | None:
    """The file that a worker is importing in these frames, if any."""
    script = None
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if frame.f_code.co_name == "<module>":
            script = frame.f_code.co_filename
            if name == "__mp_main__":
                return script
        if name == _LOOPS:
            return script
        frame = frame.f_back
    return None
