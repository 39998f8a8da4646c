"""VecEnvs that break one contract each, and the checks that have to say so.

`MUTANTS` maps a name to a factory and the ids of the checks which must fail, and no others. Where
there is more than one id, one defect breaks several contracts, and the comment says why.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from conformance.mutants.family import OPTIONS, Config, Points, reference, stack

__all__ = ["MUTANTS", "NEED_REFERENCE", "OPTIONS", "config_of", "reference"]

IMAGES = Config(observation="image")
DICTS = Config(observation="dict")
TOGETHER = Config(lengths=(4,))

MUTANTS: dict[str, tuple[Callable[[], Any], set[str]]] = {}

# Mutants which only the single environments, given as a reference, can bring to light.
NEED_REFERENCE: set[str] = set()


def mutant(
    *ids: str, config: Config | None = None, needs_reference: bool = False
) -> Callable[[type], type]:
    """Register a class as a mutant that is to fail these checks."""

    def register(cls: type) -> type:
        MUTANTS[cls.__name__] = (partial(cls, config or Config()), set(ids))
        if needs_reference:
            NEED_REFERENCE.add(cls.__name__)
        return cls

    return register


def config_of(name: str) -> Config:
    """The configuration of a mutant."""
    factory = MUTANTS[name][0]
    assert isinstance(factory, partial)
    config = factory.args[0]
    assert isinstance(config, Config)
    return config


# Spaces


@mutant("num_envs_positive")
class CountsInFloats(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.num_envs = _Float(self.num_envs)


class _Float(float):
    """A float that can be used where Python wants an integer, as some array scalars can."""

    def __index__(self) -> int:
        return int(self)


@mutant("spaces_are_single")
class BatchedObservationSpace(Points):
    def batch(self, observations: list[Any]) -> Any:
        return stack(observations, self.envs[0].observation_space)

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.observation_space = gym.vector.utils.batch_space(self.observation_space, self.num_envs)


@mutant("spaces_are_single", config=Config(continuous=True))
class BatchedActionSpace(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.action_space = gym.vector.utils.batch_space(self.action_space, self.num_envs)


# SB3's wrappers ask for it, too.
@mutant(
    "render_mode_uniform",
    "works_under_vec_monitor",
    "works_under_vec_normalize",
    "works_under_vec_frame_stack",
    "works_under_vec_check_nan",
)
class OneRowRendersText(Points):
    def make_row(self, row: int) -> Any:
        env = super().make_row(row)
        if row == 1:
            env.render_mode = "ansi"
        return env


@mutant("metadata_is_dict")
class NoMetadata(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.metadata = None


class Alike:
    """Has all the methods of a VecEnv, but is none."""

    def __init__(self, config: Config) -> None:
        self._made = Points(config)

    def __getattr__(self, name: str) -> Any:
        if name == "_made":
            raise AttributeError(name)
        return getattr(self._made, name)


mutant("subclasses_vec_env")(Alike)


# Reset


@mutant("reset_returns_obs_only")
class ResetsAsGymnasiumDoes(Points):
    def reset(self) -> Any:
        return super().reset(), {}


@mutant("reset_obs_in_space")
class ResetsOutOfBounds(Points):
    def reset(self) -> Any:
        return super().reset() + np.float32(100)


@mutant("reset_obs_in_space", config=DICTS)
class ResetsWithOneKeyMore(Points):
    def reset(self) -> Any:
        return {**super().reset(), "more": np.zeros(self.num_envs)}


@mutant("obs_dtype_matches_space")
class DoublePrecision(Points):
    def batch(self, observations: list[Any]) -> Any:
        return np.array(observations, np.float64)


@mutant("reset_infos_n_dicts")
class OneResetInfoTooMany(Points):
    def reset(self) -> Any:
        obs = super().reset()
        self.reset_infos = [*self.reset_infos[: self.num_envs], {}]
        return obs


@mutant("reset_starts_fresh_episodes")
class ResetLeavesTheClock(Points):
    def start(self, i: int) -> Any:
        time = self.envs[i].unwrapped.time
        obs = super().start(i)
        self.envs[i].unwrapped.time = time
        return obs


# Step


@mutant("step_returns_four")
class StepsAsGymnasiumDoes(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones, np.zeros_like(dones), infos


@mutant("rewards_shape")
class RewardsInAColumn(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards[:, None], dones, infos


@mutant("rewards_float32")
class RewardsInDoublePrecision(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards.astype(np.float64), dones, infos


@mutant("dones_bool_array")
class DonesAsNumbers(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones.astype(int), infos


@mutant("infos_n_dicts")
class OneInfoForAll(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones, {"time": [info["time"] for info in infos]}


@mutant("infos_is_list")
class InfosInATuple(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones, tuple(infos)


@mutant("infos_distinct", config=Config(lengths=(4,), ends=("truncated",), info=False))
class OneInfoManyTimes(Points):
    """Rows that run get the very same dict; it stays true what it says."""

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones, infos if dones.any() else [infos[0]] * self.num_envs


@mutant("step_obs_in_space")
class StepsOutOfBounds(Points):
    def batch(self, observations: list[Any]) -> Any:
        obs = super().batch(observations)
        return obs + np.float32(100) if self.stepping else obs

    stepping = False

    def step_wait(self) -> Any:
        self.stepping = True
        result = super().step_wait()
        self.stepping = False
        return result

    def reset(self) -> Any:
        self.stepping = False
        return super().reset()


@mutant("step_equals_async_wait")
class StepForgetsToCount(Points):
    def step(self, actions: Any) -> Any:
        obs, rewards, dones, infos = super().step(actions)
        return obs, rewards / 2, dones, infos


@mutant("wrong_action_count_rejected")
class Broadcasts(Points):
    def step_async(self, actions: Any) -> None:
        few = len(actions) < self.num_envs
        super().step_async([1] * self.num_envs if few else actions)


@mutant("double_step_async_rejected")
class QueuesSteps(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.queue: list[Any] = []

    def step_async(self, actions: Any) -> None:
        super().step_async(actions)
        self.queue.append(super().step_wait())

    def step_wait(self) -> Any:
        return self.queue.pop(0)

    def reset(self) -> Any:
        self.queue.clear()
        return super().reset()


@mutant("step_wait_without_async_rejected")
class WaitsForNothing(Points):
    def step_wait(self) -> Any:
        if self.pending is None:
            self.pending = [self.action_space.sample() for _ in self.envs]
        return super().step_wait()


@mutant("reset_cancels_pending_step")
class ResetFinishesTheStep(Points):
    def reset(self) -> Any:
        pending = self.pending
        obs = super().reset()
        if pending is not None:
            self.pending = pending
            obs = super().step_wait()[0]
        return obs


# The end of an episode


@mutant("terminal_observation_iff_done")
class NoTerminalObservation(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        del info["terminal_observation"]
        return first


@mutant("terminal_observation_iff_done")
class TerminalObservationAlways(Points):
    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        info.setdefault("terminal_observation", deepcopy(obs))
        return obs, reward, done, info


@mutant("terminal_observation_in_space")
class TerminalObservationIsABatch(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        info["terminal_observation"] = last[None]
        return first


# A view of the row, which then is overwritten: it has the value of the reset observation now, and
# changes with whatever is written to that array.
@mutant("terminal_observation_not_reset_obs", "terminal_observation_not_aliased")
class TerminalObservationIsAView(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = obs[i]
        return obs, rewards, dones, infos


@mutant("terminal_observation_not_reset_obs")
class TerminalObservationIsTheNextFirst(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        info["terminal_observation"] = deepcopy(first)
        return first


@mutant("terminal_observation_is_last")
class TerminalObservationIsStale(Points):
    def step_row(self, i: int, action: Any) -> Any:
        before = self.envs[i].unwrapped.observe()
        obs, reward, done, info = super().step_row(i, action)
        if done:
            info["terminal_observation"] = before
        return obs, reward, done, info


@mutant("terminal_observation_is_last", needs_reference=True)
class TerminalObservationOfAnotherRow(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        info["terminal_observation"] = self.envs[i - 1].unwrapped.observe()
        return first


@mutant("truncated_flag_present")
class NoTruncatedFlag(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        del info["TimeLimit.truncated"]
        return super().end(i, last, info)


@mutant("truncated_flag_exclusive", needs_reference=True)
class TruncatedAlthoughTerminated(Points):
    def flag(self, terminated: bool, truncated: bool) -> Any:
        return truncated


@mutant("truncated_flag_exclusive")
class TruncatedAlthoughRunning(Points):
    def flag(self, terminated: bool, truncated: bool) -> Any:
        return not terminated


@mutant("truncated_flag_is_bool")
class TruncatedFlagIsANumber(Points):
    def flag(self, terminated: bool, truncated: bool) -> Any:
        return float(truncated and not terminated)


@mutant("obs_after_done_is_reset_obs")
class ObsAfterDoneIsTheLast(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        super().end(i, last, info)
        return last.copy()


@mutant("reset_infos_updated_on_autoreset")
class ResetInfosOfTheFirstEpisode(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        before = self.reset_infos[i]
        first = super().end(i, last, info)
        self.reset_infos[i] = before
        return first


@mutant("reset_infos_others_unchanged")
class ResetInfosMadeAnew(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.reset_infos = [{} if j != i else old for j, old in enumerate(self.reset_infos)]
        return first


@mutant("done_info_is_step_info")
class DoneInfoIsResetInfo(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        kept = {key: info[key] for key in ("terminal_observation", "TimeLimit.truncated")}
        info.clear()
        info.update(deepcopy(self.reset_infos[i]) | kept)
        return first


@mutant("no_phantom_transition")
class IgnoresTheActionAfterAnEnd(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.ended = [False] * self.num_envs

    def start(self, i: int) -> Any:
        self.ended[i] = False
        return super().start(i)

    def step_row(self, i: int, action: Any) -> Any:
        if self.ended[i]:
            self.ended[i] = False
            obs = self.envs[i].unwrapped.observe()
            return obs, 0.0, False, {"time": 0, "TimeLimit.truncated": False}
        row = super().step_row(i, action)
        self.ended[i] = row[2]
        return row


@mutant("rows_independent")
class OthersFreezeWhileOneResets(Points):
    def step_wait(self) -> Any:
        ending = [env.unwrapped.time + 1 >= self.length(i) for i, env in enumerate(self.envs)]
        self.frozen = {i for i, end in enumerate(ending) if any(ending) and not end}
        return super().step_wait()

    def length(self, i: int) -> int:
        return self.config.lengths[i % len(self.config.lengths)]

    def step_row(self, i: int, action: Any) -> Any:
        if i in self.frozen:
            obs = self.envs[i].unwrapped.observe()
            return obs, 0.0, False, {"time": 0, "TimeLimit.truncated": False}
        return super().step_row(i, action)


@mutant("rows_independent", needs_reference=True)
class OneEndEndsAll(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        for j, env in enumerate(self.envs):
            if j > i:
                env.unwrapped.point = env.unwrapped.point * 0
        return super().end(i, last, info)


@mutant("rows_match_reference", needs_reference=True)
class RewardsRolled(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, np.roll(rewards, 1), dones, infos


# Seeding


@mutant("seed_returns_n")
class SeedReturnsNothing(Points):
    def seed(self, seed: int | None = None) -> Any:
        super().seed(seed)


@mutant("same_seed_same_trajectory")
class IgnoresSeeds(Points):
    def seed(self, seed: int | None = None) -> Any:
        super().seed(seed)
        seeds, self._seeds = self._seeds, [None] * self.num_envs
        return seeds


@mutant("same_seed_same_trajectory")
class DrawsFromTheGlobalState(Points):
    """Hypothesis sets that state before each example; it must not pass for a heeded seed."""

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        return obs, reward + np.random.normal(), done, info


@mutant("seed_applies_at_next_reset_only")
class SeedsAtOnce(Points):
    def seed(self, seed: int | None = None) -> Any:
        seeds = super().seed(seed)
        for env, one in zip(self.envs, seeds, strict=True):
            env.unwrapped.np_random = np.random.default_rng(one)
        return seeds


@mutant("seed_applies_at_next_reset_only")
class SeedUsedByAutoreset(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        info["terminal_observation"] = last
        first, self.reset_infos[i] = self.envs[i].reset(seed=self._seeds[i])
        self._seeds[i] = None
        return first


@mutant("seed_used_once")
class SeedForGood(Points):
    def forget(self) -> None:
        self._options = [{} for _ in self.envs]


@mutant("seeds_differ_by_row")
class OneSeedForAll(Points):
    def seed(self, seed: int | None = None) -> Any:
        first = super().seed(seed)[0]
        self._seeds = [first] * self.num_envs
        return list(self._seeds)


# Options


@mutant("options_reach_env")
class IgnoresOptions(Points):
    def set_options(self, options: Any = None) -> None:
        super().set_options(None)


@mutant("options_per_row")
class FirstOptionsForAll(Points):
    def set_options(self, options: Any = None) -> None:
        super().set_options(options[0] if isinstance(options, list) else options)


@mutant("options_used_once")
class OptionsForGood(Points):
    def forget(self) -> None:
        self._seeds = [None] * self.num_envs


@mutant("options_copied")
class OptionsNotCopied(Points):
    def set_options(self, options: Any = None) -> None:
        super().set_options(options)
        if isinstance(options, dict):
            self._options = [options] * self.num_envs


# Ownership


@mutant("outputs_unchanged_by_later_steps")
class OneArrayForRewards(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.rewards = np.zeros(self.num_envs, np.float32)

    def step_wait(self) -> Any:
        obs, self.rewards[:], dones, infos = super().step_wait()
        return obs, self.rewards, dones, infos


@mutant("outputs_unchanged_by_reset")
class ResetClearsTheLastBatch(Points):
    def reset(self) -> Any:
        if self.given is not None:
            self.given[:] = 0
        return super().reset()

    given: Any = None

    def step_wait(self) -> Any:
        result = super().step_wait()
        self.given = result[0]
        return result


@mutant("terminal_observation_not_aliased")
class TerminalObservationInABuffer(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.lasts = np.zeros((self.num_envs, 3), np.float32)

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.lasts[i] = last
        info["terminal_observation"] = self.lasts[i]
        return first


@mutant("infos_unchanged_by_later_steps")
class InfosUsedAgain(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.infos: list[dict[str, Any]] = [{} for _ in self.envs]

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        for used, info in zip(self.infos, infos, strict=True):
            used.clear()
            used.update(info)
        return obs, rewards, dones, list(self.infos)


@mutant("writing_outputs_does_not_change_env")
class RewardsReadBack(Points):
    """Looks at the rewards that it returned last, in the array that it returned."""

    given: Any = None
    copy: Any = None

    def reset(self) -> Any:
        self.given = None
        return super().reset()

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        if self.given is not None and (self.given != self.copy).any():
            rewards = rewards + 1
        self.given, self.copy = rewards, rewards.copy()
        return obs, rewards, dones, infos


@mutant("actions_unchanged", config=Config(continuous=True))
class ClipsInPlace(Points):
    def step_async(self, actions: Any) -> None:
        super().step_async(actions)
        self.pending = np.clip(actions, -0.5, 0.5, out=actions)


# Sub-environments


@mutant("set_attr_only_named_rows")
class SetsAttributesEverywhere(Points):
    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        super().set_attr(attr_name, value)


@mutant("get_attr_indices")
class AttributesInRowOrder(Points):
    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        return super().get_attr(attr_name, sorted(self.named(indices)))


@mutant("numpy_int_indices")
class PythonIntsOnly(Points):
    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        if isinstance(indices, np.ndarray):
            raise TypeError(f"Expected ints, got indices={indices!r}.")
        return super().get_attr(attr_name, indices)


@mutant("missing_attr_raises_and_survives")
class MissingAttributeIsAKeyError(Points):
    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        try:
            return super().get_attr(attr_name, indices)
        except AttributeError as error:
            raise KeyError(attr_name) from error


@mutant("has_attr_truthful")
class HasEverything(Points):
    def has_attr(self, attr_name: str) -> bool:
        return True


@mutant("env_method_args")
class DropsKeywords(Points):
    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        dropped = {} if method_name == "echo" else kwargs
        return super().env_method(method_name, *args, indices=indices, **dropped)


@mutant("env_is_wrapped_per_row")
class WrappedInEverything(Points):
    def is_wrapped(self, env: Any, wrapper_class: type) -> bool:
        return True


@mutant("env_is_wrapped_per_row")
class WrappedOnceForAll(Points):
    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> Any:
        return super().env_is_wrapped(wrapper_class, indices)[:1]


# Rendering, life


@mutant("get_images_n_frames")
class OneFrameForAll(Points):
    def get_images(self) -> Any:
        return super().get_images()[:1]


@mutant("render_mismatch_warns")
class RendersWithoutAWord(Points):
    def render(self, mode: str | None = None) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().render(mode)


@mutant("close_idempotent")
class ClosesOnce(Points):
    def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed")
        super().close()


@mutant("close_after_error")
class CannotCloseAfterAnError(Points):
    failed = False

    def step_async(self, actions: Any) -> None:
        self.failed = True
        super().step_async(actions)
        self.failed = False

    def close(self) -> None:
        if self.failed:
            raise BrokenPipeError("worker 0 is gone")
        super().close()


@mutant("worker_exception_keeps_type")
class WorkerDies(Points):
    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        try:
            return super().env_method(method_name, *args, indices=indices, **kwargs)
        except Exception:
            raise EOFError from None


# With SB3


@mutant("works_under_vec_monitor")
class SpecIsADict(Points):
    spec = {"id": "Points-v0"}


class _WriteOnce(dict[str, Any]):
    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError("This info has been handed out.")


class InfosRefuseWriting(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones, [_WriteOnce(info) for info in infos]


# Wrappers that turn observations into others have to write into the infos at an end.
_WRITERS = ("works_under_vec_normalize", "works_under_vec_frame_stack")
for _name, _config, _ids in (
    ("InfosRefuseWriting", Config(), _WRITERS),
    ("ImageInfosRefuseWriting", IMAGES, (*_WRITERS, "works_under_vec_transpose_image")),
    ("DictInfosRefuseWriting", DICTS, ("works_under_vec_extract_dict_obs",)),
):
    MUTANTS[_name] = (partial(InfosRefuseWriting, _config), set(_ids))


class _NoCopies(np.ndarray[Any, Any]):
    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("cannot be copied deeply")


# VecNormalize and off-policy algorithms make deep copies of observations, and nobody else does.
@mutant("works_under_vec_normalize", "trains_off_policy")
class ObservationsNotCopyable(Points):
    def batch(self, observations: list[Any]) -> Any:
        return super().batch(observations).view(_NoCopies)


# A reward that is not finite: VecCheckNan says so, and the weights become NaN.
@mutant("works_under_vec_check_nan", "trains_ppo", config=Config(last_reward=float("inf")))
class InfiniteReward(Points):
    pass


@mutant("trains_ppo")
class RewardsReadOnly(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
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
