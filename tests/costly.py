"""Tests that take long, or have long cases: a change runs a few of these, nightly all.

The times are those of one case, on two cores that do other work as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from tests.profiles import spread

Item = TypeVar("Item")

# How many cases run, by file and function; with 0, the test runs nightly only.
CASES = {
    # All checks on an environment: 2 to 10 s.
    "tests/conformance/checks/test_no_false_accusation.py": {
        "test_sb3_does_not_get_more_observations_than_fit": 0,
    },
    "tests/conformance/checks/test_vec_env.py": {
        "test_the_correct_family_trains": 1,
    },
    "tests/conformance/checks/test_vec_env_awkward.py": {
        "test_an_awkward_row_passes": 2,
        "test_odd_infos_pass": 0,
    },
    "tests/conformance/run/test_known.py": {
        "test_a_vec_env_of_stable_baselines3_has_known_failures": 0,
        "test_a_known_failure_is_expected_and_others_are_not": 1,
    },
    # A page: 4 to 20 s.
    "tests/test_docs.py": {
        "test_snippets_of_a_page_run": 2,
    },
    "tests/test_examples.py": {
        "test_ppo_in_a_single_file_learns": 0,
        "test_ppo_learns_the_same_from_both_environments": 0,
        "test_wrong_endings_lower_the_values_that_are_learned": 0,
        "test_skrl_trains_on_vec_normalize": 0,
        "test_simulator_of_the_gpu_example_keeps_its_contract": 0,
    },
    "tests/test_package.py": {
        "test_readme_runs_from_the_wheel_installed_by_the_printed_line": 0,
    },
    # It builds the site.
    "tests/test_site.py": {
        "test_site_has_the_messages_the_commands_and_the_copied_pages": 0,
    },
    # Processes, games, training, and many cases.
    "tests/parallel/test_launch.py": {
        "test_workers_leave_ctrl_c_to_their_parent_and_end_when_it_is_killed": 3,
        "test_process_of_multiprocessing_ends_without_close": 2,
        "test_python_ends_without_close": 2,
    },
    "tests/conformance/test_reports.py": {
        "test_each_script_of_a_report_shows_its_defect": 0,
    },
    "tests/parallel/test_program.py": {
        "test_ids_that_the_program_registered_are_known_to_workers": 1,
    },
    "tests/parallel/test_rerun.py": {
        "test_unguarded_script_is_told_so_where_gymnasium_starts_the_workers": 0,
    },
    "tests/parallel/test_ray_actors.py": {
        "test_parts_of_every_kind_equal_dummy_vec_env": 1,
        "test_node_that_is_lost_in_a_step_is_named_or_its_rows_go_on_elsewhere": 0,
    },
    "tests/parallel/test_operations.py": {
        "test_operations_over_ray": 0,
    },
    "tests/parallel/test_ray_cluster.py": {
        "test_example_trains_on_the_cluster": 0,
    },
    "tests/to_gymnasium/test_gymnasium_wrappers.py": {
        "test_wrapper_works_as_over_sync_vector_env": 12,
    },
    "tests/to_gymnasium/test_interrupts.py": {
        "test_interrupted_operation": 12,
    },
    "tests/to_sb3/backends/test_ale.py": {
        "test_atari_next_step_and_same_step_give_one_stream": 2,
    },
    "tests/to_sb3/backends/test_envpool.py": {
        "test_envpool_restarts_ended_rows_as_it_does_itself": 1,
    },
    "tests/to_sb3/backends/test_jax.py": {
        "test_jax_wrappers_change_nothing_in_the_stream": 1,
    },
    "tests/to_sb3/backends/test_transitions.py": {
        "test_transitions_are_true": 7,
    },
    "tests/to_sb3/test_differential.py": {
        "test_async_equals_dummy_vec_env": 2,
        "test_async_start_methods_equal_dummy_vec_env": 4,
        "test_overriding_subclasses_equal_dummy_vec_env": 2,
        "test_wrapped_async_equals_dummy_vec_env": 2,
    },
    "tests/to_sb3/test_environments.py": {
        "test_atari_streams_equal_those_of_sb3": 2,
        "test_mujoco_streams_equal_those_of_sb3": 4,
        "test_atari_evaluation_counts_games_and_not_lives": 0,
    },
    "tests/to_sb3/test_faults.py": {
        "test_stopped_worker_is_a_timeout_error": 2,
        "test_killed_worker_is_named": 4,
        "test_error_in_a_step_arrives_with_its_type_and_traceback": 4,
        "test_error_in_render_arrives": 4,
    },
    "tests/to_sb3/test_interrupts.py": {
        "test_interrupted_operation": 20,
        "test_interrupted_close_is_finished_by_the_next": 4,
    },
    "tests/to_sb3/test_rendering.py": {
        "test_wrong_render_modes_warn_as_in_sb3": 20,
    },
    "tests/to_sb3/test_rows_async.py": {
        "test_observations_without_a_number_equal_those_of_dummy_vec_env": 4,
    },
    "tests/to_sb3/test_wrappers.py": {
        "test_wrapper_is_exact_or_refused": 40,
    },
    "tests/ipc/test_pipes.py": {
        "test_answers_of_all_sizes": 8,
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
        few = CASES.get(path, {}).get(function)
        if few is not None:
            kept = set(map(id, spread(found, few)))
            out += [item for item in found if id(item) not in kept]
    return out
