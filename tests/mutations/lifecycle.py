"""The safeguards behind the contracts of the session lifecycle."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_TRANSACTIONS = "src/clew/store/transactions"
_ENGINE = "src/clew/engine"
_S0 = "tests/contract/test_s0_current_session.py::test_s0_"
_CLOSING = "tests/contract/test_s1_closing.py::test_s1_"
_TITLES = "tests/contract/test_s1_titles.py::test_s1_"
_ORPHANS = "tests/contract/test_s1_orphans.py::test_s1_"
_S2 = "tests/contract/test_s2_warm_state.py::test_s2_"
_S3_RUNS = "tests/contract/test_s3_in_products.py::test_s3_"
_S3 = "tests/contract/test_s3_two_compactions.py::test_"
_S4 = "tests/contract/test_s4_boundaries.py::test_s4_"
_CHAT = "tests/contract/test_chat_commands.py::test_"

LIFECYCLE = (
    Mutation(
        name="head-moves",
        mechanism="a rotation moves the head",
        file=f"{_TRANSACTIONS}/sessions.py",
        old="    move_head(t, lease.conversation_id, successor)\n",
        new="",
        test=f"{_S0}2_a_turn_that_moves_the_session_moves_every_route_with_one_head_move[sqlite]",
    ),
    Mutation(
        name="session-in-context",
        mechanism="tools get the new session",
        file=f"{_ENGINE}/turn_compaction.py",
        old=("            self._hooks.enter_successor(done.session_id)\n"),
        new="            pass\n",
        test=f"{_S0}4_after_a_rotation_tools_subprocesses_hooks_and_route_name_one_session[sqlite]",
    ),
    Mutation(
        name="dead-lock-holder",
        mechanism="the compression lock dies with its holder's process",
        file=f"{_TRANSACTIONS}/locks.py",
        old=('owner.startswith("own_") and not t.is_alive(owner)'),
        new="False",
        test=f"{_S3}s3_2_the_lock_of_a_dead_process_blocks_nothing[sqlite]",
    ),
    Mutation(
        name="client-others",
        mechanism="closing checks whether the conversation is in use",
        file=f"{_TRANSACTIONS}/resets.py",
        old=("if conversation is None or is_in_use(t, conversation):"),
        new="if conversation is None:",
        test=f"{_CLOSING}1_while_another_client_is_attached_closing_only_detaches[sqlite]",
    ),
    Mutation(
        name="client-late",
        mechanism="the end that a closed client queued is dropped if another one has attached",
        file=f"{_TRANSACTIONS}/resets.py",
        old=("reasons.TUI_CLOSE and is_in_use(t, lease.conversation_id)"),
        new="reasons.TUI_CLOSE and False",
        test=f"{_CLOSING}1_a_client_that_attaches_before_the_end_is_carried_out_keeps_the_session"
        "[sqlite]",
    ),
    Mutation(
        name="old-session-id",
        mechanism="any session id of a conversation refers to it",
        file=f"{_TRANSACTIONS}/conversations.py",
        old=("        or t.fetch_value(_BY_SESSION, name)\n"),
        new="",
        test=f"{_CLOSING}3_after_a_compaction_the_old_session_id_acts_on_the_new_session[sqlite]",
    ),
    Mutation(
        name="title-dropped",
        mechanism="a pending title that cannot be given is forgotten",
        file=f"{_ENGINE}/titles.py",
        old=(
            "            await self._store.write(titles.discard_pending_title, conversation, title)\n"
        ),
        new="",
        test=f"{_TITLES}4_a_title_that_turns_out_invalid_is_dropped[sqlite]",
    ),
    Mutation(
        name="title-kept",
        mechanism="only a title that can never be set is dropped",
        file=f"{_ENGINE}/titles.py",
        old="        except (UsageError, ValueError) as error:\n",
        new="        except Exception as error:\n",
        test=f"{_TITLES}5_a_title_that_failed_for_a_passing_reason_is_given_after_a_later_turn"
        "[sqlite]",
    ),
    Mutation(
        name="orphan-reason",
        mechanism="an orphan's predecessor ended by compression",
        file=f"{_TRANSACTIONS}/maintenance.py",
        old="AND p.end_reason = $2\n",
        new="AND $2 = $2\n",
        test=f"{_ORPHANS}15_a_continuation_of_a_session_that_ended_otherwise_is_left_alone[sqlite]",
    ),
    Mutation(
        name="orphan-route",
        mechanism="a conversation with a route is not an orphan",
        file=f"{_TRANSACTIONS}/maintenance.py",
        old="SELECT 1 FROM route r WHERE r.conversation_id",
        new="SELECT 1 FROM route r WHERE 1 = 0 AND r.conversation_id",
        test=f"{_ORPHANS}18_a_head_in_daily_use_is_left_alone_however_long_ago_it_was_compacted"
        "[sqlite]",
    ),
    Mutation(
        name="orphan-ended",
        mechanism="an ended session is not an orphan",
        file=f"{_TRANSACTIONS}/maintenance.py",
        old="WHERE s.ended_at IS NULL AND s.opened_at < $1 AND p.",
        new="WHERE s.opened_at < $1 AND p.",
        test=f"{_ORPHANS}14_a_continuation_that_has_ended_is_left_alone[sqlite]",
    ),
    Mutation(
        name="warm-race",
        mechanism="a state that was read before another process's refresh is read again",
        file=f"{_ENGINE}/context_cache.py",
        old=(
            "if self._contexts.get(conversation) is not state or (state and state.position != known):"
        ),
        new="if False:",
        test=f"{_S2}6_a_state_that_is_dropped_while_a_turn_reads_is_touched_no_more[sqlite]",
    ),
    Mutation(
        name="warm-session",
        mechanism="a warm state names its session",
        file=f"{_TRANSACTIONS}/context.py",
        old="known.session_id == session.id and known.entry_id",
        new="known.entry_id",
        test=f"{_S2}7_a_state_of_a_session_that_is_no_more_is_not_reused[sqlite]",
    ),
    Mutation(
        name="warm-entry",
        mechanism="a warm state names its last entry",
        file=f"{_TRANSACTIONS}/context.py",
        old=(
            "known.session_id == session.id and known.entry_id == _find_entry_id(\n"
            "        t, conversation, known.seq\n"
            "    )"
        ),
        new="known.session_id == session.id",
        test=f"{_S2}7_a_state_that_the_store_does_not_know_is_not_reused[sqlite-another-log]",
    ),
    Mutation(
        name="compression-lock",
        mechanism="of two compactions, the second neither waits nor moves the head",
        file=f"{_TRANSACTIONS}/locks.py",
        old="WHERE lock.holder = excluded.holder OR lock.expires_at <= $4\n",
        new="WHERE $4 = $4\n",
        test=f"{_S3_RUNS}2_while_the_lock_is_held_no_program_and_no_turn_compacts[sqlite]",
    ),
    Mutation(
        name="compacted-already",
        mechanism="the holder of an older session moves nothing",
        file=f"{_ENGINE}/compaction.py",
        old="if done is not None or session not in (None, found.session.id):",
        new="if done is not None:",
        test=f"{_S3}s3_1_an_actor_that_comes_when_it_is_done_moves_nothing[sqlite]",
    ),
    Mutation(
        name="own-lease",
        mechanism="a compaction leaves the lease of its own process's turn",
        file=f"{_TRANSACTIONS}/compactions.py",
        old="if holder == owner:",
        new="if False:",
        test=f"{_S3}a_compaction_beside_a_running_turn_of_the_same_process_leaves_its_lease"
        "[sqlite]",
    ),
    Mutation(
        name="stop-finalises",
        mechanism="releasing a turn is reported to plugins",
        file=f"{_ENGINE}/turn_runner.py",
        old=(
            "            self._services.hooks.emit_session_stop(self._log.session, self._platform)\n"
        ),
        new="            pass\n",
        test=f"{_S4}4_stopping_finalizes_the_sessions_of_running_turns_and_no_other[sqlite]",
    ),
    Mutation(
        name="ends-told-again",
        mechanism="an end that was not reported to plugins is reported after a restart",
        file=f"{_ENGINE}/hook_dispatch.py",
        old=("            self.emit_session_end(item)\n"),
        new="            pass\n",
        test=f"{_S4}3_a_killed_process_leaves_its_notifications_to_the_restart[sqlite]",
    ),
    Mutation(
        name="plugin-raises",
        mechanism="an error of a plugin ends nothing",
        file="src/clew/hooks/manager.py",
        old="    except BaseException as error:  # noqa: BLE001  (SystemExit",
        new="    except ZeroDivisionError as error:  # noqa: BLE001  (SystemExit",
        test=f"{_S4}5_a_plugin_whose_every_hook_raises_cannot_break_a_new_conversation[sqlite]",
    ),
    Mutation(
        name="resumed-is-not-over",
        mechanism="a conversation to which a route has been moved since has not ended",
        file=f"{_TRANSACTIONS}/expiry.py",
        old=("head.end_reason in RESET_REASONS and not chosen"),
        new=("head.end_reason in RESET_REASONS"),
        test=f"{_CHAT}a_conversation_that_was_left_by_new_is_continued_after_resume[sqlite]",
    ),
    Mutation(
        name="route-scope",
        mechanism="a command sees only its writer's scope",
        file="src/clew/commands/runner.py",
        old=("        if not can_see(viewer, scope_of(target)):\n"),
        new="        if False:\n",
        test=f"{_CHAT}a_conversation_of_another_scope_cannot_be_seen_or_resumed[sqlite]",
    ),
)
