"""What is packed in a worker arrives as it was raised."""

from __future__ import annotations

import builtins
import json
import pickle
import sys
import threading
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sb3compat
from sb3compat._ipc.exceptions import Packed, packed
from tests.profiles import examples


class FormattingError(Exception):
    """Built again from its text, it would say "row row 3 failed failed"."""

    def __init__(self, row: Any) -> None:
        super().__init__(f"row {row} failed")
        self.row = row


class GoneError(OSError):
    def __init__(self, path: str) -> None:
        super().__init__(2, "gone", path)


class KeywordError(ValueError):
    def __init__(self, *, row: int) -> None:
        super().__init__(f"row {row}")
        self.row = row


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
    def code(self) -> Any:
        return vars(self).get("code")


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


class Unbuildable:
    def __reduce__(self) -> Any:
        return _fail, ()


def _fail() -> None:
    raise RuntimeError("cannot be built")


def local_error(**members: Any) -> Exception:
    """Of a class that cannot be imported."""
    error: Exception = type("LocalError", (Exception,), members)("from inside")
    return error


def with_state(error: Exception, **state: Any) -> Exception:
    vars(error).update(state)
    return error


def caught(function: Callable[[], Any]) -> Exception:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


KINDS: list[Callable[[], Exception]] = [
    lambda: ValueError("text"),
    lambda: ValueError(threading.Lock(), 3),
    lambda: ValueError(threading.Lock()),
    lambda: caught(lambda: json.loads("{ ")),
    lambda: caught(lambda: b"a\xff".decode("utf-8")),
    lambda: caught(lambda: compile("a b", "f", "exec")),
    lambda: OSError(17, "there", "a", None, "b"),
    lambda: ImportError("no", name="x", path="y"),
    lambda: StopIteration(3),
    lambda: FormattingError(3),
    lambda: GoneError("x"),
    lambda: KeywordError(row=3),
    lambda: OwnNewError(row=3),
    lambda: OncePickledError("x"),
    lambda: RaisingReduceError("x"),
    lambda: PropertyError("x"),
    local_error,
    # Pickle drops what these have in slots.
    lambda: AttributeError("no", name="x", obj=3),
    lambda: SlotError(3),
]
VALUES = st.one_of(
    st.integers(), st.lists(st.text(max_size=2)), st.builds(threading.Lock), st.builds(Unbuildable)
)


def held(inner: st.SearchStrategy[Exception]) -> st.SearchStrategy[Exception]:
    """Exceptions with attributes, among which are others, and groups of them."""
    attributes = st.fixed_dictionaries(
        {},
        optional={
            "code": VALUES,
            "__notes__": st.just(["a note"]),
            "inner": inner,
            "several": inner.map(lambda error: [error, 3]),
            "named": inner.map(lambda error: {"it": error}),
        },
    )
    single = st.builds(
        lambda kind, state: with_state(kind(), **state), st.sampled_from(KINDS), attributes
    )
    if sys.version_info < (3, 11):
        return single
    members = st.lists(inner, min_size=1, max_size=2)
    groups = [partial(ExceptionGroup, "several"), partial(OwnGroupError, code=5)]
    return st.one_of(single, *(members.map(group) for group in groups))


ERRORS = st.recursive(st.sampled_from(KINDS).map(lambda kind: kind()), held, max_leaves=4)


def sent(error: BaseException) -> Packed:
    """An exception as its worker packs it where it is caught, and as it comes out of a pipe."""
    try:
        raise error
    except BaseException as caught:
        arrived: Packed = pickle.loads(pickle.dumps(packed(caught)))
    return arrived


def attributes(error: BaseException) -> Iterator[str]:
    """The names of its values, but for `obj`, which Python itself does not pickle."""
    for name in ("__notes__", *dir(error)):
        if name != "obj" and (name == "__notes__" or name[0] != "_"):
            value = getattr(error, name, None)
            if value is not None and not isinstance(value, types.BuiltinMethodType):
                yield name


def alike(made: Any, value: Any, seen: dict[int, Any]) -> None:
    """The same all the way down; what cannot be sent may be anything that looks like it."""
    if isinstance(value, BaseException):
        assert seen.setdefault(id(value), made) is made  # one that is held twice is one again
        assert type(made) is type(value)
        assert str(made) == str(value)
        for name in attributes(value):
            alike(getattr(made, name), getattr(value, name), seen)
    elif isinstance(value, list | tuple | dict):
        assert type(made) is type(value)
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        assert len(made) == len(value)
        for key, part in pairs:
            alike(made[key], part, seen)
    else:
        assert repr(made) == repr(value)


def check_arrives(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        sent(error).reraise("row 3")
    cause = caught.value.__cause__
    assert type(cause) is sb3compat.WorkerError
    for part in ("worker of row 3", "Traceback", "in sent"):
        assert part in str(cause)
    alike(caught.value, error, {})


@given(error=ERRORS)
@settings(max_examples=examples(1000))
def test_exceptions_that_hold_others_arrive_as_they_were_raised(error: Exception) -> None:
    check_arrives(error)


def test_exception_that_holds_itself_has_a_text_in_its_place() -> None:
    error: Any = FormattingError(3)
    error.me = error
    made: Any = sent(error)()
    assert (type(made), repr(made.me)) == (FormattingError, repr(error))


def self_holding() -> Exception:
    """With a list that holds itself."""
    error: Any = FormattingError(3)
    error.held = [error]
    error.held.append(error.held)
    return error  # type: ignore[no-any-return]


def lost_error() -> Exception:
    """Of a class that is importable in the worker only."""
    module = types.ModuleType("only_in_the_worker")
    kind = type("LostError", (Exception,), {"__module__": module.__name__})
    module.LostError = kind  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    return kind("far away", 3)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (self_holding, "FormattingError: row 3 failed"),
        (lost_error, "only_in_the_worker.LostError: ('far away', 3)"),
        (lambda: local_error(lock=threading.Lock()), "LocalError: from inside"),
    ],
)
def test_exception_that_is_not_to_be_had_is_named(make: Any, text: str) -> None:
    made = sent(make())
    sys.modules.pop("only_in_the_worker", None)
    error = made()
    assert type(error) is sb3compat.WorkerError
    assert text in str(error)
    assert "cannot be pickled, or not be imported here" in str(error)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no groups")
def test_member_of_a_group_that_is_not_to_be_had_is_named() -> None:
    group = ExceptionGroup("several", [KeyError(3), local_error(lock=threading.Lock())])
    made: Any = sent(group)()
    assert [type(member) for member in made.exceptions] == [KeyError, sb3compat.WorkerError]
    assert "LocalError: from inside" in str(made.exceptions[1])
