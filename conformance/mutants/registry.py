"""Where mutants are registered, with what they break."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from conformance.mutants.family import Config

MUTANTS: dict[str, tuple[Callable[[], Any], set[str]]] = {}

# Mutants which only the single environments, given as a reference, can bring to light.
NEED_REFERENCE: set[str] = set()


def mutant(
    *ids: str, config: Config | None = None, needs_reference: bool = False
) -> Callable[[type], type]:
    """Register a class as a mutant that is to fail these checks."""

    def register(cls: type) -> type:
        MUTANTS[cls.__name__] = (partial(cls, config or Config()), set(ids))
        if needs_reference:
            NEED_REFERENCE.add(cls.__name__)
        return cls

    return register


def config_of(name: str) -> Config:
    """The configuration of a mutant."""
    factory = MUTANTS[name][0]
    assert isinstance(factory, partial)
    config = factory.args[0]
    assert isinstance(config, Config)
    return config
