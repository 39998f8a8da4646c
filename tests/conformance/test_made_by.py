"""Objects that a scenario makes of an instance by an imported name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sb3compat.conformance.program.draws import Draws
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.record import Given
from sb3compat.conformance.scene import Scene
from sb3compat.conformance.subject.examine import examine
from tests.conformance.tiny import TinyVecEnv

SUBJECT = replace(examine(TinyVecEnv), shared=True)


class Wrapper:
    """Passes calls on, and changes the options that it is given."""

    def __init__(self, env: Any, options: dict[str, int]) -> None:
        if not options:
            raise ValueError("no options")
        self.env = env
        options["changed"] = 1

    def reset(self) -> Any:
        return self.env.reset()


MAKER = Given("Wrapper", Wrapper)


def new_scene(
    instances: Instances | None = None, before_call: Callable[[str], None] = lambda text: None
) -> Scene:
    instances = instances or SUBJECT.instances()
    return Scene(SUBJECT, instances, Draws(), lambda: None, before_call)


def test_an_object_is_a_statement_and_its_calls_have_its_name() -> None:
    scene = new_scene()
    env = scene.make()
    wrapped, error = scene.tried(MAKER, "env", env, options={"size": 2})
    wrapped.reset()
    assert error.value is None
    assert wrapped.live.env is env.live
    made = "env = Wrapper(env, options={'size': 2})"
    assert scene.lines == ("env = make_env()", made, "obs = env.reset()")


def test_an_exception_is_a_value_that_a_check_can_ask_for() -> None:
    scene = new_scene()
    _, error = scene.tried(MAKER, "wrapped", scene.make(), {})
    assert isinstance(error.value, ValueError)
    assert scene.lines[-1] == f"{error.name} = caught(lambda: Wrapper(env, {{}}))"


@pytest.mark.parametrize("lent", [True, False])
def test_an_instance_that_was_lent_is_not_handed_on(lent: bool) -> None:
    instances = SUBJECT.instances()
    scene = new_scene(instances)
    env = scene.make()
    if lent:
        scene.made_by(MAKER, "wrapped", env, options={"size": 2})
    env.reset()
    scene.close(whole=True)
    _, used = instances.take(0)
    assert used is not lent


def test_all_that_a_program_needs_is_in_the_journal() -> None:
    written: list[str] = []
    scene = new_scene(before_call=written.append)
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
