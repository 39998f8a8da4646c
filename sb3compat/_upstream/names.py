"""The table of everything private in other libraries that this package relies on.

Private is what no documentation promises, also where it has no underscore. `canary.missing` looks
each entry up in what is installed; `sb3compat versions` prints what it does not find. Whoever makes
use of another private name adds it here: a test compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """How an entry is looked up."""

    NAME = "name"  # defined or imported by the module
    ATTRIBUTE = "attribute"  # of the class or its instances
    LOCAL = "local variable"  # of the function
    METHOD = "method"  # of the class, and it can be called like that
    COMMAND = "command"  # that the function, a worker's loop, compares with
    CODE = "code"  # a form that is found in the function; after "command -> ", in that branch
    BODY = "body"  # all that the function does


class Name(NamedTuple):
    """One private thing of another library.

    Attributes:
        where: `module`, or `module:class` or `module:function`.
        kind: How it is looked up.
        name: The name, or a pattern of code.
        used_in: The module of this package that relies on it.
        why: What would go wrong without it, or if it meant something else.
        since: The first minor release that always has it; empty where all supported ones do.
    """

    where: str
    kind: Kind
    name: str
    used_in: str
    why: str
    since: str = ""

    @property
    def module(self) -> str:
        """The module."""
        return self.where.partition(":")[0]

    @property
    def qualname(self) -> str:
        """The class or function within the module; empty for the module itself."""
        return self.where.partition(":")[2]

    @property
    def library(self) -> str:
        """The library, by the name that is imported."""
        return self.where.partition(".")[0].partition(":")[0]

    def __str__(self) -> str:
        return f"{self.where} {self.kind.value} {self.name}"


def _names(
    where: str, kind: Kind, used_in: str, whys: Mapping[str, str], *, since: str = ""
) -> tuple[Name, ...]:
    return tuple(Name(where, kind, name, used_in, why, since) for name, why in whys.items())


_SYNC = "gymnasium.vector.sync_vector_env:SyncVectorEnv"
_ASYNC = "gymnasium.vector.async_vector_env:AsyncVectorEnv"
_ASYNC_LOOP = "gymnasium.vector.async_vector_env:_async_worker"
_CARTPOLE = "gymnasium.envs.classic_control.cartpole:CartPoleVectorEnv"
_JAX_ENV = "gymnasium.envs.functional_jax_env:FunctionalJaxVectorEnv"
_VECTOR_WRAPPERS = "gymnasium.wrappers.vector"
_VEC_ENVS = "stable_baselines3.common.vec_env"
_BASE_VEC_ENV = "stable_baselines3.common.vec_env.base_vec_env:VecEnv"
_SUBPROC = "stable_baselines3.common.vec_env.subproc_vec_env:SubprocVecEnv"
_SUBPROC_LOOP = "stable_baselines3.common.vec_env.subproc_vec_env:_worker"

_BASIC_VECTOR_ENVS = (
    *_names(
        "gymnasium.vector.vector_env:VectorEnv",
        Kind.ATTRIBUTE,
        "_upstream/vector_env.py",
        {
            "_np_random": "the generator that a user sets would be dropped",
            "_np_random_seed": "the seed of a replaced generator would still be told",
        },
    ),
    *_names(
        "gymnasium.vector.vector_env:VectorEnv",
        Kind.METHOD,
        "_upstream/sync_vector_env.py",
        {"_add_info(infos, info, row)": "the infos of single rows could not be batched"},
    ),
    *_names(
        _SYNC,
        Kind.ATTRIBUTE,
        "_upstream/sync_vector_env.py",
        {
            "_env_obs": "a reset of some rows would batch old observations of the others",
            "_observations": "the batch handed out would not be the environment's own",
            "_autoreset_envs": "an autoreset would stay pending: a row would be reset twice",
            "_terminations": "a masked reset would leave what the last step said",
            "_truncations": "a masked reset would leave what the last step said",
        },
    ),
    *_names(
        _SYNC,
        Kind.ATTRIBUTE,
        "_to_sb3/subenvs.py",
        {"envs": "the sub-environments could not be stepped one by one"},
    ),
)

_ASYNC_VECTOR_ENV = (
    *_names(
        _ASYNC,
        Kind.ATTRIBUTE,
        "_upstream/async_vector_env.py",
        {
            "_state": "a pending call would not be noticed: its answer would be taken for another",
            "parent_pipes": "no single worker could be spoken to",
            "processes": "the death of a worker would not be noticed: a hang",
            "error_queue": "what a sub-environment raised would be lost",
            "observations": "the batch in shared memory could not be read",
            "shared_memory": "observations would be looked for in the wrong place",
            "copy": "what was handed out would change later, or be copied twice",
            "autoreset_mode": "rows would be reset twice, or not at all",
        },
    ),
    *_names(
        _ASYNC,
        Kind.ATTRIBUTE,
        "_to_sb3/source.py",
        {"worker": "a custom worker would be spoken to as if it were Gymnasium's"},
    ),
    *_names(
        _ASYNC,
        Kind.METHOD,
        "_upstream/async_vector_env.py",
        {
            "close_extras(terminate=True)": "workers that cannot answer would not be ended",
            "step_async(actions)": "an override of it would not be noticed",
            "step_wait()": "an override of it would not be noticed",
        },
    ),
    *_names(
        f"{_ASYNC}.step",
        Kind.BODY,
        "_upstream/split_step.py",
        {"self.step_async(actions); return self.step_wait()": "a step is more than its two halves"},
    ),
    *_names(
        "gymnasium.vector.async_vector_env:AsyncState",
        Kind.ATTRIBUTE,
        "_upstream/async_vector_env.py",
        {
            "DEFAULT": "whether an answer is due could not be told",
            "WAITING_STEP": "whether a step is under way could not be told",
        },
    ),
    *_names(
        _ASYNC_LOOP,
        Kind.LOCAL,
        "_upstream/worker_locals.py",
        {"env": "whether a sub-environment is wrapped could not be asked"},
    ),
    *_names(
        _ASYNC_LOOP,
        Kind.LOCAL,
        "_upstream/async_vector_env.py",
        {"autoreset": "whether an autoreset is pending could not be asked: a row reset twice"},
    ),
    *_names(
        _ASYNC_LOOP,
        Kind.CODE,
        "_upstream/pipes.py",
        {"command, data = pipe.recv()": "a message has another form"},
    ),
    *_names(
        _ASYNC_LOOP,
        Kind.COMMAND,
        "_upstream/async_vector_env.py",
        {
            "reset": "single rows could not be reset",
            "step": "single rows could not be stepped",
            "_call": "single sub-environments could not be asked",
        },
    ),
    *_names(
        _ASYNC_LOOP,
        Kind.CODE,
        "_upstream/async_vector_env.py",
        {
            "reset -> env.reset(**data)": "the arguments of a reset would not arrive",
            "reset -> pipe.send(((observation, info), True))": "the answer has another form",
            "step -> env.step(data)": "the action would not arrive",
            "step -> pipe.send(((observation, reward, terminated, truncated, info), True))": (
                "the answer has another form"
            ),
            "_call -> name, args, kwargs = data": "a message has another form",
            "_call -> pipe.send((result, True))": "the answer has another form",
            "pipe.send((None, False))": "an error would be taken for a result",
            "error_queue.put((index, kind, value, trace))": "an error could not be read",
        },
    ),
    *_names(
        _ASYNC_LOOP,
        Kind.CODE,
        "_to_sb3/rows_async.py",
        {
            'step -> {"final_info": info, "final_obs": observation, **reset_info}': (
                "the last observation of an episode would be lost in SAME_STEP mode"
            )
        },
    ),
)

_WRAPPERS_AND_NATIVE = (
    *_names(
        f"{_VECTOR_WRAPPERS}:RecordEpisodeStatistics",
        Kind.ATTRIBUTE,
        "_upstream/vector_wrappers.py",
        {"_autoreset_mode": "statistics of another autoreset mode would not be refused"},
    ),
    *_names(
        f"{_VECTOR_WRAPPERS}:NormalizeReward",
        Kind.ATTRIBUTE,
        "_upstream/vector_wrappers.py",
        {"_autoreset_mode": "statistics of another autoreset mode would not be refused"},
        since="1.4",
    ),
    *_names(
        f"{_VECTOR_WRAPPERS}:VectorizeTransformObservation",
        Kind.ATTRIBUTE,
        "_upstream/vector_wrappers.py",
        {"autoreset_mode": "a wrapper in another autoreset mode would not be refused"},
    ),
    *_names(
        f"{_VECTOR_WRAPPERS}:RecordVideo",
        Kind.ATTRIBUTE,
        "_upstream/vector_wrappers.py",
        {
            "autoreset_mode": "a wrapper in another autoreset mode would not be refused",
            "recording": "the reset of other rows would be in the video as a frame",
        },
        since="1.3",
    ),
    *(
        name
        for module, cls, since in (
            ("array_conversion", "ArrayConversion", "1.2"),
            ("jax_to_numpy", "JaxToNumpy", ""),
            ("jax_to_torch", "JaxToTorch", ""),
            ("numpy_to_torch", "NumpyToTorch", ""),
        )
        for name in _names(
            f"{_VECTOR_WRAPPERS}.{module}",
            Kind.NAME,
            "_upstream/vector_wrappers.py",
            {cls: "known by its name only: the conversion would not be refused"},
            since=since,
        )
    ),
    *_names(
        _CARTPOLE.partition(":")[0],
        Kind.NAME,
        "_to_sb3/backends/cartpole.py",
        {"CartPoleVectorEnv": "known by its name only: NEXT_STEP mode would be refused"},
    ),
    *_names(
        _CARTPOLE,
        Kind.ATTRIBUTE,
        "_upstream/cartpole.py",
        {
            "state": "single rows could not be reset",
            "steps": "a reset row would be truncated too early",
            "prev_done": "an autoreset would stay pending: a row would be reset twice",
        },
    ),
    *_names(
        "gymnasium.envs.classic_control.utils",
        Kind.NAME,
        "_upstream/cartpole.py",
        {"maybe_parse_reset_bounds": "options of a reset could not be read"},
    ),
    *_names(
        _JAX_ENV.partition(":")[0],
        Kind.NAME,
        "_to_sb3/backends/jax.py",
        {"FunctionalJaxVectorEnv": "known by its name only: NEXT_STEP mode would be refused"},
    ),
    *_names(
        _JAX_ENV,
        Kind.ATTRIBUTE,
        "_upstream/functional_jax_env.py",
        {
            "rng": "a seed would be dropped",
            "state": "single rows could not be reset",
            "steps": "a reset row would be truncated too early",
            "prev_done": "an autoreset would stay pending: a row would be reset twice",
            "func_env": "no new states could be drawn",
        },
    ),
    *_names(
        "ale_py.vector_env",
        Kind.NAME,
        "_to_sb3/backends/ale.py",
        {"AtariVectorEnv": "known by its name only: NEXT_STEP mode would be refused"},
    ),
    *_names(
        "ale_py.vector_env:AtariVectorEnv.step",
        Kind.BODY,
        "_upstream/split_step.py",
        {"self.send(actions); return self.ale.recv()": "a step is more than its two halves"},
    ),
    *_names(
        "ale_py.vector_env:AtariVectorEnv.recv",
        Kind.BODY,
        "_upstream/split_step.py",
        {"return self.ale.recv()": "the second half is more than what step does"},
    ),
    *_names(
        "envpool.python.gymnasium_envpool",
        Kind.NAME,
        "_to_sb3/backends/envpool.py",
        {"GymnasiumEnvPoolMixin": "known by its name only: NEXT_STEP mode would be refused"},
    ),
    *_names(
        "envpool.python.envpool:EnvPoolMixin.step",
        Kind.BODY,
        "_upstream/split_step.py",
        {
            "self.send(action, env_id); return self.recv(reset=False, return_info=True)": (
                "a step is more than its two halves"
            )
        },
    ),
    *_names(
        "envpool.python.envpool:EnvPoolMixin",
        Kind.METHOD,
        "_upstream/split_step.py",
        {
            "send(action)": "a step could not be started",
            "recv()": "a step could not be finished",
        },
    ),
)

_STABLE_BASELINES3 = (
    *_names(
        _VEC_ENVS,
        Kind.NAME,
        "_upstream/vec_env.py",
        {
            "VecEnv": "the base class could not be told: no death of a worker would be noticed",
            "VecEnvWrapper": "the base class could not be told: the rows would not be reached",
            "DummyVecEnv": "known by its name only: its rows would not be driven one by one",
            "SubprocVecEnv": "known by its name only: its rows would not be driven one by one",
        },
    ),
    *_names(
        "stable_baselines3.common.monitor",
        Kind.NAME,
        "_to_sb3/monitor.py",
        {"Monitor": "known by its name only: evaluate_policy would not know our monitor"},
    ),
    *_names(
        _BASE_VEC_ENV,
        Kind.ATTRIBUTE,
        "_upstream/vec_env.py",
        {
            "_seeds": "seeds that wait for the next reset would be dropped",
            "_options": "options that wait for the next reset would be dropped",
        },
    ),
    *_names(
        _BASE_VEC_ENV,
        Kind.METHOD,
        "_upstream/vec_env.py",
        {
            "_reset_seeds()": "seeds would be used for every reset",
            "_reset_options()": "options would be used for every reset",
        },
    ),
    *_names(
        f"{_BASE_VEC_ENV}.step",
        Kind.BODY,
        "_to_gymnasium/whole.py",
        {"self.step_async(actions); return self.step_wait()": "a step is more than its two halves"},
    ),
    *_names(
        _SUBPROC,
        Kind.ATTRIBUTE,
        "_upstream/subproc_vec_env.py",
        {
            "remotes": "no single worker could be spoken to; no death would be noticed: a hang",
            "processes": "the death of a worker would not be noticed: a hang",
            "waiting": "a pending step would not be noticed; close would wait for ever",
            "closed": "a closed environment would not be refused",
        },
    ),
    *_names(
        _SUBPROC,
        Kind.ATTRIBUTE,
        "_upstream/vec_env.py",
        {"_get_target_remotes": "an override of it would not be noticed"},
    ),
    *_names(
        "stable_baselines3.common.vec_env.dummy_vec_env:DummyVecEnv",
        Kind.ATTRIBUTE,
        "_upstream/vec_env.py",
        {"_get_target_envs": "an override of it would not be noticed"},
    ),
    *_names(
        _SUBPROC_LOOP,
        Kind.LOCAL,
        "_upstream/worker_locals.py",
        {"env": "the sub-environment could not be driven from within its worker"},
    ),
    *_names(
        _SUBPROC_LOOP,
        Kind.COMMAND,
        "_upstream/subproc_vec_env.py",
        {
            "env_method": "single sub-environments could not be asked",
            "set_attr": "what answers our commands could not be planted",
            "close": "workers could not be ended in good order",
        },
    ),
    *_names(
        _SUBPROC_LOOP,
        Kind.CODE,
        "_upstream/pipes.py",
        {"cmd, data = remote.recv()": "a message has another form"},
    ),
    *_names(
        _SUBPROC_LOOP,
        Kind.CODE,
        "_upstream/subproc_vec_env.py",
        {
            "env_method -> env.get_wrapper_attr(data[0])": "a message has another form",
            "env_method -> remote.send(method(*data[1], **data[2]))": "the answer has another form",
            "set_attr -> remote.send(setattr(env, data[0], data[1]))": "a message has another form",
        },
    ),
)

_CPYTHON = (
    *_names(
        "pickle",
        Kind.NAME,
        "_upstream/exceptions.py",
        {"_Unpickler": "exceptions whose class takes several arguments could not be read"},
    ),
    *_names(
        "pickle:_Unpickler",
        Kind.ATTRIBUTE,
        "_upstream/exceptions.py",
        {
            "dispatch": "our way to build exceptions would not be called",
            "load_reduce": "our way to build exceptions would not be called",
            "stack": "our way to build exceptions would not find their arguments",
        },
    ),
    *_names(
        "multiprocessing.queues:Queue",
        Kind.ATTRIBUTE,
        "_upstream/exceptions.py",
        {
            "_rlock": "an exception could be read by two at once",
            "_reader": "an exception that never comes would be waited for: a hang",
            "_sem": "the queue would be full after some errors",
        },
    ),
    *_names(
        "sys",
        Kind.NAME,
        "_upstream/worker_locals.py",
        {"_getframe": "a worker's local variables could not be read"},
    ),
    *_names(
        "multiprocessing.process:BaseProcess.run",
        Kind.CODE,
        "_upstream/worker_locals.py",
        {
            "self._target(*self._args, **self._kwargs)": (
                "where a worker's own frames end could not be told: its parent's would be read"
            )
        },
    ),
)

NAMES: tuple[Name, ...] = (
    *_BASIC_VECTOR_ENVS,
    *_ASYNC_VECTOR_ENV,
    *_WRAPPERS_AND_NATIVE,
    *_STABLE_BASELINES3,
    *_CPYTHON,
)
