"""Whole vector environments across the episode boundary: every mode, form and failure."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.wrappers.vector import (
    RecordEpisodeStatistics,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import sb3compat
from tests.envs import GYMNASIUM, Identity, MakeEnv, ScriptedEnv, script
from tests.lockstep import lockstep, same
from tests.native import Form, NativeEnv, UnknownEnv
from tests.profiles import examples
from tests.strategies import programs, scripts

NEXT_STEP, SAME_STEP = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP
MODES = list(AutoresetMode)
mode_of = pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])

forms = st.builds(
    Form,
    library=st.sampled_from([name for name in ("numpy", "torch", "jax") if find_spec(name)]),
    final_key=st.sampled_from(["final_obs", "final_observation"]),
    final=st.sampled_from(["object", "dense", "list"]),
    final_mask=st.booleans(),
    final_info=st.sampled_from(["arrays", "dicts"]),
)


def fns(n: int = 2, **kwargs: Any) -> list[MakeEnv]:
    return [MakeEnv(script(**kwargs), i) for i in range(n)]


def step(env: Any, action: int = 0) -> Any:
    return env.step(np.full(env.num_envs, action))


@pytest.mark.jax
@mode_of
@given(data=st.data(), n=st.integers(1, 4), form=forms, layers=st.integers(0, 1))
@settings(max_examples=examples(100))
def test_third_party_env_equals_dummy_vec_env(
    mode: AutoresetMode, data: st.DataObject, n: int, form: Form, layers: int
) -> None:
    pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")

    def build(env_fns: list[MakeEnv]) -> Any:
        env = NativeEnv(env_fns, mode, form)
        return Identity(env) if layers else env

    chosen = data.draw(scripts(("none", "plain"), reuse=False))
    program = data.draw(programs(n))
    if n > 1:  # the first reset of all comes before options that differ: see the next test
        program = [(name, a[0] if isinstance(a, list) else a) for name, a in program]
    lockstep(chosen, n, build, program)


@mode_of
def test_third_party_env_takes_options_for_each_row(mode: AutoresetMode) -> None:
    env = sb3compat.to_sb3(NativeEnv(fns(3, lengths=(2,)), mode))
    env.reset()
    env.set_options([{"x": 1}, {}, {"x": 3}])
    env.seed(5)
    env.reset()
    infos = env.reset_infos
    assert [info.get("option") for info in infos] == [1, None, 3]
    # One reset of all rows to apply the one seed, one of each group for its options.
    assert [info["resets"] for info in infos] == [3, 3, 3]
    step(env)
    _, _, dones, _ = step(env)
    assert dones.all()
    assert [info.get("option") for info in env.reset_infos] == [None, None, None]


def test_options_that_differ_need_a_partial_reset() -> None:
    env = sb3compat.to_sb3(UnknownEnv(fns(2), SAME_STEP))
    env.set_options([{"x": 1, "y": np.arange(2)}, {"x": 1, "y": np.arange(2)}])
    with pytest.raises(sb3compat.PartialResetError, match="same options for all rows"):
        env.set_options([{"x": 1}, {"x": 2}])
    env.reset()  # with what was set before the refusal
    assert [info["option"] for info in env.reset_infos] == [1, 1]


def test_reset_mask_as_an_option_is_refused() -> None:
    env = sb3compat.to_sb3(NativeEnv(fns(2), SAME_STEP))
    with pytest.raises(ValueError, match="reset_mask"):
        env.set_options({"reset_mask": np.array([True, False])})


def test_final_obs_mask_without_an_ended_row_is_refused() -> None:
    class Forgets(VectorWrapper):
        def step(self, actions: Any) -> Any:
            *result, infos = self.env.step(actions)
            if "final_obs" in infos:
                infos["_final_obs"] = np.array([True, False])
            return *result, infos

    env = sb3compat.to_sb3(Forgets(NativeEnv(fns(lengths=(2,)), SAME_STEP, Form(final="dense"))))
    env.reset()
    step(env)
    with pytest.raises(sb3compat.MissingFinalObservationError, match=r"rows \[1\]"):
        step(env)


class NoFinal(VectorWrapper):
    """A wrapper that loses the last observations."""

    def step(self, actions: Any) -> Any:
        *result, infos = self.env.step(actions)
        return *result, {key: value for key, value in infos.items() if "final" not in key}


def no_final(ending: str) -> Any:
    return NoFinal(SyncVectorEnv(fns(2, lengths=(2,), endings=(ending,)), autoreset_mode=SAME_STEP))


def test_missing_final_observation_is_refused() -> None:
    env = sb3compat.to_sb3(no_final("terminated"))
    env.reset()
    step(env)
    with pytest.raises(sb3compat.MissingFinalObservationError) as caught:
        step(env)
    for part in ("infos['final_obs']", "rows [0, 1]", "SyncVectorEnv", "require_final_obs=False"):
        assert part in str(caught.value)


def test_missing_final_observation_of_a_terminated_row_can_be_allowed() -> None:
    env = sb3compat.to_sb3(no_final("terminated"), require_final_obs=False)
    env.reset()
    step(env)
    _, _, dones, infos = step(env)
    assert dones.all()
    assert all("terminal_observation" not in info for info in infos)
    assert [info["TimeLimit.truncated"] for info in infos] == [False, False]


def test_missing_final_observation_of_a_truncated_row_is_always_refused() -> None:
    env = sb3compat.to_sb3(no_final("truncated"), require_final_obs=False)
    env.reset()
    step(env)
    with pytest.raises(sb3compat.MissingFinalObservationError, match="cannot be bootstrapped"):
        step(env)


class Untransformed(VectorWrapper):
    """Reshapes the observations, but not the last ones in the infos."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.single_observation_space = spaces.Box(-1, 1, (3, 1), np.float32)

    def reset(self, **kwargs: Any) -> Any:
        obs, infos = self.env.reset(**kwargs)
        return obs[..., None], infos

    def step(self, actions: Any) -> Any:
        obs, *result = self.env.step(actions)
        return obs[..., None], *result


def test_final_observation_of_another_shape_is_refused() -> None:
    source = SyncVectorEnv(fns(2, lengths=(1,)), autoreset_mode=SAME_STEP)
    env = sb3compat.to_sb3(Untransformed(source))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match=r"last observation .* shape \(3, 1\)"):
        step(env)


@pytest.mark.parametrize("shared_memory", [None, False])
def test_reused_observation_array_is_refused_in_same_step_mode(shared_memory: bool | None) -> None:
    from gymnasium.vector import AsyncVectorEnv

    env_fns = fns(2, lengths=(2,), reuse=True)
    source: Any
    if shared_memory is None:
        source = Identity(SyncVectorEnv(env_fns, autoreset_mode=SAME_STEP))
    else:
        source = AsyncVectorEnv(env_fns, shared_memory=False, autoreset_mode=SAME_STEP)
    env = sb3compat.to_sb3(source)
    env.reset()
    step(env)
    with pytest.raises(sb3compat.ConversionError, match="the very array"):
        step(env)
    env.close()


def test_last_observation_that_looks_overwritten_warns_once() -> None:
    from gymnasium.vector import AsyncVectorEnv

    source = AsyncVectorEnv(fns(2, lengths=(1,), reuse=True), autoreset_mode=SAME_STEP)
    env = sb3compat.to_sb3(source)
    env.reset()
    with pytest.warns(UserWarning, match="equals the first one of its next episode"):
        step(env)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(env)
    env.close()


class VectorRewards(VectorWrapper):
    def step(self, actions: Any) -> Any:
        obs, rewards, *result = self.env.step(actions)
        return obs, np.stack([rewards, rewards], axis=1), *result


def test_vector_rewards_are_refused() -> None:
    env = sb3compat.to_sb3(VectorRewards(SyncVectorEnv(fns(3))))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match=r"rewards of shape \(3,\).*got.*\(3, 2\)"):
        step(env)


class SwallowsOptions(VectorWrapper):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return self.env.reset(seed=seed)


def test_wrapper_that_drops_options_is_refused() -> None:
    env = sb3compat.to_sb3(SwallowsOptions(SyncVectorEnv(fns(2, lengths=(2, 3)))))
    env.reset()
    step(env)
    with pytest.raises(sb3compat.PartialResetError, match="did not hand it on"):
        step(env)
    env.set_options([{"x": 1}, {"x": 2}])
    with pytest.raises(sb3compat.PartialResetError, match="did not hand it on"):
        env.reset()


@mode_of
@pytest.mark.parametrize("stack", [1, 2])
def test_episode_statistics_belong_to_the_episode_that_ended(
    mode: AutoresetMode, stack: int
) -> None:
    source: Any = SyncVectorEnv(fns(3, lengths=(2, 3, 4)), autoreset_mode=mode)
    for layer in range(stack):
        source = RecordEpisodeStatistics(source, stats_key=f"stats{layer}")
    if mode == SAME_STEP and GYMNASIUM < (1, 4):
        with pytest.raises(sb3compat.UnsupportedEnvError, match=r"Gymnasium 1\.4 or newer"):
            sb3compat.to_sb3(source)
        return
    env = sb3compat.to_sb3(source)
    env.reset()
    returns, lengths = np.zeros(3), np.zeros(3, int)
    for _ in range(12):
        _, rewards, dones, infos = step(env)
        returns += rewards
        lengths += 1
        for i in range(3):
            for layer in range(stack):
                assert (f"stats{layer}" in infos[i]) == dones[i]
                if dones[i]:
                    stats = infos[i][f"stats{layer}"]
                    assert stats["l"] == lengths[i]
                    assert stats["r"] == pytest.approx(returns[i], abs=1e-5)
                    assert f"stats{layer}" not in env.reset_infos[i]
        returns[dones] = lengths[dones] = 0


def test_options_reach_the_sub_environments_unchanged() -> None:
    options = {"x": 3, "list": [1]}
    env = sb3compat.to_sb3(Identity(SyncVectorEnv(fns(2, infos="wild"))))
    env.set_options(options)
    env.reset()
    assert options == {"x": 3, "list": [1]}
    assert [info["options"] for info in env.reset_infos] == [options, options]


def test_padding_presents_the_reset_step_as_the_ending() -> None:
    source = UnknownEnv(fns(2, lengths=(2, 3), endings=("truncated", "both")), NEXT_STEP)
    env = sb3compat.to_sb3(source, padding=True)
    plain = UnknownEnv(fns(2, lengths=(2, 3), endings=("truncated", "both")), NEXT_STEP)
    same(env.reset(), plain.reset()[0].copy())
    ended: dict[int, tuple[Any, bool]] = {}
    for _ in range(12):
        obs, rewards, dones, infos = step(env)
        raw_obs, raw_rewards, terminated, truncated, _ = plain.step(np.zeros(2, np.int64))
        same(obs, raw_obs.copy())
        same(dones, np.array([i in ended for i in range(2)]))
        same(rewards, raw_rewards.astype(np.float32))
        for i in range(2):
            if i in ended:
                final, cut = ended[i]
                assert infos[i].keys() == {
                    "sb3compat.padding", "TimeLimit.truncated", "terminal_observation"
                }  # fmt: skip
                same(infos[i]["terminal_observation"], final)
                assert infos[i]["TimeLimit.truncated"] is cut
                assert rewards[i] == 0
                assert env.reset_infos[i].keys() == {"resets", "seed", "shared", "given"}
            else:
                assert infos[i]["TimeLimit.truncated"] is False
        ended = {
            i: (obs[i].copy(), bool(truncated[i] and not terminated[i]))
            for i in np.flatnonzero(terminated | truncated)
        }


def test_padding_drops_a_pending_ending_at_a_reset() -> None:
    env = sb3compat.to_sb3(UnknownEnv(fns(1, lengths=(2,)), NEXT_STEP), padding=True)
    env.reset()
    step(env)
    step(env)  # ends; the padding step would be next
    env.reset()
    assert not step(env)[2].any()
    assert not step(env)[2].any()
    assert step(env)[2].all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: UnknownEnv(fns(), SAME_STEP),
        lambda: UnknownEnv(fns(), AutoresetMode.DISABLED),
        lambda: NativeEnv(fns(), NEXT_STEP),
        lambda: SyncVectorEnv(fns()),
    ],
)
def test_padding_that_is_not_needed_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="can be presented exactly"):
        sb3compat.to_sb3(make(), padding=True)


def test_copy_false_still_gives_true_terminal_observations() -> None:
    for mode in MODES:
        fresh = sb3compat.to_sb3(NativeEnv(fns(lengths=(2,)), mode))
        fast = sb3compat.to_sb3(NativeEnv(fns(lengths=(2,)), mode), copy=False)
        same(fast.reset(), fresh.reset())
        for _ in range(5):
            same(step(fast), step(fresh))
        assert fast.reset() is not None
        first = fast.reset()
        before = first.copy()
        step(fast)
        assert not np.array_equal(first, before), "copy=False is meant to save the copy"


def test_copy_false_never_writes_into_arrays_of_the_environment() -> None:
    class Frozen(Identity):
        def step(self, actions: Any) -> Any:
            obs, *rest = self.env.step(actions)
            obs = obs.copy()
            obs.flags.writeable = False
            return obs, *rest

    env = sb3compat.to_sb3(Frozen(NativeEnv(fns(lengths=(1,)), NEXT_STEP)), copy=False)
    env.reset()
    assert step(env)[2].all()


def test_step_with_four_values_is_refused() -> None:
    class Four(Identity):
        def step(self, actions: Any) -> Any:
            return self.env.step(actions)[1:]

    env = sb3compat.to_sb3(Four(NativeEnv(fns(), SAME_STEP)))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match=r"observations, rewards, .* of length 4"):
        step(env)


def test_batch_of_another_size_is_refused() -> None:
    class Short(Identity):
        def step(self, actions: Any) -> Any:
            obs, *rest = self.env.step(actions)
            return obs[:1], *rest

    env = sb3compat.to_sb3(Short(NativeEnv(fns(2), SAME_STEP)))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match=r"shape \(2, 3\).*got shape=\(1, 3\)"):
        step(env)


@pytest.mark.parametrize("mode", [NEXT_STEP, AutoresetMode.DISABLED])
def test_ending_reported_in_another_mode_is_refused(mode: AutoresetMode) -> None:
    env = sb3compat.to_sb3(NativeEnv(fns(lengths=(2,)), SAME_STEP), autoreset_mode=mode)
    env.reset()
    step(env)
    with pytest.raises(sb3compat.AutoresetModeError, match="pass autoreset_mode='SameStep'"):
        step(env)


@pytest.mark.parametrize("key", ["final_obs", "final_info", "final_observation"])
def test_reset_infos_with_final_keys_are_refused(key: str) -> None:
    from gymnasium.vector import AsyncVectorEnv

    class Named(ScriptedEnv):
        def reset(self, **kwargs: Any) -> Any:
            obs, info = super().reset(**kwargs)
            return obs, info | {key: 3}

    for make in (AsyncVectorEnv, lambda *a, **k: Identity(SyncVectorEnv(*a, **k))):
        env = sb3compat.to_sb3(make([lambda: Named(script())], autoreset_mode=SAME_STEP))
        with pytest.raises(sb3compat.ConversionError, match=key):
            env.reset()
        env.close()


def test_constant_part_of_an_observation_may_be_one_array() -> None:
    class Goal(gym.ObservationWrapper):
        def __init__(self, env: Any) -> None:
            super().__init__(env)
            box = env.observation_space
            self.observation_space = spaces.Dict({"goal": box, "seen": box})
            self.goal = np.zeros(3, np.float32)

        def observation(self, observation: Any) -> Any:
            return {"goal": self.goal, "seen": observation}

    source = SyncVectorEnv(
        [lambda: Goal(ScriptedEnv(script(lengths=(1,))))], autoreset_mode=SAME_STEP
    )
    env = sb3compat.to_sb3(Identity(source))
    env.reset()
    obs, _, _, infos = step(env)
    assert not np.array_equal(infos[0]["terminal_observation"]["seen"], obs["seen"][0])


def test_integers_that_always_repeat_warn() -> None:
    from gymnasium.vector import AsyncVectorEnv

    space: Any = spaces.Box(0, 100, (3,), np.int8)
    env_fns = fns(1, lengths=(1,), reuse=True, observation_space=space)
    env = sb3compat.to_sb3(AsyncVectorEnv(env_fns, autoreset_mode=SAME_STEP))
    env.reset()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(12):
            step(env)
    assert ["equals the first one" in str(warning.message) for warning in caught] == [True]
    env.close()


class OwnReference(VectorWrapper):
    """Steps the environment through a reference of its own."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.inner = env

    def step(self, actions: Any) -> Any:
        return self.inner.step(actions)


@mode_of
def test_wrapper_that_bypasses_the_tap_is_refused(mode: AutoresetMode) -> None:
    env = sb3compat.to_sb3(OwnReference(SyncVectorEnv(fns(), autoreset_mode=mode)))
    env.reset()
    with pytest.raises(sb3compat.UnsupportedEnvError, match="a reference of its own"):
        step(env)


class ResetsByItself(VectorWrapper):
    """A wrapper that users would write around an environment in DISABLED mode."""

    def step(self, actions: Any) -> Any:
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        if (terminated | truncated).any():
            options = {"reset_mask": terminated | truncated}
            obs, _ = self.env.reset(options=options)
        return obs, rewards, terminated, truncated, infos


@mode_of
@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
def test_wrapper_that_resets_within_its_step_is_refused(cls: Any, mode: AutoresetMode) -> None:
    source = cls(fns(lengths=(2,)), autoreset_mode=mode)
    env = sb3compat.to_sb3(ResetsByItself(source))
    env.reset()
    step(env)
    with pytest.raises(sb3compat.UnsupportedEnvError, match=r"not to reset.*Remove that wrapper"):
        step(env)
    env.close()


def test_step_after_a_failed_step_needs_a_reset() -> None:
    env = sb3compat.to_sb3(VectorRewards(NativeEnv(fns(lengths=(1,)), NEXT_STEP)))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match="rewards"):
        step(env)
    with pytest.raises(RuntimeError, match=r"Expected reset\(\)"):
        step(env)
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match="rewards"):
        step(env)


@pytest.mark.parametrize("returned", [[{}, {}], None, "four"])
def test_step_with_wrong_infos_is_refused_below_a_wrapper(returned: Any) -> None:
    class Odd(NativeEnv):
        def step(self, actions: Any) -> Any:
            result = super().step(actions)
            return result[:4] if returned == "four" else (*result[:4], returned)

    env = sb3compat.to_sb3(Odd(fns(), SAME_STEP))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match="infos"):
        step(env)


def test_close_works_after_a_failed_async_step() -> None:
    from gymnasium.vector import AsyncVectorEnv

    class Ragged(ScriptedEnv):
        def step(self, action: Any) -> Any:
            *result, _ = super().step(action)
            return *result, {"ragged": np.zeros(self.row + 1)}

    source = AsyncVectorEnv([lambda: Ragged(script(), 0), lambda: Ragged(script(), 2)])
    env = sb3compat.to_sb3(Identity(source))
    env.reset()
    with pytest.raises(ValueError, match="broadcast"):
        step(env)
    env.close()
    assert not any(process.is_alive() for process in source.processes)


def test_final_observations_may_be_torch_tensors() -> None:
    torch = pytest.importorskip("torch")

    class Tensors(VectorWrapper):
        def step(self, actions: Any) -> Any:
            *result, infos = self.env.step(actions)
            if "final_obs" in infos:
                infos["final_obs"] = [
                    None if obs is None else torch.as_tensor(obs) for obs in infos["final_obs"]
                ]
            return *result, infos

    env = sb3compat.to_sb3(Tensors(NativeEnv(fns(lengths=(1,)), SAME_STEP)))
    env.reset()
    infos = step(env)[3]
    assert type(infos[0]["terminal_observation"]) is np.ndarray


class Stack(VectorWrapper):
    """Stacks two frames; its reset starts over in all rows, whatever the mask."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.single_observation_space = spaces.Box(-1, 1, (2, 3), np.float32)

    def reset(self, **kwargs: Any) -> Any:
        obs, infos = self.env.reset(**kwargs)
        self.last = obs
        return np.stack([obs, obs], axis=1), infos

    def step(self, actions: Any) -> Any:
        obs, *rest = self.env.step(actions)
        frames = np.stack([self.last, obs], axis=1)
        self.last = obs
        return frames, *rest


def test_wrapper_that_resets_its_state_for_all_rows_is_refused() -> None:
    env = sb3compat.to_sb3(Stack(SyncVectorEnv(fns(2, lengths=(2, 3)))))
    env.reset()
    step(env)
    with pytest.raises(sb3compat.PartialResetError, match="resets its state for all rows"):
        step(env)


class Endings(VectorWrapper):
    """Hides the endings of row 0, or ends row 1 with every step."""

    def __init__(self, env: Any, *, hides: bool) -> None:
        super().__init__(env)
        self.hides = hides

    def step(self, actions: Any) -> Any:
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        terminated, truncated = np.array(terminated), np.array(truncated)
        if self.hides:
            terminated[0] = False
        else:
            truncated[1] = True
        return obs, rewards, terminated, truncated, infos


@mode_of
@pytest.mark.parametrize("hides", [True, False])
def test_wrappers_that_hide_or_add_endings_are_refused_where_rows_are_lost(
    mode: AutoresetMode, hides: bool
) -> None:
    source = SyncVectorEnv(fns(2, lengths=(2,)), autoreset_mode=mode)
    env = sb3compat.to_sb3(Endings(source, hides=hides))
    env.reset()
    if not hides and mode != SAME_STEP:  # a vector wrapper's time limit, then
        for _ in range(4):
            _, _, dones, infos = step(env)
            assert dones[1]
            assert infos[1]["shared"] == 1
        return
    if hides:
        step(env)
    with pytest.raises(sb3compat.UnsupportedEnvError, match="End episodes in wrappers around"):
        step(env)


def test_calls_of_the_user_pass_the_tap_unchanged() -> None:
    wrapped, plain = (Identity(SyncVectorEnv(fns(2))) for _ in range(2))
    sb3compat.to_sb3(wrapped)
    mask = np.array([True, False])
    for kwargs in ({"seed": 3}, {"seed": [4, 5], "options": {"x": 2}}, {}):
        same(wrapped.reset(**kwargs), plain.reset(**kwargs))
    for seed in (None, 7):
        masked = {"reset_mask": mask, "x": 1}
        same(
            wrapped.reset(seed=seed, options=dict(masked)),
            plain.reset(seed=seed, options=dict(masked)),
        )
    # Gymnasium's own check; an assertion before 1.4.
    kind = ValueError if GYMNASIUM >= (1, 4) else AssertionError
    with pytest.raises(kind, match="reset_mask"):
        wrapped.reset(options={"reset_mask": np.array([False, False])})
