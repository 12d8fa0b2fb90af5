"""Safeguards of the protocol: order, scope, resuming, edits."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_RPC = "tests/integration/test_rpc.py::test_"
_API = "src/clew/api/rpc"

RPC = (
    Mutation(
        name="rpc-order",
        mechanism="requests of one client are stored in their order",
        file=f"{_API}/client.py",
        old="        await self._lock.acquire()\n        left = False\n",
        new="        await asyncio.sleep((hash(asyncio.current_task()) >> 4) % 5 / 100)\n"
        "        left = True\n",
        test=f"{_RPC}requests_of_one_client_are_stored_in_the_order_in_which_it_sends_them",
    ),
    Mutation(
        name="rpc-scope",
        mechanism="nothing of another scope can be reached by its name",
        file="src/clew/api/operation_context.py",
        old=("        return await self.engine.resolve_name(name, viewer=self.viewer)\n"),
        new=("        return await self.engine.resolve_name(name)\n"),
        test=f"{_RPC}another_scope_sees_and_changes_nothing",
    ),
    Mutation(
        name="rpc-local",
        mechanism="operations that show this machine are only for callers that see everything",
        file="src/clew/api/authorization.py",
        old="    if callers in (CallerKind.LOCAL, CallerKind.OWNER) and context.viewer != LOCAL:\n",
        new="    if False:\n",
        test="tests/integration/test_operation_scopes.py::"
        "test_over_rpc_a_caller_reaches_only_its_own_records",
    ),
    Mutation(
        name="rpc-key",
        mechanism="a message that is sent again with its key is stored once",
        file="src/clew/api/handlers/turns.py",
        old=("        key=call.make_key(given),\n"),
        new="        key=None,\n",
        test=f"{_RPC}a_message_that_is_sent_again_with_its_key_is_stored_once[sqlite]",
    ),
    Mutation(
        name="rpc-edit",
        mechanism="a queued command cannot be edited",
        file="src/clew/store/transactions/inbox.py",
        old=" AND kind = 'message' RETURNING conversation_id\n",
        new=" RETURNING conversation_id\n",
        test=f"{_RPC}a_waiting_input_can_be_edited_and_cancelled[sqlite]",
    ),
    Mutation(
        name="rpc-upgrade",
        mechanism="the limits of a request's head end with the upgrade",
        file="src/clew/api/http_protocol.py",
        old="        if self._upgraded:\n            return\n",
        new="",
        test=f"{_RPC}a_connection_lives_longer_than_the_head_of_a_request_may_take",
    ),
    Mutation(
        name="rpc-detach",
        mechanism="a broken connection keeps no session open",
        file=f"{_API}/connection.py",
        old=("            await self._client.disconnect()\n"),
        new="            pass\n",
        test="tests/contract/test_s1_rpc.py::test_s1_1_a_connection_that_breaks_only_detaches[sqlite]",
    ),
)
