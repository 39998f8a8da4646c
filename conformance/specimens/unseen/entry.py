"""What is known about an environment here, and the decorators that write it down."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

import gymnasium as gym
from gymnasium.vector import AutoresetMode

Api: TypeAlias = Literal["VecEnv", "VectorEnv"]
Singles: TypeAlias = tuple[Callable[[], gym.Env[Any, Any]], ...]
Make = TypeVar("Make", bound=Callable[[], Any])


@dataclass(frozen=True)
class Entry:
    """An environment, made by calling `make` without arguments.

    Args:
        name: That of the class or function.
        api: The contract that it is written for.
        make: The class or function itself.
        about: Its docstring; for a broken one it also says what is wrong.
        mode: The autoreset mode of a VectorEnv.
        singles: What makes the single environments of its rows, where it has such. Driven one by
            one with the same seeds and actions, they say what the right answers are.
    """

    name: str
    api: Api
    make: Callable[[], Any]
    about: str
    mode: AutoresetMode | None = None
    singles: Singles = field(default=(), repr=False)


@dataclass(frozen=True)
class Correct(Entry):
    """One that its author takes to keep its contract.

    Args:
        rightly: Checks that fail all the same, each with the source that it is right by.
    """

    rightly: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Broken(Entry):
    """One that breaks its contract in one way.

    Args:
        breaks: The sentence of the contract that does not hold.
        told_without_reference: Whether what it returns contradicts itself or the contract, so that
            nobody needs the single environments to see it.
        why: The reason for the answer to that.
        warning: The check that finds it, if it is one that warns only.
    """

    breaks: str = ""
    told_without_reference: bool = True
    why: str = ""
    warning: str = ""


CORRECT: dict[str, Correct] = {}
BROKEN: dict[str, Broken] = {}


def correct(
    api: Api,
    *,
    mode: AutoresetMode | None = None,
    singles: Singles = (),
    rightly: Mapping[str, str] | None = None,
) -> Callable[[Make], Make]:
    """Enter an environment that keeps its contract."""

    def enter(make: Make) -> Make:
        name, about = _named(make)
        CORRECT[name] = Correct(name, api, make, about, mode, singles, rightly or {})
        return make

    return enter


def broken(
    api: Api,
    *,
    breaks: str,
    told: bool,
    why: str,
    mode: AutoresetMode | None = None,
    singles: Singles = (),
    warning: str = "",
) -> Callable[[Make], Make]:
    """Enter an environment that breaks its contract; `told` is `told_without_reference`."""

    def enter(make: Make) -> Make:
        name, about = _named(make)
        BROKEN[name] = Broken(name, api, make, about, mode, singles, breaks, told, why, warning)
        return make

    return enter


def _named(make: Callable[[], Any]) -> tuple[str, str]:
    name, about = make.__name__, inspect.getdoc(make)
    if about is None:
        raise ValueError(f"{name} has no docstring")
    if name in CORRECT or name in BROKEN:
        raise ValueError(f"There are two environments named {name}")
    return name, about
