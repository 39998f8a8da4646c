"""What a VecEnv is made of: its spaces, what `reset` and `step` return."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sb3compat.conformance.contract import SB3_GUIDE, SB3_SOURCE, check

if TYPE_CHECKING:
    from sb3compat.conformance.play import Play

error = partial(check, "vec_env", severity="error")
warning = partial(check, "vec_env", severity="warning")


@error(group="reset", source=SB3_GUIDE, after=())
def reset_returns_obs_only(play: Play) -> None:
    """`reset()` returns the observations alone, not a tuple of observations and infos."""
    play.make()
    play.run("obs = env.reset()")
    play.demand(
        "not (isinstance(obs, tuple) and len(obs) == 2 and isinstance(obs[1], (dict, list)))",
        "type(obs)",
        "the observations alone; the infos belong into env.reset_infos",
    )


@error(group="step", source=SB3_GUIDE, after=("reset_returns_obs_only",))
def step_returns_four(play: Play) -> None:
    """`step(actions)` returns observations, rewards, dones and infos."""
    play.start()
    play.run(f"result = env.step({play.actions()})")
    play.demand(
        "isinstance(result, tuple) and len(result) == 4",
        "len(result)",
        "4: observations, rewards, dones, infos",
    )


@error(group="step", source=SB3_SOURCE)
def dones_bool_array(play: Play) -> None:
    """`dones` is a NumPy array of n bools."""
    play.start()
    for _ in play.steps():
        play.demand(
            f"isinstance(dones, np.ndarray) and dones.dtype == bool and dones.shape == ({play.n},)",
            "dones",
            f"a bool array of shape ({play.n},)",
        )


@error(group="episode end", source=SB3_GUIDE)
def terminal_observation_iff_done(play: Play) -> None:
    """`infos[i]` has `terminal_observation` where `dones[i]` is true, and nowhere else."""
    for _ in play.through_ending():
        for i in range(play.n):
            play.demand(
                f"('terminal_observation' in infos[{i}]) == bool(dones[{i}])",
                f"sorted(infos[{i}])",
                "with 'terminal_observation' exactly if the row is done",
                i,
            )
