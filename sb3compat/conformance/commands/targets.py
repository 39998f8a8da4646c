"""Targets: the environments that the command line and pytest name."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import re
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from textwrap import indent
from types import ModuleType
from typing import Any

import gymnasium as gym

from sb3compat.conformance.commands.usage import UsageError
from sb3compat.conformance.program.types import Factory, Reference
from sb3compat.errors import install_line, nearest, shown

_WORKERS = (
    "Expected --start-method with --vec-env subproc or --vectorization-mode async, which have "
    "worker processes. Leave it out."
)
FACTORY = re.compile(r"(?P<where>.+\.py|[\w.]+):(?P<what>[A-Za-z_][\w.]*)")


@dataclass(frozen=True)
class Making:
    """How to make environments from an id.

    Attributes:
        num_envs: The number of rows.
        vectorization_mode: `"sync"`, `"async"` or `"native"`; None for the default of
            `gymnasium.make_vec`.
        autoreset_mode: The value of an `AutoresetMode`; None for the default.
        vec_env: `"dummy"` or `"subproc"` for SB3's own instead of Gymnasium's.
        env_kwargs: What to make the environments with.
        start_method: How worker processes are started; None for the default.
    """

    num_envs: int = 3
    vectorization_mode: str | None = None
    autoreset_mode: str | None = None
    vec_env: str | None = None
    env_kwargs: Mapping[str, object] = field(default_factory=dict)
    start_method: str | None = None

    @property
    def arguments(self) -> str:
        """Source for the last arguments of a call that makes an environment."""
        return f", **{dict(self.env_kwargs)!r}" if self.env_kwargs else ""


def making_of(given: Namespace) -> Making:
    """The `Making` that the command line describes."""
    said = {part.name: getattr(given, part.name) for part in fields(Making)}
    return Making(**{name: value for name, value in said.items() if value is not None})


@dataclass(frozen=True)
class Target:
    """A factory, and source that defines it as `make_env`.

    Attributes:
        name: What it is called.
        factory: Makes the environment.
        source: Source that defines `make_env`.
        singles: The factories of its single environments and source that defines `reference`, where
            they are known.
    """

    name: str
    factory: Factory
    source: str
    singles: tuple[Reference, str] | None = None


def resolve(text: str, making: Making) -> Target:
    """The target of this name: `package.module:name`, `path/to/file.py:name`, or an id.

    Args:
        text: The name.
        making: How to make environments from an id.

    Raises:
        UsageError: If there is no such target. An exception of the user's module passes through.
    """
    if text.endswith((".py", ":")):
        raise UsageError(
            f"Expected the name of a factory, too, got {text!r}. Name it: "
            f"{text.rstrip(':') or 'my_module'}:make_env"
        )
    if text.startswith(":"):
        raise UsageError(
            f"Expected a module or a file before the colon, got {text!r}. Name it: my_module{text}"
        )
    found = FACTORY.fullmatch(text)
    where, colon, what = text.rpartition(":")
    # A module has no slash, and is not in another one that is a file.
    is_path = "/" in where or Path(f"{where.rpartition('.')[0]}.py").is_file()
    if colon and is_path and not where.endswith(".py"):
        raise UsageError(
            f"Expected the path of a Python file, got {where!r}."
            + _nearest_file(where, f"Name it: {where.partition('.')[0]}.py:{what}")
        )
    if found is None:
        return _from_id(text, making)
    if making != Making():
        raise UsageError(
            "Expected options such as --num-envs and --vectorization-mode with the id of an "
            f"environment only, got them with the factory {text!r}. Let the factory do it."
        )
    value, source = imported(found["where"], found["what"], "make_env")
    return Target(text, value, source)


def check_reference(text: str) -> re.Match[str]:
    """The parts of a name of factories, of which nothing is imported yet.

    Raises:
        UsageError: If it has another form.
    """
    found = FACTORY.fullmatch(text)
    if found is None:
        raise UsageError(
            "Expected --reference as package.module:name or path/to/file.py:name, got "
            f"{text!r}. Name the list of functions in this form."
        )
    return found


def resolve_reference(text: str) -> tuple[Reference, str]:
    """The factories of single environments of this name, and source for them.

    Raises:
        UsageError: If there is no such object, or it is no list of factories.
    """
    found = check_reference(text)
    value, source = imported(found["where"], found["what"], "reference")
    if not isinstance(value, list | tuple) or not all(map(callable, value)):
        raise UsageError(
            f"Expected {text} to be a list of functions, each making the single environment of a "
            f"row, got {type(value).__name__}: {shown(value)}. Write such a list: [make_single] * 3"
        )
    return value, source


def imported(where: str, what: str, name: str) -> tuple[Any, str]:
    """An object of a module or file, and source that gives it this name.

    Raises:
        UsageError: If there is no such object. An exception of the module passes through.
    """
    module, folder = _load_file(where) if where.endswith(".py") else _load_module(where)
    value: Any = module
    for part in what.split("."):
        if not hasattr(value, part):
            defined = [
                key
                for key, found in vars(module).items()
                if getattr(found, "__module__", None) == module.__name__
            ]
            names = ", ".join(sorted(defined)) or "no functions and classes"
            hint = nearest(part, defined) or f" It defines {names}."
            raise UsageError(f"Expected {where} to define {what}, got nothing of that name.{hint}")
        value = getattr(value, part)
    lines = [f"import sys\n\nsys.path.insert(0, {folder!r})\n"] if folder else []
    if "." in what:
        lines.append(f"import {module.__name__}\n\n{name} = {module.__name__}.{what}")
    else:
        alias = f" as {name}" if what != name else ""
        lines.append(f"from {module.__name__} import {what}{alias}")
    return value, "\n".join(lines)


def _load_module(name: str) -> tuple[ModuleType, str]:
    """A module, and the folder that must be on the path for it."""
    # `python -m` puts the current folder on the path; the script that pip installs does not.
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    parent = ""
    for part in name.split("."):
        parent = f"{parent}.{part}" if parent else part
        try:
            found = importlib.util.find_spec(parent)
        except ValueError:  # already imported, and without a spec
            found = None
        if found is None and parent not in sys.modules:
            raise UsageError(
                f"Expected a module that can be imported, got {name!r}: there is no {parent!r} in "
                f"{os.getcwd()} or among the installed packages.{_nearest_module(name)} For a "
                "file, name it: path/to/file.py:name."
            )
    module = importlib.import_module(name)
    top = sys.modules[name.partition(".")[0]]
    package = next(iter(getattr(top, "__path__", [])), None)
    home = Path(package or getattr(top, "__file__", None) or "").resolve().parent
    return module, str(home) if home == Path.cwd() else ""


def _nearest_module(name: str) -> str:
    """Which module of this folder, or which package that is installed, may be meant."""
    files = [file.stem for file in Path.cwd().glob("*.py")]
    folders = [file.parent.name for file in Path.cwd().glob("*/__init__.py")]
    installed = [module.name for module in pkgutil.iter_modules()]
    return nearest(name.partition(".")[0], [*files, *folders, *installed], likeness=0.75)


def _load_file(path: str) -> tuple[ModuleType, str]:
    """The module in a file, and its folder."""
    file = Path(path).resolve()
    if not file.is_file():
        hint = _nearest_file(path, "Name one that exists.")
        raise UsageError(f"Expected the path of a Python file, got {path!r}: no such file.{hint}")
    name, folder = file.stem, str(file.parent)
    if not name.isidentifier():
        raise UsageError(
            f"Expected a file that can be imported, got {path!r}: {name!r} is no name in Python. "
            "Rename it."
        )
    # Imported by its name, as from a script in its folder, so that worker processes can import it.
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.import_module(name)
    if Path(getattr(module, "__file__", None) or "").resolve() != file:
        raise UsageError(
            f"Expected a file whose name no other module has, got {path!r}: {name!r} is "
            f"{getattr(module, '__file__', None) or 'built in'}. Rename it."
        )
    return module, folder


def _nearest_file(path: str, otherwise: str) -> str:
    """Which Python file in the same folder may be meant."""
    folder = Path(path).parent
    return nearest(path, [str(file) for file in folder.glob("*.py")], otherwise)


def _from_id(env_id: str, making: Making) -> Target:
    source, reference = _source_of(env_id, making), _reference_of(env_id, making)
    namespace: dict[str, Any] = {"__name__": "sb3compat_target"}
    exec(compile(f"{source}\n{reference}", "<make_env>", "exec"), namespace)
    singles = (namespace["reference"], reference) if reference else None
    return Target(_name_of(env_id, making), namespace["make_env"], source, singles)


def _reference_of(env_id: str, making: Making) -> str:
    """Source for the single environments; empty where rows are not made one by one."""
    spec = gym.registry.get(env_id)
    native = making.vectorization_mode == "native" or (
        making.vectorization_mode is None
        and making.autoreset_mode is None
        and making.vec_env is None
        and (spec is None or spec.vector_entry_point is not None)
    )
    if native:
        return ""
    made = f"gym.make({env_id!r}{making.arguments})"
    return f"\nreference = [lambda: {made}] * {making.num_envs}"  # below a function


def _name_of(env_id: str, making: Making) -> str:
    parts = (
        making.vec_env, making.vectorization_mode, making.autoreset_mode, making.start_method,
    )  # fmt: skip
    particulars = ", ".join(filter(None, parts))
    return f"{env_id} ({particulars})" if particulars else env_id


def _source_of(env_id: str, making: Making) -> str:
    """Source that makes the environment, for the run and the reproduction."""
    if making.vec_env:
        return _sb3_source(env_id, making)
    mode = making.vectorization_mode
    if making.start_method and mode != "async":
        raise UsageError(_WORKERS)
    if making.autoreset_mode and mode == "native":
        raise UsageError(
            "Expected --autoreset-mode with --vectorization-mode sync or async, got native: a "
            "native vector environment has the mode that it has. Leave one of them out."
        )
    spec = gym.registry.get(env_id)
    if mode == "native" and spec is not None and spec.vector_entry_point is None:
        raise UsageError(
            f"Expected an environment that is vectorized natively, got {env_id!r}, which is "
            "registered without a vector_entry_point. Use --vectorization-mode sync."
        )
    mode = {"native": "vector_entry_point"}.get(mode or "", mode)  # Gymnasium's word
    imports, more = "import gymnasium as gym", {}
    if making.autoreset_mode:
        mode = mode or "sync"
        imports += "\nfrom gymnasium.vector import AutoresetMode"
        name = gym.vector.AutoresetMode(making.autoreset_mode).name
        more["autoreset_mode"] = f"AutoresetMode.{name}"
    if making.start_method:
        more["context"] = repr(making.start_method)
    arguments = [repr(env_id), f"num_envs={making.num_envs}"]
    if mode:
        arguments.append(f"vectorization_mode={mode!r}")
    if more:
        entries = ", ".join(f'"{name}": {value}' for name, value in more.items())
        arguments.append(f"vector_kwargs={{{entries}}}")
    body = f"return gym.make_vec({', '.join(arguments)}{making.arguments})"
    return f"{imports}\n\n\n{_function(body)}"


def _sb3_source(env_id: str, making: Making) -> str:
    for option, value in (
        ("--vectorization-mode", making.vectorization_mode),
        ("--autoreset-mode", making.autoreset_mode),
    ):
        if value:
            raise UsageError(
                f"Expected either --vec-env or {option}, got both: SB3's environments have neither "
                "Gymnasium's vectorization nor its autoreset modes. Leave one out."
            )
    if importlib.util.find_spec("stable_baselines3") is None:
        raise UsageError(
            f"Expected Stable-Baselines3 to be installed for --vec-env: {install_line('sb3')}"
        )
    name = {"dummy": "DummyVecEnv", "subproc": "SubprocVecEnv"}[making.vec_env or "dummy"]
    if making.start_method and making.vec_env != "subproc":
        raise UsageError(_WORKERS)
    start = f", start_method={making.start_method!r}" if making.start_method else ""
    # Imported in the function: the process that shows the results needs neither SB3 nor torch.
    imports = f"from stable_baselines3.common.vec_env import {name}\n\n"
    envs = f"[lambda: gym.make({env_id!r}{making.arguments})] * {making.num_envs}"
    return f"import gymnasium as gym\n\n\n{_function(f'{imports}return {name}({envs}{start})')}"


def _function(body: str) -> str:
    return f"def make_env():\n{indent(body, '    ')}"
