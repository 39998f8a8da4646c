"""What reproduction scripts may call; copied into them, and therefore without annotations."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

import numpy as np


def equal(a, b):
    """Whether two observations, infos or results are the same, all the way down."""
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
            return a.item() is b.item() or bool(a.item() == b.item())
        return a.shape == b.shape and all(map(equal, a.ravel().tolist(), b.ravel().tolist()))
    same_nan = a.dtype.kind in "fc" and b.dtype.kind in "fc"
    return np.array_equal(a, b, equal_nan=same_nan)


def row(batch, i):
    """Row i of a batch of observations."""
    if isinstance(batch, dict):
        return {key: row(part, i) for key, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(row(part, i) for part in batch)
    return batch[i]


def inside(space, value):
    """Whether a single observation has the structure, shapes and bounds of its space."""
    parts = getattr(space, "spaces", None)
    if isinstance(parts, dict):
        return (
            isinstance(value, dict)
            and value.keys() == parts.keys()
            and all(inside(parts[key], value[key]) for key in parts)
        )
    if parts is not None:
        return (
            isinstance(value, tuple) and len(value) == len(parts) and all(map(inside, parts, value))
        )
    value = np.asarray(value)
    if value.shape != space.shape or not np.can_cast(value.dtype, space.dtype, "same_kind"):
        return False
    return space.contains(value.astype(space.dtype)[()])


def close(a, b):
    """Whether an observation or a number is that of a single environment, rounding aside."""
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
    """Whether an info has all that another has; a monitor's time of day aside."""
    return all(
        key == "episode" or (key in info and close(info[key], value))
        for key, value in expected.items()
    )


def snapshot(value):
    """A copy down to the arrays, which later changes do not reach."""
    if isinstance(value, dict):
        return {key: snapshot(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(snapshot, value)) if type(value) in (list, tuple) else value
    return np.array(value) if isinstance(value, np.ndarray) else value


def unchanged(info, copy):
    """Whether an info is as it was; terminal_observation is looked at by itself."""
    skipped = {"terminal_observation"}
    keys = info.keys() - skipped
    return keys == copy.keys() - skipped and all(equal(info[key], copy[key]) for key in keys)


def overlap(a, b):
    """Whether any array within the one shares memory with one within the other."""
    if isinstance(a, (dict, list, tuple)):
        return any(overlap(part, b) for part in (a.values() if isinstance(a, dict) else a))
    if isinstance(b, (dict, list, tuple)):
        return overlap(b, a)
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.shares_memory(a, b)


def step_alone(single, action):
    """Step a single environment, and reset it if its episode ended."""
    last, reward, terminated, truncated, info = single.step(action)
    result = {"last": snapshot(last), "reward": reward, "info": snapshot(info)}
    result["done"] = bool(terminated or truncated)
    result["truncated"] = bool(truncated and not terminated)
    result["obs"], result["reset_info"] = single.reset() if result["done"] else (last, None)
    return result


def within(seconds, function):
    """The exception that a call raises, None, or "hung" if it takes longer."""
    import threading

    result = ["hung"]
    thread = threading.Thread(target=lambda: result.append(caught(function)), daemon=True)
    thread.start()
    thread.join(seconds)
    return result[-1]


def warned(function):
    """What a call returns, and how many warnings it gives."""
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
    """Write into every array, list and dict within, as far as they let us."""
    if isinstance(value, dict):
        for part in list(value.values()):
            overwrite(part)
        caught(lambda: value.update({"written by the caller": True}))
    elif isinstance(value, (list, tuple)):
        for part in value:
            overwrite(part)
    elif isinstance(value, np.ndarray) and value.flags.writeable:
        value[...] = None if value.dtype == object else 1
