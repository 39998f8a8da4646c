"""The end of an episode in every autoreset mode, in every form that environments report it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

import sb3compat
from tests.envs import GYMNASIUM, Identity, MakeEnv, ScriptedEnv, fns, script
from tests.lockstep import lockstep, same
from tests.native import Form, NativeEnv, RestartsRows, UnknownEnv
from tests.profiles import examples
from tests.strategies import programs, scripts
from tests.to_sb3.driving import step

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
    changes=st.booleans(),
)


@pytest.mark.jax
@mode_of
@given(data=st.data(), n=st.integers(1, 4), form=forms, layers=st.integers(0, 1))
@settings(max_examples=examples(100))
def test_third_party_env_equals_dummy_vec_env(
    mode: AutoresetMode, data: st.DataObject, n: int, form: Form, layers: int
) -> None:
    pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")

    def build(env_fns: list[MakeEnv]) -> Any:
        env = cls(env_fns, mode, form)
        return Identity(env) if layers else env

    cls = data.draw(st.sampled_from([NativeEnv, RestartsRows]))
    chosen = data.draw(scripts(("none", "plain"), reuse=False, empty=False))
    program = data.draw(programs(n))
    if n > 1:  # the first reset of all comes before options that differ: see the next test
        program = [(name, a[0] if isinstance(a, list) else a) for name, a in program]
    lockstep(chosen, n, build, program)


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


@pytest.mark.parametrize(
    ("ending", "options", "parts"),
    [
        (
            "terminated",
            {},
            ("infos['final_obs']", "rows [0, 1]", "SyncVectorEnv", "require_final_obs=False"),
        ),
        ("truncated", {"require_final_obs": False}, ("cannot be bootstrapped",)),
    ],
)
def test_missing_final_observation_is_refused(
    ending: str, options: dict[str, bool], parts: tuple[str, ...]
) -> None:
    env = sb3compat.to_sb3(no_final(ending), **options)  # type: ignore[arg-type]
    env.reset()
    step(env)
    with pytest.raises(sb3compat.MissingFinalObservationError) as caught:
        step(env)
    for part in parts:
        assert part in str(caught.value)


def test_missing_final_observation_of_a_terminated_row_can_be_allowed() -> None:
    env = sb3compat.to_sb3(no_final("terminated"), require_final_obs=False)
    env.reset()
    step(env)
    _, _, dones, infos = step(env)
    assert dones.all()
    assert all("terminal_observation" not in info for info in infos)
    assert [info["TimeLimit.truncated"] for info in infos] == [False, False]


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

    env_fns = fns(2, lengths=(2,), reuse=True)
    source: Any
    if shared_memory is None:
        source = Identity(SyncVectorEnv(env_fns, autoreset_mode=SAME_STEP))
    else:
        source = AsyncVectorEnv(env_fns, shared_memory=False, autoreset_mode=SAME_STEP)
    env = sb3compat.to_sb3(source)
    env.reset()
    step(env)
    with pytest.raises(sb3compat.ConversionError, match="the same array"):
        step(env)
    env.close()


@mode_of
def test_episode_statistics_belong_to_the_episode_that_ended(mode: AutoresetMode) -> None:
    source: Any = SyncVectorEnv(fns(3, lengths=(2, 3, 4)), autoreset_mode=mode)
    for layer in range(2):
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
            for layer in range(2):
                assert (f"stats{layer}" in infos[i]) == dones[i]
                if dones[i]:
                    stats = infos[i][f"stats{layer}"]
                    assert stats["l"] == lengths[i]
                    assert stats["r"] == pytest.approx(returns[i], abs=1e-5)
                    assert f"stats{layer}" not in env.reset_infos[i]
        returns[dones] = lengths[dones] = 0


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


@pytest.mark.parametrize("key", ["final_obs", "final_info"])
def test_reset_infos_with_final_keys_are_refused(key: str) -> None:

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


class Marked(gym.Wrapper[Any, Any, Any, Any]):
    """Gives `mark` in the steps of row 0 that end no episode."""

    def step(self, action: Any) -> Any:
        *result, info = self.env.step(action)
        marked = self.unwrapped.row == 0 and not (result[2] or result[3])  # type: ignore[attr-defined]
        return *result, {**info, **({"mark": 1} if marked else {})}


class MarksEndings(VectorWrapper):
    """Adds `mark` in the rows that end an episode, under the key that the environment has, too."""

    def step(self, actions: Any) -> Any:
        *result, infos = self.env.step(actions)
        ended = result[2] | result[3]
        marks, mask = infos.get("mark", np.zeros(2, int)), infos.get("_mark", ended & False)
        infos["mark"], infos["_mark"] = np.where(ended, 2, marks), mask | ended
        return *result, infos


@mode_of
def test_key_that_a_wrapper_adds_beside_the_environment_is_of_the_step(mode: AutoresetMode) -> None:
    made = [lambda row=row: Marked(ScriptedEnv(script(lengths=(2 + row,)), row)) for row in (0, 1)]
    env = sb3compat.to_sb3(MarksEndings(SyncVectorEnv(made, autoreset_mode=mode)))
    env.reset()
    seen = [[info.get("mark") for info in step(env)[3]] for _ in range(5)]
    assert seen == [[1, None], [2, None], [1, 2], [2, None], [1, None]]
    assert not any("mark" in info for info in env.reset_infos)
