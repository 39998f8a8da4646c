"""What an entry of the table says."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """How an entry is looked up."""

    NAME = "name"  # defined or imported by the module
    ATTRIBUTE = "attribute"  # of the class or its instances
    LOCAL = "local variable"  # of the function
    METHOD = "method"  # of the class, and it can be called like that
    COMMAND = "command"  # that the function, a worker's loop, compares with
    CODE = "code"  # a form that is found in the function; after "command -> ", in that branch
    BODY = "body"  # all that the function does


class Name(NamedTuple):
    """One private thing of another library.

    Attributes:
        where: `module`, or `module:class` or `module:function`.
        kind: How it is looked up.
        name: The name, or a pattern of code.
        used_in: The module of this package that relies on it.
        why: What would go wrong without it, or if it meant something else.
        since: The first minor release that always has it; empty where all supported ones do.
    """

    where: str
    kind: Kind
    name: str
    used_in: str
    why: str
    since: str = ""

    @property
    def module(self) -> str:
        """The module."""
        return self.where.partition(":")[0]

    @property
    def qualname(self) -> str:
        """The class or function within the module; empty for the module itself."""
        return self.where.partition(":")[2]

    @property
    def library(self) -> str:
        """The library, by the name that is imported."""
        return self.where.partition(".")[0].partition(":")[0]

    def __str__(self) -> str:
        return f"{self.where} {self.kind.value} {self.name}"


def names(
    where: str, kind: Kind, used_in: str, whys: Mapping[str, str], *, since: str = ""
) -> tuple[Name, ...]:
    return tuple(Name(where, kind, name, used_in, why, since) for name, why in whys.items())
