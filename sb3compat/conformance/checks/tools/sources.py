"""Where a clause of the contract is written down in the code of SB3 and Gymnasium, to the line.

A check names the module; the lines are here, as they change with each release. A test compares
them with what is installed. For other releases, `python -m tests.conformance.checks.test_sources`
prints them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import Family

# By file and class or method: its first and last line (of a class up to its first method), and the
# checks.
Places: TypeAlias = dict[str, tuple[int, int, str]]

VEC_ENV: Places = {
    "monitor Monitor.step": (
        87, 113,
        "episode_statistics_at_end_only episode_statistics_of_the_episode",
    ),
    "vec_env/base_vec_env VecEnv": (50, 57, "metadata_is_dict subclasses_vec_env"),
    "vec_env/base_vec_env VecEnv.__init__": (
        59, 94,
        "num_envs_positive render_mode_uniform reset_infos_n_dicts",
    ),
    "vec_env/base_vec_env VecEnv._reset_seeds": (96, 100, "seed_used_once"),
    "vec_env/base_vec_env VecEnv._reset_options": (102, 106, "options_used_once"),
    "vec_env/base_vec_env VecEnv.reset": (
        109, 120,
        "reset_starts_fresh_episodes reset_cancels_pending_step",
    ),
    "vec_env/base_vec_env VecEnv.step_async": (123, 132, "double_step_async_rejected"),
    "vec_env/base_vec_env VecEnv.step_wait": (135, 141, "step_wait_without_async_rejected"),
    "vec_env/base_vec_env VecEnv.close": (
        144, 148,
        "close_idempotent close_after_error nothing_left_after_close close_returns",
    ),
    "vec_env/base_vec_env VecEnv.has_attr": (150, 163, "has_attr_truthful"),
    "vec_env/base_vec_env VecEnv.get_attr": (
        166, 174,
        "missing_attr_raises_and_survives access_works_or_is_refused",
    ),
    "vec_env/base_vec_env VecEnv.env_method": (189, 199, "worker_exception_keeps_type"),
    "vec_env/base_vec_env VecEnv.step": (
        214, 222,
        "rewards_shape dones_shape step_equals_async_wait memory_does_not_grow",
    ),
    "vec_env/base_vec_env VecEnv.get_images": (
        224, 228,
        "get_images_n_frames frames_of_own_rows reading_changes_nothing",
    ),
    "vec_env/base_vec_env VecEnv.render": (230, 290, "render_mismatch_warns"),
    "vec_env/base_vec_env VecEnv.seed": (
        292, 309,
        "seed_returns_n same_seed_same_trajectory seed_applies_at_next_reset_only "
        "seed_works_again seeds_differ_by_row rows_are_alike large_seeds_accepted",
    ),
    "vec_env/base_vec_env VecEnv.set_options": (
        311, 325,
        "options_reach_env options_per_row options_copied",
    ),
    "vec_env/base_vec_env VecEnv._get_indices": (346, 357, "numpy_int_indices"),
    "vec_env/base_vec_env VecEnvWrapper.close": (401, 402, "close_closes_what_it_wraps"),
    "vec_env/dummy_vec_env DummyVecEnv.__init__": (30, 51, "rewards_float32 dones_bool_array"),
    "vec_env/dummy_vec_env DummyVecEnv.step_wait": (
        56, 73,
        "truncated_flag_present truncated_flag_exclusive truncated_flag_is_bool "
        "truncated_flag_at_truncations_only "
        "terminal_states_are_no_truncations infos_without_old_entries "
        "infos_without_others_entries reset_infos_updated_on_autoreset "
        "reset_infos_others_unchanged done_info_is_step_info infos_is_list infos_distinct",
    ),
    "vec_env/stacked_observations StackedObservations.update": (
        119, 177,
        "works_under_vec_frame_stack",
    ),
    "vec_env/vec_check_nan VecCheckNan.step_wait": (38, 42, "works_under_vec_check_nan"),
    "vec_env/vec_extract_dict_obs VecExtractDictObs.step_wait": (
        27, 33,
        "works_under_vec_extract_dict_obs",
    ),
    "vec_env/vec_monitor VecMonitor.step_wait": (74, 94, "works_under_vec_monitor"),
    "vec_env/vec_normalize VecNormalize.step_wait": (174, 207, "works_under_vec_normalize"),
    "vec_env/vec_transpose VecTransposeImage.step_wait": (
        95, 106,
        "works_under_vec_transpose_image",
    ),
}  # fmt: skip
VECTOR_ENV: Places = {
    "vector/sync_vector_env SyncVectorEnv.reset": (
        193, 273,
        "masked_reset_restarts_only_masked masked_reset_leaves_others "
        "masked_reset_lets_others_go_on masked_reset_restarts_masked bad_mask_rejected "
        "outputs_unchanged_by_masked_reset rows_are_alike seeds_differ_by_row "
        "seed_list_by_row seed_int_is_seed_plus_i",
    ),
    "vector/sync_vector_env SyncVectorEnv.step": (
        275, 355,
        "stepping_ended_row_rejected wrong_action_count_rejected no_stale_result_after_error "
        "memory_does_not_grow writing_outputs_does_not_change_env",
    ),
    "vector/sync_vector_env SyncVectorEnv.call": (361, 381, "access_works_or_is_refused"),
    "vector/sync_vector_env SyncVectorEnv.set_attr": (394, 416, "call_get_set_attr"),
    "vector/vector_env VectorEnv": (49, 142, "metadata_not_shared"),
    "vector/vector_env VectorEnv._add_info": (
        284, 345,
        "info_masks info_values_keep_type infos_without_old_entries "
        "infos_without_others_entries",
    ),
    "wrappers/vector/common RecordEpisodeStatistics.step": (
        159, 238,
        "episode_statistics_at_end_only episode_statistics_of_the_episode",
    ),
    "wrappers/vector/dict_info_to_list DictInfoToList._convert_info_to_list": (
        99, 158,
        "info_values_batched final_obs_mask_equals_done",
    ),
}  # fmt: skip

# What a file is in, up to its name, and the places.
RELEASES: dict[Family, tuple[str, str, str, Places]] = {
    "vec_env": ("stable-baselines3", "2.9.2", "stable_baselines3/common", VEC_ENV),
    "vector_env": ("gymnasium", "1.4.0", "gymnasium", VECTOR_ENV),
}
_REPOSITORIES = {
    "stable-baselines3": "DLR-RM/stable-baselines3",
    "gymnasium": "Farama-Foundation/Gymnasium",
}


def with_lines(check: Check) -> Check:
    """The check, with a source that leads to the lines, where they are known."""
    return replace(check, source=_SOURCES.get((check.family, check.id), check.source))


_SOURCES = {
    (family, check_id): (
        f"https://github.com/{_REPOSITORIES[library]}/blob/v{version}/{folder}/{place.split()[0]}.py"
        f"#L{first}-L{last}"
    )
    for family, (library, version, folder, places) in RELEASES.items()
    for place, (first, last, ids) in places.items()
    for check_id in ids.split()
}
