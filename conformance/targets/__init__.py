"""The environments that the kit is run on, a module for each library that they are from.

What a module needs is imported by the functions alone, so that all can be listed without it.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from conformance.targets.registry import TARGETS, Target

for _module in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")

__all__ = ["TARGETS", "Target"]
