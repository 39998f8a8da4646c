"""The environments that the kit runs on, a module for each library.

Only the functions import the library, so that the targets can be listed without it.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from conformance.targets.registry import TARGETS, Target

for _module in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")

__all__ = ["TARGETS", "Target"]
