"""What goes by value changes nothing that exists where it arrives."""

from __future__ import annotations

import abc
import gc
import os
import pickle
import subprocess
import sys
import types
from typing import Any

import pytest

from sb3compat._ipc import by_value

SEEN: list[str] = []


class Registering:
    """Its subclasses are noted."""

    def __init_subclass__(cls) -> None:
        SEEN.append(cls.__name__)


def local_classes() -> list[Any]:
    def made(*bases: Any, **members: Any) -> Any:
        members |= {"__module__": __name__, "__qualname__": "local_classes.<locals>.Local"}
        return types.new_class("Local", bases, exec_body=lambda space: space.update(members))

    plain: dict[str, Any] = {"mark": 1, "text": lambda self: "first"}
    every = [made(*bases, **plain) for bases in ((), (abc.ABC,), (Registering,))]
    return [*every, made(__slots__=("own",), **plain)]


# Run in another process, which knows none of the classes.
def arrives(data: bytes) -> Any:
    value = pickle.loads(data)
    first = type(value), value.text(), type(value).mark
    type(value).mark = 5
    again = pickle.loads(data)
    return first[1:], type(again) is first[0], type(again).mark, by_value.dumps(again)


def test_class_is_made_once_elsewhere_and_comes_back_as_itself() -> None:
    classes = local_classes()
    code = "import pickle, sys; from tests.ipc.test_by_value import arrives; "
    code += "sys.stdout.buffer.write(pickle.dumps([*map(arrives, pickle.load(sys.stdin.buffer))]))"
    values = [cls() for cls in classes]
    for value in values:
        value.own = 3
    sent = pickle.dumps([*map(by_value.dumps, values)])
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    for cls, (first, same, mark, back) in zip(classes, pickle.loads(done.stdout), strict=True):
        assert (first, same, mark) == (("first", 1), True, 5)
        assert type(pickle.loads(back)) is cls
        assert pickle.loads(back).own == 3
        assert cls.mark == 1  # what the other process has set is its own


class Once:
    """Cannot be unpickled the first time."""

    tries = 0

    def __reduce__(self) -> Any:
        return fails_once, ()


def fails_once() -> int:
    Once.tries += 1
    if Once.tries == 1:
        raise ValueError("not yet")
    return Once.tries


def test_class_whose_attributes_could_not_come_is_filled_later() -> None:
    class Late:
        tried = Once()

    data = by_value.dumps(Late)
    del Late
    gc.collect()
    gc.disable()  # the class that was begun stays
    try:
        with pytest.raises(ValueError, match="not yet"):
            pickle.loads(data)
        assert pickle.loads(data).tried == 2
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_fork_and_its_parent_have_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    cls: Any = type("Ours", (), {"__module__": "__main__", "text": lambda self: "first"})
    monkeypatch.setattr(sys.modules["__main__"], "Ours", cls, raising=False)
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.write(writer, by_value.dumps(cls()))
        os._exit(0)
    os.waitpid(child, 0)
    data = os.read(reader, 10_000)
    os.close(reader)
    os.close(writer)
    with monkeypatch.context() as patch:
        patch.setattr(cls, "text", lambda self: "second")  # as if written anew at its address
        other = type(pickle.loads(data))
    assert other is not cls
    assert other().text() == "first"
    del other
    gc.collect()
    assert type(pickle.loads(data)) is cls


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_class_of_a_function_arrives_with_its_own_data() -> None:
    """Both processes may make theirs at one address, from one line."""

    def made(number: int) -> type:
        return type("Made", (), {"__module__": "__main__", "number": number})

    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.write(writer, by_value.dumps([made(3)() for _ in range(20)]))
        os._exit(0)
    kept = [made(5) for _ in range(20)]
    os.waitpid(child, 0)
    arrived = pickle.loads(os.read(reader, 100_000))
    os.close(reader)
    os.close(writer)
    assert {each.number for each in arrived} == {3}
    assert {each.number for each in kept} == {5}


def sent_from_main(path: str) -> bytes:
    """An object of a class that the main module has at this path, or nowhere; it is forgotten."""
    cls = type("Inner", (), {"__module__": "__main__", "__qualname__": path, "mark": 1})
    outer = type("Outer", (), {"__module__": "__main__", "Inner": cls})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["__main__"], "Outer", outer, raising=False)
        patch.setattr(sys.modules["__main__"], "Inner", None, raising=False)
        data = by_value.dumps(cls())
    del cls, outer
    gc.collect()
    return data


INNER = type("Inner", (), {"mark": 7})
OUTER = type("Outer", (), {"Inner": INNER})


@pytest.mark.parametrize(
    ("path", "mark"), [("Outer.Inner", 7), ("Inner", 1), ("local.<locals>.Inner", 1)]
)
def test_worker_that_has_imported_the_main_module_takes_the_class_at_that_place(
    path: str, mark: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = types.ModuleType("__mp_main__")
    module.Inner, module.Outer = INNER, OUTER
    monkeypatch.setitem(sys.modules, "__mp_main__", module)
    value = pickle.loads(sent_from_main(path))
    assert value.mark == mark
    assert (type(value) is INNER) == (mark == 7)


def test_other_names_of_the_main_module_are_no_import_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = sent_from_main("Outer.Inner")
    assert sys.modules["__mp_main__"] is sys.modules["__main__"]
    monkeypatch.setattr(sys.modules["__main__"], "Outer", OUTER, raising=False)
    assert pickle.loads(data).mark == 1
