"""Parametrised tests that take long with each of their cases: a change runs a few, nightly all.

The times are those of one case, on two cores that do other work as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from tests.profiles import spread

Item = TypeVar("Item")

# How many cases run, by file and function.
CASES = {
    # All checks on an environment: 2 to 10 s.
    "tests/conformance/checks/test_vec_env.py": {
        "test_correct_environments_pass": 4,
        "test_the_correct_family_passes": 6,
    },
    "tests/conformance/checks/test_vec_env_awkward.py": {
        "test_an_awkward_row_passes": 5,
        "test_odd_infos_pass": 1,
    },
    "tests/conformance/checks/test_vector_env.py": {
        "test_correct_forms_pass": 6,
        "test_correct_forms_agree_with_single_environments": 3,
        "test_sync": 3,
        "test_sync_with_environments_that_reuse_their_array": 1,
        "test_async": 1,
        "test_native_cartpole": 1,
        "test_running_statistics": 2,
        "test_a_reproduction_fails_by_itself": 12,
    },
    # A page: 4 to 20 s.
    "tests/test_docs.py": {
        "test_snippets_of_a_page_run": 8,
    },
    # Processes, games and training: 0.5 to 5 s.
    "tests/parallel/test_make.py": {
        "test_arguments_of_atari_games_are_those_of_single_ones": 4,
    },
    "tests/to_sb3/backends/test_ale.py": {
        "test_atari_next_step_and_same_step_give_one_stream": 3,
    },
    "tests/to_sb3/backends/test_envpool.py": {
        "test_envpool_restarts_ended_rows_as_it_does_itself": 2,
    },
    "tests/to_sb3/backends/test_interrupts.py": {
        "test_interrupted_operation": 6,
    },
    "tests/to_sb3/sb3/test_training.py": {
        "test_off_policy_training_gives_the_same_weights": 6,
        "test_sb3_contrib_training_gives_the_same_weights": 6,
    },
    "tests/to_sb3/test_differential.py": {
        "test_async_equals_dummy_vec_env": 3,
        "test_async_start_methods_equal_dummy_vec_env": 6,
        "test_overriding_subclasses_equal_dummy_vec_env": 4,
        "test_wrapped_async_equals_dummy_vec_env": 3,
    },
    "tests/to_sb3/test_environments.py": {
        "test_atari_streams_equal_those_of_sb3": 2,
        "test_mujoco_streams_equal_those_of_sb3": 4,
        "test_mujoco_training_gives_the_same_weights": 2,
    },
    "tests/to_sb3/test_rows_async.py": {
        "test_observations_without_a_number_equal_those_of_dummy_vec_env": 6,
    },
    "tests/upstream/test_canary.py": {
        "test_entry_with_another_name_or_form_is_missing": 40,
    },
    "tests/upstream/test_missing_names_of_sb3.py": {
        "test_module_that_has_moved": 1,
    },
}


def left_out(items: Iterable[tuple[str, Item]]) -> list[Item]:
    """The cases that this profile leaves out.

    Args:
        items: The collected cases, each with its node id.
    """
    cases: dict[str, list[Item]] = {}
    for node_id, item in items:
        cases.setdefault(node_id.partition("[")[0], []).append(item)
    out = []
    for name, found in cases.items():
        path, _, function = name.partition("::")
        if few := CASES.get(path, {}).get(function):
            kept = set(map(id, spread(found, few)))
            out += [item for item in found if id(item) not in kept]
    return out
