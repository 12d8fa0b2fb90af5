"""The safeguards of memory: whose facts are told, and what is no longer told."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_MEMORY = "src/clew/features/memory"
_TESTS = "tests/features/test_memory.py::test_"
_EXTRACTION = "tests/features/test_memory_extraction.py::test_"
_TOLD = f"{_TESTS}a_fact_is_told_to_each_later_session_and_its_correction_with_the_next_message"
_SCOPES = f"{_TESTS}what_is_known_is_found_with_its_source_in_its_own_scope_only"
_FORGOTTEN = f"{_TESTS}what_is_forgotten_is_sent_no_more_and_its_source_is_named"
_WAYS = "tests/features/test_memory_ways_back.py::test_"

MEMORY = (
    Mutation(
        name="memory-scope",
        mechanism="what is recalled of the log is of the scope of the conversation",
        file=f"{_MEMORY}/searching.py",
        old="if is_ours(hit.conversation_id)",
        new="if is_ours",
        test=f"{_SCOPES}[sqlite]",
    ),
    Mutation(
        name="memory-note",
        mechanism="a session is told what has changed since it began",
        file=f"{_MEMORY}/session_notes.py",
        old="        after = _find_told(t, context, scope, now) if told is None else told",
        new="        after = now",
        test=f"{_TOLD}[sqlite]",
    ),
    Mutation(
        name="memory-redaction",
        mechanism="open sessions go on without what is forgotten",
        file="src/clew/store/transactions/redactions.py",
        old="    for conversation in told | busy:",
        new="    for conversation in ():",
        test=f"{_FORGOTTEN}[sqlite]",
    ),
    Mutation(
        name="memory-withheld",
        mechanism="what the log has of a forgotten text is not recalled",
        file=f"{_MEMORY}/searching.py",
        old="if not is_withheld(t, hit, withheld)",
        new="if True or is_withheld(t, hit, withheld)",
        test=f"{_FORGOTTEN}[sqlite]",
    ),
    Mutation(
        name="memory-quotation",
        mechanism="what quotes a forgotten message goes as well",
        file="src/clew/core/forgotten_text.py",
        old="            FORGOTTEN if any(mark in line for mark in wanted.marks) else line for line in lines",
        new="            line for line in lines",
        test=f"{_FORGOTTEN}[sqlite]",
    ),
    Mutation(
        name="memory-way-back",
        mechanism="no context is read from the log with what was forgotten",
        file="src/clew/store/transactions/context.py",
        old="SELECT e.seq, e.format, COALESCE(r.message, e.message) FROM entry e",
        new="SELECT e.seq, e.format, e.message FROM entry e",
        test=f"{_WAYS}no_way_back_leads_to_what_was_forgotten[sqlite-False]",
    ),
    Mutation(
        name="memory-undelete",
        mechanism="a deleted conversation is restored without what was forgotten meanwhile",
        file="src/clew/store/transactions/redactions.py",
        old="        replace_restored_session(t, conversation, name=name, session_ids=session_ids)",
        new="        pass",
        test=f"{_WAYS}a_restored_conversation_does_not_begin_with_what_was_forgotten[sqlite]",
    ),
    Mutation(
        name="undelete-open-call",
        mechanism="a restored conversation goes on before a call that was cut off",
        file="src/clew/store/transactions/undelete.py",
        old="    _leave_out_open_calls(t, conversation, last_seq)",
        new="    pass",
        test=f"{_WAYS}what_a_turn_stores_after_it_was_forgotten_is_sent_in_no_later_one"
        "[sqlite-_delete_meanwhile]",
    ),
    Mutation(
        name="memory-of-agent",
        mechanism="an agent with a memory of its own is not told that of others",
        file=f"{_MEMORY}/memories.py",
        old="    if name is None:",
        new="    if name is None or name:",
        test="tests/features/test_memory_of_agents.py::test_an_agent_with_a_memory_of_its_own_"
        "shares_nothing_with_the_others[sqlite]",
    ),
    Mutation(
        name="memory-taint",
        mechanism="after text of strangers the agent asks before it remembers",
        file="src/clew/core/call_policy.py",
        old="    if facts is not None and facts.lasting:",
        new="    if False and facts is not None and facts.lasting:",
        test=f"{_TESTS}after_text_of_strangers_it_asks_before_it_remembers_or_forgets",
    ),
    Mutation(
        name="memory-extraction",
        mechanism="a span is read for facts once, whoever was killed",
        file=f"{_MEMORY}/extraction.py",
        old="    return lock_row(t, asked.conversation) == (asked.after, rules.owner)",
        new="    return lock_row(t, asked.conversation) is not None",
        test=f"{_EXTRACTION}an_extraction_that_is_killed_repeated_or_no_good_changes_nothing_unasked[sqlite]",
    ),
    Mutation(
        name="memory-pinned",
        mechanism="what contradicts a pinned fact is proposed, not kept",
        file=f"{_MEMORY}/extraction.py",
        old="if rules.keeps and not find_contradicted(one, pinned) and",
        new="if rules.keeps and",
        test=f"{_EXTRACTION}an_extraction_that_is_killed_repeated_or_no_good_changes_nothing_unasked[sqlite]",
    ),
)
