"""A secret that a tool finds reaches neither the model nor the store, however it is written."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from pydantic_ai import ToolReturn

from clew.agent.known_secrets import redact_secrets, register_secrets
from clew.agent.tool_results import MAX_RESULT_CHARS, encode_result, make_text_result
from clew.config import load_settings
from clew.core.journal import CallStatus
from clew.core.text import REDACTED
from clew.testing import Calls, FakeProvider, ScriptedCall, Text, reply_in_sequence
from tests.integration.api_server import running

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "k7-Qx+91/found=by/a+tool"
NUMBER = "918273645546372819"
TOOL = '''
import pathlib

from pydantic_ai import Tool


def look(where: str) -> str:
    """Look into a file."""
    return pathlib.Path(where).read_text(encoding="utf-8")


tools = [Tool(look, metadata={"effect": "pure"})]
'''


@pytest.fixture(autouse=True)
def known() -> None:
    register_secrets([SECRET, NUMBER])


WRITTEN = {
    "as it is": SECRET,
    "base64": base64.b64encode(f"user:{SECRET}".encode()).decode(),
    "in a url": quote(SECRET, safe=""),
    "in two lines": f"{SECRET[:7]}\n{SECRET[7:]}",
}


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("shape", ["text", "value", "list", "return", "error"])
def test_no_result_holds_a_secret(written: str, shape: str) -> None:
    text = WRITTEN[written]
    values: dict[str, object] = {
        "text": text,
        "value": {"env": {"KEY": text}},
        "list": [text, 1],
        "return": ToolReturn(return_value=text, content=[text], metadata={"key": text}),
    }
    if shape == "error":
        result = make_text_result(CallStatus.ERROR, f"cannot reach {text}")
    else:
        result = encode_result(values[shape], tool="look", call_id="c1")
    assert REDACTED in result.result
    assert redact_secrets(result.result) == result.result
    json.loads(result.result)


def test_a_secret_that_is_a_number_leaves_a_result_that_can_be_read() -> None:
    result = encode_result({"id": int(NUMBER)}, tool="look", call_id="c1")
    assert NUMBER not in json.loads(result.result)


def test_a_complete_long_result_contains_no_secret() -> None:
    result = encode_result(
        "x" * MAX_RESULT_CHARS + SECRET + "y" * MAX_RESULT_CHARS, tool="look", call_id="c1"
    )
    assert result.whole is not None
    assert SECRET not in str(result.whole)
    assert REDACTED in str(result.whole)


async def test_what_the_settings_keep_hidden_is_masked_in_a_running_gateway(
    store_url: str, tmp_path: Path
) -> None:
    key = "sk-of-the-provider-0123"
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "looking.py").write_text(TOOL, encoding="utf-8")
    found = tmp_path / "found.txt"
    found.write_text(f"key={key}\n{base64.b64encode(key.encode()).decode()}\n", encoding="utf-8")
    script = reply_in_sequence([Calls([ScriptedCall("look", {"where": str(found)})]), Text("done")])
    with FakeProvider(script) as provider:
        flags = {
            "model.name": "openai-chat:fake-model",
            "model.base_url": provider.openai_url,
            "model.api_key": key,
            "tools.modules": "looking",
        }
        settings = load_settings(home=tmp_path, flags=flags, environ={})
        store = replace(settings.store, url=store_url)
        async with running(replace(settings, store=store)) as server:
            assert (await server.say("look")).status_code == 200
            listed = await server.http.get("/api/conversations/talk/entries")
        sent = json.dumps(provider.wait_until_settled()[-1].json)
    for text in (sent, listed.text):
        assert redact_secrets(text) == text
        assert text.count(REDACTED) >= 2
