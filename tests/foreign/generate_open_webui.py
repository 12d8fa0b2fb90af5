"""
Make a database of Open WebUI with its own models, and a JSON export.

It needs ``open-webui``, so the suite runs on what it made::

    DATA_DIR=/tmp/data python tests/foreign/generate_open_webui.py 50
"""
# pyright: basic

from __future__ import annotations

import asyncio
import html
import json
import os
import random
import sqlite3
import sys
from pathlib import Path

DATA = Path(os.environ["DATA_DIR"])
RANDOM = random.Random(7)
BEGUN = 1_767_600_000
PICTURE = "data:image/png;base64,iVBORw0KGgoAAAAN"
TABLES = ("chat", "chat_message", "user", "memory", "file", "config")


class Tree:
    def __init__(self, number: int) -> None:
        self.number, self.count, self.now = number, 0, BEGUN + number * 1000
        self.messages: dict[str, dict] = {}
        self.last: str | None = None

    def add(self, role: str, content: str, *, parent: str | None = None, **more) -> str:
        self.count += 1
        self.now += 1
        key = f"{self.number:08x}-0000-4000-8000-{self.count:012x}"
        before = parent or self.last
        told = {
            "id": key,
            "parentId": before,
            "childrenIds": [],
            "role": role,
            "content": content,
            "timestamp": self.now,
            **more,
        }
        if role == "assistant":
            told |= {"model": "llama3.1:8b", "modelName": "Llama", "done": True, **more}
        self.messages[key] = told
        if before:
            self.messages[before]["childrenIds"].append(key)
        self.last = key
        return key

    def done(self) -> dict:
        return {
            "id": "",
            "title": f"Garden {self.number}",
            "models": ["llama3.1:8b"],
            "params": {"system": "Be short."} if self.number % 4 == 1 else {},
            "history": {"messages": self.messages, "currentId": self.last},
            "messages": [],
            "tags": [],
            "timestamp": self.now * 1000,
            "files": [],
        }


def make_details(turn: int) -> str:
    """Return a text as releases before ``output`` stored calls."""
    arguments = html.escape(json.dumps(json.dumps({"city": "Kiel"})))
    result = html.escape(json.dumps(json.dumps({"rain": turn})))
    thought = '<details type="reasoning" done="true" duration="2">\n<summary>Thought for 2 seconds</summary>\n&gt; Is it wet?\n</details>\n'
    call = f'<details type="tool_calls" done="true" id="call_{turn}" name="weather" arguments="{arguments}" result="{result}" files="">\n<summary>Tool Executed</summary>\n</details>\n'
    return f"{thought}{call}It rains, {turn}."


def make_output(turn: int) -> list[dict]:
    return [
        {
            "type": "reasoning",
            "id": f"r{turn}",
            "summary": [{"type": "summary_text", "text": "Is it wet?"}],
            "status": "completed",
        },
        {
            "type": "function_call",
            "id": f"fc{turn}",
            "call_id": f"call_{turn}",
            "name": "weather",
            "arguments": '{"city": "Kiel"}',
            "status": "completed",
        },
        {
            "type": "function_call_output",
            "id": f"fo{turn}",
            "call_id": f"call_{turn}",
            "output": [{"type": "input_text", "text": "rain"}],
            "status": "completed",
        },
        {
            "type": "message",
            "id": f"m{turn}",
            "role": "assistant",
            "content": [{"type": "output_text", "text": f"It rains, {turn}."}],
            "status": "completed",
        },
    ]


def add_end(tree: Tree, kind: str) -> None:
    if kind == "edited":
        before = tree.messages[tree.last]["parentId"]
        parent = tree.messages[before]["parentId"]
        if parent is None:
            tree.last = None
        tree.add("user", "The question, edited", parent=parent)
        tree.add("assistant", "The other answer")
    elif kind == "picture":
        tree.add(
            "user",
            "What is this?",
            files=[
                {"type": "image", "url": PICTURE},
                {"type": "file", "id": "file-1", "name": "rose.txt", "url": "file-1"},
            ],
        )
        tree.add(
            "assistant", "A rose.", sources=[{"source": {"name": "rose.txt"}, "document": ["rose"]}]
        )
    elif kind == "summary":
        tree.add("user", "And now?", contextSummary="They spoke of roses.")
        tree.add("assistant", "Tulips.")
    elif kind == "stopped":
        tree.add("user", "Write long")
        tree.add("assistant", "", done=False)
    elif kind == "error":
        tree.add("user", "Fail")
        tree.add("assistant", "", error={"content": "the model is gone"})


def make_chat(number: int) -> dict:
    tree = Tree(number)
    kind = (
        "plain",
        "details",
        "output",
        "edited",
        "again",
        "picture",
        "summary",
        "stopped",
        "error",
    )[number % 9]
    for turn in range(RANDOM.randint(1, 3)):
        asked = tree.add("user", f"Question {turn}: what grows here?", models=["llama3.1:8b"])
        if kind == "details":
            tree.add("assistant", make_details(turn))
        elif kind == "output":
            tree.add(
                "assistant",
                f"It rains, {turn}.",
                output=make_output(turn),
                usage={"input_tokens": 9, "output_tokens": 3},
            )
        else:
            tree.add(
                "assistant",
                f"Answer {turn}: roses.",
                usage={"prompt_tokens": 7, "completion_tokens": 2},
            )
        if kind == "again":
            tree.add("assistant", f"Answer {turn}, again: tulips.", parent=asked)
    add_end(tree, kind)
    return tree.done()


async def fill(count: int) -> None:
    from open_webui.models.chats import ChatForm, Chats
    from open_webui.models.memories import Memories
    from open_webui.models.users import Users

    await Users.insert_new_user("user-1", "Ada", "ada@example.org", role="admin")
    await Memories.insert_new_memory("user-1", "The garden is in the north.")
    chats = []
    for number in range(count):
        chat = make_chat(number)
        name = f"{number:08x}-aaaa-4000-8000-000000000000"
        await Chats.insert_new_chat(name, "user-1", ChatForm(chat=chat))
        chats.append((await Chats.get_chat_by_id(name)).model_dump())
    (DATA / "chats.json").write_text(json.dumps(chats[:9], default=str))


def dump() -> None:
    """Write the tables that matter as SQL, their times as they would have been."""
    source = sqlite3.connect(DATA / "webui.db")
    source.execute(
        "UPDATE chat SET created_at = json_extract(chat, '$.timestamp') / 1000, updated_at = json_extract(chat, '$.timestamp') / 1000"
    )
    source.execute(
        "INSERT INTO file (id, user_id, filename, path, meta, created_at, updated_at) VALUES ('file-1', 'user-1', 'rose.txt', '/data/uploads/file-1_rose.txt', '{\"content_type\": \"text/plain\"}', 1, 1)"
    )
    source.execute(
        "INSERT OR REPLACE INTO config (key, value) VALUES ('openai.api_keys', '[\"sk-none\"]')"
    )
    for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if name not in TABLES and not name.startswith("sqlite_"):
            source.execute(f'DROP TABLE IF EXISTS "{name}"')
    source.execute("DELETE FROM config WHERE key != 'openai.api_keys'")
    lines = [line for line in source.iterdump() if " INDEX " not in line]
    (DATA / "webui.sql").write_text("\n".join(lines))


if __name__ == "__main__":
    import open_webui.config

    asyncio.run(fill(int(sys.argv[1])))
    dump()
