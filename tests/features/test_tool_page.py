"""The tools of the how-to page do what the page says."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from clew.cli.entry_point import run_command
from clew.core.route import local_route
from clew.errors import NotFound
from clew.plugin.loading import load_settings_with_features
from clew.runtime import open_application
from clew.testing import Calls, FakeProvider, ScriptedCall, Text, reply_in_sequence
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Generator

    import pytest

    from clew.core.approval import Approval
    from clew.runtime import Application

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-tool.md"
TALK = local_route("talk")


@contextmanager
def parcel_service(orders: list[tuple[str, Any]]) -> Generator[str]:
    """A service that knows parcel 17 and notes the orders with their keys."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(
                200 if self.path == "/parcels/17" else 404, b"in Cnossos; handle with care"
            )

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            orders.append((self.headers["Idempotency-Key"], json.loads(body)))
            self._answer(200, b"booked")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def install_plugin(home: Path, url: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (home / "plugins").mkdir()
    (home / "plugins" / "parcels.py").write_text(code, encoding="utf-8")
    (home / "config.toml").write_text(
        f'[plugins]\nenabled = ["parcels"]\n[plugins.parcels]\nurl = "{url}"\n', encoding="utf-8"
    )


async def test_the_tools_of_the_page_look_up_at_once_and_book_once_somebody_allows_it(
    tmp_path: Path,
) -> None:
    orders: list[tuple[str, Any]] = []
    steps = [
        Calls([ScriptedCall("find_parcel", {"number": one}, id=f"find-{one}")])
        for one in ("17", "18")
    ]
    book = ScriptedCall("book_pickup", {"number": "17", "day": "2026-05-01"}, id="book")
    script = reply_in_sequence([*steps, Calls([book]), Text("done")])
    with parcel_service(orders) as url, FakeProvider(script) as provider:
        install_plugin(tmp_path, url)
        flags = {
            "model.name": "openai-chat:fake-model",
            "model.base_url": provider.openai_url,
            "model.api_key": "key",
        }
        settings = load_settings_with_features(home=tmp_path, flags=flags, environ={})
        async with open_application(settings, role="test", own_only=True) as product:
            accepted = await product.engine.submit("collect it", target=TALK)
            turn = asyncio.create_task(product.engine.wait_for_input(accepted))
            question = await wait_until(lambda: _find_question(product))
            assert question is not None
            assert (question.tool, question.preview) == (
                "book_pickup",
                "collect 17 on 2026-05-01",
            )
            assert question.why == (
                "it reaches outside, after the conversation has read text of strangers"
            )
            assert orders == []
            await product.engine.answer_approval(question.id, yes=True)
            done = await turn
            assert done.turn is not None
            key = f"{done.turn.id}-3-book"
        messages: list[dict[str, Any]] = (provider.requests[-1].json or {})["messages"]
    first, second, third = [one["content"] for one in messages if one["role"] == "tool"]
    assert first == "in Cnossos; handle with care"
    assert "answered 404" in second
    assert third == "booked"
    assert orders == [(key, {"number": "17", "day": "2026-05-01", "for": "local"})]


async def _find_question(product: Application) -> Approval | None:
    try:
        conversation = await product.engine.resolve_name(TALK.key)
    except NotFound:
        return None
    return next(iter(await product.engine.list_approvals(conversation)), None)


def test_the_tools_of_the_page_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install_plugin(tmp_path, "http://127.0.0.1:9")
    assert run_command(["--home", str(tmp_path), "tools", "--json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    found = [one for one in items if one["feature"] == "parcels"]
    shared: dict[str, object] = {
        "default": "by call",
        "rules": {"every": None, "some": []},
        "feature": "parcels",
    }
    assert found == [
        {"name": "find_parcel", "effect": "pure", "untrusted": True, **shared},
        {"name": "book_pickup", "effect": "idempotent", "untrusted": False, **shared},
    ]
