"""`sb3compat tune`; `sb3compat.cli` has its arguments."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from gymnasium.vector import VectorEnv

from sb3compat._parallel.cores import usable_cores
from sb3compat._tune.turns import Rate, rates
from sb3compat._tune.ways import EnvId, Way, ways
from sb3compat._upstream.sb3 import VecEnv
from sb3compat.errors import cannot_be_made

# A simpler way is recommended if it reaches this share of the speed of the fastest one.
NEARLY = 0.95


def command(
    env_id: EnvId,
    shown: str,
    imports: Sequence[str],
    n_envs: int,
    seconds: float,
    *,
    as_json: bool,
) -> int:
    """Time each way of making the environment, and print which one to use.

    Args:
        env_id: The id, or the function that makes a single environment.
        shown: The source code that names it.
        imports: The lines that import what `shown` names.
        n_envs: The number of environments.
        seconds: How long to step them, all together.
        as_json: Whether to print JSON in place of a table.

    Returns:
        0, or 2 if it can be made in no way, or raises an exception in a step.
    """
    if callable(env_id) and (made_instead := _other_than_single(env_id)):
        print(
            f"sb3compat: Expected {shown} to make a single environment, got a {made_instead}. "
            "Name a function that makes one gymnasium.Env; tune makes n_envs of them.",
            file=sys.stderr,
        )
        return 2
    candidates = ways(env_id, shown, n_envs, imports)
    made: dict[str, VecEnv] = {}
    reasons: dict[str, str] = {}
    try:
        for way in candidates:
            _make(way, env_id, made, reasons)
        found = rates(made, seconds) if made else {}
    except Exception:  # whatever the user's environment raises
        traceback.print_exc()
        print(f"sb3compat: {shown} cannot be timed, see above.", file=sys.stderr)
        return 2
    finally:
        for env in made.values():
            env.close()
    if not found:
        for reason in dict.fromkeys(reasons.values()):
            names = [name for name, other in reasons.items() if other == reason]
            what = shown if len(names) == len(reasons) else "; ".join(names)
            print(f"sb3compat: {what} cannot be made: {reason}", file=sys.stderr)
        return 2
    best = advised(candidates, found)
    if as_json:
        print(_json(candidates, found, reasons, best))
    else:
        print(table(candidates, found, reasons, best, n_envs))
    return 0


def _other_than_single(make: Callable[[], Any]) -> str:
    """The class that a function makes where that is a vector environment, or nothing."""
    try:
        env = make()
        env.close()
    except Exception:  # each way says it again
        return ""
    return type(env).__name__ if isinstance(env, VecEnv | VectorEnv) else ""


def _make(way: Way, env_id: EnvId, made: dict[str, VecEnv], reasons: dict[str, str]) -> None:
    """Make an environment in this way and reset it, or say why that cannot be done."""
    env = None
    try:
        env = way.make()
        env.reset()
    except Exception as error:  # whatever the user's environment raises
        reasons[way.name] = cannot_be_made(env_id, error)
        if env is not None:
            env.close()
    else:
        made[way.name] = env


def advised(candidates: Sequence[Way], found: dict[str, Rate]) -> Way:
    """The simplest way that is nearly as fast as the fastest one."""
    fastest = max(rate.steps for rate in found.values())
    return next(
        way for way in candidates if way.name in found and found[way.name].steps >= NEARLY * fastest
    )


def table(
    candidates: Sequence[Way],
    found: dict[str, Rate],
    reasons: dict[str, str],
    best: Way,
    n_envs: int,
) -> str:
    """What was measured, and what to use."""
    first = next(way.name for way in candidates if way.name in found)
    width = max(len(way.name) for way in candidates)
    lines = [
        f"{n_envs} environments, {usable_cores()} usable cores. Measured alternately, under the "
        "present load of this machine.",
        "",
        f"{'':{width}}  steps per second   slowest to fastest turn   times {first}",
    ]
    for way in candidates:
        if way.name in found:
            rate = found[way.name]
            turns = f"{rate.low:,.0f} to {rate.high:,.0f}"
            times = rate.steps / found[first].steps
            lines.append(f"{way.name:{width}}  {rate.steps:16,.0f}   {turns:>23}   {times:.2f}")
        else:
            lines.append(f"{way.name:{width}}  cannot be made: {reasons[way.name]}")
    lines += ["", _cost(found, first, n_envs)]
    if best.name == "native":
        lines.append("A native environment draws other random numbers than single environments.")
    # Not indented, so that it can be pasted.
    lines += ["", "Use:", "", *best.imports, "", f"env = {best.line}"]
    return "\n".join(lines)


def _cost(found: dict[str, Rate], first: str, n_envs: int) -> str:
    """The cost of a step of one environment, and the cost from which on workers are faster."""
    cost = 1e6 / found[first].steps
    text = f"One step of one environment takes {_time(cost)} in this process."
    crossover = pays_from(found, cost, n_envs)
    if crossover is not None:
        text += f" With n_envs={n_envs}, workers are faster from about {_time(crossover)} on."
    return text


def _time(microseconds: float) -> str:
    return f"{microseconds:.1f} us" if microseconds < 1000 else f"{microseconds / 1000:.1f} ms"


def pays_from(found: dict[str, Rate], cost: float, n_envs: int) -> float | None:
    """The cost of a step in microseconds from which on the most workers are faster than none.

    A step of n rows takes `n * cost` without workers, and `n * cost / workers + exchange` with
    them. None where that was not measured, or the exchange is lost in the noise.
    """
    numbers = {name: name.removeprefix("parallel, workers=") for name in found}
    measured = {int(number): found[name] for name, number in numbers.items() if number.isdigit()}
    workers = max(measured, default=1)
    if workers < 2:
        return None
    exchange = n_envs * (1e6 / measured[workers].steps - cost / workers)
    return exchange / n_envs / (1 - 1 / workers) if exchange > 0 else None


def _json(
    candidates: Sequence[Way], found: dict[str, Rate], reasons: dict[str, str], best: Way
) -> str:
    """The same for programs."""
    entries: list[dict[str, Any]] = []
    for way in candidates:
        entry = _entry(way)
        if way.name in found:
            rate = found[way.name]
            entry |= {"steps_per_second": rate.steps, "slowest": rate.low, "fastest": rate.high}
        else:
            entry["cannot_be_made"] = reasons[way.name]
        entries.append(entry)
    told = {"ways": entries, "use": _entry(best), "cores": usable_cores()}
    return json.dumps(told, indent=2)


def _entry(way: Way) -> dict[str, Any]:
    return {"name": way.name, "imports": way.imports, "line": way.line}
