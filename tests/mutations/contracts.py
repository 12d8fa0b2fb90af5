"""Wiring on which each contract of the session lifecycle also depends, bit by bit."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_TRANSACTIONS = "src/clew/store/transactions"
_ENGINE = "src/clew/engine"
_S0 = "tests/contract/test_s0_current_session.py::test_s0_"
_CLOSING = "tests/contract/test_s1_closing.py::test_s1_"
_RPC = "tests/contract/test_s1_rpc.py::test_s1_"
_TITLES = "tests/contract/test_s1_titles.py::test_s1_"
_ANSWERS = "tests/contract/test_s1_answers.py::test_s1_"
_ORPHANS = "tests/contract/test_s1_orphans.py::test_s1_"
_S2 = "tests/contract/test_s2_warm_state.py::test_s2_"
_S3 = "tests/contract/test_s3_two_compactions.py::test_s3_"
_S3_RUNS = "tests/contract/test_s3_in_products.py::test_s3_"
_S4 = "tests/contract/test_s4_boundaries.py::test_s4_"

_S0_4 = f"{_S0}4_after_a_rotation_tools_subprocesses_hooks_and_route_name_one_session[sqlite]"
_S1_7 = f"{_ANSWERS}7_a_turn_that_the_user_interrupted_after_it_had_worked_stays_silent[sqlite]"
_S1_11 = f"{_ORPHANS}11_old_unfinished_continuation_is_closed[sqlite]"
_S4_4 = f"{_S4}4_stopping_finalizes_the_sessions_of_running_turns_and_no_other[sqlite]"
_S4_6 = f"{_S4}6_an_expired_session_is_finalized_once_also_over_a_restart[sqlite]"


def _mutation(name: str, mechanism: str, file: str, old: str, new: str, test: str) -> Mutation:
    return Mutation(name=name, mechanism=mechanism, file=file, old=old, new=new, test=test)


_CURRENT = (
    _mutation(
        "base-kept",
        "the successor begins with the summary",
        f"{_ENGINE}/compaction.py",
        "            base=plan.items,\n",
        "            base=(),\n",
        f"{_S0}1_a_kill_right_after_a_compaction_loses_and_repeats_nothing[sqlite-by-hand]",
    ),
    _mutation(
        "head-moved-once",
        "a rotation writes the head once",
        f"{_TRANSACTIONS}/sessions.py",
        "    move_head(t, lease.conversation_id, successor)\n",
        "    for _ in range(2):\n        move_head(t, lease.conversation_id, successor)\n",
        f"{_S0}2_a_turn_that_moves_the_session_moves_every_route_with_one_head_move[sqlite]",
    ),
    _mutation(
        "finish-leaves-head",
        "the end of a turn writes no head",
        f"{_TRANSACTIONS}/turns.py",
        ("    deny_open_approvals(t, turn, note=SystemNote.TURN_ENDED)\n"),
        (
            "    deny_open_approvals(t, turn, note=SystemNote.TURN_ENDED)\n"
            '    t.execute("UPDATE head SET session_id = $1 WHERE conversation_id = $2", session, lease.conversation_id)\n'
        ),
        f"{_S0}3_a_turn_without_compaction_writes_nothing_to_routes_or_heads[sqlite]",
    ),
    _mutation(
        "environment-exposed",
        "while an engine runs, the environment names the session",
        f"{_ENGINE}/process.py",
        ("        self._stack.enter_context(expose_session_environ())\n"),
        "",
        _S0_4,
    ),
    _mutation(
        "environment-inherited",
        "a subprocess that is given no environment inherits that of the turn",
        "src/clew/agent/session_environ.py",
        '        if bound.arguments.get("env") is None:\n',
        "        if False:\n",
        _S0_4,
    ),
    _mutation(
        "end-of-now",
        "the end of a turn names the session that it ended in",
        f"{_ENGINE}/turn_log.py",
        "    def session(self) -> SessionId | None:\n        return self._session\n",
        "    def session(self) -> SessionId | None:\n"
        "        return self.__dict__.setdefault('first', self._session)\n",
        _S0_4,
    ),
)

_CLOSED = (
    _mutation(
        "close-reason",
        "a closed client ends the session with its own reason",
        f"{_TRANSACTIONS}/resets.py",
        ("    queue_end(t, conversation, None, item, reasons.TUI_CLOSE)\n"),
        ("    queue_end(t, conversation, None, item, reasons.USER_EXIT)\n"),
        f"{_RPC}2_closing_over_rpc_before_anything_was_said_ends_the_session[sqlite]",
    ),
    _mutation(
        "events-name-now",
        "events name the session of what they tell",
        "src/clew/api/rpc/subscriptions.py",
        '            "session": self._session,\n',
        '            "session": self.__dict__.setdefault("first", self._session),\n',
        f"{_RPC}3_after_a_compaction_inside_a_submitted_prompt_the_old_session_acts_on_the_new"
        "[sqlite]",
    ),
    _mutation(
        "names-itself",
        "a conversation whose wished title cannot be given names itself",
        "src/clew/features/titles/__init__.py",
        "    await generator.give_title(context, conversation)\n",
        "    del generator\n",
        f"{_RPC}4_a_title_asked_for_over_rpc_before_anything_was_said_is_dropped_if_it_is_taken"
        "[sqlite]",
    ),
    _mutation(
        "titles-after-turns",
        "each answered turn has another try at a title",
        f"{_ENGINE}/turn_finisher.py",
        "        self._services.after_turn.schedule(done.conversation_id, answered=answered)\n",
        "",
        f"{_RPC}5_a_title_asked_for_over_rpc_is_kept_for_a_later_turn_whatever_failed"
        "[sqlite-RuntimeError]",
    ),
)

_TOLD = (
    _mutation(
        "failure-delivered",
        "what failed is delivered",
        f"{_ENGINE}/turn_finisher.py",
        "error=text, code=code, said=said)\n",
        "error=text, code=code)\n",
        f"{_ANSWERS}6_a_turn_that_worked_but_gave_no_text_names_what_went_wrong[sqlite]",
    ),
    _mutation(
        "stop-undelivered",
        "a stop is answered by the command alone",
        f"{_ENGINE}/turn_finisher.py",
        ("            await self._finish_turn(TurnOutcome.CANCELLED, drafts, said=said)\n"),
        (
            '            said = self._log.make_outbound_text(DeliveryKind.ANSWER, "I was stopped.", markup=False)\n'
            "            await self._finish_turn(TurnOutcome.CANCELLED, drafts, said=said)\n"
        ),
        _S1_7,
    ),
    _mutation(
        "stop-is-no-failure",
        "a stopped turn is told as nothing",
        f"{_ENGINE}/turn_runner.py",
        ("                await self._finisher.finish_stopped(stop)\n"),
        ('                await self._finisher.finish_failed("stopped", "stopped")\n'),
        _S1_7,
    ),
    _mutation(
        "compact-named",
        "the advice names the command that helps",
        f"{_ENGINE}/final_text.py",
        "Use /compact to shorten it",
        "Shorten it",
        f"{_ANSWERS}8_an_overflow_advises_on_the_context_window_and_compact[sqlite]",
    ),
    _mutation(
        "error-shown",
        "a failure shows its text",
        f"{_ENGINE}/final_text.py",
        '    return f"That failed: {error} {way_out}"\n',
        '    return f"That failed. {way_out}"\n',
        f"{_ANSWERS}9_any_other_failure_shows_its_text_and_reset[sqlite]",
    ),
    _mutation(
        "text-unchanged",
        "an answer is delivered as it was said",
        f"{_ENGINE}/turn_log.py",
        "kind=kind, text=text, markup=markup, files",
        'kind=kind, text=f"{text}!", markup=markup, files',
        f"{_ANSWERS}10_real_text_passes_unchanged[sqlite-Hello!]",
    ),
)

_USED = "SELECT 1 FROM route r WHERE r.conversation_id = s.conversation_id)"
_OWN = "                AND e.session_id = s.id\n          )\n"
_ORPHANED = (
    _mutation(
        "orphans-closed",
        "maintenance closes orphans",
        f"{_ENGINE}/maintenance.py",
        "await store.write(maintenance.finalize_orphaned_compression_sessions)",
        "0",
        _S1_11,
    ),
    _mutation(
        "maintenance-runs",
        "a running product maintains its store",
        f"{_ENGINE}/process.py",
        ("        while self._adopted is None:\n"),
        "        while False:\n",
        _S1_11,
    ),
    _mutation(
        "orphan-continues",
        "an orphan continues another session",
        f"{_TRANSACTIONS}/maintenance.py",
        "JOIN session p ON p.id = s.predecessor\n        WHERE s.ended_at IS NULL AND s.opened_at"
        " < $1 AND p.end_reason = $2\n",
        "JOIN session p ON p.id = COALESCE(s.predecessor, s.id)\n        WHERE s.ended_at IS NULL"
        " AND s.opened_at < $1 AND COALESCE(p.end_reason, $2) = $2\n",
        f"{_ORPHANS}12_a_session_without_predecessor_is_left_alone[sqlite]",
    ),
    _mutation(
        "orphan-after",
        "it takes seven days",
        f"{_TRANSACTIONS}/maintenance.py",
        "ORPHANED_AFTER = timedelta(days=7)",
        "ORPHANED_AFTER = timedelta(days=6)",
        f"{_ORPHANS}13_a_continuation_younger_than_seven_days_is_left_alone[sqlite]",
    ),
    _mutation(
        "orphan-left-by-exit",
        "what a person has closed is no orphan",
        f"{_TRANSACTIONS}/maintenance.py",
        "WHERE s.ended_at IS NULL AND s.opened_at < $1 AND p.",
        "WHERE (s.ended_at IS NULL OR s.end_reason = 'user_exit') AND s.opened_at < $1 AND p.",
        f"{_ORPHANS}14_a_continuation_that_has_ended_is_left_alone[sqlite]",
    ),
    _mutation(
        "orphan-of-compaction",
        "any other end of the predecessor makes no orphan",
        f"{_TRANSACTIONS}/maintenance.py",
        "s.opened_at < $1 AND p.end_reason = $2\n",
        "s.opened_at < $1 AND p.end_reason IN ($2, 'user_exit')\n",
        f"{_ORPHANS}15_a_continuation_of_a_session_that_ended_otherwise_is_left_alone[sqlite]",
    ),
    _mutation(
        "orphan-said",
        "where nothing was said there is nothing to close",
        f"{_TRANSACTIONS}/maintenance.py",
        _OWN,
        "                AND e.session_id = s.id\n          ) IN (0, 1)\n",
        f"{_ORPHANS}16_a_continuation_without_messages_is_left_alone[sqlite]",
    ),
    _mutation(
        "orphan-named",
        "a title that a person gave protects no orphan",
        f"{_TRANSACTIONS}/maintenance.py",
        _OWN,
        f"{_OWN}          AND NOT EXISTS (SELECT 1 FROM conversation c"
        " WHERE c.id = s.conversation_id AND c.titled_by = 'person')\n",
        f"{_ORPHANS}17_a_title_does_not_protect_an_orphan[sqlite]",
    ),
    _mutation(
        "orphan-old-route",
        "a route protects, however long ago it was moved there",
        f"{_TRANSACTIONS}/maintenance.py",
        _USED,
        f"{_USED[:-1]} AND r.moved_at > $1)",
        f"{_ORPHANS}18_a_head_in_daily_use_is_left_alone_however_long_ago_it_was_compacted[sqlite]",
    ),
)

_WARM = f"{_ENGINE}/context_cache.py"
_KEPT_WARM = (
    _mutation(
        "warm-kept",
        "a state is kept",
        _WARM,
        ("state = self._contexts[conversation] = CachedContext(news, newer)"),
        ("state = CachedContext(news, newer)"),
        f"{_S2}1_a_route_that_switches_away_and_back_finds_its_warm_state_again[sqlite]",
    ),
    _mutation(
        "warm-same",
        "the same object goes on serving",
        _WARM,
        "if state is None or not news.partial:",
        "if True:",
        f"{_S2}2_five_turns_in_a_row_reuse_one_state_and_keep_the_prefix_byte_for_byte[sqlite]",
    ),
    _mutation(
        "warm-asks",
        "what is newer is asked for",
        _WARM,
        (
            "        news = await self._store.read(context.read_context_update, conversation, known)\n"
        ),
        (
            "        if state is not None:\n"
            "            return state\n"
            "        news = await self._store.read(context.read_context_update, conversation, known)\n"
        ),
        f"{_S2}3_an_entry_of_another_process_is_in_the_next_request[sqlite]",
    ),
    _mutation(
        "warm-by-conversation",
        "states are found by their conversation",
        _WARM,
        ("        state = self._contexts.get(conversation)\n        known"),
        ("        state = next(iter(self._contexts.values()), None)\n        known"),
        f"{_S2}4_refreshing_one_conversation_changes_nothing_of_another[sqlite]",
    ),
    _mutation(
        "warm-after",
        "what is known is not read again",
        f"{_TRANSACTIONS}/context.py",
        "first=known.seq + 1, last=last_seq)",
        "first=known.seq + 2, last=last_seq)",
        f"{_S2}5_after_own_appends_the_kept_position_is_the_stored_one[sqlite]",
    ),
    _mutation(
        "warm-dropped",
        "a dropped state is gone",
        _WARM,
        ("        self._contexts.pop(conversation, None)\n"),
        "        pass\n",
        f"{_S2}6_a_state_that_is_dropped_while_a_turn_reads_is_touched_no_more[sqlite]",
    ),
)

_TWO = (
    _mutation(
        "lock-freed",
        "whoever has compacted lets the lock go",
        f"{_ENGINE}/compaction.py",
        "            await self._lock.release_compression_lock(session, holder)\n",
        "            pass\n",
        f"{_S3_RUNS}1_of_two_products_that_compact_one_session_one_moves_it[sqlite]",
    ),
    _mutation(
        "lock-asked",
        "the lock is asked for",
        f"{_ENGINE}/compaction.py",
        "            return await self._lock.try_acquire_compression_lock(session, holder)\n",
        "            return True\n",
        f"{_S3_RUNS}2_while_the_lock_is_held_no_program_and_no_turn_compacts[sqlite]",
    ),
    _mutation(
        "lock-unusable-after",
        "a lock that cannot be let go hinders nobody",
        f"{_ENGINE}/compaction.py",
        "            await self._lock.release_compression_lock(session, holder)\n"
        "        except Exception:\n",
        "            await self._lock.release_compression_lock(session, holder)\n"
        "        except ZeroDivisionError:\n",
        f"{_S3}3_a_lock_that_cannot_be_used_hinders_no_compaction[sqlite]",
    ),
)

_BOUNDARIES = (
    _mutation(
        "kwargs-given",
        "what a callback takes as **kwargs it is given",
        "src/clew/hooks/manager.py",
        "    if any(one.kind is one.VAR_KEYWORD for one in found):\n",
        "    if False:\n",
        f"{_S4}1_a_new_conversation_finalizes_the_session_that_it_leaves[sqlite]",
    ),
    _mutation(
        "reset-names-next",
        "a reset names the session that is opened",
        f"{_ENGINE}/hook_dispatch.py",
        'opened = {"session_id": said["next"], "platform": platform}',
        'opened = {"session_id": said["session"], "platform": platform}',
        f"{_S4}2_a_new_conversation_reports_the_session_that_it_opens[sqlite]",
    ),
    _mutation(
        "finalise-first",
        "the end of a session is told before the next one",
        f"{_ENGINE}/hook_dispatch.py",
        ("            self._queue.put_nowait((FINALIZE_HOOK, over, item.id, None))\n"),
        (
            "            later = asyncio.get_running_loop().call_soon\n"
            "            later(self._queue.put_nowait, (FINALIZE_HOOK, over, item.id, None))\n"
        ),
        f"{_S4}3_finalize_is_called_before_reset_and_each_once_also_over_a_restart[sqlite]",
    ),
    _mutation(
        "ends-caught-up",
        "a process that begins looks for ends that were not told",
        f"{_ENGINE}/process.py",
        ("                await self._services.hooks.emit_missed_ends()\n"),
        "",
        f"{_S4}3_a_killed_process_leaves_its_notifications_to_the_restart[sqlite]",
    ),
    _mutation(
        "stop-waits",
        "whoever stops waits for plugins",
        f"{_ENGINE}/process.py",
        (
            "            await self._services.hooks.drain_queue(HOOK_DRAIN_TIMEOUT)\n"
            "            self._services.hooks.plugins.close()\n"
        ),
        ("            self._services.hooks.plugins.close()\n"),
        _S4_4,
    ),
    _mutation(
        "own-thread",
        "a plugin runs in a thread of its own",
        "src/clew/hooks/manager.py",
        (
            "        answer = line.submit_call(lambda: context.run(_run_hook, function, arguments))\n"
        ),
        (
            "        answer = _Future()\n"
            "        _run_call(lambda: context.run(_run_hook, function, arguments), answer)\n"
        ),
        f"{_S4}5_a_plugin_that_hangs_blocks_nothing[sqlite]",
    ),
    _mutation(
        "overdue-ended",
        "whoever watches ends what is over",
        f"{_ENGINE}/maintenance.py",
        (" if _has_expiry(policy) else 0\n"),
        " if False else 0\n",
        _S4_6,
    ),
    _mutation(
        "watcher-runs",
        "somebody watches",
        f"{_ENGINE}/process.py",
        ("            self._maintain_periodically,\n"),
        "",
        _S4_6,
    ),
    _mutation(
        "imported-mark",
        "what was told where it came from is not told again",
        f"{_TRANSACTIONS}/imports.py",
        '    if record["kind"] == "command" and record["expiry_finalized"]:\n',
        "    if False:\n",
        f"{_S4}7_of_two_names_in_an_imported_record_the_newer_one_decides[sqlite]",
    ),
)

CONTRACTS = (
    *_CURRENT, *_CLOSED, *_TOLD, *_ORPHANED, *_KEPT_WARM, *_TWO, *_BOUNDARIES,
)  # fmt: skip
