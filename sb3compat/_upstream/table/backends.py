"""What is private in libraries of environments."""

from __future__ import annotations

from sb3compat._upstream.table.entry import Kind, names

BACKENDS = (
    *names(
        "ale_py.vector_env",
        Kind.NAME,
        "_to_sb3/backends/ale.py",
        {"AtariVectorEnv": "NEXT_STEP mode would be refused"},
    ),
    *names(
        "ale_py.vector_env:AtariVectorEnv.step",
        Kind.BODY,
        "_to_sb3/split_step.py",
        {"self.send(actions); return self.ale.recv()": "a step is more than its two halves"},
    ),
    *names(
        "ale_py.vector_env:AtariVectorEnv.recv",
        Kind.BODY,
        "_to_sb3/split_step.py",
        {"return self.ale.recv()": "the second half is more than what step does"},
    ),
    *names(
        "envpool.python.gymnasium_envpool",
        Kind.NAME,
        "_to_sb3/backends/envpool.py",
        {"GymnasiumEnvPoolMixin": "NEXT_STEP mode would be refused"},
    ),
    *names(
        "envpool.python.envpool:EnvPoolMixin.step",
        Kind.BODY,
        "_to_sb3/split_step.py",
        {
            "self.send(action, env_id); return self.recv(reset=False, return_info=True)": (
                "a step is more than its two halves"
            )
        },
    ),
    *names(
        "envpool.python.envpool:EnvPoolMixin.recv",
        Kind.CODE,
        "_to_sb3/split_step.py",
        {"self._recv()": "results could be taken without a note that they were, at an interrupt"},
    ),
    *names(
        "envpool.python.envpool:EnvPoolMixin",
        Kind.METHOD,
        "_to_sb3/split_step.py",
        {
            "send(action)": "a step could not be started",
            "recv()": "a step could not be finished",
        },
    ),
)
