"""Correct environments in many forms: no check may fail on them."""

from __future__ import annotations

from typing import Any

from conformance.specimens.points import OBSERVATIONS, Config

CONFIGS = (
    *(Config(observation=kind) for kind in OBSERVATIONS),
    *(Config(observation=kind, rows=1, continuous=True) for kind in OBSERVATIONS),
    Config(lengths=(4,)),
    Config(lengths=(1, 2)),
    Config(lengths=(1,)),
    Config(lengths=(2, 90)),
    Config(info=False, rendering=False),
    Config(rows=5, ends=("terminated",), continuous=True),
)

# The arguments of a `Form`, by name.
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dict": {"kind": "dict"},
    "tuple": {"kind": "tuple", "infos": False},
    "image": {"kind": "image", "lengths": (1, 2)},
    "discrete": {"kind": "discrete"},
    "constant": {"kind": "constant"},
    "text": {"kind": "text"},
    "long": {"lengths": (150,), "endings": ("truncated",)},
    "noise": {"noise": True},
    "one generator": {"one_generator": True, "sub_envs": False, "masks": False},
    "one generator, noise": {"one_generator": True, "sub_envs": False, "noise": True},
}
# The forms whose rows equal single environments.
WITH_REFERENCE = ("plain", "dict", "discrete", "noise")
