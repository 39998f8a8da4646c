"""What time limits of several episodes show together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sb3compat.conformance.checks.tools.evidence import bytes_of
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import by_row, episodes
from sb3compat.conformance.values import Several, Value

# So often must something be seen, so that chance is no explanation.
_FEWEST = 3
# So many episodes that terminate there, and none that goes on, make a state a terminal one.
_TERMINAL = 8
# Of larger observations, such as images, no single number is looked at.
_MOST_NUMBERS = 64

numbers_in = PRELUDE["numbers_in"]


def limits_by_row(record: Record) -> Iterator[Demand]:
    """A row's time limit cuts that row alone, not the episodes of other rows.

    The other rows have begun their episodes later, as an end of their own came first. Their
    episodes would be truncated at ages that have nothing to do with the limit. Typical
    mistakes: one counter of steps for all rows, or a counter that is not set to 0 when an episode
    terminates.
    """
    _note_limits_over_terminations(record)
    cuts = _cuts_at_different_ages(record)
    # Rows whose limits are multiples of one another are truncated together as well, but at ages
    # beyond which they never get.
    lengths = [[len(e.steps) for e in found] for found in by_row(record)]
    longest = [max(steps, default=0) for steps in lengths]
    early = any(age < longest[i] for _, ages in cuts for i, age in ages.items())
    if len(cuts) < _FEWEST or not early:
        raise NotExercisedError("no rows of different ages were truncated")
    name = "dones" if record.family == "vec_env" else "truncations"
    ages = cuts[-1][1]
    stepped = [list(ages) for _, ages in cuts]
    yield expect(
        f"not all(np.all(flags[rows]) for flags, rows in zip({{0}}, {stepped}))",
        Several([getattr(step, name) for step, _ in cuts]),
        what="{0}[-1]",
        should=f"true in the row at its limit only, after {max(ages.values())} steps: another row "
        f"has made {min(ages.values())}",
        row=min(ages, key=ages.__getitem__),
    )


def _note_limits_over_terminations(record: Record) -> None:
    """Note a limit on the steps since the last truncation or reset, whatever terminated between.

    A game whose budget is for several lives has that by design.
    """
    for i, found in enumerate(by_row(record)):
        cuts, since = set(), 0
        for episode in found:
            own = len(episode.steps)
            since = own + (0 if episode.by == "reset" else since)
            if episode.cut:
                # An episode that terminates at the limit leaves the counter there.
                cuts |= {(own, since)} if own > 1 else set()
                since = 0
        limits = {since for _, since in cuts}
        # Of the episodes that were truncated, those after a reset have lasted for all of it.
        if len(limits) == 1 and len(cuts) >= _FEWEST and any(own in limits for own, _ in cuts):
            record.partly(
                f"row {i} is truncated {min(limits)} steps after the last truncation or reset, "
                "also where episodes terminated between: if that is no budget for several "
                "episodes, set its counter to 0 when one terminates"
            )


def _cuts_at_different_ages(record: Record) -> list[tuple[Call, dict[int, int]]]:
    """The steps that truncate a row while another one is in another step, with the rows' steps."""
    ages: dict[int, dict[int, int]] = {}
    cut: set[int] = set()
    for episode in episodes(record):
        for age, step in enumerate(episode.steps, 1):
            ages.setdefault(id(step), {})[episode.row] = age
        if episode.cut:
            cut.add(id(episode.end))
    found = [(step, ages[id(step)]) for step in record.endings if id(step) in cut]
    # A row that is reset in NEXT_STEP mode makes no step.
    return [(step, by_row) for step, by_row in found if len(set(by_row.values())) > 1]


def terminal_states_at_the_limit(record: Record) -> Iterator[Demand]:
    """An episode that ends in a terminal state has terminated, also where its time is up.

    A state is terminal if many episodes have terminated there before their time was up, and none
    has gone on; so is what has a number, such as an empty stock, in a place where all terminated
    episodes have numbers with which none has gone on. Where all truncated episodes end like that,
    it may be what is shown after any end.
    """
    rows = by_row(record)
    alike = record.subject.capabilities.get("alike_rows")
    for found in [[each for row in rows for each in row]] if alike else rows:
        over = [(episode, _shown(episode.last)) for episode in found if episode.over]
        cuts = [(episode, shown) for episode, shown in over if episode.cut]
        limits = {len(episode.steps) for episode, _ in cuts}
        # What is seen at the limit alone never goes on.
        early = [(e, shown) for e, shown in over if not e.cut and len(e.steps) not in limits]
        ends = Counter(one for _, shown in early for one in shown)
        terminal = {one for one, count in ends.items() if count >= _TERMINAL}
        places = set[int]()
        passed = [obs for e in found for obs in (e.seen[:-1] if e.over else e.seen)]
        while terminal and passed:
            going = _shown(passed.pop()) & ends.keys()
            terminal -= going
            places |= {one[0] for one in going if not isinstance(one, bytes)}
        terminal = {one for one in terminal if isinstance(one, bytes) or one[0] not in places}
        for one in terminal:
            there = [episode for episode, shown in cuts if one in shown]
            few = isinstance(one, bytes) or _FEWEST * len(there) < len(cuts)
            if len(cuts) - len(there) < _FEWEST or not few:
                continue
            record.judged = True
            for episode in there:
                step, i = episode.end, episode.row
                where = f"row {i} is in a state where all other episodes have terminated"
                if record.family == "vec_env":
                    flag = step.infos[i]["TimeLimit.truncated"]
                    yield expect("not {0}", flag, should=f"False, as {where}", row=i)
                else:
                    yield expect("{0}", step.terminations[i], should=f"True, as {where}", row=i)
    raise NotExercisedError("no observation shows a terminal state, or no time limit elsewhere")


def _shown(obs: Value) -> set[bytes | tuple[int, float]]:
    """What may show that a state is terminal: the observation, and each of its numbers if few."""
    numbers = numbers_in(obs.value)
    few = numbers.tolist() if len(numbers) <= _MOST_NUMBERS else ()
    return {bytes_of(obs.value), *enumerate(few)}
