"""What is private in Gymnasium."""

from __future__ import annotations

from sb3compat._upstream.table.entry import Kind, names

_SYNC = "gymnasium.vector.sync_vector_env:SyncVectorEnv"
_ASYNC = "gymnasium.vector.async_vector_env:AsyncVectorEnv"
_ASYNC_LOOP = "gymnasium.vector.async_vector_env:_async_worker"
_CARTPOLE = "gymnasium.envs.classic_control.cartpole:CartPoleVectorEnv"
_JAX_ENV = "gymnasium.envs.functional_jax_env:FunctionalJaxVectorEnv"
_VECTOR_WRAPPERS = "gymnasium.wrappers.vector"

VECTOR_ENVS = (
    *names(
        "gymnasium.vector.vector_env:VectorEnv",
        Kind.ATTRIBUTE,
        "_upstream/vector_env.py",
        {
            "_np_random": "the generator that a user sets would be dropped",
            "_np_random_seed": "np_random_seed would still be that of a replaced generator",
        },
    ),
    *names(
        "gymnasium.vector.vector_env:VectorEnv",
        Kind.METHOD,
        "_upstream/sync_vector_env.py",
        {"_add_info(infos, info, row)": "the infos of single rows could not be batched"},
    ),
    *names(
        _SYNC,
        Kind.ATTRIBUTE,
        "_upstream/sync_vector_env.py",
        {
            "_env_obs": "a reset of some rows would batch old observations of the others",
            "_observations": "the batch returned would not be the environment's own",
            "_autoreset_envs": "an autoreset would stay pending: a row would be reset twice",
            "_terminations": "a masked reset would leave the flags of the last step",
            "_truncations": "a masked reset would leave the flags of the last step",
        },
    ),
    *names(
        _SYNC,
        Kind.ATTRIBUTE,
        "_rows/subenvs.py",
        {"envs": "the sub-environments could not be stepped one by one"},
    ),
)

ASYNC_VECTOR_ENV = (
    *names(
        _ASYNC,
        Kind.ATTRIBUTE,
        "_ipc/async_vector_env.py",
        {
            "_state": "a pending call would not be noticed: its answer would be taken for another",
            "parent_pipes": "a message to a single worker could not be sent",
            "processes": "the death of a worker would not be noticed: a hang",
            "error_queue": "what a sub-environment raised would be lost",
            "observations": "the batch in shared memory could not be read",
            "shared_memory": "observations would be looked for in the wrong place",
            "copy": "what was returned would change later, or be copied twice",
            "autoreset_mode": "rows would be reset twice, or not at all",
        },
    ),
    *names(
        _ASYNC,
        Kind.ATTRIBUTE,
        "_to_sb3/source.py",
        {"worker": "a custom worker would get the messages of Gymnasium's"},
    ),
    *names(
        _ASYNC,
        Kind.METHOD,
        "_ipc/async_vector_env.py",
        {
            "close_extras(terminate=True)": "workers that cannot answer would not be ended",
            "step_async(actions)": "an override of it would not be noticed",
            "step_wait()": "an override of it would not be noticed",
        },
    ),
    *names(
        "gymnasium.vector.async_vector_env:AsyncState",
        Kind.ATTRIBUTE,
        "_ipc/async_vector_env.py",
        {
            "DEFAULT": "nothing would show whether an answer is due",
            "WAITING_STEP": "nothing would show whether a step is under way",
        },
    ),
    *names(
        _ASYNC_LOOP,
        Kind.LOCAL,
        "_ipc/worker_locals.py",
        {"env": "whether a sub-environment is wrapped could not be asked"},
    ),
    *names(
        _ASYNC_LOOP,
        Kind.LOCAL,
        "_ipc/async_vector_env.py",
        {
            "autoreset": "whether an autoreset is pending could not be asked: a row reset twice",
            "error_queue": "exceptions that cannot be pickled would be dropped",
        },
    ),
    *names(
        _ASYNC_LOOP,
        Kind.CODE,
        "_ipc/pipes.py",
        {"command, data = pipe.recv()": "a message has another form"},
    ),
    *names(
        _ASYNC_LOOP,
        Kind.COMMAND,
        "_ipc/async_vector_env.py",
        {
            "reset": "single rows could not be reset",
            "step": "single rows could not be stepped",
            "_call": "single sub-environments could not be asked",
        },
    ),
    *names(
        _ASYNC_LOOP,
        Kind.CODE,
        "_ipc/async_vector_env.py",
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
        },
    ),
    *names(
        _ASYNC_LOOP,
        Kind.CODE,
        "_ipc/exceptions.py",
        {"error_queue.put((index, kind, value, trace))": "an error could not be read"},
    ),
    *names(
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

WRAPPERS_AND_NATIVE = (
    *names(
        f"{_VECTOR_WRAPPERS}:RecordEpisodeStatistics",
        Kind.ATTRIBUTE,
        "_upstream/vector_wrappers.py",
        {"_autoreset_mode": "statistics of another autoreset mode would not be refused"},
    ),
    *names(
        f"{_VECTOR_WRAPPERS}:NormalizeReward",
        Kind.ATTRIBUTE,
        "_upstream/vector_wrappers.py",
        {"_autoreset_mode": "statistics of another autoreset mode would not be refused"},
        since="1.4",
    ),
    *names(
        f"{_VECTOR_WRAPPERS}:VectorizeTransformObservation",
        Kind.ATTRIBUTE,
        "_upstream/vector_wrappers.py",
        {"autoreset_mode": "a wrapper in another autoreset mode would not be refused"},
    ),
    *names(
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
        for name in names(
            f"{_VECTOR_WRAPPERS}.{module}",
            Kind.NAME,
            "_upstream/vector_wrappers.py",
            {cls: "known by its name only: the conversion would not be refused"},
            since=since,
        )
    ),
    *names(
        _CARTPOLE.partition(":")[0],
        Kind.NAME,
        "_to_sb3/backends/cartpole.py",
        {"CartPoleVectorEnv": "known by its name only: NEXT_STEP mode would be refused"},
    ),
    *names(
        _CARTPOLE,
        Kind.ATTRIBUTE,
        "_upstream/cartpole.py",
        {
            "state": "single rows could not be reset",
            "steps": "a reset row would be truncated too early",
            "prev_done": "an autoreset would stay pending: a row would be reset twice",
            "low": "ended rows would begin elsewhere than by the autoreset",
            "high": "ended rows would begin elsewhere than by the autoreset",
        },
    ),
    *names(
        "gymnasium.envs.registration",
        Kind.NAME,
        "_upstream/registration.py",
        {"_find_spec": "ids could not be resolved before workers are started"},
    ),
    *names(
        "gymnasium.envs.classic_control.utils",
        Kind.NAME,
        "_upstream/cartpole.py",
        {"maybe_parse_reset_bounds": "options of a reset could not be read"},
    ),
    *names(
        _JAX_ENV.partition(":")[0],
        Kind.NAME,
        "_to_sb3/backends/jax.py",
        {"FunctionalJaxVectorEnv": "known by its name only: NEXT_STEP mode would be refused"},
    ),
    *names(
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
)
