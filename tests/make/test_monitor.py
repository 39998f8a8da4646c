"""Monitored environments, in this process and in workers, as SB3's `make_vec_env` makes them."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from sb3compat._make.monitor import EpisodeMonitor, MonitoredEnv, ResultsWriter, Run
from tests.envs import BOX, DISCRETE, Script, ScriptedEnv, WorkerReport

env_util: Any = pytest.importorskip("stable_baselines3.common.env_util")
vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")
monitor: Any = pytest.importorskip("stable_baselines3.common.monitor")


MONITORS: list[Any] = [monitor.Monitor, EpisodeMonitor]


class WithPid(ScriptedEnv):
    def pid(self) -> int:
        return os.getpid()


def scripted(row: int = 0) -> ScriptedEnv:
    return WithPid(Script(BOX, DISCRETE, lengths=(2, 3), endings=("truncated", "both")), row)


def test_files_of_a_native_environment_hold_every_episode(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="SB3's load_results needs pandas")
    folder = tmp_path / "new" / "folder"
    env = sb3compat.make_vec_env(
        "CartPole-v1", 2, seed=1, monitor_dir=str(folder), vectorization_mode="native"
    )
    env.reset()
    returns: list[float] = []
    for _ in range(100):
        returns += [i["episode"]["r"] for i in env.step(np.zeros(2, int))[3] if "episode" in i]
    env.close()
    results = monitor.load_results(str(folder))
    assert sorted(results["r"]) == sorted(returns)
    assert len(returns) > 10


def test_reset_keywords_are_written_and_required(tmp_path: Path) -> None:
    env = EpisodeMonitor(gym.make("CartPole-v1"), str(tmp_path / "x"), reset_keywords=("options",))
    with pytest.raises(ValueError, match=r"missing: \['options'\]"):
        env.reset()
    env.reset(options={"low": -0.01, "high": 0.01})
    done = False
    while not done:
        *_, done, _, info = env.step(0)
    assert info["episode"]["options"] == {"low": -0.01, "high": 0.01}
    env.close()


SPAWN = {"start_method": "spawn"}


@pytest.mark.parametrize(
    "how",
    [
        {"vec_env_cls": vec_env.SubprocVecEnv, "vec_env_kwargs": SPAWN},
        {"vectorization_mode": "parallel", "workers": 1},
    ],
)
def test_workers_import_no_heavy_library(how: Any) -> None:
    env = sb3compat.make_vec_env("CartPole-v1", 2, wrapper_class=WorkerReport, **how)
    env.reset()
    env.set_options({"low": -0.01})
    env.step([0, 1])
    assert env.env_is_wrapped(WorkerReport) == env.env_is_wrapped(monitor.Monitor) == [True, True]
    for name in ("torch", "stable_baselines3", "jax", "ray", "envpool", "ale_py"):
        assert env.env_method("loaded", name) == [False, False], name
    assert len(getattr(env, "rows_of_worker", range(1))) == 1
    env.close()


def test_early_resets_can_be_forbidden() -> None:
    env = sb3compat.make_vec_env(
        scripted, monitor_kwargs={"allow_early_resets": False}, vectorization_mode="async"
    )
    env.reset()
    with pytest.raises(RuntimeError, match="allow_early_resets"):
        env.reset()
    env.close()


# --- SB3's `Monitor`, name for name ---------------------------------------------------------------


UNLIKE = {"env", "spec", "unwrapped", "np_random", "np_random_seed", "results_writer"}
TIMES = {"t_start", "episode_times"}


@pytest.mark.parametrize("mode", ["sync", "async", "parallel"])
def test_every_public_attribute_is_that_of_sb3s_monitor(mode: str) -> None:
    kwargs = {} if mode == "sync" else {"start_method": "fork"}
    ours = sb3compat.make_vec_env(scripted, 2, vectorization_mode=mode, vec_env_kwargs=kwargs)
    theirs = env_util.make_vec_env(scripted, 2)
    names = {name for name in dir(theirs.envs[0]) if not name.startswith("_")} - UNLIKE
    methods = {name for name in names if callable(getattr(theirs.envs[0], name))}
    for step in range(5):
        for env in (ours, theirs):
            env.step(np.zeros(2, int)) if step else env.reset()
        for name in sorted(names - methods - TIMES):
            assert ours.get_attr(name) == theirs.get_attr(name), name
        for name in TIMES:
            found, expected = ours.get_attr(name), theirs.get_attr(name)
            assert list(map(type, found)) == list(map(type, expected))
        assert all(map(ours.has_attr, methods))
        for name in ("get_total_steps", "get_episode_rewards", "get_episode_lengths"):
            assert ours.env_method(name) == theirs.env_method(name)
    ours.close()


def test_step_without_its_keyword_does_not_count_as_in_sb3() -> None:
    monitors = [cls(scripted(), info_keywords=("no",)) for cls in MONITORS]
    for env in monitors:
        env.reset()
        env.step(0)
        env.step(0)
        with pytest.raises(KeyError):
            env.step(0)
    theirs, ours = (env.get_total_steps() for env in monitors)
    assert ours == theirs


# --- files that go on -----------------------------------------------------------------------------

BEGUN = '#{"t_start": 100.0, "env_id": "x", "run": "mine"}\nr,l,t,word\r\n'
ROW = {"r": 1.0, "l": 2, "t": 3.0, "word": 'a\n"b"'}
WRITTEN = '1.0,2,3.0,"a\n""b"""\r\n'


def written(path: Path, header: dict[str, Any], **kwargs: Any) -> str:
    writer = ResultsWriter(
        str(path), {"t_start": 200.0, "env_id": "x", **header}, ("word",), **kwargs
    )
    writer.write_row(ROW)
    writer.close()
    return path.read_bytes().decode()


@pytest.mark.parametrize("cut", [0, 5])
def test_run_goes_on_with_its_file_on_a_line_of_its_own(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "0.monitor.csv"
    path.write_bytes((BEGUN + WRITTEN + WRITTEN[:cut]).encode())
    torn = f"{WRITTEN[:cut]}\n" if cut else ""
    assert written(path, {"run": "mine"}) == BEGUN + WRITTEN + torn + WRITTEN


@pytest.mark.parametrize("header", [{}, {"run": "another"}])
@pytest.mark.parametrize("before", [BEGUN + WRITTEN, BEGUN[:30], "", "#[]\n\n"])
def test_another_run_begins_a_new_file(before: str, header: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "0.monitor.csv"
    path.write_text(before)
    first, *rest = written(path, header).split("\n", 1)
    assert json.loads(first[1:]) == {"t_start": 200.0, "env_id": "x", **header}
    assert rest == [f"r,l,t,word\r\n{WRITTEN}"]


HEADER = '#{"t_start": 5.0, "env_id": "x"}\nr,l,t,word\n'


@pytest.mark.parametrize("header", [{}, {"run": "mine"}])
@pytest.mark.parametrize(
    "before",
    [
        "",
        HEADER,
        f"{HEADER}1.0,1,0.5,a\n2.0,2,0.6,b",
        f'{HEADER}1.0,1,0.5,5" disk\n2.0,2,0.6,b\n',
        f'{HEADER}# note: 5"\n2.0,1,0.6,b\n',
        f"{HEADER}1.0,1,0.5,a\n\n2.0,2,0.6,b\n",
    ],
)
def test_nothing_is_dropped_from_a_file_of_others(
    before: str, header: dict[str, str], tmp_path: Path
) -> None:
    """SB3's `Monitor` appends its rows as well; ours begin on a line of their own."""
    path = tmp_path / "0.monitor.csv"
    path.write_text(before)
    after = written(path, header, override_existing=False)
    assert after == before + "\n" * (before[-1:] not in ("", "\n")) + WRITTEN
    path.write_text(before)
    theirs = monitor.ResultsWriter(str(path), {}, ("word",), override_existing=False)
    theirs.write_row(ROW)
    theirs.close()
    assert after.replace("\n", "") == path.read_bytes().decode().replace("\n", "")


@pytest.mark.parametrize("cls", MONITORS)
@pytest.mark.parametrize("override", [True, False])
@pytest.mark.parametrize("before", ["", BEGUN])
def test_monitor_that_is_made_anew_goes_on(
    cls: Any, override: bool, before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(80, 1000))
    monkeypatch.setattr("time.time", lambda: float(next(clock)))
    path = tmp_path / "0.monitor.csv"
    path.write_text(before)
    kwargs, times = {"override_existing": override}, []
    make = MonitoredEnv(
        scripted, 0, None, {}, cls, str(tmp_path), kwargs, None, {}, run=Run("this", 50.0)
    )
    for _ in range(2):
        env: Any = make()
        assert isinstance(env, cls)
        assert env.t_start == 50
        env.reset()
        while not env.needs_reset:
            info = env.step(0)[4]
        times.append(info["episode"]["t"])
        env.close()
    lines = path.read_text().splitlines()
    assert [line.split(",")[2] for line in lines[-2:]] == [str(t) for t in times]
    assert 30 <= times[0] < times[1] < 100
    assert len(lines) == (4 if override else len(before.splitlines()) + 2)


def test_folder_gets_the_file_that_sb3_writes(tmp_path: Path) -> None:
    for cls in MONITORS:
        folder = tmp_path / cls.__name__
        folder.mkdir()
        cls(scripted(), str(folder)).close()
        assert [path.name for path in folder.iterdir()] == ["monitor.csv"]


RESTARTED = {"workers": 2, "start_method": "fork", "on_worker_lost": "restart"}


class Restarted(sb3compat.ParallelVecEnv):
    def __init__(self, env_fns: Any) -> None:
        super().__init__(env_fns, **RESTARTED)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "how",
    [
        {"vectorization_mode": "parallel", "vec_env_kwargs": RESTARTED},
        {"vec_env_cls": partial(sb3compat.ParallelVecEnv, **RESTARTED)},
        {"vec_env_cls": Restarted},
    ],
    ids=["arguments", "partial", "subclass"],
)
def test_episodes_stay_when_a_worker_is_replaced(how: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="SB3's load_results needs pandas")
    env: Any = sb3compat.make_vec_env(scripted, 3, monitor_dir=str(tmp_path), **how)
    assert env.env_is_wrapped(monitor.Monitor) == [True] * 3
    env.reset()
    returns: list[float] = []
    for step in range(40):
        if step % 13 == 12:
            os.kill(env.env_method("pid", indices=[step % 3])[0], signal.SIGKILL)
        infos = env.step(np.zeros(3, int))[3]
        returns += [info["episode"]["r"] for info in infos if "episode" in info]
    env.close()
    results = monitor.load_results(str(tmp_path))
    assert sorted(results["r"]) == sorted(returns)
    assert len(results) > 30
    # Another run begins new files.
    sb3compat.make_vec_env(scripted, 3, monitor_dir=str(tmp_path)).close()
    assert len(monitor.load_results(str(tmp_path))) == 0
