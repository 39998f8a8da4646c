"""Gymnasium to SB3: a `VectorEnv` presented as a Stable-Baselines3 `VecEnv`."""

from __future__ import annotations

from typing import Any, SupportsIndex

from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from sb3compat._convert.actions import Actions
from sb3compat._convert.arguments import check_flag, check_timeout
from sb3compat._convert.modes import parse_mode
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import AnyVectorEnv, HoldsVectorEnv, inside_wrappers
from sb3compat._rows.subenvs import subenvs_of
from sb3compat._to_sb3.accept import as_vec_env, check_env, find_mode
from sb3compat._to_sb3.driven import DrivenVecEnv
from sb3compat._to_sb3.partial_reset import attribute_of
from sb3compat._to_sb3.source import make_source
from sb3compat._to_sb3.tap import without_tap
from sb3compat._upstream.inherited import is_exactly
from sb3compat._upstream.sb3 import VecEnv
from sb3compat._upstream.vec_env import waiting_options, waiting_seeds
from sb3compat.errors import cannot_copy


def to_sb3(
    env: AnyVectorEnv | VecEnv,
    *,
    autoreset_mode: AutoresetMode | str | None = None,
    copy: bool = True,
    require_final_obs: bool = True,
    padding: bool = False,
    timeout: float | None = None,
) -> VecEnv:
    """Present a Gymnasium vector environment as a Stable-Baselines3 `VecEnv`.

    For the same sub-environments, seeds and actions, the result returns what SB3's own
    `DummyVecEnv` returns, value for value and dtype for dtype, whatever the autoreset mode.

    Call `reset` first, also if `env` was reset before.

    Args:
        env: A `gymnasium.vector.VectorEnv`, for example from `gymnasium.make_vec`, with or
            without vector wrappers. A `VecEnv` is returned as it is. For the result of
            `to_gymnasium`, the `VecEnv` inside is returned.
        autoreset_mode: The environment's autoreset mode, if the environment does not declare it.
            By default, its attribute `autoreset_mode`, then `metadata["autoreset_mode"]`.
        copy: Whether returned values stay unchanged. With False, the next step may overwrite the
            observations, which saves one copy of them. SB3's algorithms need True: they keep the
            observations during the next step.
        require_final_obs: Whether a SAME_STEP environment must give the last observation of each
            episode. With False, a *terminated* episode may end without `terminal_observation`. A
            truncated episode may not, as its value could not be bootstrapped.
        padding: Accepts NEXT_STEP environments without a partial reset: returns the reset step
            as one more step of the episode, with `done=True`, reward 0 and
            `infos[i]["sb3compat.padding"]`. Episodes grow by one step, and the value of truncated
            states is biased. The stream is not exact, so this is not the default.
        timeout: For an `AsyncVectorEnv` without vector wrappers: how many seconds a step or reset
            may take before `WorkerTimeoutError` is raised. None waits for ever.

    Returns:
        A `VecEnvAdapter`, which is a subclass of SB3's `VecEnv` where SB3 is installed.

    Raises:
        UnsupportedEnvError: If `env` is not a vector environment, or cannot be adapted.
        UnsupportedSpaceError: If SB3 has no way to batch one of the spaces.
        AutoresetModeError: If the environment does not declare its mode; or if `autoreset_mode`
            contradicts that of a `SyncVectorEnv` or `AsyncVectorEnv`. For other classes, this is a
            warning.
        ValueError: If `padding` is True although the environment can be presented exactly; if
            `timeout` is not positive and finite, or `env` is not an `AsyncVectorEnv` without
            vector wrappers.
        PartialResetError: If the mode is NEXT_STEP and no partial reset is known for the class.

    Example:
        >>> import gymnasium as gym, sb3compat
        >>> env = sb3compat.to_sb3(gym.make_vec("CartPole-v1", num_envs=4))
        >>> env.reset().shape
        (4, 4)
    """
    vec_env = as_vec_env(env, timeout=timeout, padding=padding or None)
    if vec_env is not None:
        # They have no effect on it; but no adapter will refuse what they cannot be.
        check_flag("copy", copy)
        check_flag("require_final_obs", require_final_obs)
        if autoreset_mode is not None:
            parse_mode(autoreset_mode)
        return vec_env
    assert not isinstance(env, VecEnv)
    return VecEnvAdapter(
        env,
        autoreset_mode=autoreset_mode,
        copy=copy,
        require_final_obs=require_final_obs,
        padding=padding,
        timeout=timeout,
    )


class VecEnvAdapter(DrivenVecEnv, HoldsVectorEnv):
    """A Gymnasium vector environment as a Stable-Baselines3 `VecEnv`; `to_sb3` makes them.

    Args:
        env: The vector environment. The other arguments are those of `to_sb3`.
        autoreset_mode: The autoreset mode, if the environment does not declare it.
        copy: Whether returned values stay unchanged.
        require_final_obs: Whether a SAME_STEP environment must give final observations.
        padding: Whether to pad episodes, as the environment cannot reset single rows.
        timeout: How many seconds workers may take for a step or reset.

    Attributes:
        env: The vector environment, with its wrappers.
        autoreset_mode: The autoreset mode of that environment, as declared or given.
        num_envs: The number of rows, n.
        observation_space: The space of a single observation.
        action_space: The space of a single action.
        reset_infos: The info of the last reset of each row.
    """

    def __init__(
        self,
        env: AnyVectorEnv,
        *,
        autoreset_mode: AutoresetMode | str | None = None,
        copy: bool = True,
        require_final_obs: bool = True,
        padding: bool = False,
        timeout: float | None = None,
    ) -> None:
        check_timeout(timeout)
        check_flag("copy", copy)
        check_flag("require_final_obs", require_final_obs)
        check_flag("padding", padding)
        env = without_tap(env)
        check_env(env)
        self.autoreset_mode = find_mode(env, autoreset_mode)
        self.env = env
        observations = Observations(env.single_observation_space, env.num_envs)
        actions = Actions(env.single_action_space, env.num_envs)
        source = make_source(
            env,
            self.autoreset_mode,
            observations,
            actions,
            copy=copy,
            require_final_obs=require_final_obs,
            padding=padding,
            timeout=timeout,
        )
        # The environment's own, as in DummyVecEnv; its autoreset mode is not the adapter's.
        metadata = {k: v for k, v in (env.metadata or {}).items() if k != "autoreset_mode"}
        super().__init__(source, subenvs_of(env), observations, actions, metadata, env)

    @property
    def spec(self) -> EnvSpec | None:
        """The `EnvSpec` with which the vector environment was made, or None."""
        spec = self.env.spec
        # EnvPool has a spec of another kind, without the `id` that SB3's `VecMonitor` asks for.
        return spec if isinstance(spec, EnvSpec) else None

    def original(self, autoreset_mode: AutoresetMode) -> AnyVectorEnv | None:
        """The vector environment, if it can be driven directly from now on, in its own mode.

        None if a step is under way or lost, if seeds or options wait for the next reset, or after
        `close`. Also None for a subclass, or with a method or space replaced, which may present the
        environment differently.
        """
        unfinished = self._waiting or self._lost_step or self.closed
        waiting = any(waiting_options(self)) or waiting_seeds(self) != [None] * self.num_envs
        other = not is_exactly(self, VecEnvAdapter) or self.autoreset_mode != autoreset_mode
        other |= self.observation_space is not self._observations.presented
        other |= self.action_space is not self._actions.presented
        return None if unfinished or waiting or other else self.env

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if isinstance(inside_wrappers(self.env), AsyncVectorEnv):
            raise cannot_copy(self)
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {self.env}>"

    @property
    def largest_seed(self) -> int | None:
        """The largest seed of a row that the environment takes; None if it takes all."""
        largest: int | None = attribute_of(inside_wrappers(self.env), "largest_seed")
        return largest

    def _env_is_closed(self) -> bool:
        return bool(inside_wrappers(self.env).closed)  # not every environment sets it
