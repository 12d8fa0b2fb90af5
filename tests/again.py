"""
Tests that prove again what others prove: left out by ``make test``, not by ``make soak suite``.

Each was among those that take the most time; what is kept shows the same in less.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Platforms beside Discord and Telegram.
_OTHERS: Final = "(slack|mattermost|webhook|whatsapp|signal)"
#: What the id of a test contains, as a regular expression, and what proves the same.
PROVED_ELSEWHERE: Final[Mapping[str, str]] = {
    r"test_workspace_conformance\.py::.*test_(?!commands_and_files|bytes_round|writes_go|exists)": (
        "four of its rules; all of them in `make soak workspaces`"
    ),
    r"test_on_a_phone_everything_fits_and_keeps_nobody_out\[dark\]": "the light colours",
    r"test_no_way_back_leads_to_what_was_forgotten\[(sqlite-False|postgres-True)\]": (
        "the same ways on the other database"
    ),
    r"test_a_store_that_makes_every_write_twice.*\[(interrupt|collect|steer|reject)\]": (
        "the rules queue and rollback; all in `make soak double_text`"
    ),
    r"test_double_text\.py::.*-(DoubleText\.)?(?i:reject|collect|steer|rollback)\]": (
        "the rules queue and interrupt; all in `make soak double_text`"
    ),
    r"test_the_main_model_summarises_at_once_if_the_summariser_fails\[(unknown|refused)\]": "hangs",
    r"test_a_failure_that_continues_is_reported.* in a stream\]": (
        "the same failures without a stream, and in a stream those that pass"
    ),
    r"test_the_way_back_through_a_long_conversation_is_drawn_whole\[\(80, 24\)\]": "40x10",
    r"test_every_screen_stands_in_the_cells.*\[\(80, 24\)\]": "40x10, where least fits",
    r"test_the_end_of_an_answer_stands_on_the_screen.*\[\(80, 24\)\]": "as above",
    r"test_commands_in_the_background_have_a_line_while_they_run\[\(40, 10\)\]": "80x24",
    r"test_a_command_that_somebody_waits_for_ends.*\[(host|landlock)\]": "bubblewrap",
    r"test_it_is_named_with_the_nearest_that_there_is\[.*-doctor --offline\]": "config check",
    r"test_a_key_before_the_screen_is_built.*\[(the summary|a text|the keys|a list)\]": (
        "the question and the conversations"
    ),
    r"test_an_overflow_compacts_once_and_repeats_the_step\[responses\]": "chat and messages",
    r"test_b175_a_refused_tool_call_compacts_nothing_and_ends_clearly\[responses\]": "as above",
    r"test_b024_a_context_over_the_threshold_is_compacted_within_one_turn\[responses\]": "as above",
    r"test_b040_b042_b048_whatever_a_history_lacks.*responses": "as above",
    r"test_older_pictures_become_a_line.*\[responses\]": "as above",
    r"test_of_many_clients_in_one_conversation.*\[postgres\]": "SQLite; `make soak crowd`",
    r"test_a_script_continues_with_the_result_of_what_was_allowed.*-dare\]": "the calls that pay",
    r"test_the_next_request_takes_turns_after\[(?!compacted|failed).*-(messages|responses)\]": (
        "the same ways with the format of chat"
    ),
    rf"test_a_kill_(around_a_del|while_an_answer_is_shown).*\[{_OTHERS}\]": (
        "Discord here, Telegram below; all in `make soak channels`"
    ),
    rf"test_kills_on_a_bad_day_lose_and_double_nothing.*\[{_OTHERS}\]": "as above",
    r"test_every_invariant_holds_whatever_owners_and_fate_do\[postgres\]": (
        "SQLite; both in `make soak state-machine`"
    ),
    # What a person sees and presses in the dashboard: one way through each kind of page stays.
    **dict.fromkeys(
        (
            r"test_operate\.py::test_(a_process_is_read|goals_and_delegated|a_job_is_added|a_skill_is)",
            r"test_operate\.py::test_(one_more_browser_is_let_in|an_allowed_call_is_seen)",
            r"test_operate_maintenance\.py::test_(the_doctor_says|the_log_grows|a_backup_is_made)",
            r"test_operate_maintenance\.py::test_plugins_and_tools",
            r"test_operate_channels\.py::test_(running_turns|accounts_that|usage_is_shown)",
            r"test_dashboard_long\.py::test_(all_of_a_long|what_is_read_stays|who_reads_further)",
            r"test_dashboard_history\.py::test_older_messages_are_summarised",
            r"test_dashboard_calls\.py::test_a_call_tells",
            r"test_dashboard_notices\.py::test_an_answer_is_told_once",
            r"test_dashboard_find\.py::test_conversations_are_found",
            r"test_dashboard\.py::test_(a_message_that_is_too_large|formulas_are_drawn)",
            r"test_operate\.py::test_on_a_phone_tables",
            r"test_operate_maintenance\.py::test_a_table_that_the_user_names",
        ),
        "the tests beside it; all, on both databases, in `make soak browser`",
    ),
    **dict.fromkeys(
        (
            r"test_dashboard\.py::test_(messages_are_queued|a_message_is_rewound)",
            r"test_dashboard_find\.py::test_a_conversation_is_saved",
            r"test_operate\.py::test_a_fact_is_remembered",
        ),
        "test_everyday.py, which presses the same; all in `make soak browser`",
    ),
}
_ANY: Final = re.compile("|".join(f"(?:{pattern})" for pattern in PROVED_ELSEWHERE))


def is_proved_elsewhere(node: str) -> bool:
    """Return whether a test proves what others prove in less time."""
    return _ANY.search(node) is not None
