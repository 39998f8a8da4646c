"""The table of the private names of other libraries that this package relies on.

A name is private if no documentation promises it, even without an underscore. Each name that is
read by `private` or `set_private` has to be in this table, which `tests/test_arrows.py` tests. The
answers of a worker's loop to commands are no names; `tests/ipc/` tests them with real workers.
"""

from __future__ import annotations

from typing import NamedTuple


class Name(NamedTuple):
    """One private name of another library.

    Attributes:
        module: The module in whose source it is.
        owner: The class or function that has it; empty for the module itself.
        name: The name.
        why: What would fail if the name had another meaning.
        since: The first minor release that has it; empty where all supported ones do.
    """

    module: str
    owner: str
    name: str
    why: str
    since: str = ""

    @property
    def library(self) -> str:
        """The library, by the name that is imported."""
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return ".".join(filter(None, (self.module, self.owner, self.name)))


# By `module:owner`, or by `module`.
_WHY: dict[str, dict[str, str]] = {
    "gymnasium.vector.vector_env:VectorEnv": {
        "_np_random": "the generator that a user sets would be dropped",
        "_np_random_seed": "np_random_seed would still be that of a replaced generator",
        "_add_info": "the infos of single rows could not be batched",
    },
    "gymnasium.vector.sync_vector_env:SyncVectorEnv": {
        "_env_obs": "a reset of some rows would batch old observations of the others",
        "_observations": "the batch returned would not be the environment's own",
        "_autoreset_envs": "an autoreset would stay pending: a row would be reset twice",
        "_terminations": "a masked reset would leave the flags of the last step",
        "_truncations": "a masked reset would leave the flags of the last step",
    },
    "gymnasium.vector.async_vector_env:AsyncVectorEnv": {
        "_state": "a pending call would not be noticed: its answer would be taken for another",
        "parent_pipes": "a message to a single worker could not be sent",
        "processes": "the death of a worker would not be noticed: a hang",
        "error_queue": "what a sub-environment raised would be lost",
        "observations": "the batch in shared memory could not be read",
    },
    "gymnasium.vector.async_vector_env:_async_worker": {
        "env": "whether a sub-environment is wrapped could not be asked",
        "autoreset": "whether an autoreset is pending could not be asked: a row reset twice",
        "error_queue": "exceptions that cannot be pickled would be dropped",
    },
    "gymnasium.wrappers.vector.common:RecordEpisodeStatistics": {
        "_autoreset_mode": "statistics of another autoreset mode would not be refused",
    },
    "gymnasium.wrappers.vector.stateful_reward:NormalizeReward": {
        "_autoreset_mode": "statistics of another autoreset mode would not be refused",
    },
    "gymnasium.wrappers.vector.vectorize_observation:VectorizeTransformObservation": {
        "autoreset_mode": "a wrapper in another autoreset mode would not be refused",
    },
    "gymnasium.wrappers.vector.rendering:RecordVideo": {
        "autoreset_mode": "a wrapper in another autoreset mode would not be refused",
        "recording": "the reset of other rows would be in the video as a frame",
    },
    "gymnasium.envs.registration": {
        "_find_spec": "ids could not be resolved before workers are started",
    },
    "gymnasium.envs.classic_control.cartpole": {
        "CartPoleVectorEnv": "known by its name only: NEXT_STEP mode would be refused",
    },
    "gymnasium.envs.classic_control.cartpole:CartPoleVectorEnv": {
        "state": "single rows could not be reset",
        "steps": "a reset row would be truncated too early",
        "prev_done": "an autoreset would stay pending: a row would be reset twice",
        "low": "ended rows would begin elsewhere than by the autoreset",
        "high": "ended rows would begin elsewhere than by the autoreset",
    },
    "gymnasium.envs.functional_jax_env": {
        "FunctionalJaxVectorEnv": "known by its name only: NEXT_STEP mode would be refused",
    },
    "gymnasium.envs.functional_jax_env:FunctionalJaxVectorEnv": {
        "rng": "a seed would be dropped",
        "state": "single rows could not be reset",
        "steps": "a reset row would be truncated too early",
        "prev_done": "an autoreset would stay pending: a row would be reset twice",
        "func_env": "no new states could be drawn",
    },
    "stable_baselines3.common.vec_env.patch_gym": {
        "_patch_env": "environments of the old gym would be refused",
    },
    "stable_baselines3.common.vec_env.base_vec_env:VecEnv": {
        "_seeds": "seeds that wait for the next reset would be dropped",
        "_options": "options that wait for the next reset would be dropped",
        "_reset_seeds": "seeds would be used for every reset",
        "_reset_options": "options would be used for every reset",
    },
    "stable_baselines3.common.vec_env.dummy_vec_env:DummyVecEnv": {
        "_get_target_envs": "an override of it would not be noticed",
        "buf_infos": "steps beside the adapter would not be noticed",
    },
    "stable_baselines3.common.vec_env.subproc_vec_env:SubprocVecEnv": {
        "_get_target_remotes": "an override of it would not be noticed",
        "remotes": "a single worker could not be asked, nor its death noticed: a hang",
        "processes": "the death of a worker would not be noticed: a hang",
        "waiting": "a pending step would not be noticed; close would wait for ever",
        "closed": "a closed environment would not be refused",
    },
    "stable_baselines3.common.vec_env.subproc_vec_env:_worker": {
        "env": "the sub-environment could not be driven from within its worker",
    },
    "ale_py.vector_env": {
        "AtariVectorEnv": "known by its name only: NEXT_STEP mode would be refused",
    },
    "envpool.python.gymnasium_envpool": {
        "GymnasiumEnvPoolMixin": "known by its name only: NEXT_STEP mode would be refused",
    },
    "cloudpickle.cloudpickle": {
        "_DYNAMIC_CLASS_TRACKER_BY_ID": "what workers answer would reset the user's classes",
        "_make_skeleton_class": "objects with slots could not come back from workers",
        "_DYNAMIC_CLASS_TRACKER_BY_CLASS": "classes within classes would be a walk without end",
        "_get_or_create_tracker_id": "a fork would not know the classes of the main module",
        "_lookup_class_or_track": "a worker would have each class of the main module twice",
    },
    "sys": {
        "_getframe": "a worker's local variables could not be read",
        "_current_frames": "a script that starts workers in a thread could run without end",
    },
}
# Names that not all supported releases have.
_SINCE = {
    "gymnasium.wrappers.vector.stateful_reward:NormalizeReward": "1.4",
    "gymnasium.wrappers.vector.rendering:RecordVideo": "1.3",
}

NAMES = tuple(
    Name(where.partition(":")[0], where.partition(":")[2], name, why, _SINCE.get(where, ""))
    for where, names in _WHY.items()
    for name, why in names.items()
)
