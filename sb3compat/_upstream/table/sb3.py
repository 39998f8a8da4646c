"""What is private in Stable-Baselines3."""

from __future__ import annotations

from sb3compat._upstream.table.entry import Kind, names

_VEC_ENVS = "stable_baselines3.common.vec_env"
_BASE_VEC_ENV = "stable_baselines3.common.vec_env.base_vec_env:VecEnv"
_SUBPROC = "stable_baselines3.common.vec_env.subproc_vec_env:SubprocVecEnv"
_SUBPROC_LOOP = "stable_baselines3.common.vec_env.subproc_vec_env:_worker"

STABLE_BASELINES3 = (
    *names(
        f"{_VEC_ENVS}.patch_gym",
        Kind.NAME,
        "_upstream/sb3.py",
        {"_patch_env": "environments of the old gym would be refused"},
    ),
    *names(
        _VEC_ENVS,
        Kind.NAME,
        "_upstream/vec_env.py",
        {
            "VecEnv": "the base class could not be found: no death of a worker would be noticed",
            "VecEnvWrapper": "the base class could not be found: the rows would not be reached",
            "DummyVecEnv": "its rows would not be driven one by one",
            "SubprocVecEnv": "its rows would not be driven one by one",
            "VecNormalize": "the range of its observations would not be presented",
            "VecFrameStack": "the range of its observations would not be presented",
            "VecTransposeImage": "the range of its observations would not be presented",
            "VecExtractDictObs": "the range of its observations would not be presented",
        },
    ),
    *names(
        "stable_baselines3.common.monitor",
        Kind.NAME,
        "_make/monitor.py",
        {"Monitor": "evaluate_policy would not recognise sb3compat's monitor"},
    ),
    *names(
        _BASE_VEC_ENV,
        Kind.ATTRIBUTE,
        "_upstream/vec_env.py",
        {
            "_seeds": "seeds that wait for the next reset would be dropped",
            "_options": "options that wait for the next reset would be dropped",
        },
    ),
    *names(
        _BASE_VEC_ENV,
        Kind.METHOD,
        "_upstream/vec_env.py",
        {
            "_reset_seeds()": "seeds would be used for every reset",
            "_reset_options()": "options would be used for every reset",
        },
    ),
    *names(
        f"{_BASE_VEC_ENV}.step",
        Kind.BODY,
        "_to_gymnasium/whole.py",
        {"self.step_async(actions); return self.step_wait()": "a step is more than its two halves"},
    ),
    *names(
        _SUBPROC,
        Kind.ATTRIBUTE,
        "_ipc/subproc_vec_env.py",
        {
            "remotes": "a single worker could not be asked, nor its death noticed: a hang",
            "processes": "the death of a worker would not be noticed: a hang",
            "waiting": "a pending step would not be noticed; close would wait for ever",
            "closed": "a closed environment would not be refused",
        },
    ),
    *names(
        _SUBPROC,
        Kind.ATTRIBUTE,
        "_upstream/vec_env.py",
        {"_get_target_remotes": "an override of it would not be noticed"},
    ),
    *names(
        "stable_baselines3.common.vec_env.dummy_vec_env:DummyVecEnv",
        Kind.ATTRIBUTE,
        "_upstream/vec_env.py",
        {"_get_target_envs": "an override of it would not be noticed"},
    ),
    *names(
        "stable_baselines3.common.vec_env.dummy_vec_env:DummyVecEnv",
        Kind.ATTRIBUTE,
        "_rows/driver.py",
        {"buf_infos": "steps beside the adapter would not be noticed"},
    ),
    *names(
        _SUBPROC_LOOP,
        Kind.LOCAL,
        "_ipc/worker_locals.py",
        {"env": "the sub-environment could not be driven from within its worker"},
    ),
    *names(
        _SUBPROC_LOOP,
        Kind.COMMAND,
        "_ipc/subproc_vec_env.py",
        {
            "env_method": "single sub-environments could not be asked",
            "set_attr": "the object that answers sb3compat's commands could not be set",
            "close": "workers could not be ended in good order",
        },
    ),
    *names(
        _SUBPROC_LOOP,
        Kind.CODE,
        "_ipc/pipes.py",
        {"cmd, data = remote.recv()": "a message has another form"},
    ),
    *names(
        _SUBPROC_LOOP,
        Kind.CODE,
        "_ipc/subproc_vec_env.py",
        {
            "env_method -> env.get_wrapper_attr(data[0])": "a message has another form",
            "env_method -> remote.send(method(*data[1], **data[2]))": "the answer has another form",
            "set_attr -> remote.send(setattr(env, data[0], data[1]))": "a message has another form",
        },
    ),
)
