"""The safeguards of backups, restores and moves."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_STORE = "src/clew/store"
_BACKUP = "tests/integration/test_backup.py::test_"
_RESTORE = "tests/integration/test_restore.py::test_"
_MOVES = "tests/integration/test_store_moves.py::test_"

BACKUPS = (
    Mutation(
        name="backup-verified",
        mechanism="a copy is verified before it replaces a backup",
        file=f"{_STORE}/backup/create.py",
        old=("        repairable = verify_store_file(copy, tell=tell)\n"),
        new="        repairable = []\n",
        test=f"{_BACKUP}a_damaged_store_does_not_replace_a_good_backup",
    ),
    Mutation(
        name="backup-seal",
        mechanism="a restore compares the checksum",
        file=f"{_STORE}/backup/verify.py",
        old=("    _read_seal(file, tell)\n"),
        new="",
        test=f"{_RESTORE}one_flipped_bit_is_found_wherever_it_is",
    ),
    Mutation(
        name="backup-pages",
        mechanism="a page that exists is not written again",
        file=f"{_STORE}/sqlite/page_copy.py",
        old="        if os.pread(self._descriptor, len(page), offset) != page:\n",
        new="        if True:\n",
        test=f"{_BACKUP}pages_of_the_oldest_backup_are_not_written_again",
    ),
    Mutation(
        name="restore-exclusive",
        mechanism="a restore takes a lock that excludes every process that has the store open",
        file=f"{_STORE}/sqlite/staged_store.py",
        old=('    fetch_rows(connection, "PRAGMA journal_mode = DELETE")\n'),
        new=(
            "    return check_replaceable(SqliteTx(connection, new_cursor(connection), JobContext(SystemClock(), owners)), str(path), replace=replace)\n"
        ),
        test=f"{_RESTORE}nothing_is_restored_while_the_file_is_open_elsewhere",
    ),
    Mutation(
        name="restore-stale-log",
        mechanism="a leftover log is set aside",
        file=f"{_STORE}/sqlite/staged_store.py",
        old=("            for log in find_log_files(self._path):\n"),
        new="            for log in ():\n",
        test=f"{_RESTORE}the_log_of_a_store_that_is_gone_is_not_taken_for_the_restored_ones",
    ),
    Mutation(
        name="restore-doubts",
        mechanism="deliveries that were pending at the backup may have been sent since",
        file=f"{_STORE}/backup/restore.py",
        old=("    return place.store.write(clear_runtime_state, later=True)\n"),
        new=("    return place.store.write(clear_runtime_state, later=False)\n"),
        test=f"{_RESTORE}old_processes_are_dropped_and_their_turns_continue[sqlite]",
    ),
    Mutation(
        name="restore-new-file",
        mechanism="opening a store verifies that its file is still in place",
        file=f"{_STORE}/sqlite/store.py",
        old="                raise\n            continue\n",
        new="                raise\n            raise\n",
        test=f"{_RESTORE}opening_a_store_while_it_is_replaced_gives_the_new_one",
    ),
    Mutation(
        name="move-compared",
        mechanism="every row is read again on both sides",
        file=f"{_STORE}/copying/migrate_store.py",
        old=("    differ = compare_tables(source, place.store, tell=tell)\n"),
        new='    tell("comparing", 0, 0)\n    differ = list[str]()\n',
        test=f"{_MOVES}a_source_that_was_used_between_two_tries_is_copied_again",
    ),
)
