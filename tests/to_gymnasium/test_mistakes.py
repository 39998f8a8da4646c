"""The same mistake raises the same class of exception as `SyncVectorEnv`, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import BOX, GYMNASIUM, fns
from tests.interrupts import attempt
from tests.lockstep_back import dummy, monitored, subproc

pytest.importorskip("stable_baselines3")

# Each source in the modes that it has; workers in one.
SOURCES = [(dummy, mode) for mode in AutoresetMode]
SOURCES += [(monitored, AutoresetMode.SAME_STEP), (monitored, AutoresetMode.DISABLED)]
SOURCES += [(subproc, AutoresetMode.SAME_STEP)]
DICT = spaces.Dict({"a": spaces.Discrete(2), "b": BOX})
TUPLE = spaces.Tuple([spaces.Discrete(2), BOX])
BOXES = np.zeros((2, 3), np.float32)
Use = Callable[[Any], Any]


def stepped(actions: Any) -> Use:
    def use(env: Any) -> None:
        env.reset()
        env.step(actions)

    return use


def seeded(seed: Any) -> Use:
    return lambda env: env.reset(seed=seed)


def masked(mask: Any) -> Use:
    def use(env: Any) -> None:
        env.reset()
        env.reset(options={"reset_mask": mask})

    return use


BAD_ACTIONS: dict[str, tuple[Any, list[Any]]] = {
    "Discrete": (
        spaces.Discrete(3),
        [0, None, 1.5, np.array(1), object(), [], [0], [0, 1, 1], "a", iter([0])],
    ),
    "Box": (BOX, [0, None, BOXES[:1], BOXES[0]]),
    "Dict": (
        DICT,
        [
            *(0, None, {}, {"a": [0, 1]}, {"a": [0], "b": BOXES}, {"a": 0, "b": BOXES}),
            *(([0, 1], BOXES), BOXES, [{"a": 1}], [{"a": 1, "b": BOXES[0]}], "ab"),
        ],
    ),
    "Tuple": (
        TUPLE,
        [0, None, (), ([0, 1],), ([0], BOXES), (0, BOXES), {"a": [0, 1], "b": BOXES}],
    ),
}
MISTAKES: dict[str, tuple[dict[str, Any], Use]] = {
    **{
        f"{name} actions {number}": ({"action_space": space}, stepped(actions))
        for name, (space, several) in BAD_ACTIONS.items()
        for number, actions in enumerate(several)
    },
    **{
        f"seed={seed!r}": ({}, seeded(seed))
        for seed in (1.5, "ab", object, [1], (1,), [1, 2, 3], [], -1, [1, -1], [1.5, 2], ["a", "b"])
    },
    "two-dimensional seeds": ({}, seeded(np.zeros((2, 2), int))),
    **{
        f"mask {mask!r}": ({}, masked(mask))
        for mask in (
            [True, False], True, None, "ab", np.ones(1, bool), np.ones((2, 1), bool),
            np.ones(2, int), np.array([True, False], object), np.zeros(2, bool),
        )
    },
    "options=5": ({}, lambda env: env.reset(options=5)),
    "a missing attribute": ({}, lambda env: env.get_attr("nothing")),
    "a missing method": ({}, lambda env: env.call("nothing", 1)),
    "wrong arguments": ({}, lambda env: env.call("set_mu", 1, 2, 3)),
    "a method that raises": ({}, lambda env: env.call("fail")),
    "a name that is no string": ({}, lambda env: env.get_attr(3)),
    "one value": ({}, lambda env: env.set_attr("mu", [1])),
    "no value": ({}, lambda env: env.set_attr("mu", [])),
    "three values": ({}, lambda env: env.set_attr("mu", (1, 2, 3))),
    "to set by a name that is no string": ({}, lambda env: env.set_attr(3, 3)),
    "a seed by position": ({}, lambda env: env.reset(3)),
    "a generator": ({}, lambda env: setattr(env, "np_random", 3)),
    "no actions": ({}, lambda env: env.step()),
}  # fmt: skip


def raised(env: Any, use: Use) -> Any:
    error = attempt(lambda: use(env), Exception)[1]
    env.close()
    return error


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize(("build", "mode"), SOURCES)
def test_mistake_raises_what_sync_vector_env_raises(name: str, mode: Any, build: Any) -> None:
    if build is subproc and ("actions" in name or "mask" in name):
        return  # refused before the workers are asked
    kwargs, use = MISTAKES[name]
    theirs = raised(SyncVectorEnv(fns(**kwargs), autoreset_mode=mode), use)
    ours = raised(sb3compat.to_gymnasium(build(fns(**kwargs)), autoreset_mode=mode), use)
    # Before 1.3, some mistakes went through in Gymnasium.
    assert theirs is not None or GYMNASIUM < (1, 3)
    assert isinstance(ours, type(theirs) if theirs else Exception), (ours, theirs)


@pytest.mark.parametrize("build", [dummy, monitored])
@pytest.mark.parametrize("name", BAD_ACTIONS)
def test_refused_actions_change_nothing(name: str, build: Any) -> None:
    space, several = BAD_ACTIONS[name]
    envs = sb3compat.to_gymnasium(build(fns(action_space=space)))
    envs.reset()
    for actions in several:
        with pytest.raises(sb3compat.ConversionError, match=r"^Expected "):
            envs.step(actions)
    assert envs.step(envs.action_space.sample())[-1]["shared"].tolist() == [1, 1]


@pytest.mark.parametrize("actions", ["ab", {"a": 1, "b": 2}, {0, 1}])
def test_actions_without_an_order_are_refused_before_a_whole_step(actions: Any) -> None:
    envs = sb3compat.to_gymnasium(monitored(fns()))
    envs.reset()
    with pytest.raises(sb3compat.ConversionError, match="Expected 2 actions"):
        envs.step(actions)
