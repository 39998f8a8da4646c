"""Real worker processes that answer, hang and die as they are told."""

from __future__ import annotations

import multiprocessing
import os
import signal
import struct
from typing import Any

from sb3compat._ipc.pipes import pickled
from sb3compat._ipc.ready import Line

fork = multiprocessing.get_context("fork")
LONG = bytes(10_000_000)  # more than a pipe holds


def work(pipe: Any, gate: Any) -> None:
    """Do what each message says; `gate` is opened by the test, or by another worker."""
    while True:
        command, data = pipe.recv()
        if command == "wait":
            gate.wait()
        if command == "die":
            os._exit(1)
        if command == "signal":
            os.kill(data, signal.SIGUSR1)
            gate.wait()
        if command.startswith("half"):
            answer = pickled(LONG)
            rest = memoryview(struct.pack("!i", len(answer)) + answer[:-1])
            while rest:
                rest = rest[os.write(pipe.fileno(), rest) :]
            if command == "half and die":
                os._exit(1)
            gate.wait()
        pipe.send(Odd() if command == "odd" else (command, data))
        if command == "open":
            gate.set()
        if command == "answer and die":
            os._exit(1)


class Odd:
    """Cannot be unpickled."""

    def __reduce__(self) -> Any:
        return int, ("not a number",)


class Workers:
    """Three of them. As with SB3, the first holds the pipes of the others."""

    def __init__(self, number: int = 3) -> None:
        self.number = number
        self.start()

    def start(self) -> None:
        self.gate = fork.Event()
        pairs = [fork.Pipe() for _ in range(self.number)]
        self.processes = []
        for _, child in pairs:
            process = fork.Process(target=work, args=(child, self.gate), daemon=True)
            process.start()
            child.close()
            self.processes.append(process)
        self.pipes = [parent for parent, _ in pairs]
        self.lines = {
            row: Line(pipe, self.processes[row])  # type: ignore[arg-type]
            for row, pipe in enumerate(self.pipes)
        }

    def renew(self) -> None:
        self.end()
        self.start()

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()
        for pipe in self.pipes:
            pipe.close()
