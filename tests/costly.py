"""Tests that take long, or have long cases: a change runs a few of these, nightly all.

The times are those of one case, on two cores that do other work as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from tests.profiles import spread

Item = TypeVar("Item")

# How many cases run, by test; with 0, the test runs nightly only.
CASES = {
    # All checks on an environment: 2 to 10 s.
    "conformance/checks/no_false_accusation::sb3_does_not_get_more_observations_than_fit": 0,
    "conformance/checks/vec_env::the_correct_family_trains": 0,
    "conformance/checks/vec_env_awkward::an_awkward_row_passes": 2,
    "conformance/checks/vec_env_awkward::odd_infos_pass": 0,
    "conformance/run/known::a_vec_env_of_stable_baselines3_has_known_failures": 0,
    "conformance/run/known::a_known_failure_is_expected_and_others_are_not": 1,
    "conformance/world::a_target_has_the_expected_failures_only": 0,
    "conformance/public_adapters::the_main_defect_of_a_port_is_found": 0,
    "conformance/matrix::what_is_not_as_it_says_is_named": 2,
    "conformance/own_checks::script_of_a_check_fails_as_the_check_does": 2,
    "trace/trace::marks_are_the_failures_of_the_same_clauses_in_the_kit": 2,
    "trace/trace::what_looks_wrong_is_marked_with_the_id_of_a_check_and_nothing_else": 7,
    # A page: 4 to 20 s.
    "docs::snippets_of_a_page_run": 1,
    "docs::the_tutorial_on_checking_shows_what_the_command_prints": 0,
    "examples::three_bridges_train_and_compare_values": 1,
    "examples::ppo_learns_the_same_from_both_environments": 0,
    "examples::wrong_endings_lower_the_values_that_are_learned": 0,
    "examples::skrl_trains_on_vec_normalize": 0,
    "examples::simulator_of_the_gpu_example_keeps_its_contract": 0,
    "package::readme_runs_from_the_wheel_installed_by_the_printed_line": 0,
    # It builds the site.
    "site::site_has_the_messages_the_commands_and_the_copied_pages": 0,
    # Processes, games, training, and many cases.
    "parallel/launch::workers_leave_ctrl_c_to_their_parent_and_end_when_it_is_killed": 2,
    "parallel/launch::process_of_multiprocessing_ends_without_close": 2,
    "parallel/launch::python_ends_without_close": 2,
    "parallel/launch::process_has_what_the_exchange_needs": 5,
    "conformance/reports::each_script_of_a_report_shows_its_defect": 0,
    "parallel/program::ids_that_the_program_registered_are_known_to_workers": 1,
    "parallel/rerun::unguarded_script_is_told_so_where_gymnasium_starts_the_workers": 0,
    "parallel/ray_actors::parts_of_every_kind_equal_dummy_vec_env": 1,
    "parallel/ray_actors::large_observations_of_other_nodes_equal_dummy_vec_env": 0,
    "parallel/ray_actors::node_that_is_lost_in_a_step_is_named_or_its_rows_go_on_elsewhere": 0,
    "parallel/operations::operations_over_ray": 0,
    "parallel/ray_cluster::example_trains_on_the_cluster": 0,
    "parallel/ray_cluster::actors_in_a_placement_group_find_their_bundles": 0,
    "parallel/ray_cluster::killed_parent_leaves_no_actor_and_ray_is_initialised_as_by_default": 0,
    "parallel/weights::training_with_actors_gives_the_same_weights": 0,
    "parallel/workers::rows_of_a_lost_worker_end_as_truncated": 1,
    "to_gymnasium/gymnasium_wrappers::wrapper_works_as_over_sync_vector_env": 12,
    "to_gymnasium/interrupts::interrupted_operation": 12,
    "to_sb3/backends/ale::atari_next_step_and_same_step_give_one_stream": 2,
    "to_sb3/backends/envpool::envpool_restarts_ended_rows_as_it_does_itself": 1,
    "to_sb3/backends/jax::jax_wrappers_change_nothing_in_the_stream": 1,
    "to_sb3/backends/transitions::transitions_are_true": 7,
    "to_sb3/differential::async_equals_dummy_vec_env": 4,
    "to_sb3/differential::async_start_methods_equal_dummy_vec_env": 4,
    "to_sb3/differential::overriding_subclasses_equal_dummy_vec_env": 2,
    "to_sb3/faults::stopped_worker_is_a_timeout_error": 2,
    "to_sb3/faults::killed_worker_is_named": 4,
    "to_sb3/faults::fault_in_a_call_is_the_error_of_that_call": 12,
    "to_sb3/faults::exception_arrives_with_its_type_and_traceback": 12,
    "to_sb3/interrupts::interrupted_operation": 20,
    "to_sb3/interrupts::interrupted_close_is_finished_by_the_next": 4,
    "to_sb3/rows_async::observations_without_a_number_equal_those_of_dummy_vec_env": 6,
    "to_sb3/wrappers::wrapper_is_exact_or_refused": 24,
    "ipc/pipes::answers_of_all_sizes": 8,
}


def short(node_id: str) -> str:
    """What `CASES` calls a test: `room/module::function`, without its case and each `test_`."""
    return re.sub(r"^tests/|\.py\b|test_|\[.*", "", node_id)


def left_out(items: Iterable[tuple[str, Item]]) -> list[Item]:
    """The cases that this profile leaves out.

    Args:
        items: The collected cases, each with its node id.
    """
    cases: dict[str, list[Item]] = {}
    for node_id, item in items:
        cases.setdefault(short(node_id), []).append(item)
    out = []
    for name, found in cases.items():
        kept = set(map(id, spread(found, CASES.get(name, len(found)))))
        out += [item for item in found if id(item) not in kept]
    return out
