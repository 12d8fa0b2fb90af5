"""The safeguards, the change that removes each, and the test that notices."""

from __future__ import annotations

from tests.mutations.acp import ACP
from tests.mutations.approvals import APPROVALS
from tests.mutations.backups import BACKUPS
from tests.mutations.boundaries import BOUNDARIES
from tests.mutations.contracts import CONTRACTS
from tests.mutations.dashboard import DASHBOARD
from tests.mutations.delegation import DELEGATION
from tests.mutations.edges import EDGES
from tests.mutations.exports import EXPORTS
from tests.mutations.failures import FAILURES
from tests.mutations.front_ends import FRONT_ENDS
from tests.mutations.goals import GOALS
from tests.mutations.lifecycle import LIFECYCLE
from tests.mutations.mcp import MCP
from tests.mutations.memory import MEMORY
from tests.mutations.mutation import Mutation
from tests.mutations.outages import OUTAGES
from tests.mutations.rpc import RPC
from tests.mutations.sandbox import SANDBOX
from tests.mutations.schedule import SCHEDULE
from tests.mutations.skills import SKILLS
from tests.mutations.tools import TOOLS
from tests.mutations.tracing import TRACING

__all__ = ["ALL", "Mutation"]

_TRANSACTIONS = "src/clew/store/transactions"
_SCHEMA = "src/clew/store/migrations/0001_first"
_OVERLAP = "tests/contract/test_overlap.py::test_"
_LEASES = "tests/contract/test_leases.py::test_"
_TURNS = "tests/contract/test_turns.py::test_"
_AT_ONCE = "tests/integration/test_turns_at_once.py::test_"
_REPEATS = "tests/contract/test_repeats.py::test_"
_SCHEMA_TEST = "tests/contract/test_constraints.py::test_the_schema_refuses"

ALL = (
    Mutation(
        name="rotation-swap",
        mechanism="a rotation compares head and last seq",
        file=f"{_TRANSACTIONS}/sessions.py",
        old="    if found != expected:\n",
        new="    if False:\n",
        test=f"{_LEASES}a_rotation_that_expects_another_last_seq_changes_nothing[sqlite]",
    ),
    Mutation(
        name="claim-repeats",
        mechanism="a repeated claim of a delivery is known by its id",
        file=f"{_TRANSACTIONS}/deliveries.py",
        old="        if (holder, held) == (owner, claim):\n",
        new="        if False:\n",
        test=f"{_REPEATS}finish_and_its_deliveries[sqlite]",
    ),
    Mutation(
        name="slot-first",
        mechanism="a turn is begun once there is a slot for it",
        file="src/clew/engine/conversation_workers.py",
        old=("            if begins is StartMode.AT_ONCE or slot.granted.is_set():\n"),
        new="            if True:\n",
        test=f"{_AT_ONCE}a_turn_without_a_slot_is_not_started_and_the_oldest_is_next[sqlite]",
    ),
    Mutation(
        name="suspects-alone",
        mechanism="of turns that may crash the process, one runs at a time",
        file="src/clew/engine/turn_concurrency.py",
        old=("            if slot.is_suspect:\n"),
        new="            if False:\n",
        test="tests/unit/test_slots.py::test_one_suspect_is_begun_at_a_time_and_before_others",
    ),
    Mutation(
        name="fence-numbers",
        mechanism="reserving numbers names owner and fence",
        file=f"{_TRANSACTIONS}/leases.py",
        old="owner = $2 AND fence = $3\n          AND NOT EXISTS",
        new="$2 = $2 AND $3 = $3\n          AND NOT EXISTS",
        test=f"{_LEASES}an_owner_that_was_overtaken_can_write_nothing[sqlite-append]",
    ),
    Mutation(
        name="fence-hold",
        mechanism="a check of the lease names owner and fence",
        file=f"{_TRANSACTIONS}/leases.py",
        old="owner = $2 AND fence = $3 @LOCK\n",
        new="$2 = $2 AND $3 = $3 @LOCK\n",
        test=f"{_LEASES}an_owner_that_was_overtaken_can_write_nothing[sqlite-rotate]",
    ),
    Mutation(
        name="fence-rises",
        mechanism="the fence rises with each new holder",
        file=f"{_TRANSACTIONS}/leases.py",
        old="        0 if ours else 1,\n",
        new="        0,\n",
        test=f"{_LEASES}an_owner_that_let_go_and_came_back_cannot_use_its_old_lease[sqlite-append]",
    ),
    Mutation(
        name="lease-lock",
        mechanism="the lease row is locked while it is held",
        file=f"{_TRANSACTIONS}/leases.py",
        old="owner = $2 AND fence = $3 @LOCK\n",
        new="owner = $2 AND fence = $3\n",
        test=f"{_OVERLAP}of_two_rotations_that_race_one_conflicts_and_changes_nothing[postgres]",
    ),
    Mutation(
        name="lease-release",
        mechanism="finishing a turn releases the lease",
        file=f"{_TRANSACTIONS}/leases.py",
        old="UPDATE lease SET owner = NULL, expires_at = NULL\n",
        new="UPDATE lease SET owner = owner\n",
        test=f"{_LEASES}a_finished_turn_leaves_the_lease_free[sqlite]",
    ),
    Mutation(
        name="lease-holder-lives",
        mechanism="a living owner keeps its lease",
        file=f"{_TRANSACTIONS}/leases.py",
        old=("    return not in_time or not t.is_alive(holder)\n"),
        new="    return True\n",
        test=f"{_LEASES}a_lease_is_kept_from_others_while_its_owner_lives[sqlite]",
    ),
    Mutation(
        name="lease-holder-died",
        mechanism="a dead owner's lease is free at once",
        file=f"{_TRANSACTIONS}/leases.py",
        old=("    return not in_time or not t.is_alive(holder)\n"),
        new="    return not in_time\n",
        test=f"{_LEASES}a_lease_whose_owner_is_dead_is_free_at_once[sqlite]",
    ),
    Mutation(
        name="lease-expiry",
        mechanism="a lease ends, also for a living owner",
        file=f"{_TRANSACTIONS}/leases.py",
        old=("    return not in_time or not t.is_alive(holder)\n"),
        new=("    return not t.is_alive(holder)\n"),
        test=f"{_LEASES}a_lease_whose_time_is_over_is_free_although_its_owner_lives[sqlite]",
    ),
    Mutation(
        name="successor-index",
        mechanism="unique index: one successor per session",
        file=f"{_SCHEMA}.sql",
        old="CREATE UNIQUE INDEX session_successor",
        new="CREATE INDEX session_successor",
        test="tests/contract/test_constraints.py::test_a_session_has_one_successor[sqlite]",
    ),
    Mutation(
        name="open-session-index",
        mechanism="unique index: one open session per conversation",
        file=f"{_SCHEMA}.sql",
        old="CREATE UNIQUE INDEX session_open",
        new="CREATE INDEX session_open",
        test=f"{_SCHEMA_TEST}[sqlite-3.1 a second open session]",
    ),
    Mutation(
        name="unfinished-turn-index",
        mechanism="unique index: one unfinished turn per conversation",
        file=f"{_SCHEMA}.sql",
        old="CREATE UNIQUE INDEX turn_unfinished",
        new="CREATE INDEX turn_unfinished",
        test=f"{_SCHEMA_TEST}[sqlite-3.6 a second unfinished turn]",
    ),
    Mutation(
        name="seq-index",
        mechanism="unique: one entry per number",
        file=f"{_SCHEMA}.sql",
        old="    UNIQUE (conversation_id, seq),\n",
        new="",
        test=f"{_SCHEMA_TEST}[sqlite-3.2 a number twice]",
    ),
    Mutation(
        name="entry-trigger",
        mechanism="trigger: messages never change",
        file=f"{_SCHEMA}.sqlite.sql",
        old="BEFORE UPDATE ON entry\n",
        new="BEFORE UPDATE ON entry WHEN 0\n",
        test=f"{_SCHEMA_TEST}[sqlite-3.2 a change of what was said]",
    ),
    Mutation(
        name="entry-trigger-postgres",
        mechanism="the same on PostgreSQL",
        file=f"{_SCHEMA}.postgres.sql",
        old="CREATE TRIGGER entry_kept BEFORE UPDATE OR DELETE ON entry",
        new="CREATE TRIGGER entry_kept BEFORE DELETE ON entry",
        test=f"{_SCHEMA_TEST}[postgres-3.2 a change of what was said]",
    ),
    Mutation(
        name="ended-session",
        mechanism="nothing appends to an ended session",
        file=f"{_TRANSACTIONS}/entries.py",
        old="    if head != session or ended_at is not None:\n",
        new="    if row is False:\n",
        test=f"{_LEASES}nothing_appends_to_a_session_that_has_ended_and_the_head_is_named[sqlite]",
    ),
    Mutation(
        name="hash-chain",
        mechanism="each entry is chained to the one before",
        file=f"{_TRANSACTIONS}/entries.py",
        old="        prev_hash = entry.hash\n",
        new="",
        test=f"{_REPEATS}append[sqlite]",
    ),
    Mutation(
        name="dedupe-key",
        mechanism="an event is claimed once",
        file=f"{_TRANSACTIONS}/inbox.py",
        old=("    return None if claimed else find_accepted_event(t, item)\n"),
        new="    return None\n",
        test=f"{_OVERLAP}an_event_that_arrives_twice_at_once_is_accepted_once[postgres]",
    ),
    Mutation(
        name="route-lock",
        mechanism="accept and a move of its route exclude each other",
        file=f"{_TRANSACTIONS}/conversations.py",
        old="WHERE key = $1 @SHARE",
        new="WHERE key = $1",
        test=f"{_OVERLAP}a_message_that_is_accepted_while_its_route_starts_afresh_is_cancelled"
        "_with_the_rest[postgres]",
    ),
    Mutation(
        name="line-lock",
        mechanism="an input that is being consumed can be neither edited nor cancelled",
        file=f"{_TRANSACTIONS}/inbox.py",
        old="ORDER BY n @LOCK",
        new="ORDER BY n",
        test=f"{_OVERLAP}a_message_that_is_edited_while_a_turn_begins_is_said_as_edited[postgres]",
    ),
    Mutation(
        name="already-consumed",
        mechanism="an input is consumed once",
        file=f"{_TRANSACTIONS}/turns.py",
        old="    if not changed:\n        raise StoreError(",
        new="    if False:\n        raise StoreError(",
        test=f"{_TURNS}an_item_that_was_consumed_cannot_be_consumed_again[sqlite]",
    ),
    Mutation(
        name="taken-back",
        mechanism="a turn that a message rolls back is not answered",
        file=f"{_TRANSACTIONS}/turns.py",
        old="AND ($7 = 1 OR COALESCE(stop, '') <> $8)",
        new="AND ($7 = $7 OR $8 = $8)",
        test=f"{_OVERLAP}a_turn_that_is_taken_back_while_it_finishes_is_not_answered[postgres]",
    ),
    Mutation(
        name="waiting-turn",
        mechanism="nothing begins while a turn waits",
        file=f"{_TRANSACTIONS}/turns.py",
        old=("        begun = _continue_turn(t, acquired, unfinished)\n    else:\n"),
        new=(
            "        begun = _continue_turn(t, acquired, unfinished)\n"
            "    if unfinished is None or begun is None:\n"
        ),
        test=f"{_TURNS}a_turn_that_waits_keeps_its_place_before_what_is_queued[sqlite]",
    ),
    Mutation(
        name="repeated-append",
        mechanism="an append that is repeated returns the first entries",
        file=f"{_TRANSACTIONS}/leases.py",
        old="AND NOT EXISTS (SELECT 1 FROM entry WHERE id = $6)",
        new="AND $6 = $6",
        test=f"{_REPEATS}append[sqlite]",
    ),
    Mutation(
        name="repeated-rotation",
        mechanism="a rotation that is repeated returns the first session",
        file=f"{_TRANSACTIONS}/sessions.py",
        old=("        return before\n    last_seq = verify_lease_for_write(t, lease)\n"),
        new=("        pass\n    last_seq = verify_lease_for_write(t, lease)\n"),
        test=f"{_REPEATS}rotate_by_an_owner_that_has_lost_its_lease_since[sqlite]",
    ),
    Mutation(
        name="journal-first-result",
        mechanism="the first result of a call stays",
        file=f"{_TRANSACTIONS}/journal.py",
        old=(
            "finished_at = $7\n        WHERE turn_id = $1 AND step = $2 AND call_id = $3"
            " AND status IS NULL\n"
        ),
        new="finished_at = $7\n        WHERE turn_id = $1 AND step = $2 AND call_id = $3\n",
        test=f"{_REPEATS}journal[sqlite]",
    ),
    Mutation(
        name="delivery-lock",
        mechanism="one process at a time advances a delivery",
        file=f"{_TRANSACTIONS}/deliveries.py",
        old='"SELECT owner FROM delivery WHERE id = $1 @LOCK"',
        new='"SELECT owner FROM delivery WHERE id = $1"',
        test=f"{_OVERLAP}a_delivery_that_has_arrived_does_not_become_unknown[postgres]",
    ),
    Mutation(
        name="voided-batch",
        mechanism="after a failed job the transaction is checked",
        file="src/clew/store/sqlite/group_commit.py",
        old="    return connection.in_transaction\n",
        new="    return True\n",
        test="tests/integration/test_sqlite_voided_batch.py::"
        "test_a_full_disk_at_job_k_of_n_costs_only_that_job",
    ),
    Mutation(
        name="newer-store",
        mechanism="the store of a newer version is refused",
        file="src/clew/store/migrate.py",
        old="    if newest > known[-1].number:\n",
        new="    if False:\n",
        test="tests/contract/test_opening.py::test_a_store_of_another_version_is_left_alone",
    ),
    *LIFECYCLE,
    *BOUNDARIES,
    *CONTRACTS,
    *FAILURES,
    *OUTAGES,
    *RPC,
    *ACP,
    *EDGES,
    *EXPORTS,
    *APPROVALS,
    *BACKUPS,
    *SANDBOX,
    *SCHEDULE,
    *DASHBOARD,
    *DELEGATION,
    *FRONT_ENDS,
    *GOALS,
    *MEMORY,
    *MCP,
    *SKILLS,
    *TOOLS,
    *TRACING,
)
