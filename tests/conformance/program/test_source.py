"""Factories as source."""

from __future__ import annotations

import os
import threading
from types import FunctionType
from typing import Any

import numpy as np

from sb3compat.conformance.program.source import PLACEHOLDER, definition, factory_source
from tests.conformance import tiny
from tests.conformance.tiny import TinyVecEnv

rewards = object()  # there is no source for it


def local_names_like_global_ones() -> Any:
    class Mine(TinyVecEnv):
        def step_wait(self) -> Any:
            obs, rewards, dones, infos = super().step_wait()
            return obs, np.where([reward > 0 for reward in rewards], rewards, 0), dones, infos

    return Mine()


def unwrapped(factory: Any) -> Any:
    """The same, as if it could not be imported."""
    copy = FunctionType(factory.__code__, factory.__globals__, factory.__name__)
    copy.__module__ = "__main__"
    return copy


def test_local_names_are_not_taken_for_global_ones() -> None:
    factory = local_names_like_global_ones
    text = factory_source(lambda: factory() and local_names_like_global_ones())
    assert text.startswith(
        "from tests.conformance.program.test_source import local_names_like_global_ones\n"
    )
    text = definition(unwrapped(factory), "make_env")
    assert text is not None
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    assert namespace["make_env"]().num_envs == 2


def test_factories_as_source() -> None:
    assert factory_source(TinyVecEnv) == "from tests.conformance.tiny import TinyVecEnv as make_env"
    for factory, source in (
        (
            lambda: TinyVecEnv(num_envs=3),
            "from tests.conformance.tiny import TinyVecEnv\n\n"
            "def make_env():\n    return TinyVecEnv(num_envs=3)",
        ),
        (lambda: (os.sep, TinyVecEnv())[1], None),
    ):
        text = factory_source(factory)
        namespace: dict[str, Any] = {}
        exec(text, namespace)
        assert isinstance(namespace["make_env"](), TinyVecEnv)
        assert source in (None, text)
    lock = threading.Lock()
    assert factory_source(lambda: (lock, TinyVecEnv())[1]) == PLACEHOLDER
    assert factory_source(TinyVecEnv().reset) == PLACEHOLDER
    both = factory_source(TinyVecEnv, [tiny.single] * 2)
    assert both.endswith("import single as make_single\n\nreference = [make_single] * 2")
    assert "reference = ..." in factory_source(TinyVecEnv, [tiny.single, tiny.boom])
