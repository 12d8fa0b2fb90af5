"""Speaker of a stored message, as it is shown."""

from __future__ import annotations

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)

from clew.agent.messages import get_role
from clew.core.entry import Role

RETURN = ToolReturnPart(tool_name="look", content="seen", tool_call_id="call_1")

FEEDBACK = RetryFeedbackPart("Please return text.", retry=RetryInfo("no_output"))


@pytest.mark.parametrize(
    ("message", "role"),
    [
        (ModelRequest(parts=[UserPromptPart("hello")]), Role.USER),
        (ModelRequest(parts=[RETURN]), Role.TOOL),
        (ModelRequest(parts=[FEEDBACK]), Role.TOOL),
        (ModelRequest(parts=[RETURN, UserPromptPart("and now?")]), Role.USER),
        (ModelResponse(parts=[TextPart("hello")]), Role.ASSISTANT),
    ],
)
def test_a_message_is_the_persons_only_where_the_person_wrote(
    message: ModelMessage, role: Role
) -> None:
    assert get_role(message) is role
