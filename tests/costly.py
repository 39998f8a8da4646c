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
    "conformance/checks/no_false_accusation::a_wall_before_the_limit_is_no_stale_observation": 0,
    "conformance/checks/no_false_accusation::a_row_that_one_action_does_not_move_is_not_still": 0,
    "conformance/checks/no_false_accusation::an_answer_to_any_name_is_no_ability": 0,
    "conformance/checks/no_false_accusation::the_innermost_object_may_be_a_simulator": 0,
    "conformance/checks/no_false_accusation::sb3_does_not_get_more_observations_than_fit": 0,
    "conformance/checks/vec_env_awkward::an_awkward_row_passes": 1,
    "conformance/checks/vec_env_awkward::odd_infos_pass": 0,
    "conformance/run/known::a_vec_env_of_stable_baselines3_has_known_failures": 0,
    "conformance/matrix::what_is_not_as_it_says_is_named": 2,
    "conformance/pytest_plugin::checks_of_a_conftest_run": 0,
    "conformance/pytest_plugin::the_knowledge_of_an_environment_is_passed_on": 0,
    "conformance/run/child::a_reset_that_hangs_is_a_finding": 0,
    "conformance/run/child::a_close_that_hangs_is_a_finding": 0,
    "conformance/run/child::a_crash_is_told_once": 0,
    "conformance/run/checking::a_check_of_endings_needs_an_ending": 0,
    "conformance/run/checking::megabytes_in_an_exception_are_cut": 0,
    "conformance/run/known::each_entry_names_a_check_a_class_and_a_place": 2,
    "conformance/old_gymnasium::a_vec_env_is_checked": 0,
    "conformance/output/formats::the_other_formats_need_no_further_library": 0,
    "conformance/commands/check::a_file_and_a_reference_are_in_the_reproduction": 0,
    "conformance/correct::no_check_reports_it": 1,
    "conformance/checks/mutants::a_mutant_fails_its_own_checks_and_no_others": 2,
    "conformance/checks/vec_env::a_training_is_short_where_steps_are_slow_and_leaves_nothing": 0,
    "conformance/checks/vector_env::rows_with_time_limits_of_their_own_may_end_at_once": 0,
    "conformance/commands/check::an_id_is_made_as_asked_and_is_its_own_reference": 0,
    "conformance/subject/singles::singles_of_specs_are_compared_with": 0,
    "trace/command::files_are_written_although_nobody_reads_what_is_printed": 0,
    "tune/command::each_line_makes_the_environment_that_was_timed": 0,
    "trace/trace::what_looks_wrong_is_marked_with_the_id_of_a_check_and_nothing_else": 4,
    "conformance/checks/no_false_accusation::a_row_that_walls_hold_is_not_late": 1,
    "conformance/checks/no_false_accusation::no_check_reports_again_what_it_took_for_broken": 4,
    "conformance/checks/no_false_accusation::worlds_in_which_the_last_action_does_not_show": 1,
    "conformance/checks/vec_env::one_mistake_is_one_failure": 1,
    "conformance/checks/vec_env::what_a_wrapper_writes_has_to_arrive": 2,
    "trace/trace::environment_whose_resets_move_nothing_is_not_marked": 2,
    "trace/trace::every_api_shows_the_same_episodes_as_the_single_environments": 2,
    # A page: 4 to 20 s.
    "docs::snippets_of_a_page_run": 1,
    "docs::the_tutorial_on_checking_shows_what_the_command_prints": 0,
    "examples::three_bridges_train_and_compare_values": 1,
    "examples::picture_of_an_episodes_end_is_that_of_a_run": 0,
    "examples::ppo_learns_the_same_from_both_environments": 0,
    "examples::wrong_endings_lower_the_values_that_are_learned": 0,
    "examples::skrl_trains_on_vec_normalize": 0,
    "examples::simulator_of_the_gpu_example_keeps_its_contract": 0,
    "package::readme_runs_from_the_wheel_installed_by_the_printed_line": 0,
    # Processes, games, training, and many cases.
    "parallel/launch::workers_leave_ctrl_c_to_their_parent_and_end_when_it_is_killed": 2,
    "parallel/launch::process_of_multiprocessing_ends_without_close": 2,
    "parallel/launch::python_ends_without_close": 2,
    "parallel/launch::process_has_what_the_exchange_needs": 5,
    "conformance/reports::each_script_of_a_report_shows_its_defect": 0,
    "parallel/program::workers_know_the_ids_and_classes_of_the_program_and_change_none": 1,
    "parallel/program::unguarded_script_is_told_so_where_gymnasium_starts_the_workers": 0,
    "parallel/ray_actors::parts_of_every_kind_equal_dummy_vec_env": 1,
    "parallel/ray_actors::large_observations_of_other_nodes_equal_dummy_vec_env": 0,
    "parallel/ray_actors::node_that_is_lost_in_a_step_is_named_or_its_rows_go_on_elsewhere": 0,
    "parallel/operations::operations_over_ray": 0,
    "parallel/ray_cluster::example_trains_on_the_cluster": 0,
    "parallel/ray_cluster::runtime_env_arrives_or_is_a_clear_error": 0,
    "parallel/ray_cluster::object_store_that_is_too_small_for_an_answer_is_an_error": 0,
    "parallel/ray_cluster::actors_bound_to_a_node_that_is_gone_are_an_error": 0,
    "parallel/ray_cluster::default_number_of_workers_is_what_the_cluster_has_room_for": 0,
    "parallel/ray_cluster::ray_that_was_shut_down_does_not_know_the_actors": 2,
    "parallel/ray_actors::signal_handler_may_raise": 0,
    "parallel/workers::error_of_a_function_arrives_and_ends_all_workers": 1,
    "parallel/ray_cluster::actors_in_a_placement_group_find_their_bundles": 0,
    "parallel/ray_cluster::killed_parent_leaves_no_actor_and_ray_is_initialised_as_by_default": 0,
    "parallel/workers::rows_of_a_lost_worker_end_as_truncated": 1,
    "parallel/workers::replaced_worker_with_other_spaces_is_refused_and_stays_lost": 1,
    "parallel/workers::worker_that_hangs_is_a_timeout_error_and_close_ends_it": 1,
    "parallel/workers::step_that_raises_is_reported_while_another_hangs": 1,
    "to_gymnasium/differential::wrapper_works_as_over_sync_vector_env": 12,
    "to_gymnasium/interrupts::interrupted_operation": 6,
    "to_sb3/backends/ale::atari_next_step_and_same_step_give_one_stream": 1,
    "to_sb3/backends/ale::atari_seeds_that_ale_does_not_take_are_refused": 2,
    "to_sb3/backends/ale::atari_that_plays_on_after_an_ending_is_refused": 2,
    "to_sb3/backends/ale::atari_that_starts_anew_after_a_life_is_not_refused": 2,
    "to_sb3/backends/jax::jax_wrappers_change_nothing_in_the_stream": 1,
    "to_sb3/backends/transitions::environment_used_before_can_be_adapted": 4,
    "to_sb3/modes::third_party_env_equals_dummy_vec_env": 2,
    "to_sb3/backends/transitions::transitions_are_true": 5,
    "to_sb3/differential::async_equals_dummy_vec_env": 4,
    "to_sb3/differential::overriding_subclasses_equal_dummy_vec_env": 2,
    "to_sb3/faults::stopped_worker_is_a_timeout_error": 2,
    "to_sb3/faults::fault_in_a_call_is_the_error_of_that_call": 12,
    "to_sb3/faults::exception_arrives_with_its_type_and_traceback": 12,
    "to_sb3/interrupts::interrupted_operation": 4,
    "to_sb3/interrupts::interrupted_close_is_finished_by_the_next": 4,
    "to_sb3/rows_async::observations_without_a_number_equal_those_of_dummy_vec_env": 6,
    "to_sb3/wrappers::wrapper_is_exact_or_refused": 13,
    "ipc/pipes::exception_at_any_point_leaves_every_message_accounted_for": 3,
    "ipc/close::close_of_an_async_vector_env": 8,
    "parallel/faults::what_a_row_raises_arrives_as_from_dummy_vec_env": 14,
    "round_trips::vec_env_comes_back_in_mid_episode": 2,
    "round_trips::vector_env_comes_back_in_mid_episode": 2,
    "round_trips::methods_of_environments_that_cannot_be_sent_are_called": 1,
    "round_trips::vec_env_below_a_vector_wrapper_is_dummy_vec_env": 8,
    "round_trips::vector_env_below_a_vec_env_wrapper_is_sync_vector_env": 2,
    "rows/subenvs::access_by_index_equals_dummy_vec_env": 27,
    "to_gymnasium/mistakes::mistake_raises_what_sync_vector_env_raises": 99,
    "to_gymnasium/presented::presented_space_contains_what_is_presented": 23,
    "to_gymnasium/stepper::overridden_methods_of_a_vec_env_are_called": 22,
    "to_sb3/sb3/training::training_gives_the_same_weights": 2,
    "ipc/pipes::answers_of_all_sizes": 8,
}


def short(node_id: str) -> str:
    """What `CASES` calls a test: `room/module::function`, without its case and each `test_`."""
    return re.sub(r"^tests/|\.py\b|\btest_|\[.*", "", node_id)


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
