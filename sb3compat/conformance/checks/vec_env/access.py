"""Reaching sub-environments: attributes, methods and wrappers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from sb3compat.conformance.checks.tools.evidence import STEPS, bytes_of, distinct, equal, values
from sb3compat.conformance.checks.tools.scenes import access_or_refusal, attributes_of_now, returns
from sb3compat.conformance.checks.vec_env.marks import ENDINGS, marked
from sb3compat.conformance.contract import BASICS, SB3_GUIDE, SB3_SOURCE
from sb3compat.conformance.findings import EnvFailureError, NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Call, Drawn
from sb3compat.conformance.scene import Recorded, Scene
from sb3compat.conformance.subject.actions import sample_source
from sb3compat.conformance.subject.interface import offers
from sb3compat.conformance.values import Value

_MASKS = "https://sb3-contrib.readthedocs.io/en/master/modules/ppo_mask.html"
# So many resets and steps, in so much time, show what action masks depend on.
_RESETS, _MOST_STEPS, _MOST_SECONDS = 16, 200, 1.0
_SUB_ENVS = ("sub_envs",)
_MONITOR = "stable_baselines3.common.monitor"
_REACHED = ("set_attr_only_named_rows",)

error, warning = marked(group="sub-environments", source=SB3_SOURCE, after=())


@warning()
def access_works_or_is_refused(scene: Scene) -> Iterator[Demand]:
    """`set_attr` and `get_attr` work for all rows and for named ones, or say that they do not.

    An environment without sub-environments raises NotImplementedError or AttributeError, and the
    checks of this group are skipped. Any other exception, or another number of values than rows, is
    a mistake, and so is a refusal to read what was set. It must not pass for a missing ability.
    """
    env = scene.make()
    yield from access_or_refusal(
        env,
        # Where all rows have one attribute, other indices than None are no sensible value.
        lambda: scene.caught(env.set_attr, "kit_mark", 0, indices=[0]),
    )


@error(source=SB3_GUIDE, needs=_SUB_ENVS, after=())
def set_attr_only_named_rows(scene: Scene) -> Iterator[Demand]:
    """`set_attr(name, value, indices)` sets the attribute in the named rows only.

    A list as value goes whole into each of these rows. Typical mistakes: `indices` is ignored, so
    that a curriculum for one row changes all rows; 0 taken for None. If all rows share their
    attributes by design, declare the capability `sub_envs` as missing.
    """
    env = scene.make()
    value = scene.choose([1, [2, 3]])
    indices, chosen = _named(scene)
    env.set_attr("kit_mark", 0)
    env.set_attr("kit_mark", value, indices=indices)
    yield returns(env.get_attr("kit_mark"), [value if i in chosen else 0 for i in scene.rows])


def _named(scene: Scene) -> tuple[Any, list[int]]:
    """Some rows as `indices` names them, and their numbers."""
    chosen = scene.some_rows()
    ways: list[tuple[Any, list[int]]] = [(chosen, chosen), (0, [0])]
    return scene.choose(ways)


@error(source=SB3_GUIDE, needs=_SUB_ENVS, after=_REACHED)
def get_attr_indices(scene: Scene) -> Iterator[Demand]:
    """`get_attr(name, indices)` returns one value for each named row, in the order of `indices`.

    `indices` is None for all rows, one int, or several. Typical mistakes: the order of the rows
    instead of that of `indices`; 0 taken for None; values that an earlier call has read.
    """
    env = scene.make()
    _mark(scene, env)
    n = scene.n
    ways: list[tuple[str, list[int]]] = [
        (str(list(range(n))[::-1]), list(range(n))[::-1]),
        ("0", [0]),
        ("None", list(range(n))),
        ("(0,)", [0]),
        (f"range({n})", list(range(n))),
        (f"[{n - 1}, 0, {n - 1}]", [n - 1, 0, n - 1]),
    ]
    indices, rows = scene.choose(ways)
    yield returns(env.get_attr("kit_mark", indices=Drawn(indices)), [10 + i for i in rows])
    set_again, changed = scene.choose([(None, list(range(n))), ([rows[0]], [rows[0]])])
    env.set_attr("kit_mark", 5, indices=set_again)
    now = [5 if i in changed else 10 + i for i in rows]
    yield returns(env.get_attr("kit_mark", indices=Drawn(indices)), now, why=": those of now")
    yield from attributes_of_now(scene, env)


def _mark(scene: Scene, env: Recorded) -> None:
    for i in scene.rows:
        env.set_attr("kit_mark", 10 + i, indices=[i])


@warning(needs=_SUB_ENVS, after=(*_REACHED, "get_attr_indices"))
def numpy_int_indices(scene: Scene) -> Iterator[Demand]:
    """`indices` may be an array of NumPy integers, as `np.flatnonzero(dones)` gives.

    As in a list, -1 is the last row. Typical mistake: indices are looked up in a dict, or compared
    by type.
    """
    env = scene.make()
    _mark(scene, env)
    rows = scene.choose([[scene.n - 1, 0], [0], [-1]])
    expected = [10 + i % scene.n for i in rows]
    values = scene.caught(env.get_attr, "kit_mark", indices=Drawn(f"np.array({rows})"))
    yield expect("{0} is None", values.error, should=f"None, and the values {expected}")
    yield returns(values, expected)


@error(needs=_SUB_ENVS, after=BASICS["vec_env"])
def missing_attr_raises_and_survives(scene: Scene) -> Iterator[Demand]:
    """`get_attr` raises AttributeError for a missing attribute, and the environment still works.

    `has_attr` and algorithms that look for optional methods rely on the type. A missing method of
    `env_method` raises the same each time. Typical mistakes: the exception ends the worker process,
    and the caller gets an EOFError at once or at the next step; a call that raised counts as one
    that goes on.
    """
    env, _ = scene.start()
    error = scene.caught(env.get_attr, "no_such_attribute").error
    if error.value is None:
        _rows_have_their_limits(scene, env)
    yield expect("isinstance({0}, AttributeError)", error, should="an AttributeError")
    first, again = (scene.caught(env.env_method, "no_such_method").error for _ in range(2))
    if first.value is not None:
        name = type(first.value).__name__
        yield expect(
            "type({0}) is type({1})", again, first, what="{0}", should=f"{name}, as before"
        )
    error = scene.caught(env.step, scene.actions()).error
    yield expect("{0} is None", error, should="None, as the step has nothing to do with it")


def _rows_have_their_limits(scene: Scene, env: Recorded) -> None:
    """Pass on, unless the single environments answer to any name: then none is missing."""
    asked = scene.caught(env.get_attr, "__getattr__")
    if asked.failure is None and any(map(callable, asked.result)):
        raise NotExercisedError("its single environments answer to any name")


@error(needs=_SUB_ENVS, after=_REACHED, new=True)
def has_attr_truthful(scene: Scene) -> Iterator[Demand]:
    """`has_attr(name)` is true exactly if every row's environment has the attribute.

    MaskablePPO finds out in this way whether there are action masks. A row that a wrapper hides may
    count as well.
    """
    env = scene.make()
    if not offers(env.live, "has_attr"):
        raise NotExercisedError("it has no method has_attr")
    found = env.has_attr("kit_mark").asked
    if found.value:
        _rows_have_their_limits(scene, env)
    yield expect("not {0}", found, should="False")
    if scene.n > 1 and scene.choose((False, True)):
        env.set_attr("kit_mark", 1, indices=[0])
        should = "False, as only row 0 has it"
        yield expect("not {0}", env.has_attr("kit_mark").asked, should=should)
    env.set_attr("kit_mark", 1)
    found = env.has_attr("kit_mark").asked
    if not found.value and getattr(env.live, "unwrapped", env.live).num_envs > scene.n:
        raise NotExercisedError("it hides rows, which may lack the attribute")
    yield expect("{0}", found, should="True")


@error(source=SB3_GUIDE, needs=_SUB_ENVS, after=_REACHED)
def env_method_args(scene: Scene) -> Iterator[Demand]:
    """`env_method(name, *args, indices, **kwargs)` calls the named rows with all arguments.

    It returns one result for each named row, in the order of `indices`. Typical mistakes: keyword
    arguments are dropped; all rows are called and some of the results returned; 0 taken for None.
    """
    env = scene.make()
    if scene.choose((False, True)):
        yield from _calls_no_others(scene, env)
        return
    for i in scene.rows:
        env.set_attr("kit_echo", Drawn(f"partial(dict, row={i})"), indices=[i])
    rows = scene.choose([list(scene.rows)[::-1], [0], None])
    called = scene.rows if rows is None else rows
    echoes = _called(env, "kit_echo", [("a", 1)], indices=rows, b=2)
    yield returns(echoes, [{"row": i, "a": 1, "b": 2} for i in called])


def _called(env: Recorded, name: str, *args: Any, **kwargs: Any) -> Call:
    """Call what `set_attr` has set, as a method of rows; rows in arrays may have none of that."""
    try:
        return env.env_method(name, *args, **kwargs)
    except EnvFailureError as failure:
        if isinstance(failure.error, AttributeError) and name in str(failure.error):
            raise NotExercisedError("env_method calls only methods of its own") from None
        raise


def _calls_no_others(scene: Scene, env: Recorded) -> Iterator[Demand]:
    """A method that writes into a list shows which rows were called, in other processes too."""
    for i in scene.rows:
        env.set_attr("kit_note", Drawn("[].append"), indices=[i])
    indices, rows = _named(scene)
    _called(env, "kit_note", 1, indices=indices)
    expected = [[1] if i in rows else [] for i in scene.rows]
    yield expect(
        f"[note.__self__ for note in {{0}}] == {expected}",
        env.get_attr("kit_note").asked,
        what="[note.__self__ for note in {0}]",
        should=f"{expected}, called in rows {rows} alone",
    )


@error(source=SB3_GUIDE, needs=_SUB_ENVS, after=())
def env_is_wrapped_per_row(scene: Scene) -> Iterator[Demand]:
    """`env_is_wrapped(cls, indices)` returns one bool for each named row, and the right one.

    SB3 looks for a `Monitor` before it trusts episode returns. Typical mistakes: one bool for all
    rows, always True, the outermost wrapper alone, or NotImplementedError.
    """
    n, env = scene.n, scene.make()
    names = ("AtariPreprocessing", "HumanRendering", "TimeAwareObservation")
    *rare, inner, limit = scene.imported(
        "gymnasium.wrappers", *names, "OrderEnforcing", "TimeLimit"
    )
    wrapped = env.env_is_wrapped(limit).asked
    yield expect(
        f"len({{0}}) == {n} and all(isinstance(w, (bool, np.bool_)) for w in {{0}})",
        wrapped,
        should=f"{n} bools",
    )
    one = scene.choose(scene.rows)
    yield expect(
        f"list({{0}}) == [{{1}}[{one}]]",
        env.env_is_wrapped(limit, indices=[one]).asked,
        wrapped,
        should="one bool, the same as for all rows",
    )
    first, second, third = (env.env_is_wrapped(wrapper).asked for wrapper in rare)
    yield expect(
        "not (all({0}) and all({1}) and all({2}))",
        second,
        first,
        third,
        should=f"False in some row for one of {', '.join(names)}",
    )
    for wrapper, answer in ((limit, wrapped), (inner, env.env_is_wrapped(inner).asked)):
        found = scene.made_by("wrapped_in", "found", env, wrapper)
        should = f"{found.live}, by the wrappers that there are"
        yield expect("list({0}) == ({1} or list({0}))", answer, found.value, should=should)
    if _MONITOR in sys.modules:  # else no row has one
        yield from _monitors_are_told(env)
    # What the single environment has, the rows may get from a wrapper around all of them.
    if scene.subject.referenced and not scene.single_is_wrapped(limit.value):
        yield expect("not {0}", wrapped[0], should="False, as in the single environment", row=0)


def _monitors_are_told(env: Recorded) -> Iterator[Demand]:
    """No `Monitor` is denied; one that is not there may be stood in for."""
    scene = env.scene
    [monitor] = scene.imported(_MONITOR, "Monitor")
    found = scene.made_by("wrapped_in", "monitored", env, monitor)
    answer = env.env_is_wrapped(monitor).asked
    should = f"{found.live}, by the wrappers that there are"
    condition = "all(told or not has for told, has in zip({0}, {1}))"
    yield expect(condition, answer, found.value, should=should)


@error(source=_MASKS, after=(*ENDINGS, "obs_after_done_is_reset_obs"))
def action_masks_of_the_new_episode(scene: Scene) -> Iterator[Demand]:
    """The action masks where a row has just ended are those of the new episode.

    SB3-Contrib's algorithms ask for `env_method("action_masks")` before each action, and choose
    among the actions that they allow. Equal observations, or the starts after `reset()`, show what
    the masks depend on; an observation may contain them as well. Typical mistake: they are computed
    after the action of a step, and not after the reset within it.
    """
    subject, env = scene.subject, scene.make()
    has = scene.caught(env.has_attr, "action_masks")
    if has.failure is not None or not has.result:
        raise NotExercisedError("it has no action masks")
    if scene.caught(env.env_method, "action_masks").failure is not None:
        raise NotExercisedError("it gives no action masks")
    env.action_space.seed(scene.choose(range(100)))
    starts: list[tuple[Value, Value]] = []
    others: list[tuple[Value, Value]] = []
    new: list[tuple[Value, Value]] = []
    seed = scene.seed() if subject.capabilities.get("seeding") else None
    for k in range(_RESETS):
        obs = (env.restart(seed) if k == 0 else env.reset()).obs
        masks = env.env_method("action_masks").whole
        starts += [(obs.row(i), masks[i]) for i in scene.rows]
    for _ in range(min(_MOST_STEPS, round(_MOST_SECONDS / max(subject.step_seconds, 1e-6)))):
        step = env.step(Drawn(sample_source(subject)))
        masks = env.env_method("action_masks").whole
        for i in scene.rows:
            (new if i in step.ended else others).append((step.obs.row(i), masks[i]))
    known: dict[bytes, list[Value]] = {}
    for obs, mask in (*starts, *others):
        known.setdefault(bytes_of(obs.value), []).append(mask)
    repeated = [values(masks) for masks in known.values() if len(masks) > 1]
    by_obs = sum(map(len, repeated)) >= STEPS and all(distinct(masks) == 1 for masks in repeated)
    constant = distinct(values([mask for _, mask in starts])) == 1
    wrong = []
    for obs, mask in new:
        alike = known.get(bytes_of(obs.value), []) if by_obs else []
        expected = alike or [starts[0][1]] * constant
        scene.judged |= bool(expected)
        wrong += [(mask, each) for each in expected[:1] if not equal(mask.value, each.value)]
    yield from _masks_in_observations(scene, [*starts, *others], new)
    if len(wrong) > 1:
        mask, usual = wrong[-1]
        same = "at the same observation in other episodes" if by_obs else "after each reset()"
        yield expect("equal({0}, {1})", mask, usual, should=f"{short(usual.value)}, as {same}")
    if not scene.judged:
        raise NotExercisedError("it cannot be told what the masks depend on")


def _masks_in_observations(
    scene: Scene, others: list[tuple[Value, Value]], new: list[tuple[Value, Value]]
) -> Iterator[Demand]:
    """An entry that shows the masks in all other observations does so after ends, too."""
    if not isinstance(others[0][0].value, dict):
        return
    for key in others[0][0].value:
        if all(np.array_equal(obs.value[key], mask.value) for obs, mask in others):
            scene.judged |= bool(new)
            for obs, mask in new:
                should = "the mask that env_method gives, as in all other observations"
                yield expect("np.array_equal({0}, {1})", obs[key], mask, should=should)
