"""What a worker raises arrives as it was raised, over each of the ways that there are."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv

import sb3compat
from tests.envs import Identity, ScriptedEnv, script
from tests.lockstep_back import subproc

pytest.importorskip("stable_baselines3")


class CodeError(Exception):
    def __init__(self, text: str, code: int = 3) -> None:
        super().__init__(text)
        self.code = code


class FormattingError(Exception):
    """Built again from its text, it would say "row row 3 failed failed"."""

    def __init__(self, row: Any) -> None:
        super().__init__(f"row {row} failed")
        self.row = row


class ReadingError(OSError):
    def __init__(self, path: str) -> None:
        super().__init__(f"cannot read {path}")
        self.path = path


class KeywordError(ValueError):
    def __init__(self, *, row: int) -> None:
        super().__init__(f"row {row}")
        self.row = row


class OwnReduceError(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")
        self.pair = (first, second)

    def __reduce__(self) -> Any:
        return type(self), self.pair


class OwnNewError(Exception):
    def __new__(cls, *, row: int) -> OwnNewError:
        made = super().__new__(cls, row)
        made.made = True  # type: ignore[attr-defined]
        return made

    def __init__(self, *, row: int) -> None:
        super().__init__(row)


class OncePickledError(Exception):
    """Raises when it is unpickled."""

    def __setstate__(self, state: Any) -> None:
        raise RuntimeError("not again")


class RaisingReduceError(Exception):
    def __reduce__(self) -> Any:
        raise RuntimeError("not at all")


class PropertyError(Exception):
    @property
    def code(self) -> int:
        return int(vars(self)["code"])


class Unbuildable:
    def __reduce__(self) -> Any:
        return _fail, ()


def _fail() -> None:
    raise RuntimeError("cannot be built")


def with_state(error: Exception, **state: Any) -> Exception:
    vars(error).update(state)
    return error


def noted() -> Exception:
    error = ValueError("noted")
    error.__notes__ = ["a note", "another"]  # what add_note does, from Python 3.11
    return error


def chained() -> Exception:
    try:
        try:
            raise KeyError("the cause")
        except KeyError as cause:
            raise ValueError("the effect") from cause
    except ValueError as error:
        return error


def caught(function: Callable[[], Any]) -> Exception:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def group() -> Exception:
    kind = getattr(__import__("builtins"), "ExceptionGroup")  # noqa: B009
    error: Exception = kind("several", [KeyError(3), OSError(2, "gone", "file")])
    return error


# What to raise, and the attributes that have to arrive with it.
WHOLE: dict[str, tuple[Callable[[], Exception], list[str]]] = {
    "text": (lambda: ValueError("text"), []),
    "several arguments": (lambda: ValueError("a", 2, None), []),
    "key": (lambda: KeyError("key"), []),
    "json": (lambda: caught(lambda: json.loads("{ ")), ["lineno", "colno", "pos", "doc", "msg"]),
    "unicode": (
        lambda: caught(lambda: b"a\xff".decode("utf-8")),
        ["encoding", "object", "start", "end", "reason"],
    ),
    "file": (lambda: OSError(2, "gone", "name"), ["errno", "strerror", "filename"]),
    "two files": (lambda: OSError(17, "there", "a", None, "b"), ["filename", "filename2"]),
    "import": (lambda: ImportError("no", name="x", path="y"), ["name", "path", "msg"]),
    "stop": (lambda: StopAsyncIteration(3), []),
    "syntax": (lambda: caught(lambda: compile("a b", "f", "exec")), ["lineno", "text", "filename"]),
    "attributes": (lambda: CodeError("text", 7), ["code"]),
    "array": (lambda: ValueError(np.arange(3), "x"), []),
    "formatting": (lambda: FormattingError(3), ["row"]),
    "formatting a file": (lambda: ReadingError("x"), ["path", "errno"]),
    "keywords": (lambda: KeywordError(row=3), ["row"]),
    "own reduce": (lambda: OwnReduceError(1, 2), ["pair"]),
    "own new": (lambda: OwnNewError(row=3), ["made"]),
    "own setstate": (lambda: with_state(OncePickledError("x"), code=3), ["code"]),
    "property": (lambda: with_state(PropertyError("x"), code=3), ["code"]),
    "notes": (noted, ["__notes__"]),
    "chained": (chained, []),
    "warning": (lambda: UserWarning("careful"), []),
    "of gymnasium": (lambda: gym.error.ResetNeeded("now"), []),
    "of ours": (lambda: sb3compat.WorkerError("within"), []),
    **({"group": (group, ["message"])} if sys.version_info >= (3, 11) else {}),
}
# What cannot be sent or built as a whole: its type, text and these attributes arrive.
PARTS: dict[str, tuple[Callable[[], Exception], list[str]]] = {
    "attribute that cannot be pickled": (
        lambda: with_state(FormattingError(3), lock=threading.Lock(), code=5),
        ["code", "row"],
    ),
    "argument that cannot be pickled": (lambda: ValueError(lambda: None, 3), []),
    "the only argument cannot be pickled": (lambda: ValueError(Identity), []),
    "attribute that cannot be built": (
        lambda: with_state(ValueError("x"), thing=Unbuildable(), code=5),
        ["code"],
    ),
    "reduce that raises": (lambda: with_state(RaisingReduceError("x"), code=5), ["code"]),
    "file and an attribute": (
        lambda: with_state(OSError(2, "gone", "name"), lock=threading.Lock()),
        ["errno", "strerror", "filename"],
    ),
}
EVERY = {**WHOLE, **PARTS}


class Raising(ScriptedEnv):
    def __init__(self) -> None:
        super().__init__(script(lengths=(9,), infos="none"))

    def raise_named(self, name: str) -> None:
        if name == "of the worker":
            # A class that is importable in the worker only.
            module = type(sys)("only_in_the_worker")
            kind = type("LostError", (Exception,), {"__module__": module.__name__})
            module.LostError = kind  # type: ignore[attr-defined]
            sys.modules[module.__name__] = module
            raise kind("far away", 3)
        if name == "local":
            raise type("LocalError", (Exception,), {})("from inside")
        if name == "local with a lock":
            raise type("LocalError", (Exception,), {"lock": threading.Lock()})("from inside")
        if name == "local with an attribute":
            error = type("LocalError", (Exception,), {})("from inside")
            error.lock, error.number = threading.Lock(), 3
            raise error
        raise EVERY[name][0]()


def async_bare() -> Any:
    return sb3compat.to_sb3(AsyncVectorEnv([Raising]))


def async_spawned() -> Any:
    return sb3compat.to_sb3(AsyncVectorEnv([Raising], context="forkserver"))


def async_wrapped() -> Any:
    return sb3compat.to_sb3(Identity(AsyncVectorEnv([Raising])))


def async_twice() -> Any:
    """Two adapters over one environment."""
    env = AsyncVectorEnv([Raising])
    sb3compat.to_sb3(env)
    return sb3compat.to_sb3(Identity(env))


def way_back() -> Any:
    return sb3compat.to_gymnasium(subproc([Raising]))


WAYS: list[Callable[[], Any]] = [async_bare, async_wrapped, async_twice, way_back]


@pytest.fixture(params=WAYS, ids=[way.__name__ for way in WAYS])
def call(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Any]]:
    opened: list[Any] = []

    def use(name: str) -> Any:
        env = request.param()
        opened.append(env)
        if request.param is way_back:
            return env.call("raise_named", name)
        return env.env_method("raise_named", name)

    yield use
    for env in opened:
        env.close()


def arrived(call: Callable[[str], Any], name: str, kind: type[BaseException]) -> BaseException:
    with pytest.raises(kind) as caught:
        call(name)
    assert type(caught.value) is kind
    trace = str(caught.value.__cause__)
    assert isinstance(caught.value.__cause__, sb3compat.WorkerError)
    for part in ("worker of row 0", "Traceback", "in raise_named"):
        assert part in trace
    if name == "chained":
        assert "KeyError: 'the cause'" in trace
    if name == "notes" and sys.version_info >= (3, 11):
        assert "a note" in trace
    return caught.value


def same_error(error: Any, expected: Any, attributes: list[str]) -> None:
    assert str(error) == str(expected)
    for attribute in attributes:
        assert getattr(error, attribute) == getattr(expected, attribute), attribute


@pytest.mark.parametrize("name", WHOLE)
def test_exception_arrives_as_it_was_raised(call: Callable[[str], Any], name: str) -> None:
    make, attributes = WHOLE[name]
    expected = make()
    error = arrived(call, name, type(expected))
    same_error(error, expected, attributes)
    assert len(error.args) == len(expected.args)
    assert str(error.args) == str(expected.args)


@pytest.mark.parametrize("name", PARTS)
def test_exception_arrives_without_what_cannot_be_sent(
    call: Callable[[str], Any], name: str
) -> None:
    make, attributes = PARTS[name]
    expected = make()
    error: Any = arrived(call, name, type(expected))
    if "argument" not in name:
        same_error(error, expected, attributes)
    if "lock" in vars(expected):
        assert "lock" in repr(error.lock)
    if name == "argument that cannot be pickled":
        assert repr(error.args[0]).startswith("<function")
        assert error.args[1] == 3


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("local with a lock", ["LocalError: from inside", "cannot be pickled"]),
        ("of the worker", ["only_in_the_worker.LostError", "far away"]),
    ],
)
def test_class_that_is_not_to_be_had_is_named(
    call: Callable[[str], Any], name: str, texts: list[str]
) -> None:
    error = arrived(call, name, sb3compat.WorkerError)
    for text in texts:
        assert text in str(error)


@pytest.mark.parametrize("name", ["local", "local with an attribute"])
def test_class_that_cannot_be_imported_arrives_by_value(
    call: Callable[[str], Any], name: str
) -> None:
    with pytest.raises(Exception, match=r"^from inside$") as caught:
        call(name)
    error: Any = caught.value
    assert type(error).__name__ == "LocalError"
    assert "in raise_named" in str(error.__cause__)
    if name != "local":
        assert error.number == 3
        assert "lock" in repr(error.lock)


def test_exceptions_arrive_from_a_spawned_worker() -> None:
    env = async_spawned()
    with pytest.raises(FormattingError, match=r"^row 3 failed$") as caught:
        env.env_method("raise_named", "attribute that cannot be pickled")
    assert caught.value.row == 3
    env.close()


def test_environment_itself_raises_what_gymnasium_raises() -> None:
    """Gymnasium reads its queue of errors as before, where its environment is used directly."""
    env = AsyncVectorEnv([Raising])
    sb3compat.to_sb3(env)
    with pytest.raises(ValueError, match="text"):
        env.call("raise_named", "text")
    env.close(terminate=True)
