"""Mutants that SB3's own wrappers and algorithms cannot use."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.specimens.points import Config, Points
from conformance.specimens.registry import vec_env_mutant as mutant

IMAGES = Config(observation="image")
DICTS = Config(observation="dict")


@mutant("works_under_vec_monitor")
class SpecIsADict(Points):
    spec = {"id": "Points-v0"}


class _WriteOnce(dict[str, Any]):
    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError("This info has been handed out.")


class InfosRefuseWriting(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards, dones, [_WriteOnce(info) for info in infos]


# Wrappers that turn observations into others have to write into the infos at an end. With images
# that is part of training: SB3 puts the channels first.
_WRITERS = ("works_under_vec_normalize", "works_under_vec_frame_stack")
_TRANSPOSES = ("works_under_vec_transpose_image", "trains_ppo", "trains_off_policy")
mutant(*_WRITERS)(InfosRefuseWriting)
mutant(*_WRITERS, *_TRANSPOSES, config=IMAGES, name="ImageInfosRefuseWriting")(InfosRefuseWriting)
mutant("works_under_vec_extract_dict_obs", config=DICTS, name="DictInfosRefuseWriting")(
    InfosRefuseWriting
)


class _Fixed(dict[str, Any]):
    """A value that is written has to have the same shape, say, as the one that it replaces."""

    def __init__(self, info: dict[str, Any], attribute: str) -> None:
        super().__init__(info)
        self.attribute = attribute

    def __setitem__(self, key: str, value: Any) -> None:
        before = getattr(self.get(key, value), self.attribute, None)
        if getattr(value, self.attribute, None) != before:
            raise TypeError(f"Expected {key} to have the {self.attribute} {before}.")
        super().__setitem__(key, value)


@mutant("works_under_vec_frame_stack")
class InfosOfFixedShape(Points):
    attribute = "shape"

    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards, dones, [_Fixed(info, self.attribute) for info in infos]


@mutant("works_under_vec_normalize", config=IMAGES)
class InfosOfFixedType(InfosOfFixedShape):
    attribute = "dtype"


# Where the shortest side comes first, SB3 takes it for the channels.
@mutant("works_under_vec_transpose_image", config=Config(observation="image", height=2))
class ImagesWithTwoLines(Points):
    pass


class _NoCopies(np.ndarray[Any, Any]):
    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("cannot be copied deeply")


# VecNormalize and off-policy algorithms make deep copies of observations.
@mutant("works_under_vec_normalize", "trains_off_policy")
class ObservationsNotCopyable(Points):
    def batch(self, observations: list[Any]) -> Any:
        return super().batch(observations).view(_NoCopies)


# A reward that is not finite: VecCheckNan says so, and the weights become NaN.
@mutant("works_under_vec_check_nan", "trains_ppo", config=Config(last_reward=float("inf")))
class InfiniteReward(Points):
    pass


# Integers that do not start at 0: SB3 has no networks for them, and nothing is trained.
@mutant(
    "works_under_vec_check_nan",
    config=Config(observation="integer", last_reward=float("inf")),
)
class InfiniteRewardWithoutTraining(Points):
    pass


@mutant("trains_ppo")
class RewardsReadOnly(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        rewards.flags.writeable = False
        return obs, rewards, dones, infos


# On-policy algorithms ask for the key in rows that are done only.
@mutant("trains_off_policy")
class TruncatedFlagEmptyWhileRunning(Points):
    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        if not done:
            info["TimeLimit.truncated"] = ""
        return obs, reward, done, info
