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
        value["written by the caller"] = True
    elif isinstance(value, (list, tuple)):
        for part in value:
            overwrite(part)
    elif isinstance(value, np.ndarray) and value.flags.writeable:
        value[...] = None if value.dtype == object else 1
