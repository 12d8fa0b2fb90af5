"""The safeguards behind the contracts of answers, maintenance, warm state and boundaries."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_TRANSACTIONS = "src/clew/store/transactions"
_ENGINE = "src/clew/engine"
_S0 = "tests/contract/test_s0_current_session.py::test_s0_"
_CLOSING = "tests/contract/test_s1_closing.py::test_s1_"
_ANSWERS = "tests/contract/test_s1_answers.py::test_s1_"
_ORPHANS = "tests/contract/test_s1_orphans.py::test_s1_"
_S2 = "tests/contract/test_s2_warm_state.py::test_s2_"
_S3_RUNS = "tests/contract/test_s3_in_products.py::test_s3_"
_S4 = "tests/contract/test_s4_boundaries.py::test_s4_"
_COMPACTIONS = "tests/contract/test_compactions.py::test_"
_ORPHAN_OF = """\
        FROM session s JOIN session p ON p.id = s.predecessor
        WHERE s.ended_at IS NULL AND s.opened_at < $1 AND p.end_reason = $2
"""

BOUNDARIES = (
    Mutation(
        name="head-durable",
        mechanism="the head moves in the commit of the rotation",
        file=f"{_TRANSACTIONS}/sessions.py",
        old="    move_head(t, lease.conversation_id, successor)\n",
        new="",
        test=f"{_S0}1_a_kill_right_after_a_compaction_loses_and_repeats_nothing[sqlite-by-hand]",
    ),
    Mutation(
        name="route-claimed-once",
        mechanism="a route that leads to a conversation is not written again",
        file=f"{_TRANSACTIONS}/conversations.py",
        old="            ON CONFLICT (key) DO NOTHING\n",
        new="            ON CONFLICT (key) DO UPDATE SET key = excluded.key\n",
        test=f"{_S0}3_a_turn_without_compaction_writes_nothing_to_routes_or_heads[sqlite]",
    ),
    Mutation(
        name="close-ends",
        mechanism="closing the last client queues the end, whatever was written",
        file=f"{_TRANSACTIONS}/resets.py",
        old=("    queue_end(t, conversation, None, item, reasons.TUI_CLOSE)\n"),
        new="",
        test=f"{_CLOSING}2_closing_a_client_before_anything_was_said_ends_its_session[sqlite]",
    ),
    Mutation(
        name="told-what-failed",
        mechanism="a successful turn reports what went wrong",
        file=f"{_ENGINE}/final_text.py",
        old="but could not finish: {error} {way_out}",
        new="but could not finish. {way_out}",
        test=f"{_ANSWERS}6_a_turn_that_worked_but_gave_no_text_names_what_went_wrong[sqlite]",
    ),
    Mutation(
        name="overflow-advice",
        mechanism="an overflow is recognised",
        file=f"{_ENGINE}/final_text.py",
        old="    if code == FailureKind.OVERFLOW.value or looks_like_overflow(error):\n",
        new="    if False:\n",
        test=f"{_ANSWERS}8_an_overflow_advises_on_the_context_window_and_compact[sqlite]",
    ),
    Mutation(
        name="way-out",
        mechanism="a failure names a way out",
        file="src/clew/agent/advice.py",
        old="if it keeps failing, /reset starts a new conversation.",
        new="it may work.",
        test=f"{_ANSWERS}9_any_other_failure_shows_its_text_and_reset[sqlite]",
    ),
    Mutation(
        name="real-text",
        mechanism="a model's message is not replaced",
        file=f"{_ENGINE}/final_text.py",
        old="    if not is_blank(text):\n",
        new="    if False:\n",
        test=f"{_ANSWERS}10_real_text_passes_unchanged[sqlite-Hello!]",
    ),
    Mutation(
        name="orphan-predecessor",
        mechanism="an orphan has a predecessor",
        file=f"{_TRANSACTIONS}/maintenance.py",
        old=_ORPHAN_OF,
        new=_ORPHAN_OF.replace(" JOIN", " LEFT JOIN").replace(
            "p.end_reason = $2", "COALESCE(p.end_reason, $2) = $2"
        ),
        test=f"{_ORPHANS}12_a_session_without_predecessor_is_left_alone[sqlite]",
    ),
    Mutation(
        name="orphan-age",
        mechanism="an orphan is older than seven days",
        file=f"{_TRANSACTIONS}/maintenance.py",
        old="WHERE s.ended_at IS NULL AND s.opened_at < $1 AND p.",
        new="WHERE s.ended_at IS NULL AND $1 = $1 AND p.",
        test=f"{_ORPHANS}13_a_continuation_younger_than_seven_days_is_left_alone[sqlite]",
    ),
    Mutation(
        name="orphan-messages",
        mechanism="an orphan has messages of its own",
        file=f"{_TRANSACTIONS}/maintenance.py",
        old=" AND e.seq > s.opened_seq\n                AND e.session_id = s.id\n",
        new="\n",
        test=f"{_ORPHANS}16_a_continuation_without_messages_is_left_alone[sqlite]",
    ),
    Mutation(
        name="orphan-titled",
        mechanism="orphans are found whatever their title",
        file=f"{_TRANSACTIONS}/maintenance.py",
        old="                AND e.session_id = s.id\n          )\n",
        new=(
            "                AND e.session_id = s.id\n          )\n"
            "          AND EXISTS (SELECT 1 FROM conversation c"
            " WHERE c.id = s.conversation_id AND c.title IS NULL)\n"
        ),
        test=f"{_ORPHANS}17_a_title_does_not_protect_an_orphan[sqlite]",
    ),
    Mutation(
        name="warm-many",
        mechanism="a process keeps the states of many conversations",
        file=f"{_ENGINE}/context_cache.py",
        old=("MAX_CONVERSATIONS = 64\n"),
        new=("MAX_CONVERSATIONS = 1\n"),
        test=f"{_S2}1_a_route_that_switches_away_and_back_finds_its_warm_state_again[sqlite]",
    ),
    Mutation(
        name="warm-reused",
        mechanism="a warm state that is still valid is not read again",
        file=f"{_TRANSACTIONS}/context.py",
        old=("    if known is None or not _is_still_valid(t, conversation, session, known):\n"),
        new="    if True:\n",
        test=f"{_S2}2_five_turns_in_a_row_reuse_one_state_and_keep_the_prefix_byte_for_byte[sqlite]",
    ),
    Mutation(
        name="warm-newer",
        mechanism="newer entries are merged in",
        file=f"{_ENGINE}/context_cache.py",
        old="            state.extend(news, newer)\n",
        new="            pass\n",
        test=f"{_S2}3_an_entry_of_another_process_is_in_the_next_request[sqlite]",
    ),
    Mutation(
        name="warm-apart",
        mechanism="each conversation has messages of its own",
        file=f"{_ENGINE}/context_cache.py",
        old=("        self.messages: list[CachedMessage] = list(kept)\n"),
        new=(
            '        self.messages = vars(CachedContext.__init__).setdefault("all", [])\n'
            "        self.messages += messages\n"
        ),
        test=f"{_S2}4_refreshing_one_conversation_changes_nothing_of_another[sqlite]",
    ),
    Mutation(
        name="warm-position",
        mechanism="the position moves with merged entries",
        file=f"{_ENGINE}/context_cache.py",
        old=(
            "self.session, self.position = news.context.session, news.position\n"
            "        self.messages +="
        ),
        new=("self.session = news.context.session\n        self.messages +="),
        test=f"{_S2}5_after_own_appends_the_kept_position_is_the_stored_one[sqlite]",
    ),
    Mutation(
        name="lock-unusable",
        mechanism="a lock that raises does not stop a compaction",
        file=f"{_ENGINE}/compaction.py",
        old="session=session, exc_info=True)\n            return True\n",
        new="session=session, exc_info=True)\n            return False\n",
        test=f"{_S3_RUNS}3_a_store_without_locks_hinders_no_compaction[sqlite]",
    ),
    Mutation(
        name="finalise-told",
        mechanism="the end of a session is reported to plugins",
        file=f"{_ENGINE}/hook_dispatch.py",
        old='        if said.get("session") is not None:\n',
        new="        if False:\n",
        test=f"{_S4}1_a_new_conversation_finalizes_the_session_that_it_leaves[sqlite]",
    ),
    Mutation(
        name="reset-told",
        mechanism="the session in which a route continues is reported",
        file=f"{_ENGINE}/hook_dispatch.py",
        old='        if said.get("next") is not None:\n',
        new="        if False:\n",
        test=f"{_S4}2_a_new_conversation_reports_the_session_that_it_opens[sqlite]",
    ),
    Mutation(
        name="expiry-told",
        mechanism="the process that ended a session reports it to plugins, also for an expiry",
        file=f"{_ENGINE}/queued_commands.py",
        old=("    if item.text == END_COMMAND:\n        means.hooks"),
        new=("    if False:\n        means.hooks"),
        test=f"{_S4}6_an_expired_session_is_finalized_once_also_over_a_restart[sqlite]",
    ),
    Mutation(
        name="imported-name",
        mechanism="of two names of a flag the newer decides",
        file="src/clew/core/foreign_formats.py",
        old='("expiry_finalized", "memory_flushed")',
        new='("memory_flushed", "expiry_finalized")',
        test=f"{_S4}7_of_two_names_in_an_imported_record_the_newer_one_decides[sqlite]",
    ),
    # Beside the contracts: the promises of a compaction.
    Mutation(
        name="attempt-counted",
        mechanism="a compaction is counted before the summariser is asked",
        file=f"{_ENGINE}/compaction_planner.py",
        old=(
            "        await self._store.write(compactions.save_compaction_state, session.id, state)\n"
        ),
        new="",
        test=f"{_COMPACTIONS}a_summary_is_counted_before_it_is_asked_for_and_forgotten_once_it_is"
        "_there[sqlite]",
    ),
    Mutation(
        name="deaths-end",
        mechanism="a compaction in which processes die is postponed",
        file=f"{_ENGINE}/compaction_planner.py",
        old=("        if rules.crashed_repeatedly(before):\n"),
        new="        if False:\n",
        test=f"{_COMPACTIONS}a_compaction_in_which_the_process_died_again_and_again_is_put_off"
        "[sqlite]",
    ),
    Mutation(
        name="stop-forgives",
        mechanism="a stop does not count as a failed compaction",
        file=f"{_ENGINE}/compaction.py",
        old=("            await shield_until_done(self._store_state(found.session.id, before))\n"),
        new="",
        test=f"{_COMPACTIONS}a_stop_in_a_compaction_leaves_no_rotation_and_is_no_failure_of_it"
        "[sqlite]",
    ),
    Mutation(
        name="stopped-rotation",
        mechanism="a turn that was asked to stop does not rotate",
        file=f"{_TRANSACTIONS}/compactions.py",
        old="        and turn.stop is not None\n        and find_session_by_operation(",
        new="        and False\n        and find_session_by_operation(",
        test="tests/integration/test_double_text.py::test_an_action_during_a_compaction"
        "_follows_the_table[sqlite]",
    ),
    Mutation(
        name="shown-is-not-said",
        mechanism="the output of a tool is not a person's message",
        file="src/clew/agent/compactor.py",
        old=("        and not extract_answered_ids(message)\n"),
        new="",
        test="tests/unit/test_compaction_rules.py::"
        "test_extra_content_of_a_tool_counts_as_no_persons_message",
    ),
    Mutation(
        name="window-asked",
        mechanism="a context is made to fit the model that is asked",
        file=f"{_ENGINE}/compaction_planner.py",
        old=("        window = self._get_window(asked or self._model) or DEFAULT_WINDOW\n"),
        new=("        window = self._get_window(self._model) or DEFAULT_WINDOW\n"),
        test=f"{_COMPACTIONS}a_context_is_made_to_fit_the_model_that_is_asked_and_not_the"
        "_summariser[sqlite]",
    ),
    Mutation(
        name="joins-a-compaction",
        mechanism="a steering message during a compaction is part of the next request",
        file="src/clew/agent/loop.py",
        old=(
            " messages that came meanwhile join now, not a step later.\n"
            "            await self._join_steering_messages(node)\n"
        ),
        new="\n",
        test="tests/integration/test_double_text.py::"
        "test_each_moment_is_as_the_table_says[sqlite-steer]",
    ),
    Mutation(
        name="plugin-hangs",
        mechanism="a hanging plugin delays only once",
        file="src/clew/hooks/manager.py",
        old=("        if line.is_hanging:\n"),
        new="        if False:\n",
        test="tests/integration/test_plugins.py::"
        "test_a_plugin_that_hangs_is_waited_for_once_and_called_again_when_it_is_free",
    ),
)
