from __future__ import annotations

import gc
from copy import deepcopy
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

import sb3compat
from tests.envs import BOX, MakeEnv, ScriptedEnv, script
from tests.handwritten import CountingVecEnv
from tests.lockstep import same
from tests.lockstep_back import dummy, monitored, subproc

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import VecMonitor

MODES = list(AutoresetMode)
SAME_STEP, NEXT_STEP = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP
DISABLED = AutoresetMode.DISABLED
SOURCES = [dummy, subproc, monitored]
NAMES = ["dummy", "subproc", "monitored"]


def fns(n: int = 2, **kwargs: Any) -> list[MakeEnv]:
    return [MakeEnv(script(**kwargs), i) for i in range(n)]


def adapted(n: int = 2, mode: Any = SAME_STEP, **kwargs: Any) -> Any:
    return sb3compat.to_gymnasium(dummy(fns(n, **kwargs)), autoreset_mode=mode)


@pytest.fixture(params=SOURCES, ids=NAMES)
def envs(request: pytest.FixtureRequest) -> Any:
    env = sb3compat.to_gymnasium(request.param(fns()))
    yield env
    env.close()


def test_vector_env_is_returned_as_it_is() -> None:
    env = SyncVectorEnv(fns())
    assert sb3compat.to_gymnasium(env) is env
    ours = adapted()
    assert sb3compat.to_gymnasium(ours) is ours


REFUSED = {
    "a single environment": (
        lambda: ScriptedEnv(script()),
        {},
        sb3compat.UnsupportedEnvError,
        "single environment: pass DummyVecEnv",
    ),
    "a class": (lambda: CountingVecEnv, {}, sb3compat.UnsupportedEnvError, "call it"),
    "a function": (lambda: fns()[0], {}, sb3compat.UnsupportedEnvError, "call it"),
    "a list": (fns, {}, sb3compat.UnsupportedEnvError, "DummyVecEnv(list_of_functions)"),
    "nothing": (lambda: None, {}, sb3compat.UnsupportedEnvError, "vec_env=None (NoneType)"),
    "spaces that are none": (
        lambda: with_attributes(CountingVecEnv(), action_space=3),
        {},
        sb3compat.UnsupportedEnvError,
        "action_space=3",
    ),
    "an observation space that SB3 cannot batch": (
        lambda: with_attributes(CountingVecEnv(), observation_space=spaces.Text(3)),
        {},
        sb3compat.UnsupportedSpaceError,
        "observation_space=Text",
    ),
    "closed": (
        lambda: with_attributes(CountingVecEnv(), closed=True),
        {},
        sb3compat.ClosedError,
        "was closed",
    ),
    "an unknown mode": (
        lambda: dummy(fns()),
        {"autoreset_mode": "Sometimes"},
        sb3compat.AutoresetModeError,
        "autoreset_mode='Sometimes' (str)",
    ),
    "NEXT_STEP with a wrapper": (
        lambda: monitored(fns()),
        {"autoreset_mode": NEXT_STEP},
        sb3compat.AutoresetModeError,
        "put Gymnasium's wrappers on top instead",
    ),
    "NEXT_STEP of a subclass": (
        lambda: subclass_of_dummy(fns()),
        {"autoreset_mode": "NEXT_STEP"},
        sb3compat.AutoresetModeError,
        "'SameStep' or 'Disabled'",
    ),
    "an option that is none": (
        lambda: dummy(fns()),
        {"missing_truncation": "truncated"},
        sb3compat.ConversionError,
        "missing_truncation='truncated' (str)",
    ),
    "DISABLED without last observations": (
        CountingVecEnv,
        {"autoreset_mode": DISABLED, "require_final_obs": False},
        sb3compat.ConversionError,
        "autoreset_mode='SameStep'",
    ),
}


def with_attributes(env: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(env, name, value)
    return env


def subclass_of_dummy(rows: Any) -> Any:
    from stable_baselines3.common.vec_env import DummyVecEnv

    class Mine(DummyVecEnv):
        pass

    return Mine(rows)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_environment_is_named_with_a_way_out(name: str) -> None:
    make, kwargs, kind, message = cast(Any, REFUSED[name])
    with pytest.raises(kind) as caught:
        sb3compat.to_gymnasium(make(), **kwargs)
    assert message in str(caught.value)


def test_attributes_equal_those_of_sync_vector_env() -> None:
    vec_env = dummy([lambda: gym.make("CartPole-v1", render_mode="rgb_array")] * 3)
    ours: Any = sb3compat.to_gymnasium(vec_env, autoreset_mode="NextStep")
    theirs = SyncVectorEnv(
        [lambda: gym.make("CartPole-v1", render_mode="rgb_array")] * 3, autoreset_mode=NEXT_STEP
    )
    assert isinstance(ours, sb3compat.VectorEnvAdapter)
    assert isinstance(ours, VectorEnv)
    for name in (
        "num_envs", "single_observation_space", "single_action_space", "observation_space",
        "action_space", "metadata", "render_mode", "autoreset_mode", "closed",
    ):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.vec_env is vec_env
    assert ours.unwrapped is ours
    assert ours.spec.id == "CartPole-v1"
    assert repr(ours) == "VectorEnvAdapter(CartPole-v1, num_envs=3)"
    assert repr(adapted()) == "VectorEnvAdapter(num_envs=2)"


@pytest.mark.parametrize("build", SOURCES, ids=NAMES)
def test_metadata_are_not_shared(build: Any) -> None:
    first = sb3compat.to_gymnasium(build(fns()))
    second = sb3compat.to_gymnasium(build(fns()), autoreset_mode=DISABLED)
    before = deepcopy(ScriptedEnv.metadata)  # older Gymnasium writes a mode into it
    assert first.metadata == {**before, "autoreset_mode": SAME_STEP}
    assert second.metadata == {**before, "autoreset_mode": DISABLED}
    first.metadata["render_modes"].append("human")
    assert ScriptedEnv.metadata == before
    assert before["render_fps"] == 7
    first.close()
    second.close()


def test_sub_environments_can_be_called(envs: Any) -> None:
    theirs = SyncVectorEnv(fns(), autoreset_mode=SAME_STEP)
    for env in (envs, theirs):
        env.reset(seed=[3, 4])
        assert env.call("set_mu", 2.5) == (2.5, 3.5)
        assert env.call("set_mu", mu=1.5) == (1.5, 2.5)
        assert env.get_attr("mu") == env.call("mu") == (1.5, 1.5)
        assert env.get_attr("__str__") == env.call("__str__")  # a method is called
        env.set_attr("mu", 4)
        assert env.get_attr("mu") == (4, 4)
        env.set_attr("mu", [5, 6])
        assert env.get_attr("mu") == (5, 6)
        env.set_attr("mu", (7, 8))
        assert env.get_attr("mu") == (7, 8)
        with pytest.raises(ValueError, match="values"):
            env.set_attr("mu", [1, 2, 3])
        with pytest.raises(AttributeError, match="nu"):
            env.get_attr("nu")
        assert env.get_attr("mu") == (7, 8)
        assert env.np_random_seed == (3, 4)
    numbers = [[rng.random() for rng in env.np_random] for env in (envs, theirs)]
    assert numbers[0] == numbers[1]
    same(envs.render(), theirs.render())


def test_set_attr_lands_where_gymnasium_sets_it() -> None:
    made = [lambda: gym.wrappers.TimeLimit(ScriptedEnv(script()), 5)] * 2
    ours = sb3compat.to_gymnasium(dummy(made))
    ours.set_attr("mu", 9)
    assert [env.unwrapped.mu for env in ours.vec_env.envs] == [9, 9]


def test_wrong_number_of_actions_is_refused(envs: Any) -> None:
    envs.reset()
    for actions in ([], [0], [0, 1, 2], np.zeros((3,), int), 0, None):
        with pytest.raises(ValueError, match="Expected 2 actions, one for each"):
            envs.step(actions)
    assert envs.step([0, 0])[-1]["shared"].tolist() == [1, 1]


TUPLE = spaces.Tuple([spaces.Discrete(2), BOX])
DICT = spaces.Dict({"a": spaces.Discrete(2), "b": BOX})
BOXES = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("space", "actions"),
    [
        (TUPLE, (np.array([0]), BOXES)),
        (TUPLE, (np.array([0, 1]), BOXES[:1])),
        (TUPLE, (np.array([0, 1]),)),
        (TUPLE, [(0, BOXES[0])]),
        (DICT, {"a": np.array([0, 1]), "b": BOXES[:1]}),
        (DICT, {"a": np.array([0, 1])}),
        (DICT, {"a": np.array([0, 1]), "c": BOXES}),
        (DICT, [{"a": 1, "b": BOXES[0]}]),
        (DICT, BOXES),
    ],
)
def test_wrong_parts_of_actions_are_refused(space: Any, actions: Any) -> None:
    envs = adapted(action_space=space)
    envs.reset()
    with pytest.raises(ValueError, match="Nothing was stepped"):
        envs.step(actions)
    right = {"a": [0, 1], "b": BOXES} if space is DICT else [np.array([0, 1]), BOXES]
    assert envs.step(right)[-1]["shared"].tolist() == [1, 1]


MASKS = {
    "a list": [True, False],
    "a bool": True,
    "nothing": None,
    "too short": np.ones(1, bool),
    "two-dimensional": np.ones((2, 1), bool),
    "numbers": np.ones(2, int),
    "objects": np.array([True, False], object),
    "no row": np.zeros(2, bool),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_wrong_reset_masks_are_refused(envs: Any, mask: Any) -> None:
    theirs = SyncVectorEnv(fns(), autoreset_mode=SAME_STEP)
    theirs.reset()
    with pytest.raises((TypeError, ValueError, AssertionError)) as expected:
        theirs.reset(options={"reset_mask": mask})
    envs.reset()
    options = {"reset_mask": mask}
    with pytest.raises(expected.type, match=r"options\['reset_mask'\] to be a NumPy array"):
        envs.reset(options=options)
    assert options == {"reset_mask": mask}
    assert envs.step([0, 0])[-1]["shared"].tolist() == [1, 1]


@pytest.mark.parametrize("seed", [[], [1], [1, 2, 3], (1,)])
def test_list_of_seeds_of_another_length_is_refused(envs: Any, seed: Any) -> None:
    theirs = SyncVectorEnv(fns(), autoreset_mode=SAME_STEP)
    with pytest.raises((ValueError, AssertionError)) as expected:
        theirs.reset(seed=seed)
    with pytest.raises(expected.type, match="a list of 2 seeds"):
        envs.reset(seed=seed)


def test_numpy_integers_are_seeds(envs: Any) -> None:
    assert envs.reset(seed=np.int64(5))[1]["seed"].tolist() == [5, 6]
    assert envs.reset(seed=np.array([7, 3]))[1]["seed"].tolist() == [7, 3]


def test_frames_do_not_change_later() -> None:
    class Painting(ScriptedEnv):
        canvas = np.zeros((2, 2, 3), np.uint8)

        def render(self) -> Any:
            self.canvas += 1
            return self.canvas

    for wrap in (lambda made: made, VecMonitor):
        envs = sb3compat.to_gymnasium(wrap(dummy([lambda: Painting(script())])))
        envs.reset()
        first, second = envs.render()[0], envs.render()[0]
        assert (first + 1).tolist() == second.tolist()


def test_seeds_and_options_set_on_the_vec_env_wait_for_the_next_reset(envs: Any) -> None:
    envs.vec_env.seed(11)
    envs.vec_env.set_options([{"x": 1}, {"x": 2}])
    infos = envs.reset()[1]
    assert infos["seed"].tolist() == [11, 12]
    assert infos["option"].tolist() == [1, 2]
    infos = envs.reset()[1]
    assert infos["seed"].tolist() == [-1, -1]
    assert "option" not in infos


def test_ended_row_is_not_stepped_in_disabled_mode() -> None:
    for build in SOURCES:
        envs = sb3compat.to_gymnasium(build(fns(lengths=(1, 9))), autoreset_mode="Disabled")
        envs.reset()
        ended = envs.step([0, 0])[2]
        assert ended.tolist() == [False, True]
        for kind in (sb3compat.EndedRowError, AssertionError, RuntimeError):
            with pytest.raises(kind, match=r"rows \[1\] to be reset before the next step"):
                envs.step([0, 0])
        envs.reset(options={"reset_mask": ended})
        assert envs.step([0, 0])[-1]["shared"].tolist() == [2, 1]
        envs.close()


@pytest.mark.parametrize("build", SOURCES, ids=NAMES)
def test_step_is_refused_until_every_ended_row_is_reset(build: Any) -> None:
    mask = np.array([True, False])
    envs = sb3compat.to_gymnasium(build(fns(lengths=(1,))), autoreset_mode="Disabled")
    envs.reset()
    envs.step([0, 0])
    envs.reset(options={"reset_mask": mask})
    with pytest.raises(sb3compat.EndedRowError, match=r"rows \[1\] to be reset"):
        envs.step([0, 0])
    envs.close()
    if build is monitored:
        return
    envs = sb3compat.to_gymnasium(build(fns(lengths=(1,))), autoreset_mode="NextStep")
    envs.reset()
    envs.step([0, 0])
    envs.reset(options={"reset_mask": mask})
    _, _, terminations, _, infos = envs.step([0, 0])
    assert terminations.tolist() == [True, False]
    assert infos["_resets"].tolist() == [False, True]
    envs.close()


def test_closed_environment_refuses_every_call(envs: Any) -> None:
    envs.reset()
    envs.close()
    envs.close()
    assert envs.closed
    for use in (
        envs.reset,
        lambda: envs.step([0, 0]),
        envs.render,
        lambda: envs.call("mu"),
        lambda: envs.set_attr("mu", 3),
    ):
        for kind in (RuntimeError, gym.error.ClosedEnvironmentError):
            with pytest.raises(kind, match="was closed"):
                use()


def test_close_closes_the_vec_env_and_garbage_collection_does_not() -> None:
    vec_env = CountingVecEnv()
    ours: Any = sb3compat.to_gymnasium(vec_env)
    del ours
    gc.collect()
    assert not vec_env.closed
    sb3compat.to_gymnasium(vec_env).close()
    assert vec_env.closed


def test_step_after_a_failed_step_needs_a_reset() -> None:
    class Failing(ScriptedEnv):
        def step(self, action: Any) -> Any:
            if action == 3:
                raise KeyError("three")
            return super().step(action)

    made = [lambda row=row: Failing(script(lengths=(1, 9)), row) for row in range(2)]
    for mode in MODES:
        ours = sb3compat.to_gymnasium(dummy(made), autoreset_mode=mode)
        ours.reset()
        with pytest.raises(KeyError, match="three"):
            ours.step([0, 3])
        for use in (
            lambda: ours.step([0, 0]),
            lambda: ours.reset(options={"reset_mask": np.array([True, False])}),
        ):
            with pytest.raises(RuntimeError, match=r"Expected reset\(\) without a mask"):
                use()
        ours.reset()
        assert ours.step([0, 0])[-1]["shared"].shape == (2,)


def test_reset_info_with_a_final_key_is_refused() -> None:
    class Taking(ScriptedEnv):
        def reset(self, **kwargs: Any) -> Any:
            return super().reset(**kwargs)[0], {"final_info": 3}

    ours = sb3compat.to_gymnasium(dummy([lambda: Taking(script(lengths=(1,)))]))
    ours.reset()
    with pytest.raises(sb3compat.ConversionError, match=r"without the keys \['final_info'\]"):
        ours.step([0])


def test_info_key_that_collides_with_a_mask_is_refused() -> None:
    class Colliding(ScriptedEnv):
        def step(self, action: Any) -> Any:
            return *super().step(action)[:4], {"k": 1, "_k": 2}

    ours = sb3compat.to_gymnasium(dummy([lambda: Colliding(script())]))
    ours.reset()
    with pytest.raises(sb3compat.ConversionError, match="'_k' beside 'k'"):
        ours.step([0])


@pytest.mark.parametrize("build", SOURCES, ids=NAMES)
def test_keys_of_sb3_stay_out_of_the_infos(build: Any) -> None:
    chosen = {"lengths": (1,), "infos": "none", "reuse": True}
    ours = sb3compat.to_gymnasium(build(fns(**chosen)))
    infos = [ours.reset()[1], *[ours.step([0, 0])[-1] for _ in range(3)], ours.reset()[1]]
    for info in infos:
        for level in (info, info.get("final_info", {})):
            for key in ("TimeLimit.truncated", "terminal_observation"):
                assert key not in level
                assert f"_{key}" not in level
    ours.close()


def test_sb3_keys_left_in_a_reused_info_dict_stay_out() -> None:
    class Lingering(ScriptedEnv):
        kept: Any = None

        def _own(self, info: Any) -> Any:
            self.kept = {} if self.kept is None else self.kept
            self.kept.update(info)
            return self.kept

    for wrap in (lambda made: made, VecMonitor):
        envs = sb3compat.to_gymnasium(wrap(dummy([lambda: Lingering(script(lengths=(2,)))])))
        envs.reset()
        for _ in range(4):
            envs.step([0])
        for infos in (envs.step([0])[-1], envs.reset()[1]):
            assert not {"TimeLimit.truncated", "terminal_observation"} & set(infos)


def test_vec_env_can_be_used_again() -> None:
    for mode in MODES:
        for build in (dummy, subproc):
            vec_env, reference = build(fns(lengths=(2,))), dummy(fns(lengths=(2,)))
            ours = sb3compat.to_gymnasium(vec_env, autoreset_mode=mode)
            ours.reset(seed=3)
            reference.seed(3)
            reference.reset()
            for _ in range(3):
                reference.step([1, 2])
                ended = ours.step([1, 2])[2]
                if ended.any() and mode == DISABLED:
                    ours.reset(options={"reset_mask": ended})
                elif ended.any() and mode == NEXT_STEP:
                    ours.step([1, 2])
            for infos in (vec_env.reset_infos, reference.reset_infos):
                for info in infos:
                    info.pop("given")  # Gymnasium passes empty options with a mask
            same(list(vec_env.reset_infos), reference.reset_infos)
            same([*vec_env.step([1, 2])[0]], [*reference.step([1, 2])[0]])
            same(list(vec_env.reset_infos), reference.reset_infos)
            ours.close()


FLOATS = spaces.Box(-1, 9, (2,), np.float32)
INTEGERS = spaces.Box(0, 9, (2,), np.int16)
RETURNED = {
    "float64 for float32": (FLOATS, [np.array([1.1, 2]), np.ones(2)]),
    "one row of float64": (FLOATS, [np.ones(2, np.float32), np.array([1.1, 2])]),
    "integers for floats": (FLOATS, [np.array([1, 2]), np.array([3, 4])]),
    "floats for integers": (INTEGERS, [np.ones(2), np.ones(2)]),
    "wider integers": (INTEGERS, [np.array([1, 2]), np.array([3, 4])]),
    "lists": (FLOATS, [[1.1, 2.0], [3.0, 4.0]]),
    "another shape": (FLOATS, [np.ones(3, np.float32), np.ones(3, np.float32)]),
    "several shapes": (FLOATS, [np.ones(2, np.float32), np.ones(1, np.float32)]),
    "an int": (spaces.Discrete(5), [3, 4]),
    "int32": (spaces.Discrete(5), [np.int32(3), np.int32(4)]),
    "one float": (spaces.Discrete(5), [3, 4.5]),
    "parts of a dict": (
        spaces.Dict({"a": FLOATS, "b": spaces.Discrete(5)}),
        [{"a": np.ones(2), "b": 3}, {"b": np.int8(4), "a": np.ones(2), "c": 9}],
    ),
}


@pytest.mark.parametrize("name", RETURNED)
def test_observations_of_other_types_are_batched_as_in_gymnasium(name: str) -> None:
    space, observations = RETURNED[name]

    class Returning(ScriptedEnv):
        def reset(self, **kwargs: Any) -> Any:
            return observations[self.row], {}

    made = [lambda row=row: Returning(script(observation_space=space), row) for row in range(2)]

    def outcome(env: Any) -> Any:
        try:
            return env.reset()[0]
        except (TypeError, ValueError) as error:
            return type(error)

    same(outcome(sb3compat.to_gymnasium(dummy(made))), outcome(SyncVectorEnv(made)))
