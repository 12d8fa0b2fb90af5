"""
A fake model provider: a real HTTP server that acts as OpenAI and Anthropic.

::

    with FakeProvider(reply_in_sequence([Fail("rate_limit"), Text("hello")])) as provider:
        ...
        assert [r.status for r in provider.requests] == [429, 200]
"""

from __future__ import annotations

from clew.testing.provider.capture import CapturedRequest, RequestOutcome, read_log
from clew.testing.provider.replies import (
    Calls,
    CutStream,
    EarlyEnd,
    EmptyChoices,
    EmptyText,
    Endless,
    Fail,
    FailKind,
    Hang,
    Html,
    LengthStop,
    MalformedArguments,
    Raw,
    Reply,
    ReplyUsage,
    ScriptedCall,
    Slow,
    StreamError,
    Text,
    UnknownTool,
)
from clew.testing.provider.request import (
    ProviderMessage,
    ProviderRequest,
    Script,
    SeenCall,
    SeenResult,
)
from clew.testing.provider.scripts import (
    count_user_texts,
    echo,
    reply_by_user_text,
    reply_in_sequence,
    reply_once_each,
    with_context_window,
)
from clew.testing.provider.server import FakeProvider

__all__ = [
    "Calls",
    "CapturedRequest",
    "CutStream",
    "EarlyEnd",
    "EmptyChoices",
    "EmptyText",
    "Endless",
    "Fail",
    "FailKind",
    "FakeProvider",
    "Hang",
    "Html",
    "LengthStop",
    "MalformedArguments",
    "ProviderMessage",
    "ProviderRequest",
    "Raw",
    "Reply",
    "ReplyUsage",
    "RequestOutcome",
    "Script",
    "ScriptedCall",
    "SeenCall",
    "SeenResult",
    "Slow",
    "StreamError",
    "Text",
    "UnknownTool",
    "count_user_texts",
    "echo",
    "read_log",
    "reply_by_user_text",
    "reply_in_sequence",
    "reply_once_each",
    "with_context_window",
]
