"""Every argument of every public function, with wrong values: the message says what to do.

The functions and their parameters are taken from the public API: one without an entry here fails.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
import sb3compat.conformance
from tests.envs import ScriptedEnv, fns
from tests.native import NativeEnv

# What a message ends with: a sentence in the imperative, or a question.
WAY_OUT = re.compile(
    r"(?:[.:?;,] |or )(?:Pass|Write|Use|Leave|Call|Make|Take|Put|Adapt|Register"
    r"|Say|Give|Did you mean|pip install|call|pass|leave|`sb3compat list`)"
)


class Other(sb3compat.VecEnvAdapter):
    """Always adapted, as a subclass may present the environment differently."""


class Strange:
    """A value of a type that no argument has."""


STRANGE = Strange()
# A parameter that takes whatever the environment knows.
ANYTHING: tuple[Any, ...] = ()
FLAG = ("yes", 1, None, STRANGE)
TIMEOUT = ("60", 0, -1.5, True, float("nan"), STRANGE, [1])
COUNT = ("3", 0, -1, 2.0, STRANGE, [1])
MODE = ("sameStep", "nonsense", 1, STRANGE)
KWARGS = (3, "nonsense", ["a"], STRANGE)
SEED = ("3", 2.5, STRANGE, [1, 2, 3])
INDICES = ("x", 1.5, STRANGE, [None], 9, [-4], [True, False], True)
NAMES = ("dones_*", 3, ["no_such_check"], STRANGE)
FUNCTIONS = (None, 3, [], [3], STRANGE, lambda: None)
MAKING = {
    "factory": ANYTHING,  # the kit examines what it makes, and has tests of that
    "on_fail": ("riase", 3, True, STRANGE),
    "seed": ("3", 2.5, None, STRANGE),
    "max_seconds": ("60", 0, -1, STRANGE),
    "programs": ("3", 0, 2.5, STRANGE),
    "only": NAMES,
    "skip": NAMES,
    "expected_failures": (["dones_bool_array"], {"dones_bool_aray": "known"}, 3, STRANGE),
    "known_upstream": FLAG,
    "strict": FLAG,
    "isolate": FLAG,
    "make_env": (3, STRANGE),
    "capabilities": (["render"], {"rendr": True}, 3, STRANGE),
    "options": (["a"], 3, STRANGE),
    "reference": (3, [3], STRANGE),
    "require_exercised": ("3", -1, None, STRANGE),
}
ONE = fns(1, lengths=(1,))[0]
TO_SB3 = {
    "env": (None, 3, STRANGE, ONE(), [ONE()], SyncVectorEnv),
    "autoreset_mode": MODE,
    "copy": FLAG,
    "require_final_obs": FLAG,
    "padding": FLAG,
    "timeout": TIMEOUT,
}
TO_GYMNASIUM = {
    "vec_env": (None, 3, STRANGE, ONE(), [ONE()], sb3compat.ParallelVecEnv),
    "autoreset_mode": MODE,
    "missing_truncation": ("truncated", True, STRANGE),
    "require_final_obs": FLAG,
}
ROWS: dict[str, dict[str, tuple[Any, ...]]] = {
    "reset": {"args": (7,), "unknown": ({"seed": 7}, {"options": {}})},
    "set_options": {"options": (3, "x", [{}], ["a", "b"], STRANGE)},
    "seed": {"seed": SEED},
    "step_async": {"actions": (None, 3, "x", [0], np.zeros(2), STRANGE)},
    "step_wait": {},
    "has_attr": {"attr_name": ANYTHING},
    "get_attr": {"attr_name": ANYTHING, "indices": INDICES},
    "set_attr": {"attr_name": ANYTHING, "value": ANYTHING, "indices": INDICES},
    "env_method": {
        "method_name": ANYTHING,
        "method_args": ANYTHING,
        "method_kwargs": ANYTHING,
        "indices": INDICES,
    },
    "env_is_wrapped": {"wrapper_class": ("x", 3, STRANGE), "indices": INDICES},
    "get_images": {},
    "close": {},
}
# The wrong values of each parameter, by function; of each method, by class.
TABLE: dict[str, dict[str, tuple[Any, ...]]] = {
    "to_sb3": TO_SB3,
    "VecEnvAdapter": TO_SB3,
    "to_gymnasium": TO_GYMNASIUM,
    "VectorEnvAdapter": {**TO_GYMNASIUM, "autoreset_mode": (*MODE, None)},
    "ParallelVecEnv": {
        "env_fns": FUNCTIONS,
        "workers": COUNT,
        "backend": ("rai", None, STRANGE),
        "start_method": ("frok", 3, STRANGE),
        "timeout": TIMEOUT,
        "on_worker_lost": ("restrat", None, STRANGE),
        "parent_steps": FLAG,
        "spin_seconds": ("1", -1, True, 50, STRANGE),
        "copy": FLAG,
        "actor_options": ({"num_cpus": 1}, 3, STRANGE),
        "schedule_timeout": TIMEOUT,
    },
    "make_vec_env": {
        "env_id": (None, 3, ["CartPole-v1"], STRANGE, ONE()),
        "n_envs": COUNT,
        "seed": SEED,
        "start_index": ("0", None, 1.5, STRANGE),
        "monitor_dir": (3, STRANGE, ["x"]),
        "wrapper_class": ("x", 3, STRANGE),
        "env_kwargs": KWARGS,
        "vec_env_cls": ("subproc", 3, int, STRANGE),
        "vec_env_kwargs": (*KWARGS, {"strat_method": "fork"}),
        "monitor_kwargs": KWARGS,
        "wrapper_kwargs": KWARGS,
        "vectorization_mode": ("subproc", "dummy", "nativ", "nonsense", 3, STRANGE),
        "autoreset_mode": MODE,
        "timeout": TIMEOUT,
        "workers": (2, "3", STRANGE),
        "unknown": ({"mode": "subproc"}, {"n_env": 4}, {"num_envs": 4}, {"gravity": 1}),
    },
    "WorkerStats": {"seconds": (*TIMEOUT, None), "verbose": ANYTHING},
    "ParallelVecEnv.worker_times": {},
    "register_partial_reset": {
        "cls": (None, 3, "x", ScriptedEnv, gym.vector.VectorWrapper, STRANGE),
        "function": (3, "x", STRANGE),
    },
    "reset_with_mask": {"env": ANYTHING, "mask": ANYTHING, "seed": ANYTHING, "options": ANYTHING},
    "trace": {
        "env": (None, 3, STRANGE, ONE()),
        "episodes": COUNT,
        "seed": (*SEED, None, -1),
        "rows": (0, 4, "x", 1.5, [None], STRANGE),
        "max_steps": COUNT,
        "autoreset_mode": MODE,
    },
    "conformance.check_vec_env": MAKING,
    "conformance.check_vector_env": MAKING,
    "conformance.check": {
        "family": ("vecenv", None, 3),
        "severity": ("eror", None, 3),
        "source": (3, None, STRANGE),
        "group": (3, None, STRANGE),
        "needs": ("render", ["rendr"], 3, None, STRANGE),
        "after": ("dones_bool_array", 3, STRANGE),
        "modes": ("SameStep", ["sameStep"], 3, None, STRANGE),
        "new": FLAG,
        "variant": (3, STRANGE),
        "without_reference": (3, STRANGE),
    },
    **{f"VecEnvAdapter.{name}": row for name, row in ROWS.items()},
    **{f"ParallelVecEnv.{name}": row for name, row in ROWS.items()},
}
# Classes that the package makes, and hands out.
MADE_BY_US = {
    "Trace",
    *(
        f"conformance.{name}"
        for name in ("Record", "Recorded", "Scene", "Demand", "Report", "Result", "expect")
    ),
}
# Methods that the two packages call on each other, and those that are Gymnasium's.
NOT_FOR_USERS = re.compile(r"\.(original|settled|reset_rows|pass_options|read|row_commands|__\w+)$")


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions, and the classes that users call."""
    for prefix, module in (("", sb3compat), ("conformance.", sb3compat.conformance)):
        for name in module.__all__:
            value = getattr(module, name)
            is_error = isinstance(value, type) and issubclass(value, BaseException)
            if callable(value) and not is_error and prefix + name not in MADE_BY_US:
                yield prefix + name, value
    for cls in (sb3compat.VecEnvAdapter, sb3compat.ParallelVecEnv):
        # The base class is SB3's, or a stand-in for it.
        ours = re.compile(r"sb3compat\._(?!upstream\.)")
        own = [base for base in cls.__mro__ if ours.match(base.__module__)]
        for name in {name for base in own for name in vars(base) if name[0] != "_"}:
            value = inspect.getattr_static(cls, name)
            if inspect.isfunction(value) and not NOT_FOR_USERS.search(f".{name}"):
                yield f"{cls.__name__}.{name}", value


def test_every_parameter_of_the_public_api_has_an_entry() -> None:
    found = {name: {*inspect.signature(value).parameters} - {"self"} for name, value in public()}
    assert {name: {*row} for name, row in TABLE.items()} == found


def singles() -> SyncVectorEnv:
    return SyncVectorEnv([ONE] * 3, autoreset_mode=AutoresetMode.SAME_STEP)


def parallel() -> Any:
    return sb3compat.ParallelVecEnv([ONE] * 3, 1, start_method="fork")


# What a call needs besides the wrong argument.
BASE: dict[str, Callable[[], dict[str, Any]]] = {
    "to_sb3": lambda: {"env": singles()},
    "VecEnvAdapter": lambda: {"env": singles()},
    "to_gymnasium": lambda: {"vec_env": Other(singles())},
    "VectorEnvAdapter": lambda: {"vec_env": Other(singles())},
    "ParallelVecEnv": lambda: {"env_fns": [ONE]},
    "make_vec_env": lambda: {"env_id": ONE},
    "register_partial_reset": lambda: {"cls": NativeEnv},
    "WorkerStats": dict,
    "trace": lambda: {"env": singles()},
    "conformance.check_vec_env": lambda: {"factory": parallel},
    "conformance.check_vector_env": lambda: {"factory": singles},
    "conformance.check": lambda: {"family": "vec_env"},
}


def case(name: str, parameter: str, value: object) -> Any:
    # An index keeps the id of objects without a stable repr the same in each run.
    number = next(i for i, each in enumerate(TABLE[name][parameter]) if each is value)
    return pytest.param(name, parameter, value, id=f"{name}-{parameter}-{number}")


CASES = [
    case(name, parameter, value)
    for name, row in TABLE.items()
    for parameter, values in row.items()
    for value in values
]


@pytest.fixture(scope="module")
def opened() -> Iterator[dict[str, Any]]:
    envs = {"VecEnvAdapter": sb3compat.to_sb3(singles()), "ParallelVecEnv": parallel()}
    for env in envs.values():
        env.reset()
    yield envs
    for env in envs.values():
        env.close()


@pytest.mark.parametrize(("name", "parameter", "value"), CASES)
def test_message_ends_with_what_to_do(
    name: str, parameter: str, value: Any, opened: dict[str, Any]
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(name, parameter, value, opened)
    message = str(caught.value)
    assert message.startswith("Expected"), message
    assert WAY_OUT.search(message.partition("got")[2] or message), message


def call(name: str, parameter: str, value: Any, opened: dict[str, Any]) -> None:
    owner, _, function = name.rpartition(".")
    if owner in opened:
        call_method(opened[owner], function, parameter, value)
        return
    module = sb3compat.conformance if owner else sb3compat
    given = value if parameter == "unknown" else {parameter: value}
    result = getattr(module, function)(**{**BASE[name](), **given})
    if name == "conformance.check":
        result(documented)


def documented(play: Any) -> None:
    """Something holds."""


def call_method(env: Any, method: str, parameter: str, value: Any) -> None:
    function = getattr(env, method)
    if parameter == "args":
        function(value)
    elif parameter == "unknown":
        function(**value)
    elif parameter == "indices":
        more = {"env_is_wrapped": (gym.Wrapper,), "set_attr": ("x", 1)}.get(method, ("spec",))
        function(*more, indices=value)
    else:
        function(value)


def test_native_where_nothing_is_native_names_another_mode() -> None:
    with pytest.raises(gym.error.Error, match=r"Use vectorization_mode='sync'"):
        sb3compat.make_vec_env("Pendulum-v1", vectorization_mode="native")


def test_what_cannot_be_sent_to_workers_says_what_to_do(opened: dict[str, Any]) -> None:
    lock = threading.Lock()

    def make() -> Any:
        assert lock
        return ONE()

    spawned = {"vectorization_mode": "async", "vec_env_kwargs": {"start_method": "spawn"}}
    with pytest.raises(sb3compat.UnsupportedEnvError, match="'start_method': 'fork'") as caught:
        sb3compat.make_vec_env(make, 2, **spawned)
    assert "Make what cannot be pickled inside" in str(caught.value)
    with pytest.raises(sb3compat.UnsupportedEnvError, match="Create the objects that"):
        sb3compat.ParallelVecEnv([make], 1)
    with pytest.raises(sb3compat.UnsupportedEnvError, match="Send the data that"):
        opened["ParallelVecEnv"].set_attr("lock", lock)
    assert opened["ParallelVecEnv"].get_attr("spec") == [None] * 3
