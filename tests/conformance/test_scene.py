"""Scenes: the calls of a scenario are written down, and the script of them does the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3compat.conformance import CheckError, Demand, Recorded, Scene, expect
from sb3compat.conformance.findings import EnvFailureError, NotExercisedError
from sb3compat.conformance.program.draws import Draws
from sb3compat.conformance.program.script import PRELUDE, standalone
from sb3compat.conformance.record import Given
from sb3compat.conformance.render import lines_of, told
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.values import Value, constant
from tests.conformance.tiny import TinyVecEnv

MAKE_ENV = "from tests.conformance.test_scene import {} as make_env"


class Sums(TinyVecEnv):
    """An observation is the seed with the sum of the actions, and the time; one array for all."""

    def __init__(self) -> None:
        super().__init__()
        self.sums = np.zeros(2)
        self.first = 0

    def seed(self, seed: int | None = None) -> list[int | None]:
        self.first = seed or 0
        return super().seed(seed)

    def reset(self) -> Any:
        self.sums = np.full(2, float(self.first))
        self.all = np.zeros((2, 2), np.float32)
        return super().reset()

    def observe(self) -> np.ndarray:
        self.all[:] = np.stack([self.sums, self.times], axis=1)
        return self.all

    def step_async(self, actions: np.ndarray) -> None:
        if actions is None:
            raise ValueError("Expected actions, got None.")
        self.sums = self.sums + actions
        super().step_async(actions)

    def fill(self, options: dict[str, int]) -> int:
        options["filled"] = len(options)
        return options["filled"]


class Doubled:
    """A wrapper that doubles observations."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def reset(self) -> Any:
        return 2 * self.env.reset()

    def step(self, actions: Any) -> Any:
        obs, *others = self.env.step(actions)
        return 2 * obs, *others


def scene_of(
    factory: Any, *numbers: int, before_call: Callable[[str], None] = lambda text: None
) -> Scene:
    subject = examine(factory)
    return Scene(subject, subject.instances(), Draws(numbers), lambda: None, before_call)


SCENE = partial(scene_of, Sums)


def ended(lines: tuple[str, ...], make_env: str = "Sums") -> BaseException | None:
    """How a script of these lines ends, on its own."""
    source = standalone(lines, MAKE_ENV.format(make_env), "A script.")
    try:
        exec(compile(source, "<alone>", "exec"), {})
    except Exception as error:
        return error
    return None


class AnyCalls:
    """A scenario that makes any calls, and looks at any of their results."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.envs: list[Recorded] = []
        self.seen: list[Value] = []

    def demand(self) -> Demand:
        """Of some of the values, which are as they are: that one of them is another."""
        scene = self.scene
        self.envs.append(scene.make())
        self.restart(self.envs[0])
        calls = (self.step, self.restart, self.overwrite, self.read, self.catch, self.let)
        for _ in range(scene.choose(range(12))):
            env = scene.choose(self.envs)
            scene.choose((*calls, self.twin, self.wrap, self.within))(env)
        values = [scene.choose(self.seen) for _ in range(scene.choose(range(1, 7)))]
        parts = [f"not equal({{{2 * k}}}, {{{2 * k + 1}}})" for k in range(len(values))]
        both = [each for value in values for each in (value, constant(value.value))]
        return expect(" or ".join(parts), *both, should="another value")

    def restart(self, env: Recorded) -> None:
        self.seen.append(env.restart(self.scene.seed()).obs)

    def step(self, env: Recorded) -> None:
        step = env.step(self.scene.actions())
        self.seen += [step.obs, step.obs.row(1), step.rewards, step.dones, step.infos]

    def overwrite(self, env: Recorded) -> None:
        if "obs" in env.last.names:
            env.overwrite()

    def read(self, env: Recorded) -> None:
        self.seen.append(env.read("times" if env is self.envs[0] else "num_envs"))

    def catch(self, env: Recorded) -> None:
        error = self.scene.caught(env.step, None).error
        assert isinstance(error.value, ValueError)
        self.scene.caught(env.no_such_method, 1)

    def let(self, env: Recorded) -> None:
        name = f"options_{len(self.scene.records)}"
        options = self.scene.let(name, {"a": self.scene.seed()})
        self.seen.append(env.fill(options).whole)

    def twin(self, env: Recorded) -> None:
        if all(each.record.name != "twin" for each in self.envs):
            self.envs.append(self.scene.make("twin"))
            self.restart(self.envs[-1])

    def wrap(self, env: Recorded) -> None:
        """Put a wrapper around the first instance, with a name of its own."""
        if all(each.record.name != "wrapped" for each in self.envs):
            [maker] = self.scene.imported("tests.conformance.test_scene", "Doubled")
            wrapped, error = self.scene.tried(maker, "wrapped", self.envs[0])
            assert error.value is None
            step = wrapped.step(self.scene.actions())
            self.seen += [step.obs, step.rewards]

    def within(self, env: Recorded) -> None:
        error = env.within(5, env.close).error
        assert error.value is None


@given(st.lists(st.integers(0, 12), min_size=10, max_size=60))
def test_the_script_of_any_scenario_fails_in_the_same_way(numbers: list[int]) -> None:
    scene = SCENE(*numbers)
    demand = AnyCalls(scene).demand()
    assert not demand.holds()
    lines = lines_of(scene.records, demand)
    scene.close(whole=True)
    error = ended(lines)
    assert isinstance(error, AssertionError), (lines, error)
    assert str(error) == told(scene.records, demand)[1]


def test_an_object_of_the_caller_is_passed_itself_and_shows_what_became_of_it() -> None:
    given = {"level": 1}
    scene = SCENE()
    options = scene.let("options", given)
    env = scene.make()
    assert env.fill(options).whole.value == 1
    assert (options.value.value, given) == ({"level": 1, "filled": 1}, {"level": 1})
    demand = expect("len({0}) == 1", options.value, should="as it was")
    assert scene.lines[:2] == ("options = {'level': 1}", "env = make_env()")
    assert isinstance(ended(lines_of(scene.records, demand)), AssertionError)


def test_what_is_overwritten_are_the_objects_of_the_last_call() -> None:
    scene = SCENE()
    env, first = scene.start()
    env.overwrite()
    assert first.obs.value.tolist() == [[0, 0], [0, 0]]
    assert (first.obs.live != 0).all()
    assert scene.lines[-1] == "overwrite((obs,))"


def test_a_call_that_raises_ends_the_scenario_unless_it_is_caught() -> None:
    scene = SCENE()
    env, _ = scene.start()
    assert scene.caught(env.reset).error.value is None
    assert isinstance(scene.caught(env.step, None).failure, ValueError)
    with pytest.raises(EnvFailureError, match=r"env\.step\(None\) raised ValueError: Expected"):
        env.step(None)
    assert scene.lines[-2:] == ("caught(lambda: env.step(None))", "env.step(None)")
    assert type(ended(scene.lines)) is ValueError


@pytest.mark.parametrize(("result", "kind"), [((1, 2), ValueError), (None, TypeError)])
def test_a_call_that_returns_something_else_raises_as_the_script_does(
    result: object, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sums, "step_wait", lambda self: result)
    env, _ = (scene := SCENE()).start()
    with pytest.raises(EnvFailureError) as caught:
        env.step(np.array([0, 0]))
    assert type(caught.value.error) is type(ended(scene.lines)) is kind


def test_a_wrapper_that_refuses_an_environment_says_why() -> None:
    scene = SCENE()
    [maker] = scene.imported("tests.conformance.test_scene", "Doubled")
    _, error = scene.tried(maker, "env", scene.make(), "one argument too many")
    assert isinstance(error.value, TypeError)
    lines = lines_of(scene.records, expect("{0} is None", error, should="None"))
    assert "caught(lambda: Doubled(env, 'one argument too many'))" in lines[-2]
    assert isinstance(ended(lines), AssertionError)


def test_a_call_within_some_seconds_may_hang() -> None:
    env = SCENE().make()
    assert env.within(5, env.reset).error.value is None
    env.live.reset = Event().wait
    assert env.within(1, env.reset).error.value == "hung"


def test_a_scenario_goes_to_an_end_that_is_known() -> None:
    scene = SCENE()
    step = scene.make().to_an_end(scene.ending())
    assert (step.ended, step.step) == ([0], 3)
    scene.subject = replace(scene.subject, endings=())
    with pytest.raises(NotExercisedError, match="no episode ended"):
        scene.ending()


def test_what_a_scenario_has_made_is_closed() -> None:
    closed = []

    class Closes(TinyVecEnv):
        def close(self) -> None:
            closed.append(self)

    scene = scene_of(Closes)
    closed.clear()
    first, second, third = scene.make(), scene.make("twin"), scene.make("third")
    scene.forget(second)
    scene.close(whole=False)
    assert closed == [third.live, first.live]


def test_an_instance_whose_name_another_has_taken_is_not_called() -> None:
    scene = SCENE()
    first, second = scene.make(), scene.make()
    second.reset()
    with pytest.raises(CheckError, match=r"newest instance called 'env', got an older one\. Use"):
        first.reset()


def test_a_part_that_is_not_there_is_named() -> None:
    _, reset = SCENE().start()
    with pytest.raises(NotExercisedError, match=r"obs\['x'\] raised IndexError"):
        reset.obs["x"]


# Objects that a scenario makes of an instance by an imported name


class Wrapper:
    """Passes calls on, and changes the options that it is given."""

    def __init__(self, env: Any, options: dict[str, int]) -> None:
        if not options:
            raise ValueError("no options")
        self.env = env
        options["changed"] = 1

    def reset(self) -> Any:
        return self.env.reset()

    def close(self) -> None:
        self.env.close()


MAKER = Given("Wrapper", Wrapper)


def test_a_class_that_was_not_imported_is_refused() -> None:
    scene = SCENE()
    unfit: Any = Wrapper
    with pytest.raises(TypeError, match=r"got <class .*\[maker\] = scene.imported\('my_module', "):
        scene.made_by(unfit, "env", scene.make())


def _wrapped(scene: Scene, env: Recorded) -> Recorded:
    return scene.made_by(MAKER, "wrapped", env, options={"size": 2})


@pytest.mark.parametrize(
    ("use", "handed_on"),
    [
        (lambda scene, env: env.reset(), True),
        (lambda scene, env: scene.caught(env.reset), True),
        (lambda scene, env: scene.caught(env.get_attr, "no_such_attribute"), False),
        (lambda scene, env: env.close(), False),
        (lambda scene, env: _wrapped(scene, env).reset(), True),
        (lambda scene, env: _wrapped(scene, env).close(), False),
        (lambda scene, env: scene.delete(_wrapped(scene, env), env), False),
        (lambda scene, env: scene.made_by("open_below", "found", env), False),
    ],
    ids=["reset", "no error", "error", "close", "wrap", "close it", "delete it", "look below"],
)
def test_an_instance_is_handed_on_where_a_reset_undoes_what_was_done(
    use: Callable[[Scene, Recorded], object], handed_on: bool
) -> None:
    subject = replace(examine(TinyVecEnv), shared=True)
    instances = subject.instances()
    scene = Scene(subject, instances, Draws(), lambda: None, lambda text: None)
    use(scene, scene.make())
    scene.close(whole=True)
    _, used = instances.take(0)
    assert used is handed_on


def test_what_a_helper_has_changed_is_undone_before_others_use_the_instance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undone: list[Any] = []
    subject = replace(examine(TinyVecEnv), shared=True)
    monkeypatch.setitem(PRELUDE, "tell_options", lambda env: partial(undone.append, env))
    instances = subject.instances()
    scene = Scene(subject, instances, Draws(), lambda: None, lambda text: None)
    env = scene.make()
    scene.made_by("tell_options", "_", env)
    scene.close(whole=True)
    assert undone == [env.live]
    assert instances.take(0) == (env.live, True)


def test_all_that_a_program_needs_is_in_the_journal() -> None:
    written: list[str] = []
    scene = SCENE(before_call=written.append)
    [copied] = scene.imported("copy", "copy")
    options = scene.let("options", {"size": 2})
    scene.made_by(copied, "model", scene.make())
    scene.made_by(copied, "others", options)
    assert written == [
        "from copy import copy",
        "options = {'size': 2}",
        "env = make_env()",
        "model = copy(env)",
        "others = copy(options)",
    ]
