"""What a worker takes over from the program: arguments, and what is registered with Gymnasium."""

from __future__ import annotations

import inspect
import multiprocessing
import pickle
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import gymnasium as gym

from sb3compat._upstream import by_value
from sb3compat.errors import WorkerError

_GUARD = 'if __name__ == "__main__":'
# What imports the script in a worker: ours, or one of `multiprocessing`.
_RUNS_IT_AGAIN = ("sb3compat._parallel.serve", "sb3compat._parallel.ray_serve", "__mp_main__")


class Program(NamedTuple):
    """The program, as its workers take it over.

    Attributes:
        argv: Its `sys.argv`.
        authkey: What opens its managers' connections, as `multiprocessing` passes it on.
        specs: All that is registered with Gymnasium, pickled.
        missing: The registered ids that cannot be pickled, with the reason.
    """

    argv: list[str]
    authkey: bytes
    specs: list[bytes]
    missing: dict[str, str]

    @classmethod
    def this(cls) -> Program:
        """This program, as it is now."""
        specs, missing = _packed(gym.registry)
        return cls(list(sys.argv), bytes(multiprocessing.current_process().authkey), specs, missing)

    def take_over(self) -> None:
        """Have this process know what the program knows."""
        sys.argv[:] = self.argv
        multiprocessing.current_process().authkey = self.authkey
        for data in self.specs:
            for name, spec in pickle.loads(data).items():
                gym.registry[name] = spec
        # Modules that are imported from now on register again what has come.
        warnings.filterwarnings("ignore", message=".*Overriding environment")

    def note(self, error: BaseException) -> None:
        """Say what to do about an id that the worker does not know."""
        if isinstance(error, gym.error.UnregisteredEnv) and hasattr(error, "add_note"):
            error.add_note(
                "A worker knows what was registered in the program when its workers were started"
                + (f", but for {self.missing}, which cannot be pickled" if self.missing else "")
                + ". Register it before, or call gymnasium.register in the function that makes the "
                "environment."
            )


def _packed(registry: Mapping[str, Any]) -> tuple[list[bytes], dict[str, str]]:
    """The specs, pickled at once; one by one where some cannot be pickled."""
    specs, missing = dict(registry), {}
    with suppress(Exception):
        return [by_value.dumps(specs)], {}
    packed = []
    for name, spec in specs.items():
        try:
            packed.append(by_value.dumps({name: spec}))
        except Exception as error:  # noqa: PERF203
            missing[name] = str(error)
    return packed, missing


def refuse_rerun() -> None:
    """Refuse to start workers where a worker is importing the program's own script.

    A script that starts workers whenever it is imported would be run again by each of them, and
    start workers there, without end.

    Raises:
        WorkerError: If a module is being imported to make the parts of a worker, or by
            `multiprocessing`; the message names the guard.
    """
    script: str | None = None
    frame = inspect.currentframe()
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if frame.f_code.co_name == "<module>":
            script = script or frame.f_code.co_filename
        if script is not None and name in _RUNS_IT_AGAIN:
            raise WorkerError(
                f"Expected {script} to start workers only where it is run as the program, but a "
                "worker is importing it, and it starts workers again. Put what it does behind "
                f"{_GUARD!r}, as for multiprocessing."
            )
        frame = frame.f_back
