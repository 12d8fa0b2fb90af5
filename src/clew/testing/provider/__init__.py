"""
A fake model provider: a real HTTP server that plays OpenAI and Anthropic, as a script says.

::

    with FakeProvider(sequence([Fail("rate_limit"), Text("hello")])) as provider:
        ...
        assert [r.status for r in provider.requests] == [429, 200]
"""

from __future__ import annotations

from clew.testing.provider.capture import Captured, Outcome, read_log
from clew.testing.provider.replies import (
    Call,
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
    Slow,
    StreamError,
    Text,
    UnknownTool,
    Usage,
)
from clew.testing.provider.request import Message, Request, Script, SeenCall, SeenResult
from clew.testing.provider.scripts import counter, echo, once_each, per_user_text, sequence, within
from clew.testing.provider.server import FakeProvider

__all__ = [
    "Call",
    "Calls",
    "Captured",
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
    "Message",
    "Outcome",
    "Raw",
    "Reply",
    "Request",
    "Script",
    "SeenCall",
    "SeenResult",
    "Slow",
    "StreamError",
    "Text",
    "UnknownTool",
    "Usage",
    "counter",
    "echo",
    "once_each",
    "per_user_text",
    "read_log",
    "sequence",
    "within",
]
