"""The supported pairs of Gymnasium and SB3, and what `sb3compat versions` prints.

No library is imported: SB3 would load torch, and environment libraries their engines.
`versions/pairs.py` imports this module where not even Gymnasium is installed.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from sb3compat._upstream.installed import installed_version, release
from sb3compat._upstream.table import NAMES, Name

# SB3 (None: without it) and Gymnasium. The nightly run tests each.
PAIRS: tuple[tuple[str | None, str], ...] = (
    ("2.6", "1.1"),
    ("2.7", "1.2"),
    ("2.8", "1.2"),
    ("2.9", "1.3"),
    ("2.9", "1.4"),
    (None, "1.4"),
)
# The adapters need this one; the kit checks a `VecEnv` with an older one, too.
_OLDEST = (1, 1)
# What the exit code says.
FINE, MISSING, UNTESTED = 0, 1, 3

_LIBRARIES = (
    "gymnasium",
    "stable_baselines3",
    "numpy",
    "cloudpickle",
    "torch",
    "jax",
    "ale_py",
    "envpool",
)


def is_supported(sb3: str | None, gymnasium: str) -> bool:
    """Whether these two versions are a supported pair."""
    asked, *known = (
        (each and release(each), release(other)) for each, other in ((sb3, gymnasium), *PAIRS)
    )
    return asked in known


def print_versions(own_version: str) -> int:
    """Print the versions found, whether they are supported, and the private names not found.

    Args:
        own_version: The version of this package.

    Returns:
        0 if all is well; 1 if a name is missing; 3 if nothing is missing, but the versions of
        Gymnasium and Stable-Baselines3 are no supported pair.
    """
    versions = {"Python": platform.python_version(), "sb3compat": own_version}
    versions |= {library: installed_version(library) or "not installed" for library in _LIBRARIES}
    too_old = release(installed_version("gymnasium") or "0.0") < _OLDEST
    # What needs them is not there anyway.
    gone = missing_names(name for name in NAMES if not too_old or name.library != "gymnasium")
    supported = is_supported(
        installed_version("stable_baselines3"), installed_version("gymnasium") or "0.0"
    )
    for library, version in versions.items():
        print(f"{library:20}{version}")
    for line in _findings(gone, supported=supported, too_old=too_old):
        print(line)
    if gone:
        return MISSING
    return FINE if supported else UNTESTED


def missing_names(names: Iterable[Name] = NAMES) -> list[Name]:
    """The names that do not occur in the source code of the module that should have them.

    This is only a hint: an existing name may have another meaning by now. Names of libraries that
    are not installed are left out, and so are names of later releases than the installed one.

    Args:
        names: The names to look up; by default all that this package relies on.
    """
    return [name for name in names if _is_expected(name) and not _occurs(name)]


def _findings(gone: list[Name], *, supported: bool, too_old: bool) -> Iterator[str]:
    has_sb3 = find_spec("stable_baselines3") is not None
    yield ""
    if supported and has_sb3:
        yield "Gymnasium and Stable-Baselines3 are a supported pair."
    elif supported:
        yield "Gymnasium without Stable-Baselines3 is supported."
    elif too_old:
        yield "This Gymnasium is too old for the adapters, make_vec_env, trace and tune: these are"
        yield "not supported. Supported with it: `sb3compat check` of a VecEnv, list, explain and"
        yield "replay. For everything: pip install 'gymnasium>=1.1'. Supported pairs of Gymnasium"
        yield f"and Stable-Baselines3: {_pairs()}."
    else:
        yield f"Gymnasium and Stable-Baselines3 are not a supported pair. Supported: {_pairs()}."
    if not has_sb3 and not too_old:
        yield "Everything works without it but what is SB3's own: its algorithms, WorkerStats, the"
        yield "monitor files of native environments and `--vec-env`. To have these:"
        yield 'pip install "sb3compat[sb3]"'
    absent = [each for each in dict.fromkeys(n.library for n in NAMES) if find_spec(each) is None]
    if absent:
        yield f"Skipped (not installed): {', '.join(absent)}."
    if too_old:
        yield "Only the adapters need private names of Gymnasium, so these are not looked into."
    if not gone:
        yield f"Every{' other' * too_old} private name that sb3compat relies on is there."
        return
    yield f"Missing, of the private names that sb3compat relies on: {len(gone)}."
    for name in gone:
        yield ""
        yield f"{name}"
        yield f"  expected in  {name.library} {installed_version(name.library)}"
        yield f"  without it   {name.why}"
    yield ""
    yield "Install supported versions, or a version of sb3compat that knows the installed ones."


def _pairs() -> str:
    return ", ".join(
        f"Gymnasium {gymnasium} {'without it' if sb3 is None else f'with {sb3}'}"
        for sb3, gymnasium in PAIRS
    )


def _is_expected(name: Name) -> bool:
    if find_spec(name.library) is None:
        return False
    version = installed_version(name.library)
    return not name.since or version is None or release(version) >= release(name.since)


def _occurs(name: Name) -> bool:
    """Whether the name is a word in the source of its module, and the owner is one."""
    source = _source(name.module)
    return source is None or all(
        re.search(rf"\b{word}\b", source) for word in (name.owner, name.name) if word
    )


def _source(module: str) -> str | None:
    """The source code of a module, without importing it; None of what is built into Python."""
    top, *rest = module.split(".")
    spec = find_spec(top)
    if spec is None or spec.origin in (None, "built-in", "frozen"):
        return None
    path = Path(str(spec.origin)).parent.joinpath(*rest) if rest else Path(str(spec.origin))
    files = (path, path.with_suffix(".py"), path / "__init__.py")
    return next((file.read_text("utf-8") for file in files if file.is_file()), "")
