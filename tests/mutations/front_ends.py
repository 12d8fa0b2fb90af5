"""The safeguards of runs that front-ends ask for."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_AG_UI = "src/clew/api/ag_ui"
_RUNS = "tests/integration/test_api_ag_ui.py::test_"

FRONT_ENDS = (
    Mutation(
        name="run-known",
        mechanism="a message that another run has taken is not taken again",
        file="src/clew/store/transactions/message_claims.py",
        old="        return InboxId(first)",
        new="        return None",
        test=f"{_RUNS}a_message_of_two_runs_at_once_is_taken_once[sqlite]",
    ),
    Mutation(
        name="copy-replaced",
        mechanism="a client whose history differs gets the stored one",
        file=f"{_AG_UI}/input_reader.py",
        old="return [] if await self._is_current(record) else await self._replace_all()",
        new="return []",
        test=f"{_RUNS}a_client_whose_history_differs_gets_the_stored_one[sqlite]",
    ),
    Mutation(
        name="answer-whole",
        mechanism="of an answer that says more, nothing is carried out",
        file=f"{_AG_UI}/request.py",
        old="        or told.keys() - _ANSWER_FIELDS\n",
        new="",
        test=f"{_RUNS}a_denial_goes_before_the_message_that_comes_with_it[sqlite]",
    ),
    Mutation(
        name="answer-here",
        mechanism="a run answers only approvals of its own conversation",
        file=f"{_AG_UI}/interrupts.py",
        old="    if found.conversation_id != conversation:\n",
        new="    if False:\n",
        test=f"{_RUNS}a_denial_goes_before_the_message_that_comes_with_it[sqlite]",
    ),
)
