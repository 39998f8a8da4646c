"""Actions: single ones to choose from, and source for batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from sb3compat.conformance.program.script import PRELUDE, to_source
from sb3compat.conformance.subject.subject import Subject

# Up to this number of single actions, there is a policy that repeats each of them.
_FEW_ACTIONS = 8


def candidates(space: Any) -> list[Any]:
    """Single actions of a space: the simplest first, then the extreme ones."""
    space.seed(0)
    samples = [space.sample() for _ in range(3)]
    if isinstance(space, spaces.Box):
        low = np.where(np.isfinite(space.low), space.low, -1).astype(space.dtype)
        high = np.where(np.isfinite(space.high), space.high, 1).astype(space.dtype)
        middle = np.clip(np.zeros(space.shape, space.dtype), low, high)
        return [middle, low, high, *samples]
    if isinstance(space, spaces.Discrete):
        first, last = space.start, space.start + space.n - 1
        between = range(first + 1, last) if space.n <= _FEW_ACTIONS else samples
        return [np.int64(action) for action in (first, last, *between)]
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        ones = np.ones(space.shape, space.dtype)
        first = getattr(space, "start", 0 * ones)
        last = first + getattr(space, "nvec", 2 * ones) - ones
        return [first.astype(space.dtype), last.astype(space.dtype), *samples]
    return samples


def come_in_lists(subject: Subject) -> bool:
    """Whether a batch of actions is a list of single ones: SB3 gives those with parts so."""
    structured = isinstance(subject.action_space, spaces.Dict | spaces.Tuple)
    return structured and subject.family == "vec_env"


def batch(subject: Subject, actions: Sequence[Any]) -> Any:
    """A batch of these single actions, one for each row."""
    if come_in_lists(subject):
        return list(actions)
    return PRELUDE["stacked"](subject.action_space, actions)


def batch_source(subject: Subject, actions: Sequence[Any]) -> str:
    """Source for a batch of these single actions."""
    return to_source(batch(subject, actions))


def sample_source(subject: Subject) -> str:
    """Source that draws a batch from the environment's own action space."""
    if subject.family == "vec_env":
        samples = f"[env.action_space.sample() for _ in range({subject.num_envs})]"
        listed = come_in_lists(subject) or subject.action_space.shape is None
        return samples if listed else f"np.stack({samples})"
    if subject.batched_actions:
        return "env.action_space.sample()"
    singles = f"[env.single_action_space.sample() for _ in range({subject.num_envs})]"
    return f"stacked(env.single_action_space, {singles})"


def sample_seed_source(subject: Subject, seed: int) -> str:
    """Source that seeds the space that `sample_source` draws from."""
    single = subject.family == "vector_env" and not subject.batched_actions
    return f"env.{'single_' if single else ''}action_space.seed({seed})"


def policies(subject: Subject) -> list[tuple[str, str]]:
    """Ways to act: a statement to begin with, and source for the actions of each step."""
    n = subject.num_envs
    few = isinstance(subject.actions[0], np.integer) and len(subject.actions) <= _FEW_ACTIONS
    chosen = subject.actions if few else subject.actions[:3]
    constant = dict.fromkeys(batch_source(subject, [action] * n) for action in chosen)
    found = [("", actions) for actions in constant]
    if not isinstance(subject.actions[0], dict | tuple):
        found.append((sample_seed_source(subject, 0), sample_source(subject)))
    return found
