"""Any operations in any order, on a `ParallelVecEnv` and a `DummyVecEnv` side by side.

After each operation, the stream is that of the `DummyVecEnv`; or an exception has said otherwise,
and then a reset with a seed brings both together again, or closing is the only way and the message
says so. No call gets the answer of an earlier one.
"""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import sb3compat
from sb3compat.errors import CallOrderError, WorkerError, WorkerTimeoutError
from tests.interrupts import ERRORS, attempt, interrupt, no_hang
from tests.lockstep import same
from tests.lockstep_back import dummy
from tests.parallel.echoing import ArmedBaseError, ArmedError, Echoing, MakeEchoing
from tests.parallel.failing import WorkerProcess
from tests.parallel.teams import children, parts_of
from tests.resources import descendants

LOST = "sb3compat.worker_lost"
# What an operation may raise that meets a fault. Whatever else it raises fails the test.
SAID: tuple[type[BaseException], ...] = (
    WorkerError,
    CallOrderError,
    ArmedError,
    ArmedBaseError,
    *ERRORS,
)
# How long an operation may take before it counts as one that hangs.
# With such a timeout in seconds, workers are neither stopped nor hang.
PATIENT = 20

Call = Callable[[], Any]
Shape = Sequence[tuple[str, int]]


class Pair:
    """Both environments, and what is known of ours.

    Args:
        folder: Where environments that hang look for a file that lets them go.
        shape: The parts: kinds of `teams.KINDS`, and their numbers of rows.
        kwargs: The arguments of our environment.

    Attributes:
        endings: What each fault ended in, and how often.
        said: What an operation may raise.
        interrupts: How many operations were interrupted.
    """

    def __init__(self, folder: Path, shape: Shape, **kwargs: Any) -> None:
        self.gate = folder / "gate"
        self.shape, self.kwargs = shape, kwargs
        self.n = sum(count for _, count in shape)
        self.restarts = kwargs.get("on_worker_lost") == "restart"
        self.patient = kwargs.get("timeout", 0) >= PATIENT
        self.on_ray = kwargs.get("backend") == "ray"
        self.said = SAID
        self.endings: Counter[str] = Counter()
        self.token = self.interrupts = 0
        self.seen: list[WorkerProcess] = []
        self.workers: list[WorkerProcess] = []
        self.build()

    def build(self) -> None:
        """Make both environments anew."""
        self.stopped: list[int] = []
        self.last: Any = None
        self.armed: dict[int, str] = {}
        self.waiting: Any = None
        self.ours: Any = self.make()
        self._watch()
        self.theirs: Any = dummy([MakeEchoing(row) for row in range(self.n)])
        self._was_reset(self.ours.reset())
        # Only now: on a loaded machine, a worker may take longer to make its parts.
        self.ours._source._workers._timeout = self.kwargs.get("timeout")

    def make(self, **kwargs: Any) -> Any:
        """One of our environments, with other arguments, and with time to make its parts."""
        fns: list[Any] = [MakeEchoing(row, str(self.gate)) for row in range(self.n)]
        patient = self.kwargs | {"timeout": 180} | kwargs
        return sb3compat.ParallelVecEnv(parts_of(fns, self.shape), **patient)

    # Operations that have to be exact, or an error that says why not.

    def step(self, actions: Any) -> None:
        if self.waiting is not None:
            with_error = attempt(lambda: self.ours.step(actions), CallOrderError)[1]
            assert with_error is not None, "a second step while one is under way"
            return
        self._try(lambda: self.ours.step(actions), lambda got: self._stepped(got, actions))

    def step_async(self, actions: Any) -> None:
        if self.waiting is None and self._try(lambda: self.ours.step_async(actions)):
            self.waiting = actions

    def step_wait(self) -> None:
        actions, self.waiting = self.waiting, None
        if actions is None:
            assert attempt(self.ours.step_wait, *self.said)[1] is not None, "a wait for no step"
        else:
            self._try(self.ours.step_wait, lambda got: self._stepped(got, actions))

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        # That step was taken by ours only; or a worker, killed while one was stopped, is replaced.
        if seed is None and (self.waiting is not None or self.stopped):
            seed = 0
        self._wait_for(seed, options)
        self._try(self.ours.reset, self._was_reset)

    def set_mark(self, value: int, rows: list[int]) -> None:
        self._try(
            lambda: self.ours.set_attr("mark", value, indices=rows),
            lambda _: self.theirs.set_attr("mark", value, indices=rows),
        )

    def read(self, rows: list[int]) -> None:
        """Read what the rows hold, in several ways."""
        self._same(lambda env: env.get_attr("mark", indices=rows))
        self._same(lambda env: env.get_images())
        self._same(lambda env: env.has_attr("mark"))
        self._same(lambda env: env.env_is_wrapped(Echoing))

    def echo(self) -> None:
        """A call whose answer says which call it answers."""
        self.token += 1
        token = self.token
        expected = [(row, token) for row in range(self.n)]
        self._try(
            lambda: self.ours.env_method("echo", token), lambda got: same(list(got), expected)
        )

    # Faults.

    def arm(self, row: int, how: str) -> None:
        how = "raise" if how == "hang" and self.patient else how
        self.gate.unlink(missing_ok=True)
        if self._try(lambda: self.ours.env_method("arm", how, indices=[row])):
            self.armed[row] = how

    def kill(self, which: int) -> None:
        """Kill a worker, and wait until it is dead."""
        worker = self.workers[which % len(self.workers)]
        with suppress(ProcessLookupError):
            worker.kill()

    def stop(self, which: int) -> None:
        """Stop a worker, until `go`."""
        pid = self.workers[which % len(self.workers)].pid
        if self.patient:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            self.stopped.append(pid)

    def go(self) -> None:
        """Let workers go on that were stopped, or that hang."""
        self.gate.touch()
        self.armed = {row: how for row, how in self.armed.items() if how != "hang"}
        while self.stopped:
            with suppress(ProcessLookupError):
                os.kill(self.stopped.pop(), signal.SIGCONT)

    def interrupt(self, call: Call, at: int, error: type[BaseException]) -> str | None:
        """Interrupt a call at a bytecode instruction; where that was, or None."""
        with no_hang():
            where = interrupt(call, at, error)
        self.interrupts += where is not None
        return where

    def interrupted(self, name: str, at: int, error: type[BaseException], actions: Any) -> None:
        """Interrupt an operation at a bytecode instruction, and see that the next one is right."""
        if self.waiting is not None:
            return self.step_wait()
        call: Call = {
            "step": lambda: self.ours.step(actions),
            "reset": self.ours.reset,
            "echo": lambda: self.ours.env_method("echo", -1),
            "set_mark": lambda: self.ours.set_attr("mark", 7),
        }[name]
        raised, other = attempt(lambda: self.interrupt(call, at, error), *self.said)
        if other is None and name == "step" and raised is not None:
            other = self._after_a_step_that_may_be_taken(actions)
        elif other is None and name == "echo":
            return None
        return self.recover(other)

    def interrupted_start(self, at: int, error: type[BaseException]) -> None:
        """Interrupt the construction of one more environment: nothing of it stays."""
        before = {*children()}
        made: list[Any] = []
        self.interrupt(lambda: made.append(self.make()), at, error)
        while made:
            made.pop().close()
        gc.collect()
        for pid in {*children()} - before:
            with suppress(ProcessLookupError):
                assert WorkerProcess(pid).has_ended(), "a worker is left"

    # How it goes on.

    def _watch(self) -> None:
        """Note the processes of our workers, and those below them."""
        # Those of a fork server are no children of this process, nor are the actors of Ray.
        pids = [] if self.on_ray else children()
        if not pids:
            # Another worker may have died after its answer to the step.
            told = attempt(lambda: self.ours.env_method("pid"), *self.said)[0]
            pids = sorted(set(told)) if told else [worker.pid for worker in self.workers]
        known = {process.pid: process for process in self.seen}
        for pid in [each for worker in pids for each in (worker, *descendants(worker))]:
            with suppress(ProcessLookupError):
                known.setdefault(pid, WorkerProcess(pid))
        self.seen = list(known.values())
        self.workers = [known[pid] for pid in pids]

    def close(self, at: int | None = None) -> None:
        """Close ours, interrupted at some point the first time."""
        self.go()
        if at is not None:
            attempt(lambda: self.interrupt(self.ours.close, at, KeyboardInterrupt), *self.said)
        with no_hang():
            self.ours.close()
            self.ours.close()
        self.gate.unlink(missing_ok=True)
        while self.seen:
            process = self.seen.pop()
            assert process.has_ended(), f"process {process.pid} is left"

    def _try(self, call: Call, compare: Callable[[Any], Any] = lambda _: None) -> bool:
        """Whether a call has given what it has to; otherwise it has said so, and all goes on."""
        with no_hang():
            got, error = attempt(call, *self.said)
        if error is None:
            compare(got)
            return True
        busy = self.waiting is not None and isinstance(error, CallOrderError)
        if not busy:
            self.recover(error)
        return False

    def _same(self, read: Callable[[Any], Any]) -> None:
        self._try(
            lambda: read(self.ours), lambda got: same(list_of(got), list_of(read(self.theirs)))
        )

    def _stepped(self, got: Any, actions: Any) -> None:
        """Compare a step; in rows of a lost worker, with what the policy promises."""
        lost = [row for row, info in enumerate(got[3]) if LOST in info]
        assert self.restarts or not lost
        for row in lost:
            self.armed.pop(row, None)
        assert not self.armed, f"{self.armed} have not failed"
        expected = self.theirs.step(actions)
        for row in lost:
            self.theirs.envs[row] = env = Echoing(row)
            expected[0][row], self.theirs.reset_infos[row] = env.reset()
            expected[1][row], expected[2][row] = 0, True
            expected[3][row] = {
                LOST: True, "TimeLimit.truncated": True, "terminal_observation": self.last[row],
            }  # fmt: skip
        same(got, expected)
        self.last = got[0]
        self._same_reset_infos()
        if lost:
            self._watch()
            self.note("went on with lost rows")

    def _after_a_step_that_may_be_taken(self, actions: Any) -> BaseException | None:
        """The error of the next step; if there is none, the first was taken as a whole or not."""
        with no_hang():
            got, error = attempt(lambda: self.ours.step(actions), *self.said)
        missed: BaseException | None = error
        if missed is None and any(LOST in info for info in got[3]):
            self._stepped(got, actions)  # it is the first that has replaced a worker
        elif missed is None:
            untaken = deepcopy(self.theirs)
            self.theirs.step(actions)
            ways = [attempt(lambda env=env: same(got, env.step(actions)), AssertionError)[1]
                    for env in (untaken, self.theirs)]  # fmt: skip
            assert None in ways, ways
        return missed

    def _wait_for(self, seed: int | None, options: Any) -> None:
        def ask(env: Any) -> None:
            env.set_options(options)
            if seed is not None:
                env.seed(seed)

        ask(self.theirs)
        self._try(lambda: ask(self.ours))

    def _was_reset(self, observations: Any) -> None:
        self.waiting, self.armed = None, {}
        same(observations, self.theirs.reset())
        self.last = observations
        self._same_reset_infos()

    def _same_reset_infos(self) -> None:
        """A reset may have replaced a worker, and says so."""
        infos = [dict(info) for info in self.ours.reset_infos]
        replaced = [info.pop(LOST, False) for info in infos]
        assert self.restarts or not any(replaced)
        same(infos, self.theirs.reset_infos)

    def recover(self, error: BaseException | None) -> None:
        """Bring both together by a reset with a seed, or close ours if it says so."""
        self.go()
        self.waiting = None
        if self.on_ray:  # on a loaded machine, the process of a new actor takes long to start
            self.ours._source._workers._timeout = 60
        for _ in range(5):
            self.token += 1
            with no_hang():
                got, error = attempt(lambda: self._reset_both(self.token), *self.said)
            if error is None:
                self.ours._source._workers._timeout = self.kwargs.get("timeout")
                self._was_reset(got)
                self.gate.unlink(missing_ok=True)
                self._watch()
                return self.note("error, reset")
            assert isinstance(error, WorkerError), f"a reset asks for a reset: {error!r}"
            if "build a new one" in str(error):
                return self.rebuild()
            assert self.restarts or isinstance(error, WorkerTimeoutError), error
            # Options are checked by the parts, which a reset makes anew.
            with no_hang():
                attempt(self.ours.reset, *self.said)
        raise AssertionError(f"no reset goes on: {error!r}")

    def _reset_both(self, seed: int) -> Any:
        for env in (self.ours, self.theirs):
            env.set_options(None)
            env.seed(seed)
        return self.ours.reset()

    def rebuild(self) -> None:
        """Close ours, and make both anew."""
        self.close()
        del self.ours
        self.note("error, close")
        self.build()

    def note(self, ending: str) -> None:
        self.endings.update([ending])


def list_of(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
