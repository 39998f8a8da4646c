"""Values of a record: copies of results, the objects themselves, and their source in scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from sb3compat.conformance.findings import MalformedError, said_by
from sb3compat.conformance.program.script import PRELUDE, to_source

# Where the name of a value stands in the source of a part of it.
HOLE = "\0"

# A placeholder for a part of an object that a later call has removed.
_GONE = SimpleNamespace()

row, part, info_of = map(PRELUDE.__getitem__, ("row", "part", "info_of"))


class Value:
    """A value of a record, as it was when the call returned, and its name in a script.

    Attributes:
        value: A copy from the moment when the call returned.
        live: The object itself.
        call: The number of the call.
        name: The name that a script gives the value it is a part of.
        path: The source of the part, with `HOLE` for that name.
        is_held: Whether demands are about the object itself, as it is after all calls.
    """

    __slots__ = ("call", "is_held", "live", "name", "path", "value")

    def __init__(
        self,
        call: int,
        name: str,
        value: Any,
        live: Any,
        path: str = HOLE,
        *,
        is_held: bool = False,
    ) -> None:
        self.call, self.name, self.path, self.is_held = call, name, path, is_held
        self.value, self.live = value, live

    @property
    def held(self) -> Value:
        """The object itself, as it is after all calls of the record."""
        return Value(self.call, self.name, self.value, self.live, self.path, is_held=True)

    @property
    def judged(self) -> Any:
        """What demands are about."""
        return self.live if self.is_held else self.value

    def __getitem__(self, key: Any) -> Value:
        return self._part(lambda whole: whole[key], f"{self.path}[{key!r}]", key)

    def get(self, key: str, default: object) -> Value:
        """The value of a key, as `dict.get` returns it."""
        return self._part(
            lambda whole: whole.get(key, default), f"{self.path}.get({key!r}, {default!r})"
        )

    def row(self, i: int) -> Value:
        """Row i of a batch of observations."""
        return self._part(lambda whole: row(whole, i), f"row({self.path}, {i})")

    def part(self, space: Any, i: int) -> Value:
        """Row i of a batch of a composite single space, of a `VectorEnv`."""
        source = f"part(env.single_observation_space, {self.path}, {i})"
        return self._part(lambda whole: part(space, whole, i), source)

    def info(self, i: int) -> Value:
        """The info of row i of a `VectorEnv`."""
        return self._part(lambda whole: info_of(whole, i), f"info_of({self.path}, {i})")

    def _part(self, take: Callable[[Any], Any], path: str, key: object = None) -> Value:
        try:
            value, live = take(self.value), None
        except Exception as error:
            part = path.replace(HOLE, self.name)
            raise MalformedError(f"{part} raised {said_by(error)}", self, key) from error
        if self.is_held:
            try:
                live = take(self.live)
            except (KeyError, IndexError, TypeError):
                live = _GONE
        return Value(self.call, self.name, value, live, path, is_held=self.is_held)

    def _refused(self, *_: object) -> Any:
        """Refuse what would be about this object, and not about the value."""
        raise TypeError(
            f"Expected a value in an expression of the check, got the part of a result that has "
            f"it: {self.source(self.name)}. Write `.value` behind it, such as "
            "`if step.dones[i].value:`; in expect(…) leave that out."
        )

    __bool__ = __len__ = __iter__ = __contains__ = _refused
    __lt__ = __le__ = __gt__ = __ge__ = _refused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refused
    __eq__ = __ne__ = _refused
    __hash__ = object.__hash__

    def source(self, name: str) -> str:
        """The source of this value, where a script has the whole under this name."""
        return self.path.replace(HOLE, name)


class Several(Value):
    """Values of several calls, of the same kind: in a script a list of them."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Value]) -> None:
        first = parts[0]
        super().__init__(first.call, first.name, [p.value for p in parts], None, first.path)
        self.parts = parts

    def source(self, name: str) -> str:
        """The source of the list, where a script has one of the values under this name."""
        one, _, many = name.partition(" for ")
        return f"[{super().source(one)} for {many}]"


def constant(value: Any) -> Value:
    """A value that the check itself knows, as its source."""
    return Value(-1, to_source(value), value, value)
