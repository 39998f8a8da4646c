"""The helpers of reproductions, which are copied into the scripts: hence no annotations."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return, var-annotated"
# mypy: disable-error-code="type-arg"

from copy import deepcopy

import numpy as np


def equal(a, b):
    """Whether two observations, infos or results are equal, all the way down."""
    if a is b:
        return True
    if type(a) is type(b) and type(a) in (float, int, str):
        return a == b or (a != a and b != b)
    arrays = type(a) is type(b) is np.ndarray and (a.dtype, a.shape) == (b.dtype, b.shape)
    if arrays and a.dtype.kind in "biufc" and a.tobytes() == b.tobytes():
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    try:
        a, b = np.asarray(a), np.asarray(b)
    except ValueError:
        return a is b
    if a.dtype == object or b.dtype == object:
        if a.shape == b.shape == ():
            return same_object(a.item(), b.item())
        return a.shape == b.shape and all(map(equal, a.ravel().tolist(), b.ravel().tolist()))
    same_nan = a.dtype.kind in "fc" and b.dtype.kind in "fc"
    return np.array_equal(a, b, equal_nan=same_nan)


def same_object(a, b):
    """Whether two objects are identical, or compare as equal."""
    try:
        return a is b or bool(a == b)
    except Exception:
        return False


def row(batch, i):
    """Row i of a batch of observations."""
    if isinstance(batch, dict):
        return {key: row(part, i) for key, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(row(part, i) for part in batch)
    return batch[i]


def inside(space, value, bounded=True):
    """Whether a single observation has the structure, shapes and bounds of its space."""
    parts = getattr(space, "spaces", None)
    if space.shape is None and structure(space) is None:
        return space.contains(value)
    if isinstance(parts, dict):
        return (
            isinstance(value, dict)
            and value.keys() == parts.keys()
            and all(inside(parts[key], value[key], bounded) for key in parts)
        )
    if parts is not None:
        return (
            isinstance(value, tuple)
            and len(value) == len(parts)
            and all(inside(part, v, bounded) for part, v in zip(parts, value))  # noqa: B905
        )
    value = np.asarray(value)
    if value.shape != space.shape or not np.can_cast(value.dtype, space.dtype, "same_kind"):
        return False
    return not bounded or space.contains(value.astype(space.dtype)[()])


def close(a, b):
    """Whether an observation or a number equals the one of a single environment, up to rounding."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(close, a, b))
    try:
        a, b = np.asarray(a), np.asarray(b)
    except ValueError:
        return equal(a, b)
    if a.dtype.kind not in "fciub" or b.dtype.kind not in "fciub":
        return equal(a, b)
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)


def carries(info, expected):
    """Whether an info has all entries of another, save for those that a VecEnv or monitor sets."""
    theirs = ("episode", "terminal_observation", "TimeLimit.truncated")
    return all(
        # An object that does not equal its copy cannot be compared.
        key in theirs
        or (key in info and (close(info[key], value) or not equal(deepcopy(value), value)))
        for key, value in expected.items()
    )


def snapshot(value):
    """A copy of containers and arrays, out of reach of later changes; other objects are shared."""
    if type(value) in (float, int, str):
        return value
    if isinstance(value, dict):
        return {key: snapshot(part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(snapshot, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(snapshot, value)) if type(value) in (list, tuple) else value
    if isinstance(value, np.ndarray) and value.dtype == object:
        copy = np.empty(value.size, object)
        for k, part in enumerate(value.ravel()):
            copy[k] = snapshot(part)
        return copy.reshape(value.shape)
    if isinstance(value, np.ndarray):
        return np.array(value)
    return deepcopy(value) if hasattr(value, "__array__") else value


def unchanged(info, copy):
    """Whether an info equals its copy, except for the value of terminal_observation."""
    keys = info.keys() - {"terminal_observation"}
    return info.keys() == copy.keys() and all(equal(info[key], copy[key]) for key in keys)


def overlap(a, b):
    """Whether an array within `a` shares memory with an array within `b`."""
    if isinstance(a, (dict, list, tuple)):
        return any(overlap(part, b) for part in (a.values() if isinstance(a, dict) else a))
    if isinstance(b, (dict, list, tuple)):
        return overlap(b, a)
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.shares_memory(a, b)


def within(seconds, function):
    """The exception that a call raises, None, or "hung" if it takes longer."""
    import threading

    result = ["hung"]
    thread = threading.Thread(target=lambda: result.append(caught(function)), daemon=True)
    thread.start()
    thread.join(seconds)
    return result[-1]


def warned(function):
    """The result of a call, and the number of its warnings."""
    import warnings

    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        result = function()
    return result, len(caught_warnings)


def caught(function):
    """The exception that a call raises, or None."""
    try:
        function()
    except Exception as error:
        return error


def overwrite(value):
    """Write into every writeable array and dict within a value."""
    if isinstance(value, dict):
        for part in list(value.values()):
            overwrite(part)
        caught(lambda: value.update({"written by the caller": True}))
    elif isinstance(value, (list, tuple)):
        for part in value:
            overwrite(part)
    elif isinstance(value, np.ndarray) and value.flags.writeable:
        value[...] = None if value.dtype == object else 1


def draw_elsewhere():
    """Draw from the global generators."""
    import random

    random.random()
    np.random.random()


def refilled(actions, held=[]):  # noqa: B006
    """These actions, in the array that had those of the step before: a caller may keep one."""
    if not held or (held[0].dtype, held[0].shape) != (actions.dtype, actions.shape):
        held[:] = [np.empty_like(actions)]
    held[0][...] = actions
    return held[0]


def part(space, batch, i):
    """Row i of a batch of observations or actions of a single space."""
    kind = structure(space)
    if kind == "Dict":
        return {key: part(space[key], batch[key], i) for key in batch}
    if kind == "Tuple":
        return tuple(part(space[k], batch[k], i) for k in range(len(batch)))
    return batch[i]


def ended(terminations, truncations):
    """Which rows have ended."""
    return np.asarray(terminations).astype(bool) | np.asarray(truncations).astype(bool)


def distinct(values):
    """The number of different values."""
    found = []
    for value in values:
        if not any(equal(value, other) for other in found):
            found.append(value)
    return len(found)


def info_of(infos, i):
    """The info of row i; a key without a mask is there in every row."""
    info = {}
    for key, value in infos.items():
        if str(key)[:1] == "_" and key[1:] in infos:
            continue
        if f"_{key}" in infos and not infos[f"_{key}"][i]:
            continue
        if isinstance(value, dict):
            info[key] = info_of(value, i)
        else:
            info[key] = value[i] if hasattr(value, "__len__") and len(value) > i else value
    return info


def tells_statistics(infos, i):
    """Whether infos have the return and length of an episode of row i."""
    told = infos.get("episode")
    if not isinstance(told, dict) or not {"r", "l"} <= told.keys():
        return False
    return "_episode" not in infos or bool(infos["_episode"][i])


def bad_masks(infos, n):
    """The masks that are no bool arrays of length n, and what has a mask but not n entries."""
    bad = {}
    for key, value in infos.items():
        mask = infos.get(f"_{key}", np.zeros(n, bool))
        if getattr(mask, "shape", None) != (n,) or np.asarray(mask).dtype != bool:
            bad[f"_{key}"] = mask
        elif f"_{key}" in infos:
            bad.update(unbatched({key: value}, n))
        if isinstance(value, dict):
            bad.update(bad_masks(value, n))
    return bad


def unbatched(infos, n):
    """The values that do not have n entries."""
    bad = {}
    for key, value in infos.items():
        if isinstance(value, dict):
            bad.update(unbatched(value, n))
        elif not hasattr(value, "__len__") or isinstance(value, str) or len(value) != n:
            bad[key] = value
    return bad


def starts_like(start, expected):
    """Whether an observation is the expected one, and an info has all expected entries."""
    (obs, info), (first, known) = start, expected
    return equal(obs, first) and all(
        key in info and equal(info[key], value) for key, value in known.items()
    )


def stable(info, other):
    """The entries that two runs share: no clock times, nor entries of a monitor, which have one."""
    same = {key: info[key] for key in info if key in other and equal(info[key], other[key])}
    clock = {"r", "l", "t"}
    return {key: v for key, v in same.items() if not (isinstance(v, dict) and clock <= v.keys())}


def structure(space):
    """Which space of parts a space is: "Dict" or "Tuple"; otherwise None."""
    kinds = [kind.__name__ for kind in type(space).__mro__]
    return next((kind for kind in kinds if kind in ("Dict", "Tuple")), None)


def batched(space, single, n):
    """Whether a space holds n rows of a single one: structure, shapes and types."""
    kind = structure(single)
    if kind == "Dict":
        return space.keys() == single.keys() and all(batched(space[k], single[k], n) for k in space)
    if kind == "Tuple":
        pairs = zip(space.spaces, single.spaces)  # noqa: B905
        return len(space) == len(single) and all(batched(a, b, n) for a, b in pairs)
    if single.shape is None:
        return len(space.spaces) == n
    return space.shape == (n, *single.shape) and space.dtype == single.dtype


def stacked(space, values):
    """A batch of single values of a space."""
    kind = structure(space)
    if kind == "Dict":
        return {key: stacked(space[key], [value[key] for value in values]) for key in space}
    if kind == "Tuple":
        return tuple(
            stacked(space[k], [value[k] for value in values]) for k in range(len(values[0]))
        )
    return np.stack(values) if space.shape is not None else tuple(values)


def noting_options():
    """Options without any name, which note the names that are looked for, and are never false.

    `again` has those that were taken out of one dict a second time.
    """

    class Noting(dict):
        def __init__(self, names, again):
            self.names, self.again, self.taken = names, again, []

        def __bool__(self):
            return True

        def __copy__(self):
            return Noting(self.names, self.again)

        def __deepcopy__(self, memo):
            return self.__copy__()

        def __contains__(self, name):
            self.names.append(name)
            return False

        def __missing__(self, name):
            self.names.append(name)
            raise KeyError(name)

        def get(self, name, default=None):
            self.names.append(name)
            return default

        def pop(self, name, default=None):
            self.again += [name] * (name in self.taken)
            self.taken.append(name)
            return self.get(name, default)

    return Noting([], [])


def descent():
    """A class of optimizers, of gradient descent in small steps.

    Torch's own optimizers import its compiler, which takes a second. As Adam's, the steps are
    bounded, and large observations or rewards do not make them endless.
    """

    class Descent:
        def __init__(self, parameters, lr):
            self.param_groups = [{"params": list(parameters), "lr": lr}]

        def zero_grad(self):
            for parameter in self.param_groups[0]["params"]:
                parameter.grad = None

        def step(self):
            for parameter in self.param_groups[0]["params"]:
                if parameter.grad is not None:
                    bounded = parameter.grad.clamp(-1, 1)
                    parameter.data -= self.param_groups[0]["lr"] * bounded

    return Descent
