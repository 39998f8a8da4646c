"""Published bridges to SB3's `VecEnv`, ported: see `specimens/public_adapters/`."""

from __future__ import annotations

from typing import Any

from conformance.targets.registry import target

# The rows of one world end together, or share what they draw from.
ONE_WORLD = {"separate_rows": False}


@target()
def envpool() -> Any:
    """EnvPool's example VecAdapter."""
    from conformance.specimens.public_adapters.envpool import Pool, VecAdapter

    return VecAdapter(Pool(3))


@target()
def maniskill() -> Any:
    """ManiSkill's ManiSkillSB3VectorEnv."""
    from conformance.specimens.public_adapters.maniskill import ManiSkillSB3VectorEnv, Scenes

    return ManiSkillSB3VectorEnv(Scenes(3))


@target()
def isaac_lab() -> Any:
    """Isaac Lab's Sb3VecEnvWrapper."""
    from conformance.specimens.public_adapters.isaac_lab import Lab, Sb3VecEnvWrapper

    return Sb3VecEnvWrapper(Lab(3))


@target()
def brax() -> Any:
    """BraxSB3Wrapper over a batched environment of Brax."""
    from conformance.specimens.public_adapters.brax import Brax, BraxSB3Wrapper

    return BraxSB3Wrapper(Brax(3))


@target(capabilities=ONE_WORLD)
def supersuit() -> Any:
    """SuperSuit's SB3VecEnvWrapper over two worlds of two agents."""
    from conformance.specimens.public_adapters.supersuit import ConcatVecEnv, SB3VecEnvWrapper

    return SB3VecEnvWrapper(ConcatVecEnv(2))


@target()
def godot_rl() -> Any:
    """Godot RL Agents' StableBaselinesGodotEnv."""
    from conformance.specimens.public_adapters.godot_rl import GodotEnv, StableBaselinesGodotEnv

    return StableBaselinesGodotEnv(GodotEnv(3))


@target()
def flightmare() -> Any:
    """Flightmare's FlightEnvVec."""
    from conformance.specimens.public_adapters.flightmare import FlightEnvVec, Quadrotors

    return FlightEnvVec(Quadrotors(3))


@target(capabilities=ONE_WORLD)
def rlgym() -> Any:
    """RLGym's SB3SingleInstanceEnv over a match of three cars."""
    from conformance.specimens.public_adapters.rlgym import Match, SB3SingleInstanceEnv

    return SB3SingleInstanceEnv(Match(3))


@target(capabilities=ONE_WORLD)
def gpudrive() -> Any:
    """GPUDrive's SB3MultiAgentEnv over two worlds of two vehicles."""
    from conformance.specimens.public_adapters.gpudrive import Drives, SB3MultiAgentEnv

    return SB3MultiAgentEnv(Drives(2, 2))


@target(capabilities=ONE_WORLD)
def microrts() -> Any:
    """VecMonitor over MicroRTS-Py's MicroRTSGridModeVecEnv, two games of two players."""
    from conformance.specimens.public_adapters.microrts import monitored

    return monitored(4)


@target()
def omnigibson() -> Any:
    """OmniGibson's SB3VectorEnvironment."""
    from conformance.specimens.public_adapters.omnigibson import SB3VectorEnvironment

    return SB3VectorEnvironment(3)


@target(capabilities=ONE_WORLD)
def mbt_gym() -> Any:
    """mbt-gym's StableBaselinesTradingEnvironment."""
    from conformance.specimens.public_adapters.mbt_gym import (
        Market,
        StableBaselinesTradingEnvironment,
    )

    return StableBaselinesTradingEnvironment(Market(3))


@target()
def gym3() -> Any:
    """VecMonitor over gym3's ToBaselinesVecEnv."""
    from conformance.specimens.public_adapters.gym3 import monitored

    return monitored(3)
