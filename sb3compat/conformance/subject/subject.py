"""What there is to know of an environment before it is checked: its kind, its size, its pace."""

from __future__ import annotations

import inspect
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from sb3compat.conformance.findings import FactoryError, Family, family_name, said_by, short
from sb3compat.conformance.program.script import Script, to_source
from sb3compat.conformance.subject import capabilities as abilities
from sb3compat.conformance.subject.traits import Traits, traits_of

# What a user may declare; the rest is found out.
CAPABILITIES: dict[str, str] = {
    "seeding": "takes seeds",
    "seed_method": "has a method `seed`, working or not; missing where `seeding` is so declared",
    "options": "takes options in a reset; declared by giving some that it understands",
    "render": "renders rgb_array frames",
    "sub_envs": "has sub-environments whose attributes can be reached",
    "masked_reset": "resets the rows under options['reset_mask']",
    "row_seeds": "takes a list of seeds, one for each row",
    "reference": "the single environments were given too",
    "sb3": "Stable-Baselines3 is installed",
    "sb3_vec_env": "is an instance of Stable-Baselines3's VecEnv",
    "separate_rows": "what happens in one row does not show in another; declare it otherwise if "
    "the rows are the agents of one world",
    "repeatable": "after a seeded reset nothing is left of earlier episodes, unlike statistics",
    "two_at_once": "can be made while another one is open",
    "image_obs": "observations are images, channels last",
    "dict_obs": "observations are dicts",
}

# Where there are no more single actions than this, each is tried all the way.
_FEW_ACTIONS = 8
_MOST_STEPS = 3000
_ASSUMED_STEPS = 200
# After each way of acting has been tried, so many runs under other seeds.
_MORE_TRIES = 4
_MOST_ERRORS = 2
# Ends that take longer to get to are left out where there is another.
_LONG_SECONDS = 1.0
_MOST_ENDINGS = 5


@dataclass(frozen=True)
class Ending:
    """How to get to the end of an episode, and whether it says that it was cut short."""

    setup: str
    actions: str
    seed: int | None
    steps: int
    truncated: bool = False


@dataclass(frozen=True)
class Subject:
    """An environment to be checked.

    Attributes:
        factory: Makes it.
        family: Which interface it has.
        num_envs: The number of rows.
        mode: The value of its autoreset mode, for a `VectorEnv`.
        capabilities: What it can do.
        options: Options for a reset that it understands.
        reference: The factories of its single environments, or None.
        actions: Single actions to choose from, awkward ones among them.
        endings: Ways to the end of an episode, the shortest first.
        traits: What its resets and steps look like.
        make_seconds: How long it takes to make one, up to and with its first step.
        step_seconds: How long it takes to step one.
        notes: What else was found out.
        workers: Whether it starts processes.
        batched_actions: Whether the action space of a `VectorEnv` is one of batches, as it has to.
    """

    factory: Callable[[], Any]
    family: Family
    num_envs: int
    mode: str | None
    capabilities: Mapping[str, bool]
    options: Mapping[str, Any] | None = None
    reference: Any = None
    actions: tuple[Any, ...] = ()
    endings: tuple[Ending, ...] = ()
    traits: Traits = field(default_factory=Traits)
    make_seconds: float = 0.0
    step_seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    workers: bool = False
    batched_actions: bool = True

    @property
    def alone(self) -> bool:
        """Whether one has to be closed before another can be made, as the user has declared."""
        return not self.capabilities.get("two_at_once", True)

    def missing(self, needs: tuple[str, ...]) -> list[str]:
        """The capabilities among these that it does not have."""
        return [name for name in needs if not self.capabilities.get(name, False)]


def family_of(env: Any) -> Family:
    """Which of the two interfaces an environment has.

    Raises:
        FactoryError: If it has neither.
    """
    if isinstance(env, VectorEnv):
        return "vector_env"
    module = sys.modules.get("stable_baselines3.common.vec_env.base_vec_env")
    if module is not None and isinstance(env, module.VecEnv):
        return "vec_env"
    if all(hasattr(env, name) for name in ("num_envs", "step", "reset")):
        if hasattr(env, "single_observation_space"):
            return "vector_env"
        if hasattr(env, "step_async") and hasattr(env, "step_wait"):
            return "vec_env"
    hint = ""
    if env is None:
        hint = " Does it return what it makes?"
    elif isinstance(env, gym.Env):
        hint = (
            " That is a single environment. Make several rows of it, for example by "
            "SyncVectorEnv([function] * 3)."
        )
    raise FactoryError(
        "Expected the factory to make a VecEnv (with num_envs, reset, step, step_async and "
        f"step_wait) or a gymnasium.vector.VectorEnv, got {type(env).__name__}: {short(env)}.{hint}"
    )


def _check_factory(factory: Any) -> None:
    expected = "Expected a function that makes the environment"
    if not callable(factory):
        made = "num_envs" in dir(factory)
        hint = (
            f" Pass `lambda: {type(factory).__name__}(...)`: checks need new ones." if made else ""
        )
        raise FactoryError(f"{expected}, got {type(factory).__name__}: {short(factory)}.{hint}")
    try:
        inspect.signature(factory).bind()
    except TypeError as error:
        raise FactoryError(
            f"{expected} and takes no arguments, got {short(factory)}: {error}. Write one that "
            "calls it with them."
        ) from None
    except ValueError:  # a builtin, which does not tell
        pass


def _check_attributes(env: Any, kind: Family) -> None:
    names = ["num_envs", "observation_space", "action_space"]
    if kind == "vector_env":
        names += ["single_observation_space", "single_action_space"]
    for name in names:
        try:
            value = getattr(env, name)
        except Exception as error:
            raise FactoryError(
                f"Expected {family_name(kind)} with {', '.join(names)}, got {type(env).__name__}, "
                f"whose {name} raised {said_by(error)}."
            ) from None
        if name == "num_envs":
            if not _is_positive(value):
                raise FactoryError(
                    f"Expected at least one row, got num_envs={short(value)} "
                    f"({type(value).__name__}) in {type(env).__name__}."
                )
        elif not isinstance(value, spaces.Space):
            raise FactoryError(
                f"Expected a Gymnasium space, got {name}={short(value)} ({type(value).__name__}) "
                f"in {type(env).__name__}."
            )


def _is_positive(number: Any) -> bool:
    try:
        return int(number) > 0
    except (TypeError, ValueError):
        return False


def examine(
    factory: Callable[[], Any],
    *,
    family: Family | None = None,
    declared: Mapping[str, bool] | None = None,
    options: Mapping[str, Any] | None = None,
    reference: Any = None,
    seconds: float | None = 10.0,
) -> Subject:
    """Make the environment once and find out what there is to know.

    Args:
        factory: Makes the environment.
        family: Which interface it has; None to look.
        declared: Capabilities that the user says it has, or has not.
        options: Options that its `reset` understands.
        reference: The factories of its single environments.
        seconds: How long to look for the end of an episode; None to leave that to `scout`.

    Raises:
        FactoryError: If the factory makes no vector environment. What it raises itself comes
            through.
    """
    _check_factory(factory)
    start = time.perf_counter()
    try:
        env = factory()
    except SystemExit as error:
        raise FactoryError(
            f"Expected the factory to make an environment, got sys.exit({error.code!r}): it ends "
            "the interpreter. Let it raise an exception that says why."
        ) from error
    make_seconds = time.perf_counter() - start
    try:
        kind = family_of(env)
        if family not in (None, kind):
            raise FactoryError(
                f"Expected the factory to make {family_name(family or kind)}, got "
                f"{family_name(kind)}: {short(env)}."
            )
        _check_attributes(env, kind)
        single = env.action_space if kind == "vec_env" else env.single_action_space
        subject = Subject(
            factory=factory,
            family=kind,
            num_envs=int(env.num_envs),
            mode=abilities.mode_of(env) if kind == "vector_env" else None,
            capabilities=abilities.capabilities(env, kind, declared or {}),
            options=options,
            reference=reference,
            actions=tuple(_candidates(single)),
            make_seconds=make_seconds,
            workers=bool(multiprocessing.active_children()),
            batched_actions=kind == "vec_env" or abilities.takes_batches(env),
        )
        found = {**subject.capabilities, "options": options is not None}
        found["reference"] = reference is not None
        subject = replace(subject, capabilities=found)
    finally:
        with suppress(Exception):  # what is wrong, the checks will tell
            env.close()
    return subject if seconds is None else scout(subject, seconds)


def _candidates(space: Any) -> list[Any]:
    """Single actions: the first is the simplest, the extreme ones are among the next."""
    space.seed(0)
    samples = [space.sample() for _ in range(3)]
    if isinstance(space, spaces.Box):
        low = np.where(np.isfinite(space.low), space.low, -1).astype(space.dtype)
        high = np.where(np.isfinite(space.high), space.high, 1).astype(space.dtype)
        middle = np.clip(np.zeros(space.shape, space.dtype), low, high)
        return [middle, low, high, *samples]
    if isinstance(space, spaces.Discrete):
        first, last = space.start, space.start + space.n - 1
        between = range(first + 1, last) if space.n <= _FEW_ACTIONS else samples
        return [np.int64(action) for action in (first, last, *between)]
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        ones = np.ones(space.shape, space.dtype)
        first = getattr(space, "start", 0 * ones)
        last = first + getattr(space, "nvec", 2 * ones) - ones
        return [first.astype(space.dtype), last.astype(space.dtype), *samples]
    return samples


def batch_source(family: Family, actions: list[Any]) -> str:
    """Source for a batch of these single actions, one for each row."""
    first = actions[0]
    if isinstance(first, dict | tuple):
        if family == "vec_env":
            return to_source(actions)
        keys = list(first) if isinstance(first, dict) else range(len(first))
        parts = {key: np.stack([action[key] for action in actions]) for key in keys}
        return to_source(parts if isinstance(first, dict) else tuple(parts.values()))
    return to_source(np.stack(actions))


def sample_source(subject: Subject) -> str:
    """Source that draws a batch from the environment's own action space."""
    if subject.family == "vec_env":
        return f"np.stack([env.action_space.sample() for _ in range({subject.num_envs})])"
    if subject.batched_actions:
        return "env.action_space.sample()"
    singles = f"[env.single_action_space.sample() for _ in range({subject.num_envs})]"
    return f"stacked(env.single_action_space, {singles})"


def sample_seed_source(subject: Subject, seed: int) -> str:
    """Source that seeds what `sample_source` draws from."""
    single = subject.family == "vector_env" and not subject.batched_actions
    return f"env.{'single_' if single else ''}action_space.seed({seed})"


def _policies(subject: Subject) -> list[tuple[str, str]]:
    """Ways to act on and on: a statement to begin with, and source for a batch of actions."""
    n, family = subject.num_envs, subject.family
    few = isinstance(subject.actions[0], np.integer) and len(subject.actions) <= _FEW_ACTIONS
    chosen = subject.actions if few else subject.actions[:3]
    constant = dict.fromkeys(batch_source(family, [action] * n) for action in chosen)
    policies = [("", actions) for actions in constant]
    if not isinstance(subject.actions[0], dict | tuple):
        policies.append((sample_seed_source(subject, 0), sample_source(subject)))
    return policies


def unscouted(subject: Subject, note: str) -> Subject:
    """What to go on with where `scout` has hung or died: whoever steps on will see that, too."""
    setup, actions = _policies(subject)[0]
    seed = 0 if subject.capabilities.get("seeding") else None
    assumed = Ending(setup, actions, seed, _ASSUMED_STEPS)
    return replace(subject, endings=(assumed,), notes=(*subject.notes, note))


def scout(subject: Subject, seconds: float) -> Subject:
    """Look for ends of episodes, and at how long a step takes."""
    deadline = time.perf_counter() + seconds
    search = _Scouting(subject, seconds)
    search.run()
    endings = search.chosen()
    traits = Traits()
    if subject.family == "vec_env":
        actions = endings[0].actions if endings else _policies(subject)[-1][1]
        left = max(deadline - time.perf_counter(), seconds / 4)
        seeded = not subject.missing(("seeding",))
        traits = traits_of(subject.factory, subject.num_envs, seeded, actions, left)
    notes = [f"Looking for the end of an episode: {error}" for error in search.errors[:1]]
    if endings and not notes and not any(ending.truncated for ending in endings):
        notes.append(_NOT_TRUNCATED)
    return replace(
        subject,
        endings=tuple(endings),
        traits=traits,
        make_seconds=min(search.makes, default=subject.make_seconds),
        step_seconds=search.step_seconds,
        notes=(*subject.notes, *notes),
    )


_NOT_TRUNCATED = (
    "No episode that ended was truncated, by its flags: how that is told is not exercised. If "
    "there is a time limit, check with a short one."
)


class _Scouting:
    """Acts in some way until a row ends, in each way for its share of the time."""

    def __init__(self, subject: Subject, seconds: float) -> None:
        self.subject, self.seconds = subject, seconds
        self.found: list[tuple[int, Ending]] = []
        self.errors: list[Exception] = []
        self.makes: list[float] = []
        self._steps, self._spent = 0, 0.0

    def run(self) -> None:
        """Try each way, then some under other seeds."""
        policies = _policies(self.subject)
        begin = time.perf_counter()
        for number in range(len(policies) + _MORE_TRIES):
            again = number >= len(policies)
            left = begin + self.seconds / (2 if again else 1) - time.perf_counter()
            if left < 0 or len(self.errors) >= _MOST_ERRORS:
                return
            # One that never ends is not to use up the time of those that do.
            share = left if again else left / (len(policies) - number)
            seed = number // len(policies) if self.subject.capabilities.get("seeding") else None
            kind = number % len(policies)
            most = min(_MOST_STEPS, 4 * self._shortest()) if again else _MOST_STEPS
            self._try(kind, *policies[kind], seed, most, share)

    @property
    def step_seconds(self) -> float:
        """How long a step takes."""
        return self._spent / self._steps if self._steps else min(self.makes, default=0.0)

    def _shortest(self) -> int:
        return min((ending.steps for _, ending in self.found), default=_MOST_STEPS)

    def _try(
        self, kind: int, setup: str, actions: str, seed: int | None, most: int, share: float
    ) -> None:
        script, family = Script(self.subject.factory), self.subject.family
        count = 0
        started = until = time.perf_counter()
        try:
            script.run("env = make_env()")
            for line in opening(family, setup, seed):
                script.run(line)
            for count in range(1, most + 1):
                begin = time.perf_counter()
                script.run(f"result = env.step({actions})")
                now = time.perf_counter()
                if count == 1:  # some compile what they do for each instance anew
                    self.makes.append(now - started)
                    until = now + share
                else:
                    self._spent += now - begin
                    self._steps += 1
                result = script.value("result")
                if _any_ended(family, result):
                    truncated = _any_truncated(family, result)
                    self.found.append((kind, Ending(setup, actions, seed, count, truncated)))
                    return
                if now > until:
                    return
        except Exception as error:  # what is wrong, the checks will tell
            self.errors.append(error)
            if count:
                self.found.append((kind, Ending(setup, actions, seed, count)))
        finally:
            script.close()

    def chosen(self) -> list[Ending]:
        """A few that differ in how they come about, the shortest first."""
        known = sorted(self.found, key=lambda found: found[1].steps)
        quick = [k for k in known if k[1].steps * self.step_seconds <= _LONG_SECONDS]
        known = quick or known[:1]
        sampled = len(_policies(self.subject)) - 1
        kept: list[tuple[int, Ending]] = []

        def keep(candidates: Iterable[tuple[int, Ending]]) -> None:
            for kind, ending in candidates:
                if all((kind, ending.truncated) != (k, e.truncated) for k, e in kept):
                    kept.append((kind, ending))

        keep(known[:1])
        keep([k for k in known if k[1].truncated != known[0][1].truncated][:1])
        keep([k for k in known if k[0] == sampled][:1])
        keep(known)
        return sorted((e for _, e in kept[:_MOST_ENDINGS]), key=lambda ending: ending.steps)


def opening(family: Family, setup: str, seed: int | None) -> list[str]:
    """The statements between making an environment and its first step."""
    lines = [setup] if setup else []
    if family == "vec_env":
        if seed is not None:
            lines.append(f"env.seed({seed})")
        return [*lines, "obs = env.reset()"]
    return [*lines, f"obs, infos = env.reset(seed={seed})" if seed is not None else RESET_BOTH]


RESET_BOTH = "obs, infos = env.reset()"


def _any_ended(family: Family, result: Any) -> bool:
    if family == "vec_env":
        return bool(np.any(result[2]))
    return bool(np.any(result[2]) or np.any(result[3]))


def _any_truncated(family: Family, result: Any) -> bool:
    if family == "vector_env":
        return bool(np.any(result[3]))
    with suppress(Exception):  # infos may be anything
        return any(bool(info.get("TimeLimit.truncated")) for info in result[3])
    return False
