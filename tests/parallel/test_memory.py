"""The arrays of a step in shared memory."""

from __future__ import annotations

import gc
import os
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from sb3compat._convert.actions import Actions
from sb3compat._convert.observations import Observations
from sb3compat._parallel import memory
from sb3compat._parallel.memory import Segment, buffers_in, receive_memory, shapes_of, size_of
from tests.strategies import any_space


@given(observation=any_space(), action=any_space(), n=st.integers(1, 5))
def test_buffers_have_the_shapes_of_the_spaces_and_do_not_overlap(
    observation: spaces.Space, action: spaces.Space, n: int
) -> None:
    layouts = Observations(observation, n), Actions(action, n)
    shapes = shapes_of(*layouts)
    block = bytearray(size_of(shapes, n))
    out = buffers_in(block, shapes, n)
    expected = [*layouts[0].leaves, *layouts[1].leaves]
    arrays = [*out.observations, *out.actions]
    for array, leaf in zip(arrays, expected, strict=True):
        assert array.shape == (n, *leaf.shape)
        assert array.dtype == leaf.dtype
    arrays += [out.rewards, out.ended, out.truncated]
    assert [array.dtype for array in arrays[-3:]] == [np.float32, np.bool_, np.bool_]
    for number, array in enumerate(arrays):
        array.view(np.uint8)[...] = number
    for number, array in enumerate(arrays):
        assert (array.view(np.uint8) == number).all()


def open_files() -> list[str]:
    return sorted(os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.exists())


def test_memory_is_shared_with_who_receives_it_and_leaves_no_file() -> None:
    before = open_files()
    one, two = Pipe()
    segment = Segment(1000)
    segment.send(one)
    received = receive_memory(two, segment.size, segment.name)
    segment.memory[7] = 3
    assert received[7] == 3
    segment.close()
    segment.close()
    received[8] = 4
    assert segment.memory[8] == 4
    del received, segment
    one.close()
    two.close()
    gc.collect()
    assert open_files() == before


def test_memory_without_memfd_is_a_file_without_a_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_: str) -> int:
        raise OSError("not here")

    monkeypatch.setattr(memory.os, "memfd_create", refuse, raising=False)
    monkeypatch.setattr(memory.tempfile, "tempdir", str(tmp_path))
    segment = Segment(1000)
    segment.memory[0] = 1
    assert not list(tmp_path.iterdir())
    segment.close()
