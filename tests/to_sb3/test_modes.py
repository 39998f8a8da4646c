"""The end of an episode in every autoreset mode, in every form that environments report it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

import sb3compat
from tests.envs import Identity, MakeEnv, ScriptedEnv, fns, script
from tests.lockstep import Build, lockstep, same
from tests.lockstep_back import dummy, subproc
from tests.native import Form, NativeEnv, RestartsRows, UnknownEnv
from tests.profiles import examples
from tests.strategies import programs, scripts
from tests.to_sb3.driving import (
    NEXT_STEP,
    SAME_STEP,
    SOURCES,
    Changed,
    Gives,
    class_of,
    made,
    mode_of,
    step,
    uniform,
)

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
    def build(env_fns: list[MakeEnv]) -> Any:
        env = cls(env_fns, mode, form)
        return Identity(env) if layers else env

    # In the other modes, nothing has to be registered.
    classes = [NativeEnv, RestartsRows, *([UnknownEnv] if mode != NEXT_STEP else [])]
    cls = data.draw(st.sampled_from(classes))
    chosen = data.draw(scripts(("none", "plain"), reuse=False, empty=False))
    # The first reset of all comes before options that differ, which are refused.
    lockstep(chosen, n, build, uniform(data.draw(programs(n))))


def no_final(ending: str = "terminated", *, mask: bool = False, bare: bool = False) -> Any:
    """The last observations are lost, in a wrapper or not, or that of row 1 by its mask."""
    source = NativeEnv(fns(lengths=(2,), endings=(ending,)), SAME_STEP, Form(final="dense"))

    def losing(*result: Any) -> Any:
        *others, infos = result
        if mask and "final_obs" in infos:
            return *others, {**infos, "_final_obs": np.array([True, False])}
        return *others, {key: value for key, value in infos.items() if "final" not in key}

    if not bare:
        return Changed(source, step=losing)
    step = source.step
    source.step = lambda actions: losing(*step(actions))  # type: ignore[method-assign]
    return source


@pytest.mark.parametrize(
    ("make", "options", "text"),
    [
        (no_final, {}, "require_final_obs=False"),
        (partial(no_final, bare=True), {}, r"infos\['final_obs'\] .* of rows \[0, 1\]"),
        (partial(no_final, "truncated"), {"require_final_obs": False}, "cannot be bootstrapped"),
        (partial(no_final, mask=True), {}, r"rows \[1\]"),
    ],
    ids=["none", "none of a bare environment", "truncated", "not in the mask"],
)
def test_missing_final_observation_is_refused(
    make: Any, options: dict[str, Any], text: str
) -> None:
    env = sb3compat.to_sb3(make(), **options)
    env.reset()
    step(env)
    with pytest.raises(sb3compat.MissingFinalObservationError, match=text):
        step(env)


def test_missing_final_observation_of_a_terminated_row_can_be_allowed() -> None:
    env = sb3compat.to_sb3(no_final(), require_final_obs=False)
    env.reset()
    step(env)
    _, _, dones, infos = step(env)
    assert dones.all()
    assert all("terminal_observation" not in info for info in infos)
    assert [info["TimeLimit.truncated"] for info in infos] == [False, False]


@pytest.mark.parametrize("name", ["sync wrapped", "async unshared"])
def test_reused_observation_array_is_refused_in_same_step_mode(name: str) -> None:
    env = sb3compat.to_sb3(made(name, fns(lengths=(2,), reuse=True), SAME_STEP))
    env.reset()
    step(env)
    with pytest.raises(sb3compat.ConversionError, match="the same array"):
        step(env)


def test_padding_presents_the_reset_step_as_the_ending() -> None:
    source, plain = (
        UnknownEnv(fns(2, lengths=(2, 3), endings=("truncated", "both")), NEXT_STEP)
        for _ in range(2)
    )
    env = sb3compat.to_sb3(source, padding=True)
    ended: dict[int, dict[str, Any]] = {}
    for number in range(14):
        if number in (0, 2):  # the second time, an ending is still to be presented
            same(env.reset(), plain.reset()[0].copy())
            assert len(ended) == number / 2
            ended = {}
        obs, rewards, dones, infos = step(env)
        raw_obs, raw_rewards, terminated, truncated, _ = plain.step(np.zeros(2, np.int64))
        same(obs, raw_obs.copy())
        same(dones, np.array([i in ended for i in range(2)]))
        same(rewards, raw_rewards.astype(np.float32))  # 0 in such a step
        for i in range(2):
            if i in ended:
                same(infos[i], ended[i])
                assert env.reset_infos[i].keys() == {"resets", "seed", "shared", "given"}
            else:
                assert infos[i]["TimeLimit.truncated"] is False
        ended = {
            i: {
                "sb3compat.padding": True,
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
                "terminal_observation": obs[i].copy(),
            }
            for i in np.flatnonzero(terminated | truncated)
        }


@mode_of
def test_copy_false_still_gives_true_terminal_observations(mode: AutoresetMode) -> None:
    fresh, fast = (
        sb3compat.to_sb3(NativeEnv(fns(lengths=(2,)), mode), copy=copy) for copy in (True, False)
    )
    same(fast.reset(), fresh.reset())
    for _ in range(5):
        same(step(fast), step(fresh))
    first: Any = fast.reset()
    before = first.copy()
    step(fast)
    assert not np.array_equal(first, before), "copy=False is meant to save the copy"


def marking_endings(*result: Any) -> Any:
    """Adds `mark` in the rows that end an episode, under the key that the environment has, too."""
    *others, infos = result
    ended = result[2] | result[3]
    marks, mask = infos.get("mark", np.zeros(2, int)), infos.get("_mark", ended & False)
    return *others, {**infos, "mark": np.where(ended, 2, marks), "_mark": mask | ended}


@mode_of
def test_key_that_a_wrapper_adds_beside_the_environment_is_of_the_step(mode: AutoresetMode) -> None:
    first, second = (ScriptedEnv(script(lengths=(2 + row,)), row) for row in (0, 1))
    made = [lambda: Gives(first, step={"mark": 1}, last=False), lambda: second]
    source = SyncVectorEnv(made, autoreset_mode=mode)
    env = sb3compat.to_sb3(Changed(source, step=marking_endings))
    env.reset()
    seen = [[info.get("mark") for info in step(env)[3]] for _ in range(5)]
    assert seen == [[1, None], [2, None], [1, 2], [2, None], [1, None]]
    assert not any("mark" in info for info in env.reset_infos)


def adding_returns(*result: Any) -> Any:
    *others, infos = result
    ended = result[2] | result[3]
    return *others, {**infos, "episode": {"r": np.ones(2), "_r": ended}, "_episode": ended}


def test_two_returns_of_one_episode_are_refused() -> None:
    made = [lambda: RecordEpisodeStatistics(fns(lengths=(2,))[0]())] * 2
    source = SyncVectorEnv(made, autoreset_mode=SAME_STEP)
    env = sb3compat.to_sb3(Changed(source, step=adding_returns))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match="another stats_key"):
        list(map(step, [env] * 2))


# Keys that say how an episode ended may be keys of sub-environments, or are refused.


def with_keys(
    build: Build, step: Any, reset: Any = (), lengths: tuple[int, ...] = (9,), steps: int = 3
) -> None:
    """Compare with `DummyVecEnv`, where sub-environments give these keys in steps and resets."""

    def wrap(env: Any) -> Any:
        return Gives(env, step=step, reset=reset)

    def wrapping(fns: list[MakeEnv]) -> Any:
        return build([lambda fn=fn: wrap(fn()) for fn in fns])

    program: list[Any] = [("reset", None), *[("step", number) for number in range(steps)]]
    lockstep(script(lengths=lengths, infos="none"), 2, wrapping, program, wrap=wrap)


def adapted(fns: Any, mode: AutoresetMode, theirs: Any = dummy) -> Any:
    """SB3's class, by our own adapter, in a wrapper."""
    return Identity(sb3compat.to_gymnasium(theirs(fns), autoreset_mode=mode))


MAKES: dict[str, Callable[[Any, AutoresetMode], Any]] = {
    **{name: partial(made, name) for name in SOURCES if name != "async unshared"},
    "adapter": adapted,
    "adapter of workers": partial(adapted, theirs=subproc),
}
# Those that SAME_STEP environments use; in a reset only that of other classes than Gymnasium's.
FINALS = {"final_obs": np.arange(3.0), "final_info": {"x": 1}, "final_observation": "text"}


@mode_of
@pytest.mark.parametrize("name", MAKES)
def test_keys_of_endings_may_be_keys_of_sub_environments(name: str, mode: AutoresetMode) -> None:
    # In SAME_STEP mode under a wrapper, Gymnasium itself would write one `final_info` over another.
    lengths = (9,) if mode == SAME_STEP and name.endswith("wrapped") else (2, 3)
    reset = {"final_observation": "text"}
    with_keys(lambda fns: MAKES[name](fns, mode), FINALS, reset, lengths, steps=6)


@class_of
def test_rows_of_a_derived_class_keep_such_keys_until_they_end(cls: Any) -> None:
    step = cls.step
    # Of a class with a `step` of its own only the interface is known.
    own = type("Own", (cls,), {"step": lambda env, actions: step(env, actions)})
    keys = {"final_obs": np.arange(3.0), "final_info": {"x": 1}}
    with_keys(lambda fns: own(fns, autoreset_mode=SAME_STEP), keys)


@pytest.mark.parametrize("name", ["sync wrapped", "adapter"])
def test_names_of_masks_may_be_keys_of_sub_environments(name: str) -> None:
    keys = {"_final_obs": 3, "_final_info": "text"}
    with_keys(lambda fns: MAKES[name](fns, SAME_STEP), keys)


@pytest.mark.parametrize(
    "infos",
    [
        {"step": {"_final_obs": 4}},
        {"step": {"_final_obs": True}},
        {"step": {"_final_info": "text"}},
        {"reset": {"_final_obs": False}},
        {"reset": {"_final_info": 3}},
        {"step": {"final_info": 3}},
    ],
)
def test_what_gymnasium_mixes_with_an_ending_is_refused(infos: Any) -> None:
    rows = fns(3, lengths=(9, 2, 9))
    factories = [lambda fn=fn: Gives(fn(), **infos, last=False) for fn in rows]
    env = sb3compat.to_sb3(made("sync wrapped", factories, SAME_STEP))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match="a sub-environment returns"):
        list(map(step, [env] * 9))


@pytest.mark.parametrize("name", ["sync wrapped", "async"])
@pytest.mark.parametrize("key", ["final_obs", "final_info"])
def test_reset_infos_with_final_keys_are_refused(key: str, name: str) -> None:
    factories = [lambda: Gives(fns()[0](), reset={key: 3})]
    env = sb3compat.to_sb3(made(name, factories, SAME_STEP))
    with pytest.raises(sb3compat.ConversionError, match=key):
        env.reset()
