"""Safeguards of the front of editors: what is shown runs, what is typed is not told twice."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_ACP = "tests/integration/test_acp.py::test_"

ACP = (
    Mutation(
        name="acp-cancel",
        mechanism="cancelling takes back a prompt that waits, and leaves the turn of another front",
        file="src/clew/acp/session.py",
        old="            if not done.cancelled:\n",
        new="            if True:\n",
        test=f"{_ACP}cancelling_a_prompt_that_waits_leaves_the_turn_of_another_front",
    ),
    Mutation(
        name="acp-withdrawn",
        mechanism="a question that was answered elsewhere is withdrawn",
        file="src/clew/acp/session.py",
        old="        await cancel_and_wait(*gone)\n",
        new="",
        test=f"{_ACP}a_question_that_is_answered_elsewhere_disappears",
    ),
    Mutation(
        name="acp-unknown-block",
        mechanism="a part of a prompt that is not understood is named, not dropped",
        file="src/clew/acp/server.py",
        old="                reject_unknown_blocks(params)\n",
        new="                pass\n",
        test=f"{_ACP}what_cannot_be_done_is_named",
    ),
    Mutation(
        name="acp-key",
        mechanism="a prompt that is sent again with its key is stored once",
        file="src/clew/acp/agent.py",
        old="key=None if key is None else str(key))\n",
        new="key=None)\n",
        test=f"{_ACP}what_is_sent_again_with_its_key_is_done_once",
    ),
    Mutation(
        name="acp-load",
        mechanism="a session that names nothing is refused, not opened",
        file="src/clew/acp/agent.py",
        old="        opened = await self._open((await self._find(session_id)).id)\n",
        new="        opened = await self._open(session_id)\n",
        test=f"{_ACP}what_cannot_be_done_is_named",
    ),
)
