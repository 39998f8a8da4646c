"""What workers know of the program; scripts run as users run them: a file, stdin, a notebook."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from threading import Thread
from typing import Any

import gymnasium as gym
import pytest

import sb3compat
from sb3compat._parallel.program import Program, refuse_rerun
from tests.interpreter import REPOSITORY, run
from tests.parallel.test_launch import HIDE, METHODS
from tests.profiles import nightly, some

MODULE = """
    import gymnasium as gym
    import numpy as np

    class Small(gym.Env):
        observation_space = gym.spaces.Box(-99, 99, (2,), np.float32)
        action_space = gym.spaces.Discrete(2)

        def __init__(self, mark=1, render_mode=None):
            self.mark = mark

        def reset(self, *, seed=None, options=None):
            return np.array([self.mark, seed or 0], np.float32), {}

        def step(self, action):
            return np.array([self.mark, 9], np.float32), 0.5, False, False, {}

    gym.register("Imported-v0", entry_point=Small, kwargs={"mark": 2})
"""

PROGRAM = """
    import enum, multiprocessing, pathlib, sys, types
    import gymnasium as gym
    import numpy as np
    import sb3compat
    import a_module
    import another_module

    class OfScript(a_module.Small):
        pass

    def make_one(**kwargs):
        return OfScript(**kwargs)

    gym.register_envs(a_module)
    # A worker imports the module to make it, which registers it once more, without the limit.
    gym.registry["Another-v0"].max_episode_steps = 2
    gym.register("OfClass-v0", entry_point=OfScript, kwargs={"mark": 3})
    gym.register("OfFunction-v0", entry_point=make_one, kwargs={"mark": 4})
    gym.register("OfLambda-v0", entry_point=lambda **kwargs: OfScript(mark=5))
    gym.register("OfText-v0", entry_point="a_module:Small", kwargs={"mark": 6})
    gym.register("space/Limited-v2", entry_point=OfScript, max_episode_steps=2)
    gym.register("MountainCar-v0", entry_point=OfScript, kwargs={"mark": 7})
    gym.registry["Changed-v0"] = gym.spec("OfText-v0")
    gym.register("OfMain-v0", entry_point="__main__:OfScript", kwargs={"mark": 8})
    gym.register("FunctionOfMain-v0", entry_point="__main__:make_one", kwargs={"mark": 8})
    del gym.registry["CartPole-v1"]
    by_hand = types.ModuleType("by_hand")
    exec("class Made: pass", by_hand.__dict__)
    sys.modules["by_hand"] = by_hand
    gym.register("ByHand-v0", entry_point=by_hand.Made)
    LIMITED = ["Another-v0", "another_module:Another-v0", "space/Limited-v2", "space/Limited"]
    IDS = ["Another-v0", "Another-v0", "Imported-v0", "OfClass-v0", "OfFunction-v0", "OfLambda-v0",
           "OfText-v0", "OfMain-v0", "MountainCar-v0", "Changed-v0", *LIMITED[1:]]

    def made(ids, **kwargs):
        return sb3compat.ParallelVecEnv([lambda i=i: gym.make(i) for i in ids], 2, **kwargs)

    def refused(*ids):
        try:
            made(ids)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        raise AssertionError("not refused")

    nowhere = pathlib.Path("/nowhere")

    def known():
        process = multiprocessing.current_process()
        return sys.argv, sys.flags.dont_write_bytecode, sys.warnoptions, bytes(process.authkey)

    class Registering:
        seen = []

        def __init_subclass__(cls):
            Registering.seen.append(cls.__name__)

    class Thing(Registering):
        count = 0

        def name(self):
            return "first"

    class Mode(enum.Enum):
        ONE = 1

    class OwnError(BaseException):
        count = 0

        def __init__(self, row, text):
            super().__init__(f"{row}: {text}")
            self.held = (x for x in ())

    class Telling(gym.Env):
        observation_space = gym.spaces.Box(-99, 99, (2,), np.float32)
        action_space = gym.spaces.Discrete(2)
        times = 0

        def reset(self, *, seed=None, options=None):
            return np.zeros(2, np.float32), {"thing": Thing(), "mode": Mode.ONE}

        def step(self, action):
            if action:
                raise OwnError(3, "stop")
            return np.zeros(2, np.float32), 0.5, False, False, {"thing": Thing()}

        def known(self):
            return known()

        def take(self, thing):
            Telling.times += 1
            Thing.count += 10
            return type(thing) is Thing, Thing.count, Telling.times, len(Registering.seen)

    def check(**kwargs):
        sys.path[:] = [entry for entry in sys.path if entry is not nowhere]
        if kwargs.get("start_method") != "forkserver":  # whose server, of Python, takes no Path
            sys.path.append(nowhere)
        Thing.count, Thing.name = 0, lambda self: "first"
        env = sb3compat.ParallelVecEnv([Telling, Telling], workers=1, **kwargs)
        assert "backend" in kwargs or env.env_method("known") == [known()] * 2
        seen = list(Registering.seen)
        Thing.count, Thing.name, OwnError.count = 5, lambda self: "changed", 6
        env.reset()
        infos = env.step([0, 0])[3]
        things = [info["thing"] for info in (*env.reset_infos, *infos)]
        assert all(type(thing) is Thing for thing in things), things
        assert env.reset_infos[0]["mode"] is Mode.ONE
        first, second = env.env_method("take", Thing())
        assert first[0] and second[0], (first, second)
        assert (first[2], second[2]) == (1, 2), (first, second)
        assert second[1] == first[1] + 10, (first, second)
        third = env.env_method("take", Thing(), indices=1)[0]
        assert third[1] == second[1] + 10, (second, third)
        assert third[3] == first[3], (first, third)
        try:
            env.step([0, 1])
        except OwnError as error:
            assert str(error) == "3: stop"
        else:
            raise AssertionError
        assert (Thing.count, Thing().name(), OwnError.count) == (5, "changed", 6)
        assert Registering.seen == seen
        env.close()

    if __name__ == "__main__":
        marks = [float(gym.make(i).reset()[0][0]) for i in IDS]
        assert marks == [2, 2, 2, 3, 4, 5, 6, 8, 7, 6, 2, 1, 1], marks
        for kwargs in {kwargs}:
            check(**kwargs)
            env = made(IDS, **kwargs)
            first = env.reset()[:, 0].tolist()
            dones = [env.step(np.zeros(env.num_envs, int))[2].tolist() for _ in range(3)]
            env.close()
            assert first == marks, (kwargs, first)
            assert dones == [[False] * 13, [i in LIMITED for i in IDS], [False] * 13], dones
            for given in ("OfMain-v0", gym.spec("OfMain-v0"), "FunctionOfMain-v0"):
                env = sb3compat.make_vec_env(
                    given, 2, vectorization_mode="parallel", workers=1, vec_env_kwargs=kwargs
                )
                assert env.reset()[:, 0].tolist() == [8, 8], (given, kwargs)
                env.close()
        assert "VersionNotFound" in refused("CartPole-v1")
        assert "No module named 'by_hand'" in refused("ByHand-v0")
        print("the same")
"""


def as_file(folder: Path, text: str, **kwargs: Any) -> str:
    path = folder / "script.py"
    path.write_text(text)
    command = [sys.executable, "-B", "-W", "ignore::FutureWarning", str(path), "--one"]
    return ran(command, folder, imported="'spawn'" in text, **kwargs)


def with_actors(folder: Path, text: str) -> str:
    if not nightly():
        pytest.skip("takes long")
    path = os.pathsep.join([str(REPOSITORY), str(folder)])
    # It starts its own cluster, and does not join that of other tests.
    own = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ADDRESS": "local"}
    env = os.environ | own | {"PYTHONPATH": path}
    return as_file(folder, text, env=env)


def as_stdin(folder: Path, text: str) -> str:
    return ran([sys.executable, "-"], folder, input=text)


def as_notebook(folder: Path, text: str) -> str:
    nbclient: Any = pytest.importorskip("nbclient")
    nbformat: Any = pytest.importorskip("nbformat")
    cells = [nbformat.v4.new_code_cell(part) for part in re.split(r"\n\n(?=\S)", text)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources=resources
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    return "".join(str(output.get("text", "")) for output in outputs)


def ran(command: list[str], folder: Path, *, imported: bool = False, **kwargs: Any) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, **kwargs
    )
    assert done.returncode == 0, done.stderr
    # The program's own warning and the line that it comes from: workers do not repeat it, unless
    # multiprocessing imports the script there.
    assert imported or done.stderr.count("Overriding environment") <= 2
    return str(done.stdout)


WAYS: dict[str, Callable[[Path, str], str]] = {
    "file": as_file,
    "stdin": as_stdin,
    "notebook": as_notebook,
    "actors": with_actors,
}
ACTORS = pytest.param("actors", marks=pytest.mark.ray)


def ways_to_start(way: str, *methods: str | None) -> str:
    """The arguments that say where workers are, as code."""
    if way == "actors":
        return str([{"backend": "ray"}])
    return str([{"start_method": method} for method in methods])


@pytest.mark.parametrize("way", ["file", "stdin", "notebook", ACTORS])
def test_workers_know_the_ids_and_classes_of_the_program_and_change_none(
    way: str, tmp_path: Path
) -> None:
    methods = METHODS if way == "file" and nightly() else ["fork", None]
    text = PROGRAM.replace("{kwargs}", ways_to_start(way, *methods))
    (tmp_path / "a_module.py").write_text(dedent(MODULE))
    (tmp_path / "another_module.py").write_text(dedent(MODULE).replace("Imported-v0", "Another-v0"))
    assert "the same" in WAYS[way](tmp_path, HIDE + dedent(text))


def test_id_that_nobody_knows_says_what_to_do() -> None:
    with pytest.raises(gym.error.NameNotFound) as caught:
        sb3compat.ParallelVecEnv([lambda: gym.make("Nowhere-v0")])
    if sys.version_info >= (3, 11):
        assert "call gymnasium.register in the function" in caught.value.__notes__[0]


def test_spec_that_cannot_be_pickled_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    held = (x for x in ())
    monkeypatch.setitem(
        gym.registry, "Clinging-v0", gym.envs.registration.EnvSpec("Clinging-v0", lambda: held)
    )
    program = Program.this()
    assert list(program.missing) == ["Clinging-v0"]
    assert len(program.specs) == len(gym.registry) - 1
    if sys.version_info >= (3, 11):
        error = gym.error.NameNotFound("Clinging")
        program.note(error)
        assert "Clinging-v0" in error.__notes__[0]


# Scripts that start workers when they are imported.


SELFISH = """
    import os, pathlib, sys

    runs = pathlib.Path(__file__).with_name("runs")
    with runs.open("a") as file:
        file.write("run\\n")
    if len(runs.read_text().split()) > 12:
        os._exit(9)  # the brake

    {hide}
    import gymnasium as gym
    import sb3compat

    class Own(gym.Wrapper):
        def __init__(self, render_mode=None):
            super().__init__(gym.make("CartPole-v1"))

    def imports():
        import selfish
        return selfish.Own()

    if "Own-v0" not in gym.registry:
        gym.register("Own-v0", entry_point="selfish:Own")

    {make}
"""

MAKES = {
    "by_import": "sb3compat.ParallelVecEnv([imports] * 2, workers=2)",
    "by_id": 'sb3compat.make_vec_env("Own-v0", 2, vectorization_mode="parallel")',
    "nested": "sb3compat.ParallelVecEnv([lambda: sb3compat.ParallelVecEnv([imports])], workers=1)",
    "fork": 'sb3compat.ParallelVecEnv([imports] * 2, workers=2, start_method="fork")',
    "forkserver": 'sb3compat.ParallelVecEnv([imports], start_method="forkserver")',
    "spawn": 'sb3compat.ParallelVecEnv([imports], start_method="spawn")',
    "ray": 'sb3compat.ParallelVecEnv([imports], backend="ray")',
    "thread": """
    import threading
    thread = threading.Thread(target=lambda: sb3compat.ParallelVecEnv([imports] * 2, workers=2))
    thread.start()
    thread.join()
    raise SystemExit(1)
""",
}


def check_refused(folder: Path, make: str, hide: str, said: str, runs: int) -> None:
    """The script ends with an error that says this, and was not run more often than that."""
    path = folder / "selfish.py"
    path.write_text(dedent(SELFISH).replace("{make}", dedent(make)).replace("{hide}", hide))
    done = run(path, path=[folder], RAY_USAGE_STATS_ENABLED="0", RAY_ADDRESS="local")
    assert done.returncode == 1, done.stderr
    assert said in done.stderr
    assert len((folder / "runs").read_text().split()) <= runs


@pytest.mark.parametrize("name", some([*MAKES]))
def test_script_without_a_guard_is_not_run_again_by_workers_that_start_workers(
    name: str, tmp_path: Path
) -> None:
    hide = "" if name == "by_id" else HIDE
    said = "definitions, below 'if __name__ == \"__main__\":'"
    if name in ("spawn", "forkserver"):  # what its worker writes is far above
        said = f"with {name!r}, a script has to start workers below"
    check_refused(tmp_path, MAKES[name], hide, said, 4)


@pytest.mark.parametrize("context", some(["spawn", "forkserver"]))
def test_unguarded_script_is_told_so_where_gymnasium_starts_the_workers(
    context: str, tmp_path: Path
) -> None:
    make = f"""sb3compat.make_vec_env(
        "Own-v0", 2, vectorization_mode="async", vec_env_kwargs={{"start_method": "{context}"}})"""
    check_refused(tmp_path, make, "", "statements of your script that start workers below", 6)


def imported(module: str, loop: str) -> None:
    """Run a script as this module, in a function of the module `loop`."""
    code = compile("refuse_rerun()", "the_script.py", "exec")
    inner = {"refuse_rerun": refuse_rerun, "__name__": module}
    outer = {"run": lambda: exec(code, inner), "__name__": loop}
    exec("def serve():\n    run()", outer)
    outer["serve"]()  # type: ignore[operator]


def test_module_that_another_process_imports_may_start_workers() -> None:
    imported("a_script", "__mp_main__")
    imported("a_script", "multiprocessing.spawn")


def test_nothing_is_collected_while_the_stack_of_another_thread_is_read(monkeypatch: Any) -> None:
    frames, collecting = sys._current_frames, list[bool]()

    def noted() -> Any:
        collecting.append(gc.isenabled())
        return frames()

    monkeypatch.setattr(sys, "_current_frames", noted)
    thread = Thread(target=refuse_rerun)
    thread.start()
    thread.join()
    assert collecting == [False]
    assert gc.isenabled()
