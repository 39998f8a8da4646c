"""The helpers of reproductions that play whole episodes, or look at what a process has.

As those of `prelude` they are copied into the scripts: hence no annotations.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return, var-annotated"

from functools import partial

import numpy as np

from sb3compat.conformance.program.prelude import ended, part, row, snapshot


def rows_of(env, obs):
    """The rows of a batch of observations, copied."""
    single = getattr(env, "single_observation_space", None)
    rows = [row(obs, i) if single is None else part(single, obs, i) for i in range(env.num_envs)]
    return [snapshot(value) for value in rows]


def leaves(obs):
    """The simple parts of an observation; those of a dict by the order of its keys."""
    if isinstance(obs, (dict, list, tuple)):
        # A dict that an environment returns may have another order than its space.
        parts = [obs[key] for key in sorted(obs, key=str)] if isinstance(obs, dict) else obs
        return [leaf for part in parts for leaf in leaves(part)]
    return [np.asarray(obs)]


def pieces(obs):
    """The simple parts of an observation, each of them flat."""
    return [leaf.ravel() for leaf in leaves(obs)]


def numbers_in(obs, kinds="biuf"):
    """The numbers in an observation, flat, of these kinds of dtypes."""
    return np.concatenate([np.zeros(0), *(p for p in pieces(obs) if p.dtype.kind in kinds)])


def frames(obs):
    """The channels of the images in an observation, each as one entry."""
    images = [leaf for leaf in leaves(obs) if leaf.ndim == 3 and leaf.dtype.kind in "biuf"]
    # There is a negative zero, which equals zero.
    return [
        np.array([(channel + 0.0).tobytes()], object)
        for image in images
        for channel in np.moveaxis(image, int(np.argmin(image.shape)), 0)
    ]


def kept(starts, firsts):
    """Whether there is no entry that all starts share and all these first observations lack."""
    starts, firsts = ([pieces(obs) + frames(obs) for obs in some] for some in (starts, firsts))
    # Sequences may have another length each time, and other things at the same place.
    for k in range(min(map(len, starts + firsts))):
        before, after = ([obs[k] for obs in some] for some in (starts, firsts))
        if len({piece.shape for piece in before + after}) > 1:
            continue
        same = np.all([piece == before[0] for piece in before], axis=0)
        if np.any(same & np.all([piece != before[0] for piece in after], axis=0)):
            return False
    return True


def strays(starts, firsts, lasts, clocks=()):
    """Whether these first observations leave what all starts share, too often to be chance.

    They do so in ever new ways, save for the places of clocks: counts of lives may differ by
    design. So may what goes on from the last observations.
    """
    from math import comb

    starts, firsts, lasts = (
        [numbers_in(obs, "f") for obs in some] for some in (starts, firsts, lasts)
    )
    if len({len(obs) for obs in starts + firsts + lasts}) > 1:  # as those of sequences
        return False
    starts, firsts, lasts = map(np.array, (starts, firsts, lasts))
    away = (starts == starts[0]).all(axis=0) & (firsts != starts[0])
    clocks = np.isin(np.arange(len(starts[0])), clocks)
    away &= (firsts != lasts) & (clocks | (np.modf(firsts)[0] != 0))
    for column, count in enumerate(away.sum(axis=0).tolist()):
        chance = comb(len(firsts), count) / comb(len(starts) + len(firsts), count)
        different = len(set(firsts[away[:, column], column].tolist()))
        if (different > count / 2 or clocks[column]) and chance * len(starts[0]) < 1e-6:
            return True
    return False


def rescaled(before, after, next_to_last, last, outside=False):
    """Whether all floats that steps move are on another scale after these last steps.

    Each is a multiple of the one before, plus something, both there and after other steps, but
    another multiple: more than three times as much, or less than a third. There are at least two
    such floats, or the last ones are in part far outside of all that is seen otherwise. With
    `outside`, both have to be so, for all last ones, and twice as much or half is enough.
    """

    def fitted(x, y):
        with np.errstate(all="ignore"):  # what does not vary, or is infinite, has no fit
            x, y = x - x.mean(axis=0), y - y.mean(axis=0)
            slope = (x * y).sum(axis=0) / (x * x).sum(axis=0)
            return slope, slope * np.sqrt((x * x).sum(axis=0) / (y * y).sum(axis=0))

    before, after, next_to_last, last = (
        [numbers_in(obs, "f") for obs in some] for some in (before, after, next_to_last, last)
    )
    if not last or len({obs.shape for obs in [*before, *after, *next_to_last, *last]}) != 1:
        return False
    before, after, next_to_last, last = map(np.array, (before, after, next_to_last, last))
    # What often stays as it is may be a flag.
    moving = np.mean(before != after, axis=0) > 0.9
    (usual, fit), (there, fit_there) = fitted(before, after), fitted(next_to_last, last)
    seen = np.concatenate([before, after, next_to_last])
    low, high = seen.min(axis=0), seen.max(axis=0)
    far = (np.maximum(low - last, last - high) > high - low) & moving
    # The time, where all episodes are equally long: it has no fit.
    alike = (next_to_last == next_to_last[0]).all(axis=0) & far.all(axis=0)
    least, times = (0.6, 2) if outside else (0.9, 3)
    other = (fit > least) & (fit_there > least)
    other &= (there > times * usual) | (there < usual / times)
    if not (other | alike)[moving].all():
        return False
    # A single one may be led to some value by the time.
    several = moving.sum() > 1
    return bool(several and far.all(axis=0).any() if outside else several or far.any())


def ahead(before, after, next_to_last, last, first, left, begun):
    """Whether an entry that no other step changes is the next first one in all last observations.

    It has to change up and down, and by different amounts: a count of episodes does not. Resets in
    the middle of episodes, from `left` to `begun`, have to change it, too.
    """
    calls = (before, after, next_to_last, last, first, left, begun)
    every = [[numbers_in(obs) for obs in some] for some in calls]
    if len({len(obs) for some in every for obs in some}) != 1:
        return False
    before, after, next_to_last, last, first, left, begun = map(np.array, every)
    taken = (before == after).all(axis=0) & (last == first).all(axis=0)
    taken &= (left != begun).sum(axis=0) > 3
    changes = [set(np.unique(column[column != 0])) for column in (last - next_to_last).T[taken]]
    return any(min(c) < 0 < max(c) and len({abs(x) for x in c}) > 2 for c in changes if c)


def paid_ahead(before, actions, after, rewards, befores, last_actions, lasts, last_rewards, firsts):
    """Whether last steps are rewarded as if they led to the first observations after them.

    Then a formula fits all other steps, and these as well: a sum of multiples of a number in the
    observations before and after a step, or of all numbers there, their squares, and the action.
    It must not fit with the first observation after another end, too: where those are much alike, a
    reward by rule, such as 0 for a crash, may be that of a start. None if there is no such formula.
    """

    def table(some):
        rows = [numbers_in(value) for value in some]
        return np.array(rows, float) if len({len(row) for row in rows}) == 1 else np.zeros((0, 0))

    if any(piece.size > 30 for value in (befores[0], actions[0]) for piece in pieces(value)):
        return None
    turned = [*firsts[1:], firsts[0]]
    steps = [
        [table(some) for some in each]
        for each in (
            (before, after, actions),
            *((befores, then, last_actions) for then in (lasts, firsts, turned)),
        )
    ]
    rewards, last_rewards = np.array(rewards, float), np.array(last_rewards, float)
    size, acted_size = steps[0][0].shape[1], steps[0][2].shape[1]
    columns = {tuple(part.shape[1] for part in each) for each in steps}
    every = (rewards, last_rewards, *(part for each in steps for part in each))
    # Those of other lengths than the others are a table without columns.
    if columns != {(size, size, acted_size)} or not 0 < size <= 30 or not acted_size:
        return None
    # Neither infinite, nor so once they are squared.
    if not all((np.abs(part) < 1e100).all() for part in every):
        return None
    kinds = np.unique(steps[0][2], axis=0)
    if len(kinds) <= 8:  # each has a reward of its own, rather than a multiple
        for each in steps:
            each[2] = (each[2][:, None] == kinds).all(axis=-1)
    scale = max(rewards.std(), 1e-6)
    fits = False
    for numbers_of in (*([k] for k in range(size)), range(size)):
        for powers, acted in (((1,), False), ((1,), True), ((1, 2), True)):
            terms = [
                np.hstack([s[:, numbers_of] ** p for s in each[:2] for p in powers])
                for each in steps
            ]
            terms = [
                np.hstack([np.ones((len(t), 1)), t, *([each[2]] if acted else [])])
                for t, each in zip(terms, steps)  # noqa: B905
            ]
            if len(rewards) < 3 * terms[0].shape[1]:
                continue
            factors = np.linalg.lstsq(terms[0], rewards, rcond=None)[0]
            usual, own, ahead, other = (t @ factors / scale for t in terms)
            if np.abs(usual - rewards / scale).max() > 0.001:
                continue
            if min(np.median(np.abs(ahead - by)) for by in (own, other)) < 0.2:
                continue
            fits = True
            off, off_ahead = (np.abs(by - last_rewards / scale) for by in (own, ahead))
            if off_ahead.max() < 0.02 and np.median(off) > 0.2:
                return True
    return False if fits else None


def pushed(before, after, axis, count):
    """Whether each stack of frames is the one before it, moved on by so many entries of an axis."""
    pairs = [[np.moveaxis(np.asarray(obs), axis, 0) for obs in some] for some in (before, after)]
    return all(np.array_equal(a[count:], b[:-count]) for a, b in zip(*pairs))  # noqa: B905


def growth(env, act, warm, steps, disabled=False):
    """The bytes that each end of an episode leaves behind, in three runs of so many steps.

    They count as 0 while a deque with a `maxlen` is filled: that does not go on for ever.
    """
    import gc
    import tracemalloc
    from collections import deque

    sizes, ends = [], []
    gc.collect()
    deques = [(each, len(each)) for each in gc.get_objects() if type(each) is deque]
    gc.freeze()  # what there is already need not be looked at in each collection
    tracemalloc.start()
    for number in (warm, steps, steps, steps):
        ends.append(0)
        for _ in range(number):
            result = env.step(act())
            over = ended(result[2], result[-2])
            ends[-1] += int(over.sum())
            if disabled and over.any():
                env.reset(options={"reset_mask": over})
        del result
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    gc.unfreeze()
    if any(size + ends[-1] < len(each) < (each.maxlen or 0) for each, size in deques):
        return [0, 0, 0]
    return [int(size / max(many, 1)) for size, many in zip(np.diff(sizes), ends[1:])]  # noqa: B905


def belongings(others=()):
    """The threads, processes and shared memory of this process, in words, without some others."""
    import multiprocessing
    import threading
    from contextlib import suppress
    from pathlib import Path

    found = {f"thread {t.name} ({t.ident})" for t in threading.enumerate()}
    found |= {f"process {p.pid}" for p in multiprocessing.active_children()}
    pids = set()
    for _ in range(9):  # a thread may end meanwhile, and leaves its children to another one
        with suppress(OSError):  # there is no such folder but on Linux
            tasks = Path("/proc/self/task").iterdir()
            pids = {pid for task in tasks for pid in Path(task, "children").read_text().split()}
            break
    for pid in pids:
        with suppress(OSError):  # it has ended meanwhile
            command = Path("/proc", pid, "cmdline").read_text()
            # Python starts these once, and for all.
            if command and "_tracker" not in command and "forkserver" not in command:
                found.add(f"process {pid}")
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            if "/dev/shm/" in line and not line.endswith("(deleted)"):
                found.add(f"shared memory {line.split()[-1]}")
    return found.difference(others)


def left_over(held, seconds):
    """What is still there of some belongings, at the latest after so many seconds."""
    import time
    from pathlib import Path

    end = time.monotonic() + seconds
    while True:
        now = belongings()
        now |= {one for one in held if one[:13] == "shared memory" and Path(one[14:]).exists()}
        left = [one for one in held if one in now]
        if not left or time.monotonic() > end:
            return sorted(left)
        time.sleep(0.05)


def below(env):
    """The environments that an environment wraps, the outermost first."""
    found = [env]
    while len(found) < 100:  # one may wrap itself
        held = getattr(found[-1], "__dict__", {})
        inner = held.get("venv", held.get("env"))
        if inner is None:
            break
        found.append(inner)
    return found[1:]


def singles_in(env):
    """The single environments of the rows, where a layer keeps them in a list or tuple."""
    import gymnasium as gym

    n = getattr(env, "num_envs", 0)
    for layer in (env, *below(env)):
        lists = {
            name: value
            for name, value in getattr(layer, "__dict__", {}).items()
            if isinstance(value, (list, tuple)) and len(value) == n
            if all(isinstance(one, gym.Env) for one in value)
        }
        # Of several, one may have what the others wrap.
        found = lists.get("envs", next(iter(lists.values())) if len(lists) == 1 else ())
        if found:
            return list(found)
    return []


def wrapped_in(env, wrapper):
    """Whether there is such a wrapper around each row that `singles_in` finds."""
    layers = [(each, *below(each)) for each in singles_in(env)]
    return [any(isinstance(layer, wrapper) for layer in row) for row in layers]


def open_below(env):
    """What is to be closed below an environment, by its place; it leaves the dict when closed."""
    import gymnasium as gym

    left = {}

    def watch(place, layer, close):
        def closing(*args, **kwargs):
            left.pop(place, None)
            return close(*args, **kwargs)

        left[place], layer.close = type(layer).__name__, closing

    for depth, layer in enumerate(below(env), 1):
        if hasattr(layer, "num_envs") and hasattr(layer, "close"):
            watch(f"{depth} below", layer, layer.close)
    for i, single in enumerate(singles_in(env)):
        # What `Env` and `Wrapper` have closes nothing by itself.
        closes = {
            type(layer).close for layer in (single, *below(single)) if hasattr(layer, "close")
        }
        if closes - {gym.Env.close, gym.Wrapper.close}:
            watch(f"row {i}", single, single.close)
    return left


def tell_options(env):
    """Let the reset of each row put the option `probe` into its info; the row never gets it.

    Returns a function that undoes it.
    """
    import gymnasium as gym

    def watch(single, reset):
        def resetting(*args, options=None, **kwargs):
            given = dict(options or {})
            told = {"probe": given.pop("probe", 0)}
            obs, info = reset(*args, **kwargs, **({"options": given} if given else {}))
            return obs, {**info, **told}

        single.reset = resetting

    singles = getattr(env, "unwrapped", env).get_attr("unwrapped")
    if [id(outer.unwrapped) for outer in singles_in(env)] == [*map(id, singles)]:
        singles = singles_in(env)  # a wrapper of a row may keep its options to itself
    if len({id(each) for each in singles if isinstance(each, gym.Env)}) < env.num_envs:
        raise TypeError("the rows are no environments of their own")
    resets = [single.reset for single in singles]
    for single, reset in zip(singles, resets):  # noqa: B905
        watch(single, reset)

    def undo():
        for single, reset in zip(singles, resets):  # noqa: B905
            single.reset = reset

    return undo


def singles_of(make_env, n, name):
    """Factories of the single environments that an attribute has; each is used once."""
    pools = [[] for _ in range(n)]
    kept = []  # it may close them when it is deleted

    def make(i):
        if not pools[i]:
            kept.append(make_env())
            for pool, single in zip(pools, getattr(kept[-1], name)):  # noqa: B905
                pool.append(single)
        return pools[i].pop()

    return [partial(make, i) for i in range(n)]


def told_by(env):
    """Factories of the single environments, as the environment keeps them or their specs."""
    import gymnasium as gym

    kept = getattr(env, "env_fns", None)
    return list(kept or [partial(gym.make, spec) for spec in env.get_attr("spec")])


def singles_told(make_env):
    """Factories of the single environments, as one that is closed again has told them."""
    env = make_env()
    try:
        return told_by(env)
    finally:
        env.close()
