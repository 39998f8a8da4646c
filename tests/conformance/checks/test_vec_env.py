from __future__ import annotations

import ast
import tempfile
import textwrap
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gymnasium.wrappers import TimeLimit

from conformance.specimens.points import OPTIONS, Config, Point, Points
from conformance.specimens.registry import SPECIMENS
from sb3compat.conformance.run.checking import run_check
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.settings import Settings
from tests.conformance.found import find_check
from tests.conformance.kit import TRAINING, broken, judge
from tests.interpreter import run as python

pytest.importorskip("stable_baselines3")

QUICK = 0.003

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*is already wrapped with a .Monitor.:UserWarning"),
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),
]


@pytest.mark.parametrize(("step_seconds", "transitions"), [(0.0, 256), (1.0, 64)])
def test_a_training_is_short_where_steps_are_slow_and_leaves_nothing(
    step_seconds: float, transitions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0

    class Counts(Points):
        def step_wait(self) -> Any:
            nonlocal taken
            taken += self.num_envs
            return super().step_wait()

    subject = replace(examine(partial(Counts, Config())), step_seconds=step_seconds)
    taken = 0
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = run_check(find_check("vec_env", "trains_ppo"), subject, Settings(programs=1))
    assert not list(tmp_path.glob("SB3-*"))
    assert result.status == "passed"
    assert transitions <= taken < transitions + 64


# Mistakes of environments with one row, and of calls of a sub-environment


class NoAxisForOne(Points):
    def reset(self) -> Any:
        return super().reset()[0]


class NumberForOne(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards.squeeze(), dones, infos


class FlagForOne(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones[0], infos


class CallsAll(Points):
    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        results = super().env_method(method_name, *args, **kwargs)
        return [results[i] for i in self.named(indices)]


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (NoAxisForOne, "reset_obs_in_space", "obs.shape=(3,), but should be (1, 3): 1 rows, each"),
        (NumberForOne, "rewards_shape", "but should be an array of numbers of shape (1,) [step 1]"),
        (FlagForOne, "dones_shape", "but should be of shape (1,), each true or false [step 1]"),
        (CallsAll, "env_method_args", "but should be"),
    ],
)
def test_one_mistake_is_one_failure(kind: Any, name: str, message: str) -> None:
    factory = partial(kind, Config(rows=3 if kind is CallsAll else 1))
    found = broken(factory, QUICK, skip=TRAINING, thorough={name})
    assert found.keys() == {name}, found
    assert message in found[name]


def test_a_wrapper_of_a_single_environment_may_be_around_all_rows_instead() -> None:
    limited = [partial(TimeLimit, Point(Config(), row), 1000) for row in range(3)]
    name = "env_is_wrapped_per_row"
    subject = examine(partial(Points, Config()), seconds=None, reference=limited)
    assert judge(subject, only=[name])[name].status == "passed"


class OwnMethods(Points):
    """Has methods of rows, apart from what `set_attr` sets."""

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        method = getattr(self, f"row_{method_name}")
        return [method(i, *args, **kwargs) for i in self.named(indices)]


def test_methods_need_not_be_attributes() -> None:
    results = judge(examine(partial(OwnMethods, Config())), seconds=QUICK, only={"env_method_args"})
    result = results["env_method_args"]
    assert result.status == "not_exercised"
    assert result.message == "env_method calls only methods of its own"


class KeepsATemplate(Points):
    """Has a single environment that it asks for its spaces."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.env = self.make_row(0)


def test_a_single_environment_need_not_be_closed() -> None:
    name = "close_closes_what_it_wraps"
    results = judge(examine(partial(KeepsATemplate, Config())), seconds=QUICK, only={name})
    assert results[name].message == "it wraps nothing that has to be closed"


# Wrappers of SB3 that work, on environments that make nothing of what these write
class _Deaf(dict[str, Any]):
    def __setitem__(self, key: str, value: Any) -> None:
        pass

    def copy(self) -> _Deaf:
        return self


class InfosIgnoreWriting(Points):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones, [_Deaf(info) for info in infos]


@pytest.mark.parametrize(
    ("name", "observation", "message"),
    [
        ("monitor", "box", "infos[0]['episode']=<KeyError: 'episode'>, but should be {'r': "),
        ("normalize", "image", "but should be normalised, and clipped at 10 [step 3, row 0]"),
        ("frame_stack", "image", "but should be of shape (8, 8, 6) [step 3, row 0]"),
        ("transpose_image", "image", "but should be of shape (3, 8, 8) [step 3, row 0]"),
        ("extract_dict_obs", "dict", "but should be the entry alone [step 3, row 0]"),
    ],
)
def test_what_a_wrapper_writes_has_to_arrive(name: str, observation: str, message: str) -> None:
    factory = partial(InfosIgnoreWriting, Config(observation=observation))
    check = f"works_under_vec_{name}"
    result = judge(examine(factory), only={check}, make_env="")[check]
    assert message in result.message
    with pytest.raises(AssertionError) as raised:
        exec(result.reproduction, {"make_env": factory})
    assert message in str(raised.value)


# Reproductions


def _reproduction(name: str, check_id: str) -> str:
    subject = examine(SPECIMENS["mutant", f"vec_env-{name}"].factory, options=OPTIONS)
    results = judge(subject, seconds=0.2, only={check_id}, make_env="make_env = MyVecEnv")
    return results[check_id].reproduction


def test_a_reproduction_reads_well() -> None:
    text = _reproduction("TerminalObservationIsABatch", "terminal_observation_in_space")
    _, _, program = text.partition("make_env = MyVecEnv")
    statements = [ast.unparse(node) for node in ast.parse(program).body]
    assert [line.splitlines()[0] for line in statements] == [
        "env = make_env()",
        "env.seed(0)",
        "obs = env.reset()",
        "for _ in range(3):",
        "assert env.observation_space.contains(infos[0]['terminal_observation']), "
        + statements[-1].partition("]), ")[2],
    ]


def test_a_reproduction_about_many_actions_has_them_in_its_log() -> None:
    mutant = SPECIMENS["mutant", "vec_env-RewardsOnTheWayToTheNextStart"].factory
    text = _reproduction("RewardsOnTheWayToTheNextStart", "last_reward_like_others")
    with pytest.raises(AssertionError, match="should be that of the step"):
        exec(text.replace("make_env = MyVecEnv", ""), {"make_env": mutant})


# Without SB3

WITHOUT_SB3 = """
    import sys
    sys.modules["stable_baselines3"] = None
    from conformance.specimens.points import Points, reference, OPTIONS
    from sb3compat.conformance.subject.examine import examine
    from tests.conformance.kit import bad, judge, sampled

    subject = examine(Points, reference=reference(), options=OPTIONS)
    results = judge(subject, seconds=0.003)
    assert not bad(results), bad(results)
    skipped = {k for k, r in results.items() if r.status == "skipped"}
    assert all("works_under" in k or "trains" in k or k == "subclasses_vec_env" for k in skipped)
    assert sum(r.status == "passed" for r in results.values()) > 50
"""


def test_without_sb3_a_duck_typed_vec_env_is_checked() -> None:
    done = python("-c", textwrap.dedent(WITHOUT_SB3))
    assert done.returncode == 0, done.stderr
