from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from sb3compat.conformance.findings import plain
from sb3compat.conformance.program.script import Script
from sb3compat.conformance.run.timeline import WATCH, Timeline, watched
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.subject import Subject
from tests.conformance.tiny import TinyVecEnv


def played(subject: Subject, lines: list[str], row: int | None = None) -> Timeline:
    script = Script(subject.instances())
    timeline = Timeline(subject, row)
    for line in lines:
        script.run(line)
        timeline.note(line, script)
    script.close()
    return timeline


def test_infos_of_another_kind_are_shown() -> None:
    class ArrayInfos(TinyVecEnv):
        def step_wait(self) -> Any:
            obs, rewards, dones, _ = super().step_wait()
            return obs, rewards, dones, np.ones((self.num_envs, 5))

    subject = examine(ArrayInfos, seconds=None)
    lines = ["env = make_env()", "obs = env.reset()", "actions = np.zeros(3, int)"]
    lines.append("obs, rewards, dones, infos = env.step(actions)")
    moments = played(subject, lines).moments
    assert moments[-1].note == "[1, 1, 1, 1, 1]"


def test_infos_of_a_row() -> None:
    subject = examine(
        lambda: gym.make_vec(
            "CartPole-v1",
            num_envs=2,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP},
            max_episode_steps=1,
        ),
        seconds=None,
    )
    (obs, infos), step = subject.factory().reset(seed=0), "env.step(np.array([0, 1]))"
    assert infos == {}
    reset, first, second = (
        played(
            subject,
            ["env = make_env()", "obs, infos = env.reset(seed=0)", f"{names} = {step}"],
        ).moments[k]
        for names, k in (
            ("obs, rewards, terminations, truncations, infos", 0),
            ("obs, rewards, terminations, truncations, infos", 3),
            ("result", 3),
        )
    )
    assert (reset.event, reset.observation) == ("reset", plain(obs[0]))
    # The same, whether the result has one name or five.
    assert first == second
    assert (first.row, first.flags, first.ended) == (1, "termination=False, truncation=True", True)
    assert first.note.startswith("{final_obs: [")
    assert "final_info" in first.note


def test_actions_are_copied_before_the_environment_gets_them() -> None:
    subject = examine(lambda: TinyVecEnv(2), seconds=None)
    script = Script(subject.instances())
    timeline = Timeline(subject, None)
    script.namespace[WATCH] = timeline.watch
    for line in (
        "env = make_env()",
        "obs = env.reset()",
        "env.action_space.seed(0)",
        # Drawn anew each time, changed afterwards, and under another name.
        "obs, rewards, dones, infos = env.step([env.action_space.sample() for _ in range(2)])",
        "actions = np.array([1, 0])",
        "obs, rewards, dones, infos = env.step(actions)",
        "actions[:] = 9",
        "env.step_async({'push': np.array([[2.5], [3]])})",
        "obs, rewards, dones, infos = env.step_wait()",
    ):
        script.run(watched(line))
        timeline.note(line, script)
    space = subject.factory().action_space
    space.seed(0)
    drawn = [str(space.sample()) for _ in range(2)]
    found = [moment.action for moment in timeline.moments]
    assert found == ["", "", *drawn, "1", "0", "{push: [2.5]}", "{push: [3]}"]
    assert script.steps == 3


def test_the_failing_row_is_shown_among_many() -> None:
    subject = examine(lambda: TinyVecEnv(50), seconds=None)
    lines = ["env = make_env()", "obs = env.reset()", "env.step_async(np.zeros(50, int))"]
    lines += ["obs, rewards, dones, infos = env.step_wait()"] * 9
    moments = played(subject, lines, row=41).moments
    assert {moment.row for moment in moments} == {0, 1, 2, 3, 4, 5, 41}
    assert [moment.step for moment in moments if moment.row == 41] == [5, 6, 7, 8, 9]
