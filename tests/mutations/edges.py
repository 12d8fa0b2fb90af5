"""Safeguards at the edges: input of clients, disks, deletions, secrets."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_UNDELETE = "tests/contract/test_undelete.py::test_"
_FULL = "tests/integration/test_full_store.py::test_a_caller_of_a_turn_that_cannot_start"
_OPENING = "tests/integration/test_sqlite_opening.py::test_"
_RESULTS = "tests/integration/test_secrets_in_results.py::test_"
_LATE = "tests/integration/test_terminal_late_answers.py::test_"

EDGES: tuple[Mutation, ...] = (
    Mutation(
        name="late-usage",
        mechanism="the terminal UI shows and addresses one conversation",
        file="src/clew/tui/state/reducer.py",
        old="    if not view.shows(conversation.id):\n",
        new="    if False:\n",
        test=f"{_LATE}usage_that_comes_late_does_not_bring_back_the_conversation_that_was_left",
    ),
    Mutation(
        name="late-rewind",
        mechanism="an action applies to the conversation in which its key was pressed",
        file="src/clew/tui/screens/actions.py",
        old="RewindParams(conversation=conversation, to=to)",
        new="RewindParams(conversation=self._controller.conversation_id, to=to)",
        test=f"{_LATE}a_rewind_that_is_confirmed_late_rewinds_the_conversation_of_its_message",
    ),
    Mutation(
        name="undelete-fence",
        mechanism="an owner from before a deletion cannot write after its undoing",
        file="src/clew/store/transactions/undelete.py",
        old='        undo["fence"] + 1,\n',
        new="        0,\n",
        test=f"{_UNDELETE}an_owner_from_before_a_deletion_cannot_write_after_its_undo[sqlite]",
    ),
    Mutation(
        name="undelete-slices",
        mechanism="no row of a conversation that can be undeleted is removed",
        file="src/clew/store/transactions/deletion.py",
        old=("    if t.fetch_one(lives, conversation) is not None:\n"),
        new=("    if t.fetch_one(lives, conversation) is not None and False:\n"),
        test=f"{_UNDELETE}one_that_was_brought_back_meanwhile_is_not_removed[sqlite]",
    ),
    Mutation(
        name="upgrade-body",
        mechanism="the body behind an offer of another protocol is read",
        file="src/clew/api/http_protocol.py",
        old="self._connection.head_without_upgrade + bytes(rest[after:])",
        new="self._connection.head_without_upgrade",
        test="tests/integration/test_api_upgrades.py::test_a_post_with_an_offer_keeps_its_body"
        "[java-length]",
    ),
    Mutation(
        name="full-store-told",
        mechanism="callers learn that their write cannot be stored",
        file="src/clew/engine/input_stream.py",
        old="            if error is not None and times > known:\n",
        new="            if False:\n",
        test=f"{_FULL}_learns_that_it_is_stored[plain]",
    ),
    Mutation(
        name="commit-waits",
        mechanism="without WAL a commit waits for readers",
        file="src/clew/store/sqlite/writer_maintenance.py",
        old="                if time.monotonic() > until or not self._connection.in_transaction:\n",
        new="                if True:\n",
        test=f"{_OPENING}without_wal_a_commit_waits_for_those_who_read",
    ),
    Mutation(
        name="journal-by-hand",
        mechanism="a journal mode that was set by hand stays",
        file="src/clew/store/sqlite/opening.py",
        old=("        elif _clear_backup_stamp(connection):\n"),
        new="        else:\n",
        test=f"{_OPENING}a_journal_mode_set_by_the_user_is_kept",
    ),
    Mutation(
        name="secret-in-result",
        mechanism="secrets are removed from a result before it is stored",
        file="src/clew/agent/tool_results.py",
        old=("        value = redact_secrets(value)\n"),
        new="",
        test=f"{_RESULTS}no_result_holds_a_secret[text-base64]",
    ),
)
