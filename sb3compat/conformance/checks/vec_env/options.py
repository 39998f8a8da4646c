"""What `set_options` does, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sb3compat.conformance.checks.tools.scenes import (
    not_out_of_one_dict,
    options_of,
    telling_options,
)
from sb3compat.conformance.checks.vec_env.marks import DETERMINISTIC, marked
from sb3compat.conformance.contract import SB3_SOURCE
from sb3compat.conformance.findings import EnvFailureError, NotExercisedError, said_by, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Given
from sb3compat.conformance.scene import Recorded, Scene
from sb3compat.conformance.values import Value, constant

_RESET_INFOS = (*DETERMINISTIC, "reset_infos_n_dicts")
# Options that no environment looks for.
_MEANINGLESS = {"nothing": 0}
_NAMED = "no reset looks for options by name, or it needs those that it looks for"

stable = PRELUDE["stable"]

error, _ = marked(group="options", source=SB3_SOURCE, needs=("seeding",))


@dataclass(frozen=True)
class _Start:
    """What a reset has returned, with the infos."""

    obs: Value
    infos: Value

    def row(self, i: int) -> tuple[Value, Value]:
        """The observation and the info of a row."""
        return self.obs.row(i), self.infos[i]


def _start(env: Recorded, seed: int, options: Any = None) -> _Start:
    """Reset under a seed, and with options if some are given."""
    if options is not None:
        env.set_options(options)
    return _begun(env, env.restart(seed))


def _begun(env: Recorded, call: Call) -> _Start:
    """What a reset has returned, or a step in which rows were reset."""
    # SB3's wrappers have `reset_infos` of their own, which stay empty; others fill theirs.
    path, layer = "reset_infos", env.live
    while "venv" in vars(layer) and not any(getattr(layer, "reset_infos", ())):
        path, layer = f"venv.{path}", layer.venv
    return _Start(call.obs, call.reset_infos if layer is env.live else env.read(path))


def _twice(scene: Scene, seed: int, options: Any = None) -> tuple[_Start, _Start]:
    """The start of two instances, as infos may contain clock times."""
    one, other = (_start(telling_options(scene), seed, options) for _ in range(2))
    return one, other


def _stable(known: tuple[_Start, _Start], i: int) -> tuple[Value, Value, Value]:
    """The observation and the info of a row, and the info of the other instance."""
    return (*known[0].row(i), known[1].infos[i])


def _starts_like(
    start: _Start, known: tuple[_Start, _Start], i: int, given: str
) -> Iterator[Demand]:
    obs, info, other = _stable(known, i)
    got = short((obs.value, stable(info.value, other.value)), 80)
    condition = "starts_like(({0}, {1}), ({2}, stable({3}, {4})))"
    values = (*start.row(i), obs, info, other)
    yield expect(condition, *values, what="({0}, {1})", should=f"{got}, {given}", row=i)


@error(needs=("options", "seeding"), after=_RESET_INFOS)
def options_reach_env(scene: Scene) -> Iterator[Demand]:
    """Options given to `set_options` reach every row's environment at the next reset.

    A dict is for all rows. Where the user gives none, the check passes a probe option, which only
    the infos of the resets show. Typical mistake: `reset` does not pass them on.
    """
    seed = scene.seed()
    plain, special = _twice(scene, seed), _twice(scene, seed, options_of(scene))
    for i in scene.rows:
        yield expect(
            "not equal(({0}, stable({1}, {2})), ({3}, stable({4}, {5})))",
            *_stable(special, i),
            *_stable(plain, i),
            what="({0}, {1})",
            should="another observation or info than without options",
            row=i,
        )


@error(needs=("seeding",), after=(*_RESET_INFOS, "options_reach_env"))
def options_per_row(scene: Scene) -> Iterator[Demand]:
    """A list given to `set_options` holds the options of each row.

    Where no options are known, the check passes some in which every name is missing, and asks
    which of them a reset looks for names in. A reset may refuse options that differ, by an
    `AssertionError`, a `NotImplementedError`, or a `ValueError` that speaks of options: that is
    not judged. Typical mistakes: the list is passed on whole, or its first element to all rows.
    """
    if scene.subject.missing(("options",)):
        yield from _not_all_rows_look_into_one(scene)
        return
    seed = scene.seed()
    plain, special = _twice(scene, seed), _twice(scene, seed, options_of(scene))
    chosen = scene.some_rows()
    options = [options_of(scene) if i in chosen else {} for i in scene.rows]
    with _unless_refused():
        mixed = _start(telling_options(scene), seed, options)
    for i in scene.rows:
        known, given = (special, "its options") if i in chosen else (plain, "no options")
        yield from _starts_like(mixed, known, i, f"for {given}")


@contextmanager
def _unless_refused() -> Iterator[None]:
    """An environment may take one dict for all rows only, if it says so."""
    try:
        yield
    except EnvFailureError as failure:
        # A list that is taken for a dict raises a ValueError, too, which is about sequences.
        told = isinstance(failure.error, ValueError) and "option" in str(failure.error).lower()
        if told or isinstance(failure.error, AssertionError | NotImplementedError):
            said = said_by(failure.error)
            raise NotExercisedError(f"a reset refuses options of single rows: {said}") from failure
        raise


def _not_all_rows_look_into_one(scene: Scene) -> Iterator[Demand]:
    """If a reset looks into the options of one row only, it does not do so for all rows."""
    if not scene.subject.unnamed or scene.n < 2:
        raise NotExercisedError(f"{_NAMED}, or there is one row")
    env = scene.make()
    options = [scene.made_by("noting_options", f"options_{i}") for i in scene.rows]
    listed = ", ".join(each.record.name for each in options)
    with _unless_refused():
        env.set_options(Given(f"[{listed}]", [each.live for each in options]))
        env.restart(scene.seed())
    names = [each.attribute("names") for each in options]
    asked = [i for i in scene.rows if names[i].value]
    another = scene.make("another")
    shared = scene.made_by("noting_options", "options")
    another.set_options(shared)
    another.restart(scene.seed())
    yield not_out_of_one_dict(scene, shared)
    if not asked:
        raise NotExercisedError("it takes no list of options")
    # A row may be the only one that takes options; it hardly looks for each name n times.
    counts = Counter(names[asked[0]].value).values()
    if len(asked) == 1 and all(count % scene.n == 0 for count in counts):
        i = next(i for i in scene.rows if i not in asked)
        should = f"not [], as row {asked[0]} alone has looked for each name {scene.n} times"
        yield expect("{0} != []", names[i], should=should, row=i)
    scene.judged = True


@error(
    after=(*_RESET_INFOS, "options_reach_env", "reset_infos_updated_on_autoreset"),
)
def options_used_once(scene: Scene) -> Iterator[Demand]:
    """Options are used for one reset; no later reset has them, the rows' own resets included.

    Where no options are known, the check passes some in which every name is missing, and asks
    whether a later reset still looks for names in them. Typical mistake: they are kept after the
    reset, and apply to all episodes of the run.
    """
    if scene.subject.missing(("options",)):
        yield from _no_later_reset_looks_into_options(scene)
        return
    seed = scene.seed()
    # The rows' own resets come first. The user's options may lead to other episodes, though.
    known = scene.subject.endings and scene.subject.options is None
    ending = scene.ending() if known else None

    def later(options: Any = None) -> tuple[_Start, list[int], _Start]:
        env = telling_options(scene)
        if options is not None:
            env.set_options(options)
        step = env.restart(seed) if ending is None else env.to_an_end(ending)
        return _begun(env, step), step.ended, _start(env, seed)

    (first, ended, second), (other, _, another) = later(), later()
    by_itself, _, again = later(options_of(scene))
    for i in ended:
        yield from _starts_like(by_itself, (first, other), i, "as without options")
    for i in scene.rows:
        yield from _starts_like(again, (second, another), i, "as without options")


def _no_later_reset_looks_into_options(scene: Scene) -> Iterator[Demand]:
    """Neither the rows' own resets nor a later `reset()` look for options by name."""
    if not scene.subject.unnamed:
        raise NotExercisedError(_NAMED)
    env = scene.make()
    options = scene.made_by("noting_options", "options")
    if scene.subject.endings:
        yield from _no_end_looks_into(env, options)
    seed = scene.seed()
    env.set_options(options)
    env.restart(seed)
    scene.part(options, "names", "names").clear()
    env.restart(seed)
    should = "[], as these options are of an earlier reset"
    yield expect("{0} == []", options.attribute("names"), should=should)


def _no_end_looks_into(env: Recorded, options: Recorded) -> Iterator[Demand]:
    """The step that ends an episode does not look for what the reset before it has looked for."""
    ending = env.scene.ending()
    act = env.acting(ending)
    env.set_options(options)
    env.restart(ending.seed)
    names = env.scene.part(options, "names", "names")
    own = {name for name in names.live if isinstance(name, str)}
    names.clear()
    for _ in range(3 * ending.steps):
        if env.step(act()).ended:
            known = sorted(own)
            should = f"none of {known}: the rows that this step resets have no options"
            yield expect(f"not {{{{*{known}}}}} & {{{{*{{0}}}}}}", names.value, should=should)
            return
        own -= {*names.live}  # ordinary steps look for these, too


@error(needs=("seeding",), after=(*_RESET_INFOS, "options_reach_env"))
def options_copied(scene: Scene) -> Iterator[Demand]:
    """`set_options` copies the dict: later changes by the caller make no difference.

    Nor does the environment change the caller's dict. SB3's base class makes deep copies. Where no
    options are known, the check passes one that means nothing, and looks whether it stays alone.
    """
    seed = scene.seed()
    if scene.subject.missing(("options",)):
        options = scene.let("options", _MEANINGLESS)
        env = scene.make()
        calls = scene.caught(env.set_options, options), scene.caught(env.reset)
        if any(call.failure is not None for call in calls):
            raise NotExercisedError("it refuses options that it does not know")
        given = constant(_MEANINGLESS)
        yield expect("equal({0}, {1})", options.value, given, should="as the caller made it")
        return
    special = _twice(scene, seed, options_of(scene))
    options = scene.let("options", options_of(scene))
    env = telling_options(scene)
    env.set_options(options)
    if scene.choose((False, True)):
        _start(env, seed)
        given = constant(options_of(scene))
        yield expect("equal({0}, {1})", options.value, given, should="as the caller made it")
        return
    options.clear()
    later = _start(env, seed)
    for i in scene.rows:
        yield from _starts_like(later, special, i, "for the options as they were given")
