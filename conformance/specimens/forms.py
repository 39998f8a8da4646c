"""Correct environments in many forms: no check may fail on them."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from itertools import product
from typing import Any

from conformance.specimens import points, rows_env
from conformance.specimens.points import OBSERVATIONS, OPTIONS, Config, Points
from conformance.specimens.registry import Specimen, enter
from conformance.specimens.rows_env import MODES, Form, RowsEnv

CONFIGS = (
    *(Config(observation=kind) for kind in OBSERVATIONS),
    *(Config(observation=kind, rows=1, continuous=True) for kind in OBSERVATIONS),
    Config(lengths=(4,)),
    Config(lengths=(1, 2)),
    Config(lengths=(1,)),
    Config(lengths=(2, 25)),
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


def _named(config: Config) -> str:
    """The call that makes it, with what is not as usual."""
    usual = Config()
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    unusual = [f"{k}={v!r}" for k, v in values.items() if v != getattr(usual, k)]
    return f"Config({', '.join(unusual)})"


for _config in CONFIGS:
    enter(
        Specimen(
            "form",
            _named(_config),
            "vec_env",
            partial(Points, _config),
            Points.__module__,
            reference=points.reference(_config),
            # Some observations are the same with other options; then the infos show them.
            options=OPTIONS if _config.info else None,
        )
    )
for _mode, (_name, _arguments) in product(MODES, FORMS.items()):
    _form = Form(mode=_mode, **_arguments)
    _alone = _name not in WITH_REFERENCE
    enter(
        Specimen(
            "form",
            _name,
            "vector_env",
            partial(RowsEnv, _form),
            RowsEnv.__module__,
            _mode,
            reference=None if _alone else rows_env.reference(_form),
            options=None if _alone else {"offset": 100},
        )
    )
