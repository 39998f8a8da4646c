"""Optional capabilities of environments, found out by trying."""

from __future__ import annotations

import operator
import pickle
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from sb3compat.conformance.findings import Family
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.subject.interface import layers_of, mode_of, offers

# The names that a user may declare.
CAPABILITIES: dict[str, str] = {
    "seeding": "takes seeds",
    "seed_method": "has a method `seed`, working or not; missing if `seeding` is declared missing",
    "options": "takes options in a reset: those that the user gives, or a probe option if each row "
    "is an environment in this process whose reset infos are returned",
    "render": "renders rgb_array frames",
    "sub_envs": "has sub-environments whose attributes can be reached",
    "masked_reset": "resets the rows under options['reset_mask']",
    "row_seeds": "takes a list of seeds, one for each row",
    "own_generators": "draws the random numbers of each row for this row alone, from its seed",
    "reference": "the single environments were given, too",
    "sb3": "Stable-Baselines3 is installed",
    "sb3_vec_env": "is an instance of Stable-Baselines3's VecEnv",
    "alike_rows": "has rows that differ only in their seeds: row i under seed s does as "
    "row i - 1 under s + 1; declare it as missing if they differ by design",
    "separate_rows": "rows do not influence one another; declare it as missing if they are the "
    "agents of one world",
    "copies": "returns observations that later calls leave as they are; not so with `copy=False`",
    "repeatable": "a seeded reset forgets earlier episodes; running statistics do not",
    "two_at_once": "can be made while another one is open",
    "image_obs": "observations are images, channels last",
    "dict_obs": "observations are dicts",
}

# The capabilities that are found out by trying, unless the user has declared them.
PROBED = (
    "seeding", "seed_method", "sub_envs", "masked_reset", "row_seeds", "alike_rows",
    "own_generators", "options",
)  # fmt: skip

_MOST_STEPS, _FEW_STEPS = 20, 8
# So many tries of a masked reset have to tell something, of so many.
_ENOUGH, _TRIES = 3, 12
# What an option may mean, whose name is known.
_GUESSES = (1, 0, 0.5, 2)


def capabilities(env: Any, family: Family, declared: Mapping[str, bool]) -> dict[str, bool]:
    """The capabilities by name; a declaration wins over what was found."""
    found = _found(env, family)
    if not declared.get("seeding", True):
        found["seed_method"] = False
    found = {**found, **declared}
    # This probe comes last, as it changes the rows.
    return found if "options" in found else {**found, "options": _tells_options(env, family)}


def assumed(env: Any, family: Family) -> dict[str, bool]:
    """The capabilities of an environment that was not tried out, as it may hang in any call."""
    disabled = family == "vector_env" and mode_of(env) == "Disabled"
    seeds = family == "vector_env" or offers(env, "seed")
    found = {"sb3": find_spec("stable_baselines3") is not None, "masked_reset": disabled}
    found |= dict.fromkeys(("seeding", "seed_method"), seeds)
    found |= dict.fromkeys(("two_at_once", "separate_rows", "repeatable", "copies"), True)
    found |= dict.fromkeys(("row_seeds", "sub_envs", "alike_rows", "own_generators"), False)
    found["render"] = getattr(env, "render_mode", None) == "rgb_array"
    return found | (_found_vec_env(env) if family == "vec_env" else {})


def _takes_seed(env: Any) -> bool:
    """Whether `seed` works. If not, one check fails, and the others do without seeds.

    An environment that cannot be seeded may say so by `None` for each row.
    """
    try:
        seeds = env.seed(0)
        if isinstance(seeds, list | tuple) and seeds and not any(s is not None for s in seeds):
            starts = [deepcopy(_reset(env, "vec_env", 0)) for _ in range(2)]
            return bool(PRELUDE["equal"](*starts))
    except Exception:
        return False
    return offers(env, "seed")


def _found(env: Any, family: Family) -> dict[str, bool]:
    normalizes = _normalizes(env)
    kept = [layer for layer in layers_of(env) if isinstance(layer, SyncVectorEnv | AsyncVectorEnv)]
    found = assumed(env, family) | {
        "separate_rows": not normalizes,
        "repeatable": not normalizes,
        "copies": all(layer.copy for layer in kept),
    }
    if family == "vec_env":
        found["seeding"] = _takes_seed(env)
    else:
        found["masked_reset"] = found["masked_reset"] or masked_reset(env)
    found["sub_envs"] = _reaches_rows(env, family)
    found["alike_rows"] = found["seeding"] and _alike_rows(env, family)
    found["row_seeds"] = family == "vector_env" and row_seeds(env)
    # Rows that take seeds one by one, or are alike but for their seeds, have each its own.
    found["own_generators"] = (
        found["row_seeds"]
        or found["alike_rows"]
        or (found["seeding"] and _own_generators(env, family))
    )
    return found


def _own_generators(env: Any, family: Family) -> bool:
    """Whether the rows show a random generator each, as environments do, which seeds change.

    One that they leave as it is says nothing: each `gym.Env` has one, also the view of a row of a
    simulator that draws from another one for all rows.
    """
    try:
        states = []
        for seed in (11, 12):
            _reset(env, family, seed)
            generators = list(env.get_attr("np_random"))
            states.append(list(map(pickle.dumps, generators)))
        seeded = not any(map(operator.eq, *states))
        return seeded and len({id(each) for each in generators}) == int(env.num_envs)
    except Exception:
        return False


def _alike_rows(env: Any, family: Family) -> bool:
    """Whether row i under seed s does as row i - 1 under seed s + 1, for the same actions.

    Their first observations show it, if these are random. If not, some steps are compared: rows
    that all behave the same prove nothing, unless other seeds change nothing, either, and what is
    drawn later is drawn from a generator of each row.
    """
    equal = PRELUDE["equal"]
    try:
        kept = _kept_in_rows(env)
        for steps in (0, _FEW_STEPS):
            runs = [_begin(env, family, seed, steps) for seed in (11, 12, 31, 32)]
            # They are as long as the shortest of them.
            pairs = [pair for k in (0, 2) for pair in zip(runs[k], runs[k + 1], strict=False)]
            if env.num_envs < 2 or not all(equal(a[1:], b[:-1]) for a, b in pairs):
                return False
            if any(not equal(a[1:], a[:-1]) for a, _ in pairs):
                break
        else:
            if not (all(map(equal, runs[0], runs[2])) and _own_generators(env, family)):
                return False
        return not _differ_by_design(kept, _kept_in_rows(env))
    except Exception:
        return False


def _kept_in_rows(env: Any) -> list[dict[str, Any]]:
    """The numbers and spaces that the single environment of each row keeps, if these show."""
    kinds = (*_NUMBERS, spaces.Space)
    return [
        {
            name: deepcopy(value)
            for name, value in vars(row.unwrapped).items()
            if isinstance(value, kinds)
        }
        for row in PRELUDE["singles_in"](env)
    ]


def _differ_by_design(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> bool:
    """Whether what resets and steps leave as it is differs by row, but for a number of the row."""
    equal = PRELUDE["equal"]
    for name in set[str]().union(*now):
        was, kept = ([row.get(name) for row in rows] for rows in (before, now))
        numbered = all(type(value) is int for value in kept) and kept in (
            [*range(len(kept))],
            [*range(1, len(kept) + 1)],
        )
        if equal(was, kept) and not (numbered or equal(kept[1:], kept[:-1])):
            return True
    return False


def _reset(env: Any, family: Family, seed: int) -> Any:
    """The observations of a reset under a seed."""
    if family == "vec_env":
        env.seed(seed)
        return env.reset()
    return env.reset(seed=seed)[0]


def _begin(env: Any, family: Family, seed: int, steps: int) -> list[list[Any]]:
    """The rows after a reset, and after some steps with one action for all, until a row ends."""
    rows_of, over = PRELUDE["rows_of"], PRELUDE["ended"]
    space = env.action_space if family == "vec_env" else env.single_action_space
    space.seed(0)
    found = [rows_of(env, _reset(env, family, seed))]
    for _ in range(steps):
        actions: Any = [space.sample()] * env.num_envs
        if family == "vector_env":
            actions = PRELUDE["stacked"](space, actions)
        elif not isinstance(space, spaces.Dict | spaces.Tuple):
            actions = np.stack(actions)
        obs, _, *flags, _ = env.step(actions)
        if over(flags[0], flags[-1]).any():
            break
        found.append(rows_of(env, obs))
    return found


def _reaches_rows(env: Any, family: Family) -> bool:
    """Whether attributes of single environments can be set and read."""
    try:
        env.set_attr(_PROBE, 0)
        values = env.get_attr(_PROBE)
        if family == "vec_env":
            # An environment that answers for all rows at once refuses this.
            env.set_attr(_PROBE, 0, indices=[0])
        return bool(len(values) == env.num_envs)
    except Exception:
        return False


_PROBE = "conformance_probe"


def _tells_options(env: Any, family: Family) -> bool:
    """Whether it takes options, and infos have what the reset of each row returned."""
    undo = None
    try:
        undo = PRELUDE["tell_options"](env)
        if family == "vector_env":
            _, infos = env.reset(options={"probe": 1})
            return bool(len(infos["probe"]) == env.num_envs)
        env.set_options({"probe": 1})
        env.reset()
        return all("probe" in info for info in env.unwrapped.reset_infos)
    except Exception:
        return False
    finally:
        if undo is not None:
            undo()


def asked_options(env: Any, family: Family) -> tuple[tuple[str, ...], bool]:
    """The names of options that a reset looks for, as far as it shows; whether it goes without."""
    options = PRELUDE["noting_options"]()
    unnamed = False
    with suppress(Exception):
        if family == "vec_env":
            env.set_options(options)
            env.reset()
        else:
            env.reset(options=options)
        unnamed = bool(options.names)
    names = (name for name in options.names if isinstance(name, str) and name != "reset_mask")
    return tuple(dict.fromkeys(names)), unnamed


def guessed_options(env: Any, names: Iterable[str], *, masked: bool) -> dict[str, Any] | None:
    """An option of one of these names that resets of a `VectorEnv` understand, None if unknown.

    Args:
        env: The environment.
        names: The names that its reset looks for.
        masked: Whether it resets the rows under a mask; such resets have to understand it, too.
    """
    for options in ({name: value} for name in names for value in _GUESSES):
        with suppress(Exception):
            if _understands(env, options):
                if masked:
                    mask = np.arange(env.num_envs) == 0
                    env.reset(seed=0, options={**options, "reset_mask": mask})
                return options
    return None


def _understands(env: Any, options: Mapping[str, Any]) -> bool:
    """Whether an option changes how episodes begin for one reset, and these go on as usual."""
    equal, stacked = PRELUDE["equal"], PRELUDE["stacked"]
    plain, again, later, one = (
        deepcopy(env.reset(seed=0, options=dict(given))[0]) for given in ({}, options, {}, options)
    )
    seen, single = [one], env.single_action_space
    for _ in range(_FEW_STEPS):
        actions = stacked(single, [single.sample() for _ in range(env.num_envs)])
        obs, _, *flags, _ = env.step(actions)
        seen.append(obs)
        if np.any(flags):  # its mode says what comes next
            break
    differs = equal(one, again) and not equal(plain, one) and equal(plain, later)
    return differs and all(obs in env.observation_space for obs in seen)


# The names of flags of normalizers: they still learn, or no longer.
_LEARNS = re.compile("_?(train|training|learn|learning|update(_running)?_(mean|stats|statistics))")
_FROZEN = re.compile("_?(frozen|freeze)")


def _normalizes(env: Any) -> bool:
    """Whether its results depend on everything that any row has seen."""
    return any(_has_running_statistics(layer) and not _is_frozen(layer) for layer in layers_of(env))


def _is_frozen(layer: Any) -> bool:
    return any(
        (value is False and _LEARNS.fullmatch(name)) or (value is True and _FROZEN.fullmatch(name))
        for name, value in getattr(layer, "__dict__", {}).items()
    )


def _has_running_statistics(layer: Any) -> bool:
    """Whether it has a mean, a variance and a count, or an object that has, as normalizers do."""
    parts = [layer, *getattr(layer, "__dict__", {}).values()]
    return any(
        all(any(map(word.search, numbers)) for word in _STATISTICS)
        for part in parts
        # Of arrays and tables these are methods.
        for numbers in [
            [k for k, v in getattr(part, "__dict__", {}).items() if isinstance(v, _NUMBERS)]
        ]
    )


# The words in the names of a mean, a variance or sum of squares, and a count.
_STATISTICS = [
    re.compile(f"(^|_)({words})(_|$)", re.I) for words in ("mean", "var|variance|std|m2", "count")
]
_NUMBERS = (int, float, np.number, np.ndarray)


def _found_vec_env(env: Any) -> dict[str, bool]:
    module = sys.modules.get("stable_baselines3.common.vec_env.base_vec_env")
    space = env.observation_space
    return {
        "sb3_vec_env": module is not None and isinstance(env, module.VecEnv),
        "dict_obs": isinstance(space, spaces.Dict),
        "image_obs": isinstance(space, spaces.Box)
        and space.dtype == np.uint8
        and len(space.shape) == 3
        and space.shape[2] in (1, 3, 4)
        and bool((space.low == 0).all() and (space.high == 255).all()),
    }


def masked_reset(env: Any) -> bool:
    """Whether it respects `options["reset_mask"]`.

    Other environments reset every row, or raise. With a single row there is no difference.
    """
    try:
        if isinstance(env.unwrapped, SyncVectorEnv | AsyncVectorEnv):
            env.reset(seed=0)
            env.reset(options={"reset_mask": np.arange(env.num_envs) == 0})
            return True
        tried = (_resets_the_first_row_alone(env, seed) for seed in range(_TRIES))
        told = list(islice((each for each in tried if each is not None), _ENOUGH))
        return env.num_envs > 1 and len(told) == _ENOUGH and all(told)
    except Exception:
        return False


def _resets_the_first_row_alone(env: Any, seed: int) -> bool | None:
    """Whether a masked reset moves the first row alone; None if an episode ended before it.

    False unless all rows left their start.
    """
    first = deepcopy(env.reset(seed=seed)[0])
    single = env.single_action_space
    single.seed(seed)
    for _ in range(_MOST_STEPS):
        actions = PRELUDE["stacked"](single, [single.sample() for _ in range(env.num_envs)])
        before, _, terminations, truncations, _ = env.step(actions)
        if np.any(terminations) or np.any(truncations):
            return None
        if not any(_same_rows(env, first, before)):
            break
    else:
        return False
    before = deepcopy(before)
    after, _ = env.reset(options={"reset_mask": np.arange(env.num_envs) == 0})
    same = _same_rows(env, before, after)
    return not same[0] and all(same[1:])


def row_seeds(env: Any) -> bool:
    """Whether it takes a list of seeds, each for one row only."""
    seeds = list(range(env.num_envs))
    try:
        before = deepcopy(env.reset(seed=seeds)[0])
        after, _ = env.reset(seed=[*seeds[:-1], 1000])
        same = _same_rows(env, before, after)
    except Exception:
        return False
    return all(same[:-1]) and not same[-1]


def _same_rows(env: Any, a: object, b: object) -> list[bool]:
    equal, part = PRELUDE["equal"], PRELUDE["part"]
    single = env.single_observation_space
    return [equal(part(single, a, i), part(single, b, i)) for i in range(env.num_envs)]
