"""What is private in libraries of environments."""

from __future__ import annotations

from sb3compat._upstream.table.entry import Kind, names

_STILL = "results that come after an interrupt could be taken for those of another call"

BACKENDS = (
    *names(
        "ale_py.vector_env",
        Kind.NAME,
        "_to_sb3/backends/ale.py",
        {"AtariVectorEnv": "NEXT_STEP mode would be refused"},
    ),
    *names(
        "envpool.python.gymnasium_envpool",
        Kind.NAME,
        "_to_sb3/backends/envpool.py",
        {"GymnasiumEnvPoolMixin": "NEXT_STEP mode would be refused"},
    ),
    *names(
        "ale_py.vector_env:AtariVectorEnv",
        Kind.METHOD,
        "_to_sb3/bases.py",
        {"send(actions)": _STILL, "recv()": _STILL},
    ),
    *names(
        "envpool.python.envpool:EnvPoolMixin",
        Kind.METHOD,
        "_to_sb3/bases.py",
        {"send(action)": _STILL, "recv()": _STILL},
    ),
)
