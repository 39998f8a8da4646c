"""Infos of a VectorEnv: a dict of batches, each with a mask of the rows that have the key."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from sb3compat.conformance.checks.tools.leaks import (
    infos_of_autoresets,
    infos_of_their_own_step,
    keys_of_their_own_row,
)
from sb3compat.conformance.checks.tools.singles import entries_of, keys_of, with_infos_of_singles
from sb3compat.conformance.checks.tools.statistics import statistics_of_the_episode
from sb3compat.conformance.checks.vector_env.marks import DICT_INFO, STATISTICS, VECTOR_ENV, marked
from sb3compat.conformance.contract import BASICS, GYM_AUTORESET
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Record

_INFOS = (*BASICS["vector_env"], "info_masks", "autoreset_mode_matches_behaviour")

error, warning = marked(group="infos", source=VECTOR_ENV)


def _masks_are_masks(record: Record) -> Iterator[Demand]:
    n = record.num_envs
    for call in record.batches:
        yield expect(
            f"not bad_masks({{0}}, {n})",
            call.infos,
            what=f"bad_masks({{0}}, {n})",
            should=f"{{}}: masks are bool arrays of shape ({n},), and what has one has {n} entries",
        )


@error(without_reference=_masks_are_masks)
def info_masks(record: Record) -> Iterator[Demand]:
    """A mask `_key` in `infos` is a bool array of shape `(num_envs,)`; without it all rows count.

    With another mask, or values of the masked rows alone, `infos["key"][infos["_key"]]` picks the
    wrong rows. `_add_info` of `VectorEnv` makes both. With a reference, each row must have the
    keys of its single environment, and no others.
    """
    yield from _masks_are_masks(record)
    known: dict[int, set[object]] = {}
    for each in with_infos_of_singles(record):
        keys, mine = keys_of(each), known.setdefault(each.row, set())
        mine |= keys
        got = each.call.infos.info(each.row)
        yield expect(
            f"{{{{*{sorted(keys, key=str)!r}}}}} <= set({{0}})",
            got,
            what="list({0})",
            should=f"with all of {short(sorted(keys, key=str))}, as its single environment has",
            row=each.row,
        )
        # Vector wrappers may add keys that no single environment has.
        alien = sorted(mine - keys, key=str)
        yield expect(
            f"not {{{{*{alien!r}}}}} & set({{0}})",
            got,
            what="list({0})",
            should=f"without {short(alien)}, which its single environment does not have here",
            row=each.row,
        )


@warning(source=DICT_INFO, after=(*BASICS["vector_env"], "info_masks"))
def info_values_batched(record: Record) -> Iterator[Demand]:
    """Each value in `infos` has one entry for each row, or is a dict of such values.

    A single number or string for all rows cannot be split by row: `DictInfoToList` raises. Repeat
    it: `np.full(num_envs, value)`.
    """
    n = record.num_envs
    for call in record.batches:
        yield expect(
            f"not unbatched({{0}}, {n})",
            call.infos,
            what=f"unbatched({{0}}, {n})",
            should=f"{{}}: values have {n} entries",
        )


@error(source=STATISTICS, after=(*BASICS["vector_env"], "info_masks"))
def episode_statistics_at_end_only(record: Record) -> Iterator[Demand]:
    """`infos["episode"]`, the return and length of an episode, is about rows that have ended.

    Training code takes whatever is there for the statistics of a finished episode. Its mask
    `_episode` is true in these rows only. Typical mistake: the entry of the last episode stays in
    the infos of later steps.
    """
    for step in record.through_endings:
        for i in record.running(step):
            yield expect(
                f"not tells_statistics({{0}}, {i})",
                step.infos,
                what=f"info_of({{0}}['episode'], {i})",
                should="no entry of this row, as its episode continues",
                row=i,
            )
    raise NotExercisedError("no episode ended, or each step ends all of them")


@error(source=STATISTICS, after=(*_INFOS, "episode_statistics_at_end_only"))
def episode_statistics_of_the_episode(record: Record) -> Iterator[Demand]:
    """`infos["episode"]` has the return `r` and the length `l` of the episode that has ended.

    Typical mistakes: they are summed up over episodes, or go on after `reset()`; the last step does
    not count, or the one that resets the row in NEXT_STEP mode does, or the one after an end does
    not in another mode; the reset of a row sets all rows back; there are none where episodes are
    truncated, so that these are in no mean. A monitor that counts something else, such as the
    frames below a wrapper that skips some, or rewards before they are clipped, is only noted.
    """
    yield from statistics_of_the_episode(record)


@error(after=_INFOS)
def infos_without_old_entries(record: Record) -> Iterator[Demand]:
    """`infos` has no entry of another end in a row: of its episode before, or of another row.

    Code that looks for the entry finds another end. Typical mistakes: the dict of the last step is
    filled again, and its masks stay as they were; `_add_info` gets the number of a row among those
    that end, not the row; after a masked reset the masks name all rows, with zeros in those that it
    leaves out.
    """
    yield from infos_of_their_own_step(record)


@error(
    source=GYM_AUTORESET, modes=("NextStep", "SameStep"), after=(*_INFOS, "final_info_is_step_info")
)
def infos_of_the_autoreset(record: Record) -> Iterator[Demand]:
    """`infos` of a step that resets a row has what the reset of the row gives.

    Masks, goals and seeds of the new episode are read from it: in NEXT_STEP mode in the step after
    the ending one, in SAME_STEP mode in the ending step itself, whose `infos["final_info"]` has
    none of the entries that resets alone give; the rest has none that steps alone give. Of resets,
    only entries that differ are judged. Typical mistake: the infos of the reset are dropped, or put
    into `final_info`, too; or those of the step are left beside it.
    """
    yield from infos_of_autoresets(record)


@warning(after=_INFOS)
def infos_without_others_entries(record: Record) -> Iterator[Demand]:
    """`infos` has no empty entry in a row because another row has that entry.

    Without the mask `_key`, or with one that is true in all rows or made of another key's, the row
    seems to have given the value `None` or 0. A masked reset names no row that it leaves out, in
    entries that resets alone give. `_add_info` of `VectorEnv` makes the mask.
    """
    of_steps = set[object]().union(*(step.infos.value for step in record.steps))
    for reset in (call for call in record.resets if call.mask is not None):
        told = {key for key in reset.infos.value if f"_{key}" in reset.infos.value} - of_steps
        for key, i in product(sorted(told, key=str), np.flatnonzero(~reset.mask).tolist()):
            should = f"False, as row {i} was not reset"
            yield expect("not {0}", reset.infos[f"_{key}"][i], should=should, row=i)
    yield from keys_of_their_own_row(record)


@warning(needs=("reference",))
def info_values_keep_type(record: Record) -> Iterator[Demand]:
    """Batching keeps the values of infos: 1.75 in one row is not 1 because another row has an int.

    An array with the dtype of the first row's value casts the values of other rows silently, and
    `VectorEnv._add_info` makes such arrays. Give a key one type in all environments and steps, or
    promote the dtype over the rows.
    """
    for each in with_infos_of_singles(record):
        got = each.call.infos.info(each.row)
        for key in sorted(entries_of(each).keys() & set(got.value), key=str):
            expected = each.alone.info[key]
            yield expect(
                "equal({0}, {1})",
                got[key],
                expected,
                should=f"{short(expected.value)}, as its single environment gives",
                row=each.row,
            )
    raise NotExercisedError("single environments give no infos, or rows lack them")
