"""Scripts that start workers when they are imported are refused where a worker imports them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from sb3compat._parallel.program import refuse_rerun
from tests.interpreter import run
from tests.parallel.test_launch import HIDE
from tests.profiles import some

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
