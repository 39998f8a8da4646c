"""Gymnasium's JAX environments. See test_transitions.py as well."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from sb3compat._convert.arrays import to_numpy
from sb3compat._convert.split_infos import split_infos
from tests.envs import GYMNASIUM
from tests.lockstep import same
from tests.to_sb3.backends.cartpole import run
from tests.to_sb3.backends.libraries import jax_env

pytestmark = pytest.mark.jax


@pytest.mark.skipif(
    GYMNASIUM < (1, 2), reason="before Gymnasium 1.2, the wrapper does not take NumPy actions"
)
@pytest.mark.parametrize("name", ["JaxToNumpy", "JaxToTorch"])
def test_jax_wrappers_change_nothing_in_the_stream(name: str) -> None:
    pytest.importorskip("torch", reason="converts to torch")
    pytest.importorskip("array_api_compat", reason="Gymnasium converts with array-api-compat")
    streams = []
    for wrap in (lambda env: env, getattr(gym.wrappers.vector, name)):
        env = sb3compat.to_sb3(wrap(jax_env("CartPole-v1", 2, 6)))
        env.seed(5)
        streams.append(run(env, 15))
    same(streams[1], streams[0], "the stream")


def test_arrays_that_numpy_does_not_have_are_cast_or_refused() -> None:
    jax = pytest.importorskip("jax")
    numbers = jax.numpy.array([1.5, 3.0], dtype="bfloat16")
    same(to_numpy(numbers), np.array([1.5, 3], np.float32))
    with pytest.raises(sb3compat.ConversionError, match=r"(?s)Array.*key<.*Leave it out"):
        split_infos({"rng": jax.random.key(0)}, 2)
