"""The safeguards of approvals: calls that need none, and the reach of an answer."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CORE = "src/clew/core"
_POLICY = "tests/unit/test_policy.py::test_"

APPROVALS = (
    Mutation(
        name="policy-unknown-facts",
        mechanism="facts that could not be made ask, whatever was allowed",
        file=f"{_CORE}/call_policy.py",
        old="    if isinstance(call.facts, UnknownFacts):\n        return _ask(",
        new="    if isinstance(call.facts, UnknownFacts) and not rules:\n        return _ask(",
        test=f"{_POLICY}unknown_facts_ask_whatever_was_allowed_and_are_denied_by_a_rule",
    ),
    Mutation(
        name="policy-taint",
        mechanism="an outward call asks once the conversation has read text of strangers",
        file=f"{_CORE}/call_policy.py",
        old="    if turn.tainted and call.facts is not None and call.facts.outward:\n",
        new="    if False and call.facts is not None and call.facts.outward:\n",
        test=f"{_POLICY}an_outward_call_of_a_tainted_turn_asks_whatever_was_granted",
    ),
    Mutation(
        name="grant-reach",
        mechanism="a grant covers no call that reaches further",
        file=f"{_CORE}/grant.py",
        old="        return self._allows_reach(facts) and self._covers_parts(facts, shape)\n",
        new="        return self._covers_parts(facts, shape)\n",
        test=f"{_POLICY}a_grant_covers_the_same_kind_of_call_and_no_other",
    ),
    Mutation(
        name="shell-expansion",
        mechanism="a word with an expansion is not plain",
        file="src/clew/sandbox/shell_parser.py",
        old='        case "string" if _QUOTED.fullmatch(text[1:-1]):\n',
        new='        case "string":\n',
        test="tests/unit/test_shell_parser.py::test_what_is_not_plain_has_a_reason",
    ),
    Mutation(
        name="shell-every-command",
        mechanism="every command of a list must match a pattern",
        file=f"{_CORE}/grant.py",
        old="    return all(any(one.matches(command) for one in parsed) for command in shape.commands)\n",
        new="    return any(any(one.matches(command) for one in parsed) for command in shape.commands)\n",
        test=f"{_POLICY}a_grant_covers_the_same_kind_of_call_and_no_other",
    ),
    Mutation(
        name="grant-neighbours",
        mechanism="what was allowed for a folder covers no other",
        file=f"{_CORE}/grant.py",
        old='return fact.path if fact.extent != "file" else str',
        new="return str",
        test=f"{_POLICY}what_was_allowed_for_a_folder_covers_neither_its_neighbours_nor_all_below_it",
    ),
    Mutation(
        name="path-rule-search",
        mechanism="a search around a denied path asks",
        file=f"{_CORE}/call_policy.py",
        old="return _Match.MAYBE if hidden and not every else _Match.NO",
        new="return _Match.NO",
        test=f"{_POLICY}a_search_around_a_path_that_is_denied_asks",
    ),
    Mutation(
        name="approved-diff",
        mechanism="a call whose diff has changed since the question is not run",
        file="src/clew/engine/tool_journal.py",
        old="if not begun and not await self._policy.shows_as_before(",
        new="if begun and not await self._policy.shows_as_before(",
        test="tests/features/test_files_swapped.py::test_what_was_swapped_since_the_question_is_neither_read_nor_written",
    ),
    Mutation(
        name="outside-links",
        mechanism="no link is followed outside of the workspace",
        file="src/clew/features/files/access.py",
        old="    if actual != found:\n",
        new="    if False:\n",
        test="tests/features/test_files_swapped.py::test_what_was_swapped_since_the_question_is_neither_read_nor_written",
    ),
)
