"""What does not fit into the shared arrays: arrays of other dtypes, and infos."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import SyncVectorEnv
from hypothesis import given
from hypothesis import strategies as st

import sb3compat
from sb3compat import ParallelVecEnv, to_gymnasium
from sb3compat._parallel.extras import tables_of
from tests.envs import fns
from tests.lockstep import same
from tests.parallel.failing import WorkerProcess
from tests.parallel.teams import dummy, forked
from tests.to_sb3.driving import cast_vector

BYTES = Box(0, 255, (3,), np.uint8)


def floats(n: int = 2, dtype: Any = np.float32) -> Any:
    return cast_vector(SyncVectorEnv(fns(n, observation_space=BYTES)), dtype)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "other", [lambda: fns(1, observation_space=BYTES)[0](), lambda: floats(dtype=np.float64)]
)
def test_parts_of_different_dtypes_are_refused_and_named(other: Any, workers: int) -> None:
    env = forked([floats, other], workers)
    with pytest.raises(sb3compat.ConversionError) as caught:
        env.reset()
    message = str(caught.value)
    assert "float32 from Changed(SyncVectorEnv) (row 0)" in message
    assert "row 2" in message


def test_worker_that_is_replaced_keeps_the_dtypes_and_its_rewards_are_zeros() -> None:
    vec_wrappers = pytest.importorskip("tests.vec_wrappers")

    def make() -> Any:
        return vec_wrappers.Cast(dummy(fns(2, observation_space=BYTES)), np.float32, np.float64)

    env = forked([make] * 2, workers=2, on_worker_lost="restart")
    first = env.reset()
    WorkerProcess(env._source._workers._lines[1].process.pid).kill()
    obs, rewards, dones, infos = env.step(np.zeros(4, int))
    assert (obs.dtype, rewards.dtype) == (np.float32, np.float64)
    assert dones.tolist() == [False, False, True, True]
    assert rewards[:2].all()
    assert rewards[2:].tolist() == [0, 0]
    for row in (2, 3):
        assert infos[row]["terminal_observation"].dtype == np.float32
        np.testing.assert_array_equal(infos[row]["terminal_observation"], first[row])


def test_the_way_to_gymnasium_declares_what_it_presents() -> None:
    sb3 = pytest.importorskip("stable_baselines3.common.vec_env")

    def normalized() -> Any:
        return sb3.VecNormalize(sb3.DummyVecEnv(fns(2, observation_space=BYTES)))

    nested = [lambda: ParallelVecEnv([normalized], start_method="fork"), normalized]
    for parts in ([normalized] * 2, nested):
        env = to_gymnasium(forked(parts, workers=2))
        obs, _ = env.reset()
        assert obs.dtype == env.single_observation_space.dtype == np.float32
        assert obs in env.observation_space
    refused = to_gymnasium(forked([floats]))
    with pytest.raises(sb3compat.ConversionError, match="observation space of its own"):
        refused.reset()


# --- infos by column ----------------------------------------------------------------------------

CODES = [*np.typecodes["All"].replace("V", "")]


class Text(str):
    __slots__ = ()


def scalar(code: str, number: int) -> Any:
    return np.zeros(1, code)[0] if code in "SUOmM" else np.dtype(code).type(number)


def survives_pickling(code: str) -> bool:
    """NumPy unpickles `np.longlong` as the other type of that size."""
    value = scalar(code, 0)
    return type(pickle.loads(pickle.dumps(value))) is type(value)


values = st.one_of(
    st.builds(scalar, st.sampled_from([*filter(survives_pickling, CODES)]), st.integers(0, 1)),
    st.floats(allow_nan=False),
    st.booleans(),
    st.integers(),
    st.text(max_size=2),
    st.none(),
    st.builds(np.full, st.just(2), st.integers(0, 9)),
    st.dictionaries(st.text(max_size=1), st.integers(), max_size=2),
)
keys = st.sampled_from(["a", "b", "TimeLimit.truncated", 1, True, 1.0, None, Text("a")])


def through_a_pipe(infos: dict[int, Any]) -> dict[int, Any]:
    alone, columns = pickle.loads(pickle.dumps(tables_of(infos)))
    back = dict(alone)
    for some in columns:
        back |= some.infos()
    return back


@given(st.dictionaries(st.integers(0, 6), st.dictionaries(keys, values, min_size=1, max_size=3)))
def test_infos_come_back_as_they_were(infos: dict[int, Any]) -> None:
    back = through_a_pipe(infos)
    assert back.keys() == infos.keys()
    for row, info in infos.items():
        assert [*map(type, back[row])] == [*map(type, info)]
        same(list(back[row].items()), list(info.items()), f"row {row}")


@pytest.mark.parametrize("code", CODES)
def test_numbers_of_each_type_come_back_as_that_type_also_where_others_are_among_them(
    code: str,
) -> None:
    infos = {row: {"x": scalar(code, row % 2), "y": scalar(code, 1)} for row in range(3)}
    if survives_pickling(code):
        infos[2]["y"] = 2
    back = through_a_pipe(infos)
    assert back == infos
    for row, info in infos.items():
        assert [*map(type, back[row].values())] == [*map(type, info.values())]
