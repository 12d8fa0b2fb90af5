"""The safeguards of exports and imports."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CORE = "src/clew/core/exported"
_TRANSACTIONS = "src/clew/store/transactions"
_VERIFY = "tests/unit/test_export_verify.py::test_"
_EXPORTS = "tests/integration/test_exports.py::test_"

EXPORTS = (
    Mutation(
        name="export-sum",
        mechanism="each line of an export has its sum",
        file="src/clew/core/export_format/sealed_lines.py",
        old="    if hashlib.sha256(line[:-_SEAL_LENGTH]).hexdigest() != stated:\n",
        new="    if False:\n",
        test=f"{_VERIFY}any_bit_that_is_flipped_is_found_and_its_line_named",
    ),
    Mutation(
        name="export-chain",
        mechanism="each entry of an export names the hash before it",
        file="src/clew/core/export_format/chain_checker.py",
        old='elif not self._loose and entry["prev_hash"] != self.last_hash:\n',
        new="elif False:\n",
        test=f"{_VERIFY}a_recomputed_hash_breaks_the_chain",
    ),
    Mutation(
        name="export-places",
        mechanism="moved lines are found by their numbers",
        file="src/clew/core/export_format/line_index.py",
        old=("    kept = _longest_increasing(numbers)\n"),
        new=("    return {}\n    kept = _longest_increasing(numbers)\n"),
        test=f"{_VERIFY}two_entries_that_change_places_are_named",
    ),
    Mutation(
        name="export-secrets",
        mechanism="secrets are also found as JSON quotes them",
        file="src/clew/core/redaction.py",
        old=("    for _ in range(_MAX_QUOTING_DEPTH):\n"),
        new="    for _ in range(0):\n",
        test=f"{_EXPORTS}secrets_of_the_settings_are_in_no_export[sqlite]",
    ),
    Mutation(
        name="import-apart",
        mechanism="two conversations that have diverged are not merged",
        file="src/clew/core/export_format/divergence.py",
        old=("    return Relation.AHEAD if ahead else Relation.APART\n"),
        new=("    return Relation.AHEAD if ahead else Relation.BEHIND\n"),
        test=f"{_EXPORTS}two_that_went_on_apart_are_never_merged[sqlite]",
    ),
    Mutation(
        name="import-lease",
        mechanism="only the holder of the lease appends what is imported",
        file=f"{_TRANSACTIONS}/imports.py",
        old=(
            '    lease = leases.acquire_lease(t, conversation["id"], owner=opening.owner).lease\n'
        ),
        new=(
            '    t.execute("UPDATE lease SET owner = NULL, expires_at = NULL")\n'
            '    lease = leases.acquire_lease(t, conversation["id"], owner=opening.owner).lease\n'
        ),
        test=f"{_EXPORTS}one_that_others_write_to_is_left_for_later[sqlite]",
    ),
    Mutation(
        name="import-deleted",
        mechanism="a deleted conversation is not imported",
        file=f"{_TRANSACTIONS}/imports.py",
        old="    if grave is not None:\n",
        new="    if grave is not None and False:\n",
        test=f"{_EXPORTS}an_import_restores_a_deleted_conversation_only_on_request[sqlite]",
    ),
    Mutation(
        name="import-stop",
        mechanism="an unfinished turn is stopped when it is imported",
        file=f"{_TRANSACTIONS}/imports.py",
        old=('        record["stop"] if done else StopRequest.CANCEL.value,\n'),
        new='        record["stop"],\n',
        test=f"{_EXPORTS}a_turn_that_is_not_over_is_stopped_where_it_was_taken_in[sqlite]",
    ),
    Mutation(
        name="import-log-last",
        mechanism="entries without a place in the log are imported before its end",
        file="src/clew/engine/imports.py",
        old=(
            "            _iter_outside_log(section.iter_records()),\n"
            "            _iter_missing_log(section.iter_records(), had, sessions),\n"
        ),
        new=(
            "            _iter_missing_log(section.iter_records(), had, sessions),\n"
            "            _iter_outside_log(section.iter_records()),\n"
        ),
        test=f"{_EXPORTS}an_import_that_is_stopped_anywhere_leaves_whole_conversations_and_continues"
        "[sqlite]",
    ),
)
