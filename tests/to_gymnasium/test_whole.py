"""Hand-written VecEnvs, driven as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import sb3compat
from tests.envs import Returns, ScriptedEnv, fns, script
from tests.handwritten import AsyncCountingVecEnv, CountingVecEnv
from tests.lockstep import same
from tests.lockstep_back import dummy, monitored
from tests.vec_wrappers import HandsOn

vec_envs: Any = pytest.importorskip("stable_baselines3.common.vec_env")

ACTIONS = np.array([0, 1])


@pytest.mark.parametrize("cls", [CountingVecEnv, AsyncCountingVecEnv])
def test_disabled_holds_the_new_episode_until_a_masked_reset(cls: Any) -> None:
    envs = sb3compat.to_gymnasium(cls(), autoreset_mode="Disabled")
    envs.reset()
    envs.step(ACTIONS)
    obs, _, _, ended, _ = envs.step(ACTIONS)
    assert obs.tolist() == [[2], [2]]
    assert ended.tolist() == [True, False]
    for mask, more, text in (
        (~ended, {}, r"rows \[1\] have not ended"),
        (ended, {"seed": 3}, "with a seed or options"),
        (ended, {"options": {"x": 1}}, "with a seed or options"),
    ):
        options = {**more.get("options", {}), "reset_mask": mask}  # type: ignore[dict-item]
        with pytest.raises(sb3compat.PartialResetError, match=text):
            envs.reset(**{**more, "options": options})
    # A seed for a row that is not reset is none.
    got = envs.reset(seed=[None, 3], options={"reset_mask": ended})
    same(got, (np.array([[0], [2]], np.float32), {}))


@pytest.mark.parametrize("build", [monitored, dummy])
def test_seeds_and_options_of_the_vec_env_wait_for_a_reset_of_all_rows(build: Any) -> None:
    vec_env = build(fns(lengths=(1,)))
    envs = sb3compat.to_gymnasium(vec_env, autoreset_mode="Disabled")
    for method, argument, key in (("seed", 5, "seed"), ("set_options", {"x": 1}, "option")):
        envs.reset()
        envs.step(ACTIONS)
        getattr(vec_env, method)(argument)
        held = envs.reset(options={"reset_mask": np.array([True, False])})[1]
        assert held.get(key, np.array([-1]))[0] == -1
        assert envs.reset()[1][key].tolist() == {"seed": [5, 6], "option": [1, 1]}[key]


def refusing() -> Any:
    """Cannot be reset with the seed 13; each reset returns the same dict."""
    kept: dict[str, Any] = {}

    def reset(obs: Any, info: Any) -> Any:
        if info["seed"] == 13:
            raise KeyError("seed")
        kept.update(info)
        return obs, kept

    return Returns(reset=reset, lengths=(2,))


def in_vain(envs: Any) -> None:
    with pytest.raises(KeyError, match="seed"):
        envs.reset(seed=13)


@pytest.mark.parametrize(
    "use",
    [
        lambda envs: (envs.vec_env.reset(), envs.vec_env.step(ACTIONS[:1])),
        lambda envs: envs.vec_env.reset(),
        in_vain,
    ],
)
def test_reset_of_held_rows_is_a_new_one_where_the_vec_env_has_gone_on(use: Any) -> None:
    env = refusing()
    envs = sb3compat.to_gymnasium(monitored([lambda: env]), autoreset_mode="Disabled")
    envs.reset()
    for _ in range(2):
        envs.step(ACTIONS[:1])
    use(envs)
    resets = env.unwrapped._resets
    infos = envs.reset()[1]
    assert infos["resets"].tolist() == [env.unwrapped._resets] == [resets + 1]
    assert not envs.step(ACTIONS[:1])[3].any()


@pytest.mark.parametrize("mode", ["Disabled", "NextStep"])
def test_settled_resets_no_row_that_was_reset_directly(mode: str) -> None:
    env = ScriptedEnv(script(lengths=(2,)))
    envs: Any = sb3compat.to_gymnasium(vec_envs.DummyVecEnv([lambda: env]), autoreset_mode=mode)
    envs.reset()
    for _ in range(2):
        envs.step(ACTIONS[:1])
    envs.vec_env.reset()
    envs.vec_env.step(ACTIONS[:1])
    sb3compat.to_sb3(envs)
    assert (env._resets, env._time) == (2, 1)


MISSING: dict[str, tuple[Any, dict[str, Any]]] = {
    "TimeLimit.truncated": (sb3compat.MissingTruncationError, {"missing_truncation": "terminated"}),
    "terminal_observation": (sb3compat.MissingFinalObservationError, {"require_final_obs": False}),
}


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@pytest.mark.parametrize("key", MISSING)
def test_ending_without_what_it_needs_is_refused_or_allowed(key: str, mode: str) -> None:
    error, allowed = MISSING[key]
    ((name, value),) = allowed.items()
    envs = sb3compat.to_gymnasium(CountingVecEnv(forget=(key,)), autoreset_mode=mode)
    envs.reset()
    envs.step(ACTIONS)
    with pytest.raises(error) as caught:
        envs.step(ACTIONS)
    assert f"infos[0][{key!r}]" in str(caught.value)
    assert f"{name}={value!r}" in str(caught.value)
    with pytest.raises(RuntimeError, match=r"Expected reset\(\)"):
        envs.step(ACTIONS)
    if "require_final_obs" in allowed and mode == "Disabled":
        return
    envs = sb3compat.to_gymnasium(CountingVecEnv(forget=(key,)), autoreset_mode=mode, **allowed)
    envs.reset()
    envs.step(ACTIONS)
    _, _, terminations, truncations, infos = envs.step(ACTIONS)
    ended = terminations if "missing_truncation" in allowed else truncations
    assert ended.tolist() == [True, False]
    assert not (terminations & truncations).any()
    assert ("final_obs" in infos) == (mode == "SameStep" and key != "terminal_observation")
    assert ("final_info" in infos) == (mode == "SameStep")


def test_options_and_seeds_without_a_method_are_refused() -> None:
    envs = sb3compat.to_gymnasium(CountingVecEnv())
    with pytest.raises(sb3compat.ConversionError, match=r"no method set_options.*got options="):
        envs.reset(options={"x": 1})
    with pytest.raises(sb3compat.ConversionError, match=r"one int as seed.*got seed=\[1, 3\]"):
        envs.reset(seed=[1, 3])
    assert envs.reset(seed=[3, 4], options={})[0].tolist() == [[3], [3]]

    class Seedless(CountingVecEnv):
        seed: Any = property()

    with pytest.raises(sb3compat.ConversionError, match="no method seed"):
        sb3compat.to_gymnasium(Seedless()).reset(seed=3)


def test_seed_method_of_a_wrapper_is_used() -> None:
    wrapped: Any = HandsOn(dummy(fns()))
    wrapped.seed = lambda seed: wrapped.venv.seed(100 * seed)
    envs = sb3compat.to_gymnasium(wrapped)
    assert envs.reset(seed=2)[1]["seed"].tolist() == [200, 201]


class Returning(CountingVecEnv):
    """Returns the given results."""

    answer: Any = None
    first: Any = np.zeros((2, 1), np.float32)

    def reset(self) -> Any:
        return self.first

    def step(self, actions: Any) -> Any:
        return self.answer


GOOD = (np.zeros((2, 1), np.float32), np.zeros(2), np.zeros(2, bool), [{}, {}])
ENDING = {"TimeLimit.truncated": False, "terminal_observation": np.zeros(1)}
BYTES = {"observation_space": spaces.Box(0, 9, (1,), np.uint8), "first": np.zeros((2, 1), np.uint8)}


def ending(observation: Any) -> Any:
    """A step in which row 1 ends."""
    info = {**ENDING, "terminal_observation": observation}
    return *GOOD[:2], np.array([False, True]), [{}, info]


# What a VecEnv has and returns, and what is said about it.
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "no step": ({}, "(observations, rewards, dones, infos), got None (NoneType of 1)"),
    "five values": ({"answer": (*GOOD, {})}, "(tuple of 5)"),
    "too few rows": (
        {"answer": (GOOD[0][:1], *GOOD[1:])},
        "shape (2, 1) (num_envs, *single shape)",
    ),
    "another shape": ({"answer": (np.zeros((2, 2)), *GOOD[1:])}, "got shape=(2, 2)"),
    "a column": ({"answer": (GOOD[0], np.zeros((2, 1)), *GOOD[2:])}, "rewards.shape=(2, 1)"),
    "one flag": ({"answer": (*GOOD[:2], False, GOOD[3])}, "dones.shape=()"),
    "infos of Gymnasium's form": ({"answer": (*GOOD[:3], {"x": 1})}, "as a list of 2 dicts"),
    "infos that are none": ({"answer": (*GOOD[:3], [{}, None])}, "as a list of 2 dicts"),
    "too few infos": ({"answer": (*GOOD[:3], [{}])}, "as a list of 2 dicts"),
    "a reset with infos": ({"first": (np.zeros((2, 1)), {})}, "a batch of observation"),
    "halves as bytes": ({**BYTES, "first": np.full((2, 1), 0.5)}, "dtype uint8"),
    "a long last observation": ({"answer": ending(np.zeros(3))}, "'terminal_observation' of row 1"),
    "at last, a half": ({**BYTES, "answer": ending(np.array([0.5]))}, "terminal_observation"),
    "at last, too much": ({**BYTES, "answer": ending(np.array([256]))}, "terminal_observation"),
}


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@pytest.mark.parametrize("name", FORMS)
def test_results_of_another_form_are_refused(name: str, mode: str) -> None:
    attributes, message = FORMS[name]
    vec_env = Returning()
    vars(vec_env).update(attributes)
    envs = sb3compat.to_gymnasium(vec_env, autoreset_mode=mode)
    with pytest.raises(sb3compat.ConversionError) as caught:  # noqa: PT012
        envs.reset()
        envs.step(ACTIONS)
    assert message in str(caught.value)


def test_returned_values_are_no_views() -> None:
    vec_env = Returning()
    info = {**ENDING, "terminal_observation": np.zeros(1), "x": [1]}
    vec_env.answer = (*(part + 1 for part in GOOD[:2]), np.array([False, True]), [{}, info])
    envs = sb3compat.to_gymnasium(vec_env)
    first = envs.reset()[0]
    obs, rewards, _, _, infos = envs.step(ACTIONS)
    vec_env.first += 1
    for array in (*vec_env.answer[:2], info["terminal_observation"]):
        array += 1
    info["x"].append(2)
    assert first.tolist() == [[0], [0]]
    assert obs.tolist() == [[1], [1]]
    assert rewards.tolist() == [1, 1]
    assert infos["final_obs"][1] == 0
    assert infos["final_info"]["x"][1] == [1]
    vec_env.first -= 1


def test_overwritten_last_observations_warn() -> None:
    class Reusing(ScriptedEnv):
        def _own(self, info: Any) -> Any:
            return info  # only the array is the same each time

    chosen = script(lengths=(2,), reuse=True, infos="none")
    envs = sb3compat.to_gymnasium(monitored([lambda: Reusing(chosen, 0)]))
    envs.reset()
    envs.step([0])
    with pytest.warns(UserWarning, match="adapt the DummyVecEnv or SubprocVecEnv without wrappers"):
        envs.step([0])


class Skipping(vec_envs.DummyVecEnv):
    """Skips the `__init__` of SB3's, and so has neither seeds, nor options, nor infos."""

    def __init__(self) -> None:
        whole = dummy(fns(1))
        gone = ("_seeds", "_options", "reset_infos")
        vars(self).update({key: value for key, value in vars(whole).items() if key not in gone})

    def reset(self) -> Any:
        self.envs[0].reset()
        return self._obs_from_buf()


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@pytest.mark.parametrize("wrap", [lambda env: env, vec_envs.VecMonitor])
def test_class_that_skips_the_init_of_sb3_is_not_accused(wrap: Any, mode: str) -> None:
    envs = sb3compat.to_gymnasium(wrap(Skipping()), autoreset_mode=mode)
    envs.reset(seed=[7], options={"x": 1})
    envs.step([0])
