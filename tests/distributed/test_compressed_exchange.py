"""Compressed exchange between real processes; few worlds, many checks in each."""

import agreement_checks as agreement
import method_checks as methods
import pytest
import training_checks as training
from rank_world import run_world

# Starting processes is most of the time, and slow on a busy machine.
pytestmark = pytest.mark.timeout(300)


def test_two_ranks(tmp_path):
    checks = [
        training.compression_off_equals_ddp_to_the_last_bit,
        training.fifty_steps_leave_all_ranks_identical,
        training.mean_of_decoded_frames_equals_the_one_by_hand,
        training.accumulation_sends_the_sum_once,
        training.unused_parameters_work,
        training.dtypes_shapes_and_layouts_work,
        training.a_nan_on_one_rank_reaches_all_ranks,
        training.a_resumed_run_continues_bit_for_bit,
        training.sparse_gradients_go_exact,
        training.bytes_are_counted_to_the_last_one,
        agreement.different_settings_are_refused_on_every_rank,
        agreement.a_second_hook_is_refused,
        agreement.settings_without_effect_warn,
        agreement.messages_of_unequal_length_give_the_same_mean,
        agreement.a_damaged_frame_names_tensor_and_rank,
        agreement.a_message_that_is_no_frame_names_its_rank,
        agreement.a_failure_on_the_thread_reaches_the_backward_pass,
        agreement.after_close_the_backward_pass_says_so,
        agreement.an_exchange_of_nothing_is_legal,
        methods.every_method_and_feedback_gives_the_mean_by_hand,
        methods.layers_and_steps_of_a_policy_are_followed,
        methods.a_nan_passes_through_feedback_and_is_forgotten,
        methods.a_run_with_memories_resumes_bit_for_bit,
        methods.a_memory_belongs_to_its_rank_and_merged_to_all,
        methods.different_feedback_or_values_are_refused,
    ]
    run_world(2, checks, tmp_path / "store")


def test_three_ranks(tmp_path):
    checks = [
        training.compression_off_equals_ddp_to_the_last_bit,
        training.mean_of_decoded_frames_equals_the_one_by_hand,
        agreement.different_settings_are_refused_on_every_rank,
        methods.every_method_and_feedback_gives_the_mean_by_hand,
        agreement.a_group_of_some_ranks_works,
        agreement.a_dead_rank_ends_the_others_with_one_readable_error,
    ]
    run_world(3, checks, tmp_path / "store")
