"""Reaching sub-environments, rendering, and closing."""

from __future__ import annotations

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.closing import demand_close_returns, patience
from sb3compat.conformance.checks.tools.life import demand_no_growth, demand_nothing_left
from sb3compat.conformance.checks.tools.twins import Twins
from sb3compat.conformance.checks.vec_env.marks import DETERMINISTIC, error, warning
from sb3compat.conformance.contract import BASICS, SB3_GUIDE, SB3_SOURCE
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.play import Play
from sb3compat.conformance.subject.actions import batch_source
from sb3compat.conformance.subject.interface import offers

_SUB_ENVS = ("sub_envs",)
_MARK = "for i in range({}):\n    env.set_attr('kit_mark', 10 + i, indices=[i])"
_AFTER_ERRORS = (*BASICS["vec_env"], "wrong_action_count_rejected", "close_returns")
_REACHED = ("set_attr_only_named_rows",)


@warning(group="sub-environments", source=SB3_SOURCE, after=())
def access_works_or_is_refused(play: Play) -> None:
    """`set_attr` and `get_attr` work for all rows and for named ones, or say that they do not.

    An environment without sub-environments raises NotImplementedError or AttributeError, and the
    checks of this group are skipped. Any other exception, or another number of values than rows, is
    a mistake. It must not pass for a missing ability.
    """
    play.make()
    if not all(offers(play.value("env"), name) for name in ("get_attr", "set_attr")):
        raise NotExercisedError("it has no such methods")
    play.run("values = []")
    refusals = "NotImplementedError, AttributeError"
    for call, refusal in (
        ("env.set_attr('kit_mark', 0)", refusals),
        ("values.extend(env.get_attr('kit_mark'))", refusals),
        # Where all rows have one attribute, other indices than None are no sensible value.
        ("env.set_attr('kit_mark', 0, indices=[0])", f"{refusals}, ValueError"),
    ):
        play.run(f"error = caught(lambda: {call})")
        refused = f"isinstance(error, ({refusal}))"
        play.demand(f"error is None or {refused}", "error", f"None or NotImplementedError, {call}")
        if play.value("error is not None"):
            return
    play.demand(f"len(values) == {play.n}", "values", f"{play.n} values, one for each row")


@error(group="sub-environments", source=SB3_GUIDE, needs=_SUB_ENVS, after=())
def set_attr_only_named_rows(play: Play) -> None:
    """`set_attr(name, value, indices)` sets the attribute in the named rows only.

    A list as value goes whole into each of these rows. Typical mistake: `indices` is ignored, so
    that a curriculum for one row changes all rows.
    """
    play.make()
    value = play.draw(st.sampled_from([1, [2, 3]]))
    chosen = sorted(play.draw(st.sets(st.integers(0, play.n - 1))) or {play.n - 1})
    play.run("env.set_attr('kit_mark', 0)")
    play.run(f"env.set_attr('kit_mark', {value}, indices={chosen})")
    expected = [value if i in chosen else 0 for i in range(play.n)]
    play.demand(
        f"env.get_attr('kit_mark') == {expected}", "env.get_attr('kit_mark')", f"{expected}"
    )


@error(group="sub-environments", source=SB3_GUIDE, needs=_SUB_ENVS, after=_REACHED)
def get_attr_indices(play: Play) -> None:
    """`get_attr(name, indices)` returns one value for each named row, in the order of `indices`.

    `indices` is None for all rows, one int, or several, and -1 is the last row. Typical mistakes:
    the order of the rows instead of that of `indices`; 0 taken for None.
    """
    play.make()
    play.run(_MARK.format(play.n))
    n = play.n
    ways: list[tuple[str, list[int]]] = [
        (str(list(range(n))[::-1]), list(range(n))[::-1]),
        ("0", [0]),
        ("-1", [n - 1]),
        ("None", list(range(n))),
        ("(0,)", [0]),
        (f"range({n})", list(range(n))),
        (f"[{n - 1}, 0, {n - 1}]", [n - 1, 0, n - 1]),
        ("[-1]", [n - 1]),
    ]
    indices, rows = play.draw(st.sampled_from(ways))
    expected = [10 + i for i in rows]
    what = f"env.get_attr('kit_mark', indices={indices})"
    play.demand(f"{what} == {expected}", what, f"{expected}")


@warning(
    group="sub-environments",
    source=SB3_SOURCE,
    needs=_SUB_ENVS,
    after=(*_REACHED, "get_attr_indices"),
)
def numpy_int_indices(play: Play) -> None:
    """`indices` may be an array of NumPy integers, as `np.flatnonzero(dones)` gives.

    Typical mistake: indices are looked up in a dict, or compared by type.
    """
    play.make()
    play.run(_MARK.format(play.n))
    rows = play.draw(st.sampled_from([[play.n - 1, 0], [0], [play.n - 1]]))
    expected = [10 + i for i in rows]
    play.run(f"indices = np.array({rows})")
    play.run("values = []")
    play.run("error = caught(lambda: values.extend(env.get_attr('kit_mark', indices=indices)))")
    play.demand("error is None", "error", f"None, and the values {expected}")
    play.demand(f"values == {expected}", "values", f"{expected}")


@error(group="sub-environments", source=SB3_SOURCE, needs=_SUB_ENVS, after=BASICS["vec_env"])
def missing_attr_raises_and_survives(play: Play) -> None:
    """`get_attr` raises AttributeError for a missing attribute, and the environment goes on.

    `has_attr` and algorithms that look for optional methods rely on the type. Typical mistake: the
    exception ends the worker process, and the caller gets an EOFError at once or at the next
    step.
    """
    play.start()
    play.run("error = caught(lambda: env.get_attr('no_such_attribute'))")
    if play.value("error is None"):
        _rows_have_their_limits(play)
    play.demand("isinstance(error, AttributeError)", "error", "an AttributeError")
    play.run(f"error = caught(lambda: env.step({play.actions()}))")
    play.demand("error is None", "error", "None, as the step has nothing to do with it")


def _rows_have_their_limits(play: Play) -> None:
    """Pass on, unless the single environments answer to any name: then none is missing.

    Raises:
        NotExercisedError: If they do.
    """
    asked = "[callable(f) for f in env.get_attr('__getattr__')]"
    if play.value(f"caught(lambda: {asked}) is None") and any(play.value(asked)):
        raise NotExercisedError("its single environments answer to any name")


@error(group="sub-environments", source=SB3_SOURCE, needs=_SUB_ENVS, after=_REACHED, new=True)
def has_attr_truthful(play: Play) -> None:
    """`has_attr(name)` is true exactly if every row's environment has the attribute.

    MaskablePPO finds out in this way whether there are action masks.
    """
    play.make()
    if not offers(play.value("env"), "has_attr"):
        raise NotExercisedError("it has no method has_attr")
    if play.value("env.has_attr('kit_mark')"):
        _rows_have_their_limits(play)
    play.demand("not env.has_attr('kit_mark')", "env.has_attr('kit_mark')", "False")
    if play.n > 1 and play.draw(st.booleans()):
        play.run("env.set_attr('kit_mark', 1, indices=[0])")
        should = "False, as only row 0 has it"
        play.demand("not env.has_attr('kit_mark')", "env.has_attr('kit_mark')", should)
    play.run("env.set_attr('kit_mark', 1)")
    play.demand("env.has_attr('kit_mark')", "env.has_attr('kit_mark')", "True")


@error(group="sub-environments", source=SB3_GUIDE, needs=_SUB_ENVS, after=_REACHED)
def env_method_args(play: Play) -> None:
    """`env_method(name, *args, indices, **kwargs)` calls the named rows with all arguments.

    It returns one result for each named row, in the order of `indices`. Typical mistakes: keyword
    arguments are dropped, or all rows are called and some of the results returned.
    """
    play.make()
    if play.draw(st.booleans()):
        _calls_no_others(play)
        return
    play.run("echoes = [partial(dict, row=i) for i in range(env.num_envs)]")
    play.run("for i, echo in enumerate(echoes):\n    env.set_attr('kit_echo', echo, indices=[i])")
    rows = play.draw(st.sampled_from([list(range(play.n))[::-1], [0], [-1], None]))
    called = [i % play.n for i in (range(play.n) if rows is None else rows)]
    expected = [{"row": i, "a": 1, "b": 2} for i in called]
    what = f"env.env_method('kit_echo', [('a', 1)], indices={rows}, b=2)"
    play.demand(f"{what} == {expected}", what, f"{expected}")


def _calls_no_others(play: Play) -> None:
    """A method that writes into a list shows which rows were called, in other processes too."""
    rows = sorted(play.draw(st.sets(st.integers(0, play.n - 1), min_size=1)))
    play.run("for i in range(env.num_envs):\n    env.set_attr('kit_note', [].append, indices=[i])")
    play.run(f"env.env_method('kit_note', 1, indices={rows})")
    expected = [[1] if i in rows else [] for i in range(play.n)]
    what = "[note.__self__ for note in env.get_attr('kit_note')]"
    play.demand(f"{what} == {expected}", what, f"{expected}, called in rows {rows} alone")


@error(group="sub-environments", source=SB3_GUIDE, needs=_SUB_ENVS, after=())
def env_is_wrapped_per_row(play: Play) -> None:
    """`env_is_wrapped(cls, indices)` returns one bool for each named row, and the right one.

    SB3 looks for a `Monitor` before it trusts episode returns. Typical mistakes: one bool for all
    rows, always True, or NotImplementedError.
    """
    play.make()
    rare = ("AtariPreprocessing", "HumanRendering", "TimeAwareObservation")
    play.run(f"from gymnasium.wrappers import {', '.join(rare)}, TimeLimit")
    play.run("wrapped = env.env_is_wrapped(TimeLimit)")
    play.demand(
        f"len(wrapped) == {play.n} and all(isinstance(w, (bool, np.bool_)) for w in wrapped)",
        "wrapped",
        f"{play.n} bools",
    )
    one = play.draw(st.integers(-1, play.n - 1))
    what = f"env.env_is_wrapped(TimeLimit, indices=[{one}])"
    play.demand(f"list({what}) == [wrapped[{one}]]", what, "one bool, the same as for all rows")
    play.demand(
        " or ".join(f"not all(env.env_is_wrapped({name}))" for name in rare),
        "env.env_is_wrapped(HumanRendering)",
        f"False in some row for one of {', '.join(rare)}",
    )
    if not play.subject.referenced:
        return
    play.run("single = reference[0]()")
    play.run("names = []")
    play.run(
        "while hasattr(single, 'env'):\n"
        "    names.append(type(single).__name__)\n    single = single.env"
    )
    truth = "TimeLimit" in play.value("names")
    play.demand(f"wrapped[0] == {truth}", "wrapped[0]", f"{truth}, as in the single environment", 0)


@error(group="rendering", source=SB3_SOURCE, needs=("render",))
def get_images_n_frames(play: Play) -> None:
    """With the render mode `rgb_array`, `get_images()` gives n frames, one for each row.

    Each is an array of bytes of shape (height, width, 3). `render()` tiles them to one image.
    """
    play.start()
    if play.draw(st.booleans()):
        play.step()
    play.run("frames = env.get_images()")
    play.demand(f"len(frames) == {play.n}", "len(frames)", f"{play.n}")
    for i in range(play.n):
        play.demand(
            f"isinstance(frames[{i}], np.ndarray) and frames[{i}].dtype == np.uint8"
            f" and frames[{i}].ndim == 3 and frames[{i}].shape[2] == 3",
            f"frames[{i}]",
            "an image, as an array of bytes of shape (height, width, 3)",
            i,
        )


@warning(group="rendering", source=SB3_SOURCE)
def render_mismatch_warns(play: Play) -> None:
    """`render(mode)` with another mode than `render_mode` warns and returns None.

    Render modes are chosen when the environment is made. An exception would end a training for
    the sake of a picture, and without a warning nobody knows why there is none.
    """
    play.start()
    if not offers(play.value("env"), "render"):
        raise NotExercisedError("it has no method render")
    mode = "rgb_array" if play.value("env.render_mode == 'ansi'") else "ansi"
    play.run("found = []")
    play.run(f"error = caught(lambda: found.extend(warned(lambda: env.render(mode={mode!r}))))")
    play.demand("error is None", "error", "None, and a warning")
    play.demand("found[0] is None", "found[0]", f"None, as there are no frames of mode {mode!r}")
    play.demand("found[1] > 0", "found[1]", "at least one warning")


@error(group="rendering", source=SB3_SOURCE, needs=("seeding",), after=DETERMINISTIC)
def reading_changes_nothing(play: Play) -> None:
    """Rendering and reading attributes change nothing that later steps return.

    Videos are recorded, and attributes logged, in some runs and not in others. Typical mistakes:
    rendering draws from the generator of the environment, or makes a step of the simulator.
    """
    ways = ["env.get_images()", "env.render()"] if play.subject.capabilities["render"] else []
    if play.subject.capabilities["sub_envs"]:
        ways += ["env.get_attr('render_mode')", "env.get_attr('action_space', indices=0)"]
    if not ways:
        raise NotExercisedError("it neither renders nor has sub-environments")
    reading = play.draw(st.sampled_from(ways))
    twins = Twins(play, play.known_ending())
    twins.reset()
    play.run(f"caught(lambda: {reading})")
    for _ in twins.steps():
        twins.demand_same("as in an instance that nobody has looked at")
        play.run(f"caught(lambda: {reading})")


@error(group="life", source=SB3_SOURCE, after=())
def close_returns(play: Play) -> None:
    """`close()` returns, in the middle of an episode too.

    Otherwise a script that has done its work never ends. Typical mistakes: `close` joins worker
    processes that wait for a command, or waits for a step that nobody has asked for.
    """
    play.make()
    play.run("caught(env.reset)")
    demand_close_returns(play)


@warning(group="life", source=SB3_SOURCE, after=("close_returns",))
def close_idempotent(play: Play) -> None:
    """`close()` may be called twice.

    Wrappers, evaluations and `finally` clauses close environments that are closed already.
    """
    play.make()
    if play.draw(st.booleans()):
        play.run("caught(env.reset)")
    play.run("env.close()")
    play.run(f"error = within({patience(play)}, env.close)")
    play.demand("error is None", "error", "None, as it is closed already")


@warning(group="life", source=SB3_SOURCE, after=_AFTER_ERRORS)
def close_after_error(play: Play) -> None:
    """`close()` works after a failed call, and returns.

    Otherwise the second error hides the first, or processes stay behind.
    """
    play.start()
    few = batch_source("vec_env", [play.subject.actions[0]] * play.n)
    play.run(f"caught(lambda: env.step({few}[:0]))")
    play.run("caught(lambda: env.get_attr('no_such_attribute'))")
    play.run(f"error = within({patience(play)}, env.close)")
    play.demand("error is None", "error", "None, also after an error")


@warning(group="life", source=SB3_SOURCE, needs=_SUB_ENVS, after=())
def worker_exception_keeps_type(play: Play) -> None:
    """An exception in a sub-environment arrives with its own type.

    Typical mistake: it ends the worker process, and the caller gets an EOFError or a broken pipe
    without the reason. Catch it in the worker, send it over, and raise it in the caller.
    """
    play.make()
    play.run("error = caught(lambda: env.env_method('reset', no_such_argument=1))")
    if play.value("error is None"):
        raise NotExercisedError("the method takes any argument")
    play.demand(
        "not isinstance(error, (EOFError, OSError))",
        "error",
        "the TypeError that the unknown argument leads to",
    )


@error(group="life", source=SB3_SOURCE, after=(*BASICS["vec_env"], "close_idempotent"), new=True)
def nothing_left_after_close(play: Play) -> None:
    """After `close()` no process, thread or shared memory of the environment is left.

    A search over hyperparameters makes hundreds of environments in one process. Typical mistakes:
    workers are told to end, but never joined; shared memory is closed, but not unlinked; a thread
    waits for work for ever.
    """
    demand_nothing_left(play)


@warning(group="life", source=SB3_SOURCE, after=(*BASICS["vec_env"], "dones_shape"))
def memory_does_not_grow(play: Play) -> None:
    """The ends of episodes leave no memory behind, but for a few numbers.

    A training has millions of them. Typical mistake: a list of infos or last observations that
    nothing empties. The memory that Python has handed out is measured over a few hundred
    episodes, where episodes are short enough for that.
    """
    demand_no_growth(play)
