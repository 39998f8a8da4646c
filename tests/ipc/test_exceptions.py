"""What is packed in a worker arrives as it was raised."""

from __future__ import annotations

import builtins
import json
import pickle
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

import sb3compat
from sb3compat._ipc.exceptions import Packed, packed
from tests.envs import Identity

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


class GoneError(OSError):
    def __init__(self, path: str) -> None:
        super().__init__(2, "gone", path)


class SlotError(Exception):
    __slots__ = ("empty", "row")

    def __init__(self, row: int) -> None:
        super().__init__("failed")
        self.row = row


ExceptionGroup: Any = getattr(builtins, "ExceptionGroup", Exception)


class OwnGroupError(ExceptionGroup):  # type: ignore[misc]
    def __new__(cls, errors: list[Exception], *, code: int) -> Any:
        return super().__new__(cls, "several", errors)

    def __init__(self, errors: list[Exception], *, code: int) -> None:
        self.code = code


def group() -> Exception:
    error: Exception = ExceptionGroup("several", [KeyError(3), OSError(2, "gone", "file")])
    return error


def hard_group() -> Any:
    """Of members that pickle cannot build, or builds as others."""
    return OwnGroupError(
        [
            CodeError("x"),
            KeywordError(row=3),
            ExceptionGroup("inner", [FormattingError(4), GoneError("x")]),
            with_state(ValueError("x"), lock=threading.Lock()),
            local_error(lock=threading.Lock()),
        ],
        code=5,
    )


def holder(error: Exception, inner: Exception) -> Exception:
    return with_state(error, inner=inner, several=[inner, 3], named={"it": inner})


# What to raise, and the attributes that have to arrive with it.
WHOLE: dict[str, tuple[Callable[[], Exception], list[str]]] = {
    "text": (lambda: ValueError("text"), []),
    "json": (lambda: caught(lambda: json.loads("{ ")), ["lineno", "colno", "pos", "doc", "msg"]),
    "unicode": (
        lambda: caught(lambda: b"a\xff".decode("utf-8")),
        ["encoding", "object", "start", "end", "reason"],
    ),
    "two files": (lambda: OSError(17, "there", "a", None, "b"), ["filename", "filename2"]),
    "import": (lambda: ImportError("no", name="x", path="y"), ["name", "path", "msg"]),
    "syntax": (lambda: caught(lambda: compile("a b", "f", "exec")), ["lineno", "text", "filename"]),
    "attributes": (lambda: CodeError("text", 7), ["code"]),
    "formatting": (lambda: FormattingError(3), ["row"]),
    "formatting a file": (lambda: ReadingError("x"), ["path", "errno"]),
    "file and its own arguments": (lambda: GoneError("x"), ["errno", "strerror", "filename"]),
    "slots": (lambda: SlotError(3), ["row"]),
    "name": (lambda: AttributeError("no", name="x", obj=3), ["name"]),
    "stop": (lambda: StopIteration(3), ["value"]),
    "keywords": (lambda: KeywordError(row=3), ["row"]),
    "own reduce": (lambda: OwnReduceError(1, 2), ["pair"]),
    "own new": (lambda: OwnNewError(row=3), ["made"]),
    "own setstate": (lambda: with_state(OncePickledError("x"), code=3), ["code"]),
    "property": (lambda: with_state(PropertyError("x"), code=3), ["code"]),
    "notes": (noted, ["__notes__"]),
    "chained": (chained, []),
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


def raised(make: Callable[[], Exception]) -> None:
    raise make()


def sent(make: Callable[[], Exception]) -> Packed:
    """An exception as its worker packs it where it is caught, and as it comes out of a pipe."""
    try:
        raised(make)
    except Exception as error:
        arrived: Packed = pickle.loads(pickle.dumps(packed(error)))
    return arrived


def arrived(make: Callable[[], Exception], kind: type[BaseException]) -> Any:
    with pytest.raises(kind) as caught:
        sent(make).reraise("row 3")
    assert type(caught.value) is kind
    cause = caught.value.__cause__
    assert isinstance(cause, sb3compat.WorkerError)
    for part in ("worker of row 3", "Traceback", "in raised"):
        assert part in str(cause)
    return caught.value


@pytest.mark.parametrize("name", WHOLE)
def test_exception_arrives_as_it_was_raised(name: str) -> None:
    make, attributes = WHOLE[name]
    expected = make()
    error = arrived(make, type(expected))
    assert str(error) == str(expected)
    assert str(error.args) == str(expected.args)
    for attribute in attributes:
        assert getattr(error, attribute) == getattr(expected, attribute), attribute
    trace = str(error.__cause__)
    assert name != "chained" or "KeyError: 'the cause'" in trace
    assert name != "notes" or sys.version_info < (3, 11) or "a note" in trace


@pytest.mark.parametrize("name", PARTS)
def test_exception_arrives_without_what_cannot_be_sent(name: str) -> None:
    make, attributes = PARTS[name]
    expected = make()
    error = arrived(make, type(expected))
    if "argument" in name:
        assert len(error.args) == len(expected.args)
        assert repr(error.args[0])[:6] == repr(expected.args[0])[:6]
        assert error.args[1:] == expected.args[1:]
    else:
        assert str(error) == str(expected)
    for attribute in attributes:
        assert getattr(error, attribute) == getattr(expected, attribute), attribute
    if "lock" in vars(expected):
        assert "lock" in repr(error.lock)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no groups")
def test_group_arrives_with_its_members() -> None:
    expected = hard_group()
    error = arrived(hard_group, OwnGroupError)
    assert (error.code, error.message, str(error)) == (5, "several", str(expected))
    whole, keywords, inner, held, lost = error.exceptions
    assert error.args[1] == list(error.exceptions)
    assert (whole.code, keywords.row, str(keywords)) == (3, 3, "row 3")
    assert [type(member) for member in inner.exceptions] == [FormattingError, GoneError]
    assert [str(member) for member in inner.exceptions] == [
        "row 4 failed",
        "[Errno 2] gone: 'x'",
    ]
    assert type(held) is ValueError
    assert "lock" in repr(held.lock)
    assert type(lost) is sb3compat.WorkerError
    assert "LocalError: from inside" in str(lost)


@pytest.mark.parametrize("outer", [ValueError, FormattingError])
@pytest.mark.parametrize("inner", ["keywords", "formatting"])
def test_exceptions_that_an_exception_holds_arrive(outer: type[Exception], inner: str) -> None:
    expected = WHOLE[inner][0]()
    error = arrived(lambda: holder(outer(3), expected), outer)
    assert type(error.inner) is type(expected)
    assert str(error.inner) == str(expected)
    assert error.several == [error.inner, 3]
    assert error.named == {"it": error.inner}


def test_exception_that_holds_itself_has_a_text_in_its_place() -> None:
    error = FormattingError(3)
    made = arrived(lambda: with_state(error, me=error), FormattingError)
    assert repr(made.me) == repr(error)


def local_error(**members: Any) -> Exception:
    error: Exception = type("LocalError", (Exception,), members)("from inside")
    return error


def lost_error() -> Exception:
    """Of a class that is importable in the worker only."""
    module = types.ModuleType("only_in_the_worker")
    kind = type("LostError", (Exception,), {"__module__": module.__name__})
    module.LostError = kind  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    return kind("far away", 3)  # type: ignore[no-any-return]


def test_list_that_holds_itself_does_not_end_the_worker() -> None:
    error = FormattingError(3)
    held: list[Any] = [error]
    held.append(held)
    made = sent(lambda: with_state(error, held=held))()
    assert type(made) is sb3compat.WorkerError
    assert "row 3 failed" in str(made)


def test_class_that_is_not_to_be_had_is_named() -> None:
    made = sent(lost_error)
    del sys.modules["only_in_the_worker"]
    for error, texts in (
        (made(), ["only_in_the_worker.LostError", "far away"]),
        (sent(lambda: local_error(lock=threading.Lock()))(), ["LocalError: from inside"]),
    ):
        assert type(error) is sb3compat.WorkerError
        for text in (*texts, "cannot be pickled, or not be imported here"):
            assert text in str(error)


def test_class_that_cannot_be_imported_arrives_by_value() -> None:
    error: Any = sent(lambda: with_state(local_error(), number=3, lock=threading.Lock()))()
    assert (type(error).__name__, str(error), error.number) == ("LocalError", "from inside", 3)
    assert "lock" in repr(error.lock)
