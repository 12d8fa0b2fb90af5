"""Capture of what a running server answers, over its public interfaces only."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2
    from websockets.asyncio.client import ClientConnection

#: Letters of one line of a description.
_LINE = 400
#: Headers that are part of an answer.
_HEADERS = ("content-type", "x-should-retry", "retry-after", "allow", "x-clew-conversation")
_VARYING = re.compile(
    r"\b(?:cnv|trn|ent|inb|dlv|apr|grt|cli|own|op|use|att)_[0-9a-f]{28}"
    r"|\b\d{8}_\d{6}_[0-9a-f]{6}\b"
)
_REPLACED: tuple[tuple[str, str], ...] = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME"),
    (r'"created":\s?\d+', '"created":TIME'),
    (r'"timestamp":"[^"]*"', '"timestamp":"TIME"'),
    (r"chatcmpl-[0-9a-f]{28}", "chatcmpl-ID"),
    (r"http://127\.0\.0\.1:\d+", "URL"),
    (r'"version":"[^"]*"', '"version":"VERSION"'),
)


@dataclass
class Recording:
    """A transcript in which ids, times and places are replaced."""

    home: str
    lines: list[str] = field(default_factory=list[str])
    _names: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, text: str) -> None:
        self.lines.append(self.normalise(text))

    def normalise(self, text: str) -> str:
        text = _VARYING.sub(lambda found: self._name(found[0]), text).replace(self.home, "HOME")
        for pattern, shown in _REPLACED:
            text = re.sub(pattern, shown, text)
        return text

    def _name(self, id_: str) -> str:
        kind = id_[:3] if id_[3] == "_" else "session"
        return self._names.setdefault(id_, f"{kind}#{len(self._names) + 1}")

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def structure(document: Any) -> Any:
    """A description without its sentences."""
    if isinstance(document, list):
        return [structure(one) for one in cast("list[Any]", document)]
    if not isinstance(document, dict):
        return document
    return {
        key: structure(value)
        for key, value in cast("dict[str, Any]", document).items()
        if not (key in ("description", "summary", "version") and isinstance(value, str))
    }


def outline(place: str, value: Any) -> Iterator[str]:
    """Yield a document in lines that are short enough to compare."""
    whole = json.dumps(value)
    if len(whole) <= _LINE:
        yield f"{place}: {whole}"
        return
    parts = (
        cast("dict[Any, Any]", value)
        if isinstance(value, dict)
        else dict(enumerate(cast("list[Any]", value)))
    )
    for key, part in parts.items():
        yield from outline(f"{place}.{key}", part)


class HttpCapture:
    """Requests over HTTP, each with its answer."""

    def __init__(self, http: httpx2.AsyncClient, record: Recording) -> None:
        self._http, self.record = http, record

    async def ask(
        self, method: str, path: str, body: object = None, *, lines: int = 0, **headers: str
    ) -> Any:
        """Request, and record the answer; of a stream the given number of lines."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._http.stream(method, path, json=body, headers=sent) as answer:
            told = await _read(answer, lines)
        asked = "" if body is None else f" {json.dumps(body)}"
        extra = "".join(f" {name}={value}" for name, value in sent.items())
        self.record.add(f"> {method} {path}{extra}{asked}")
        shown = {name: answer.headers[name] for name in _HEADERS if name in answer.headers}
        self.record.add(f"< {answer.status_code} {json.dumps(shown)}")
        if path == "/openapi.json":
            told = "\n".join(outline("", structure(json.loads(told))))
        elif path == "/metrics" and answer.status_code == 200:
            told = "\n".join(line for line in told.splitlines() if line.startswith("# TYPE"))
        self.record.add(told)
        return json.loads(told) if told.startswith("{") else None


class RpcCapture:
    """Requests over JSON-RPC, each with its answer."""

    def __init__(self, socket: ClientConnection, record: Recording) -> None:
        self._socket, self.record, self._id = socket, record, 0
        self.told: list[Any] = []

    async def ask(self, method: str, *, record: bool = True, **params: Any) -> Any:
        """Call a method, and record its answer."""
        self._id += 1
        asked = json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        await self._socket.send(asked)
        while True:
            frame = str(await self._socket.recv())
            answer = json.loads(frame)
            if answer.get("id") == self._id:
                break
            self.told.append((answer["params"]["type"], frame))
        if not record:
            return answer.get("result")
        self.record.add(f"> {method} {json.dumps(params)}")
        if method == "rpc.discover" and "result" in answer:
            self.record.add("\n".join(outline("", structure(answer["result"]))))
        else:
            self.record.add(frame.replace(f'"id":{self._id}', '"id":0', 1))
        return answer.get("result")

    async def settled(self, conversation: str, *, waiting: bool = False) -> None:
        """Wait until a conversation is idle, or until its turn waits for a person."""

        async def reached() -> bool:
            found = await self.ask("conversation.status", record=False, conversation=conversation)
            state = found["state"]
            if waiting:
                turn = state["turn"]
                return turn is not None and turn["state"] == "waiting"
            return state["turn"] is None and not state["queue"]

        await wait_until(reached)


async def _read(answer: httpx2.Response, lines: int) -> str:
    """Read an answer whole, or the first lines of a stream without end."""
    if not lines:
        return (await answer.aread()).decode()
    told: list[str] = []
    async for line in answer.aiter_lines():
        told.append(line)
        if len(told) == lines:
            break
    return "\n".join(told)


async def capture_http(ask: HttpCapture, rpc: RpcCapture) -> None:
    """Ask every route, each at least once well and once badly."""
    await _capture_openai(ask, rpc)
    await _capture_reading(ask)
    await _capture_writing(ask, rpc)
    await _capture_rotation(ask, rpc)
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        await ask.ask("GET", path)
        await ask.ask("POST", path)
    await ask.ask("GET", "/metrics", Authorization="Bearer wrong")
    await ask.ask("POST", "/hooks/nothing", {"a": 1})


async def _capture_openai(ask: HttpCapture, rpc: RpcCapture) -> None:
    said = {"messages": [{"role": "user", "content": "a:"}]}
    path = "/v1/chat/completions"
    await ask.ask("POST", path, said, X_Clew_Conversation="talk")
    await rpc.settled("talk")
    await ask.ask("POST", path, said | {"stream": True}, X_Clew_Conversation="talk")
    await rpc.settled("talk")
    await ask.ask("POST", path, {"messages": []})
    await ask.ask("POST", path, said | {"n": 2})
    await ask.ask("GET", "/v1/models")
    await ask.ask("GET", "/v1/models?unknown=1")
    await ask.ask("GET", "/v1/models/clew")
    await ask.ask("GET", "/v1/models/none")


async def _capture_reading(ask: HttpCapture) -> None:
    await ask.ask("GET", "/api/conversations?limit=1")
    await ask.ask("GET", "/api/conversations?adhoc=true&query=no")
    await ask.ask("GET", "/api/conversations?limit=x")
    await ask.ask("GET", "/api/conversations?adhoc=1")
    await ask.ask("GET", "/api/conversations?cursor=x")
    await ask.ask("GET", "/api/search?query=answer")
    await ask.ask("GET", "/api/search")
    await ask.ask("GET", "/api/conversations/talk")
    await ask.ask("GET", "/api/conversations/%FF")
    await ask.ask("GET", "/api/conversations/talk/entries?after=1&limit=2")
    await ask.ask("GET", "/api/conversations/talk/entries?after=-1")
    await ask.ask("GET", "/api/conversations/none/entries")
    await ask.ask("GET", "/api/conversations/talk/events?after=2", lines=8)
    await ask.ask("GET", "/api/conversations/talk/events", lines=2, Last_Event_ID="3")
    await ask.ask("GET", "/api/conversations/talk/events", Last_Event_ID="x")


async def _capture_writing(ask: HttpCapture, rpc: RpcCapture) -> None:
    path = "/api/conversations/talk"
    said = {"text": "b:", "double_text": None, "unknown": 1}
    await ask.ask("POST", f"{path}/messages", said, Idempotency_Key="k")
    await ask.ask("POST", f"{path}/messages", said, Idempotency_Key="k")
    await ask.ask("POST", f"{path}/messages", {"text": "c:"}, Idempotency_Key="k")
    await rpc.settled("talk")
    for bad in ({}, {"text": " "}, {"text": 1}, {"text": "a", "double_text": "x"}):
        await ask.ask("POST", f"{path}/messages", bad)
    badly = {"name": "a", "data": "?"}
    await ask.ask("POST", f"{path}/messages", {"text": "a", "attachments": [badly]})
    for unknown in ({**badly, "extra": 1}, {"name": "a"}):
        await ask.ask("POST", f"{path}/messages", {"text": "a", "attachments": [unknown]})
    file = {"name": "a.txt", "media_type": "text/plain", "data": base64.b64encode(b"x").decode()}
    await ask.ask(
        "POST", "/api/conversations/filed/messages", {"text": "f:", "attachments": [file]}
    )
    await rpc.settled("filed")
    await ask.ask("POST", f"{path}/rename", {"title": "Rome", "extra": 1})
    await ask.ask("POST", "/api/conversations/filed/rename", {"title": "Rome"})
    await ask.ask("POST", f"{path}/rename", {})
    await ask.ask("POST", "/api/conversations/filed/rename", {"title": None})
    await ask.ask("POST", "/api/conversations/none/rename", {"title": "x"})
    await ask.ask("POST", "/api/conversations/new/rename", {"title": "x"})


async def _capture_rotation(ask: HttpCapture, rpc: RpcCapture) -> None:
    path = "/api/conversations/talk"
    await ask.ask("POST", f"{path}/branch", {"at": 2, "title": "Copy", "name": "copy"})
    await ask.ask("POST", f"{path}/branch", {"at": 99})
    await ask.ask("POST", f"{path}/branch", {"at": -1})
    await ask.ask("POST", f"{path}/branch", {"name": "cnv_1"})
    await ask.ask("POST", f"{path}/branch", {"name": "agent:main:telegram:dm:5"})
    await ask.ask("POST", f"{path}/rewind", {"to": 2})
    await ask.ask("POST", f"{path}/rewind", {"to": 99})
    await ask.ask("POST", f"{path}/rewind", {"to": "2"})
    await ask.ask("POST", f"{path}/compact", {"dry_run": True})
    await ask.ask("POST", f"{path}/compact", {"focus": "all", "dry_run": None})
    await ask.ask("POST", f"{path}/compact", {"dry_run": 1})
    await ask.ask("POST", "/api/conversations/none/compact", {})
    await ask.ask("POST", f"{path}/restore")
    await ask.ask("POST", "/api/conversations/copy/restore")
    await ask.ask("POST", "/api/conversations/none/restore")
    await ask.ask("POST", f"{path}/close")
    await ask.ask("POST", f"{path}/close")
    await ask.ask("POST", "/api/conversations/none/close")
    gone = await ask.ask("DELETE", "/api/conversations/copy")
    await ask.ask("DELETE", "/api/conversations/copy")
    await ask.ask("POST", f"/api/conversations/{gone['deleted']}/undelete")
    await ask.ask("POST", "/api/conversations/cnv_1/undelete")
    await ask.ask("PUT", path)
    await rpc.settled("talk")


async def capture_rpc(rpc: RpcCapture) -> None:
    """Call every method, each at least once well and once badly."""
    await _capture_conversations(rpc)
    await _capture_turns(rpc)
    await _capture_settings(rpc)
    await _capture_ends(rpc)


async def _capture_conversations(rpc: RpcCapture) -> None:
    ask = rpc.ask
    await ask("conversation.open", conversation="talk", title="Tower")
    await ask("conversation.open", conversation="none/cnv_1", titel="x")
    await ask("prompt.submit", session_id="talk", text="a:", key="k")
    await rpc.settled("talk")
    await ask("prompt.submit", session_id="talk", text="a:", key="k")
    await ask("prompt.submit", session_id="talk", text="b:", key="k")
    await ask("prompt.submit", session_id="cnv_1", text="b:")
    await ask("prompt.submit", session_id="talk", text=" ")
    badly = [{"name": "a", "data": "?"}]
    await ask("prompt.submit", session_id="talk", text="a", attachments=badly)
    await ask("conversation.status", conversation="talk")
    await ask("conversation.status", conversation="none")
    await ask("conversation.list", limit=1)
    await ask("conversation.list", limit=0)
    await ask("conversation.list", cursor="x")
    await ask("conversation.entries", conversation="talk", limit=1)
    await ask("conversation.entries", conversation="talk", before=3, limit=1)
    await ask("conversation.entries", conversation="talk", after="1")
    await ask("conversation.search", query="answer")
    await ask("conversation.search")
    await ask("conversation.rename", conversation="talk", title="Hill")
    await ask("conversation.rename", conversation="talk")
    await ask("conversation.rename", conversation="none", title=None)
    await ask("conversation.branch", conversation="talk", title="Copy", name="copy")
    await ask("conversation.branch", conversation="copy", title="Hill")
    await ask("conversation.branch", conversation="talk", name="cnv_1")
    await ask("conversation.new", name="talk2", title="New")
    await ask("conversation.new", name="cnv_1")
    await ask("conversation.resume", conversation="talk", name="talk3")
    await ask("conversation.resume", conversation="none")


async def _capture_turns(rpc: RpcCapture) -> None:
    ask = rpc.ask
    await ask("events.subscribe", conversation="none")
    rpc.told.clear()
    await ask("events.subscribe", conversation="talk", after=1, live=False)
    await ask("prompt.submit", session_id="talk", text="p: pay")
    await rpc.settled("talk", waiting=True)
    await ask("events.unsubscribe", conversation="talk")
    for kind, frame in rpc.told:
        if kind == "entry":
            rpc.record.add(frame)
    await ask("events.unsubscribe", conversation="none")
    queued = await ask("prompt.submit", session_id="talk", text="q:", double_text="queue")
    await ask("prompt.submit", session_id="talk", text="q:", double_text="reject")
    await ask("queue.list", conversation="talk")
    await ask("queue.list", conversation="none")
    await ask("queue.edit", inbox_id=queued["inbox_id"], text="r:")
    await ask("queue.edit", inbox_id="inb_1", text="r:")
    await ask("queue.cancel", inbox_id=queued["inbox_id"])
    await ask("queue.cancel", inbox_id="inb_1")
    await ask("prompt.result", inbox_id=queued["inbox_id"])
    await ask("prompt.result", inbox_id="inb_1")
    asked = await ask("approval.list", conversation="talk")
    await ask("approval.list", conversation="none")
    await ask("approval.respond", approval=asked["items"][0]["id"], approve=True, note="ok")
    await ask("approval.respond", approval="apr_1", approve=True)
    await rpc.settled("talk")
    await ask("turn.interrupt", conversation="talk")
    await ask("turn.interrupt", conversation="none")


async def _capture_settings(rpc: RpcCapture) -> None:
    ask = rpc.ask
    await ask("commands.list")
    await ask("commands.list", a=1)
    await ask("commands.run", text="/title Bridge", conversation="talk")
    await ask("commands.run", text="")
    await ask("complete", text="/ti")
    await ask("complete", text=1)
    await ask("config.get", key="session.double_text")
    await ask("config.get", key="none")
    await ask("config.set", key="session.double_text", value="queue")
    await ask("config.set", key="none", value=1)
    await ask("model.list", conversation="talk")
    await ask("model.list", conversation="none")
    await ask("model.set", conversation="talk", model="test")
    await ask("model.set", conversation="none", model="x")
    await ask("agent.describe")
    await ask("agent.describe", a=1)
    await ask("rpc.discover")
    await ask("rpc.discover", a=1)
    await ask("conversation.opne")


async def _capture_ends(rpc: RpcCapture) -> None:
    ask = rpc.ask
    await ask("prompt.submit", session_id="talk", text="z:")
    await rpc.settled("talk")
    await ask("conversation.retry", conversation="talk")
    await rpc.settled("talk")
    await ask("conversation.undo", conversation="talk")
    await ask("conversation.undo", conversation="talk", back=99)
    await ask("conversation.retry", conversation="none")
    await ask("conversation.rewind", conversation="talk", to=2)
    await ask("conversation.rewind", conversation="talk", to=99)
    await ask("session.compact", session_id="talk", dry_run=True)
    await ask("session.compact", session_id="talk", focus="all")
    await ask("session.compact", session_id="talk", undo=True)
    await ask("session.compact", session_id="copy", undo=True)
    await ask("conversation.close", conversation="talk")
    await ask("conversation.close", conversation="none")
    await ask("conversation.end", conversation="none")
    gone = await ask("conversation.delete", conversation="copy")
    await ask("conversation.delete", conversation="copy")
    await ask("conversation.undelete", conversation=gone["deleted"])
    await ask("conversation.undelete", conversation="cnv_1")
