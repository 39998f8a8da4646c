"""Facts about the environment under test: its interface, its size, its capabilities, its pace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sb3compat.conformance.findings import Family
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.types import Factory, Reference
from sb3compat.conformance.subject.singles import reference_of
from sb3compat.conformance.subject.traits import Traits


@dataclass(frozen=True)
class Ending:
    """A way to the end of an episode.

    Attributes:
        setup: A statement to run before the reset, or nothing.
        actions: Source for the actions of each step.
        seed: The seed of the reset, or None.
        steps: The number of steps to the first end of an episode.
        truncated: Whether the flags call that end a truncation.
    """

    setup: str
    actions: str
    seed: int | None
    steps: int
    truncated: bool = False


@dataclass(frozen=True)
class Subject:
    """An environment under test.

    Attributes:
        factory: Makes it.
        family: Its interface.
        num_envs: The number of rows.
        mode: The value of its autoreset mode, for a `VectorEnv`.
        capabilities: Its capabilities, see `CAPABILITIES`.
        options: Options that its `reset` understands: the user's, or `guess` if nothing else shows.
        guess: Options that a `VectorEnv` seems to understand, if the user gave none.
        asked: The names of options that its `reset` looks for, if none were given.
        unnamed: Whether its `reset` looks for names of options, and does without each of them.
        reference: The factories of its single environments that the user gave, or None.
        singles: Otherwise the attribute of the environment that has them; empty if unknown.
        action_space: The space of single actions.
        actions: Single actions to choose from, awkward ones among them.
        endings: Ways to the end of an episode, the shortest first.
        truncates: Whether the flags call one of the ends seen a truncation.
        traits: How much its observations vary between resets and steps.
        make_seconds: The time to make one, up to and with its first step; like the other times
            rounded up to a power of two.
        reset_seconds: The time of a reset.
        step_seconds: The time of a step.
        notes: Remarks for the report.
        workers: Whether it starts processes.
        batched_actions: Whether the action space of a `VectorEnv` is one of batches, as the
            contract demands.
        classes: The names of its classes and of those that it wraps, bases included.
        shared: Whether a program may use the instance of another one: making one takes long, and
            after a seed and a reset it does what a new one does.
        forked: Whether checks run in forks, which have new instances that were made before.
        closes: Whether `close` returns.
        lost: The call in which the environment hung or crashed before the checks; or empty.
    """

    factory: Factory
    family: Family
    num_envs: int
    mode: str | None
    capabilities: Mapping[str, bool]
    options: Mapping[str, Any] | None = None
    guess: Mapping[str, Any] | None = None
    asked: tuple[str, ...] = ()
    unnamed: bool = False
    reference: Reference | None = None
    singles: str = ""
    action_space: Any = None
    actions: tuple[Any, ...] = ()
    endings: tuple[Ending, ...] = ()
    truncates: bool = False
    traits: Traits = field(default_factory=Traits)
    make_seconds: float = 0.0
    reset_seconds: float = 0.0
    step_seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    workers: bool = False
    batched_actions: bool = True
    classes: tuple[str, ...] = ()
    shared: bool = False
    forked: bool = False
    closes: bool = True
    lost: str = ""

    @property
    def referenced(self) -> bool:
        """Whether the single environments are known."""
        return self.reference is not None or bool(self.singles)

    @property
    def guessed(self) -> bool:
        """Whether its options are guessed: a row may begin so without them, too."""
        return self.options is not None and self.guess is not None

    @property
    def alone(self) -> bool:
        """Whether the user declared that only one instance can exist at a time."""
        return not self.capabilities.get("two_at_once", True)

    def instances(self) -> Instances:
        """A store of instances for the programs of one process."""
        return Instances(
            self.factory,
            reference_of(self.factory, self.reference, self.singles, self.num_envs),
            shared=self.shared,
            alone=self.alone,
            closing=self.closes,
        )

    def missing(self, needs: tuple[str, ...]) -> list[str]:
        """The capabilities among these that it does not have."""
        return [name for name in needs if not self.capabilities.get(name, False)]
