"""The safeguards of MCP, both ways."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_FRONT = "tests/integration/test_mcp_front.py::test_"
_SERVERS = "tests/features/test_mcp_settings.py::test_"

MCP = (
    Mutation(
        name="mcp-key",
        mechanism="a message that is sent again with its key is stored once",
        file="src/clew/api/mcp/messages.py",
        old='key = given["key"] = given.get("key") or uuid4().hex',
        new='key = given["key"] = uuid4().hex',
        test=f"{_FRONT}a_message_with_one_key_is_stored_once[sqlite]",
    ),
    Mutation(
        name="mcp-scope",
        mechanism="a client that may only read cannot call what changes something",
        file="src/clew/api/mcp/front.py",
        old="if one.access <= self._access and one.method in methods",
        new="if one.method in methods",
        test=f"{_FRONT}a_client_does_only_what_its_scope_names",
    ),
    Mutation(
        name="mcp-secret",
        mechanism="headers and secrets of another program go into files of their own",
        file="src/clew/cli/mcp_settings.py",
        old="    if not isinstance(value, PlainSecret):\n        return value",
        new="    if isinstance(value, PlainSecret):\n        return value.text",
        test=f"{_SERVERS}servers_of_another_program_are_taken_and_what_was_not_is_named",
    ),
)
