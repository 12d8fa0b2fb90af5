"""
Make a home of Hermes Agent with its own storage classes.

It needs ``hermes-agent``, so the suite runs on what it made::

    HERMES_HOME=/tmp/home python tests/foreign/generate_hermes.py 50
"""
# pyright: basic

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from agent.context_compressor import ContextCompressor
from cron.jobs import create_job
from gateway.config import GatewayConfig, Platform
from gateway.pairing import PairingStore
from gateway.session import SessionSource, SessionStore
from hermes_state import SessionDB

HOME = Path(os.environ["HERMES_HOME"])
PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
RANDOM = random.Random(7)
BEGUN = 1_767_600_000.0


class Compressor(ContextCompressor):
    """The program's own, with a summary that needs no model."""

    def _generate_summary(self, turns, *args, **options):
        return self._with_summary_prefix(f"## Goal\nSum up {len(turns)} messages.")


def make_turn(number: int, now: float, *, calls: int, ends: bool = True) -> list[dict]:
    turn = [{"role": "user", "content": f"Question {number}: what grows here?", "timestamp": now}]
    if number % 9 == 4:
        turn[0]["content"] = [
            {"type": "text", "text": f"Question {number} with a picture"},
            {"type": "image_url", "image_url": {"url": PICTURE}},
        ]
    if calls:
        ids = [f"call_{number}_{index}" for index in range(calls)]
        turn.append(
            {
                "role": "assistant",
                "content": "",
                "reasoning": f"I look it up, {number}.",
                "tool_calls": [
                    {
                        "id": one,
                        "type": "function",
                        "function": {"name": "terminal", "arguments": '{"command": "ls"}'},
                    }
                    for one in ids
                ],
                "finish_reason": "tool_calls",
                "timestamp": now + 1,
            }
        )
        answered = ids if ends else ids[:-1]
        turn += [
            {
                "role": "tool",
                "tool_call_id": one,
                "tool_name": "terminal",
                "content": f'{{"output": "rose {one}"}}',
                "timestamp": now + 2,
            }
            for one in answered
        ]
    if ends:
        turn.append(
            {
                "role": "assistant",
                "content": f"Answer {number}: roses.",
                "finish_reason": "stop",
                "timestamp": now + 3,
            }
        )
    return turn


def store(db: SessionDB, session: str, messages: list[dict]) -> None:
    names = ("tool_name", "tool_calls", "tool_call_id", "reasoning", "finish_reason", "timestamp")
    for one in messages:
        more = {name: one[name] for name in names if name in one}
        db.append_message(session, one["role"], one["content"], **more)


def compress(messages: list[dict]) -> list[dict]:
    compressor = Compressor(
        "openai/gpt-5",
        protect_first_n=2,
        protect_last_n=4,
        quiet_mode=True,
        config_context_length=64000,
    )
    compressor.tail_token_budget = 50
    return compressor.compress(messages, current_tokens=60_000, force=True)


def make_session(db: SessionDB, store_: SessionStore, number: int) -> None:
    now = BEGUN + number * 10_000
    kind = (
        "plain",
        "tools",
        "rotated",
        "in-place",
        "rewound",
        "branched",
        "crashed",
        "chat",
        "group",
        "delegated",
    )[number % 10]
    name = f"20260105_{number:06d}_abc{number:03d}"
    source = "cli"
    more: dict = {}
    if kind in ("chat", "group"):
        where = SessionSource(
            platform=Platform.TELEGRAM if number % 20 < 10 else Platform.DISCORD,
            chat_id=str(1000 + number) if kind == "chat" else f"-100{number}",
            chat_name="Garden",
            chat_type="dm" if kind == "chat" else "group",
            user_id=str(1000 + number),
            user_name="Ada",
            thread_id="7" if number % 20 == 8 else None,
        )
        entry = store_.get_or_create_session(where)
        name, source = entry.session_id, where.platform.value
    else:
        db.create_session(
            name,
            source,
            model="openai/gpt-5",
            system_prompt="You are Hermes." if number % 3 else None,
        )
    messages: list[dict] = []
    for turn in range(RANDOM.randint(1, 4) if kind not in ("rotated", "in-place") else 9):
        calls = RANDOM.choice((0, 0, 1, 2)) if kind != "plain" else 0
        messages += make_turn(turn, now + turn * 60, calls=calls)
    store(db, name, messages)
    if kind != "chat":
        db.set_session_title(name, f"Garden {number}")
    go_on(db, kind, name, source, messages, number, now)


def go_on(
    db, kind: str, name: str, source: str, messages: list[dict], number: int, now: float
) -> None:
    if kind == "rotated":
        for step in range(1 + number % 3):
            messages = compress([dict(one) for one in messages])
            db.end_session(name, "compression")
            child = f"{name}_{step}"
            db.create_session(child, source, model="openai/gpt-5", parent_session_id=name)
            messages += make_turn(50 + step, now + 1000 + step * 500, calls=1)
            for later in range(6):
                messages += make_turn(
                    60 + step * 10 + later, now + 1100 + step * 500 + later * 9, calls=0
                )
            store(db, child, messages)
            name = child
    elif kind == "in-place":
        for step in range(1 + number % 2):
            messages = compress([dict(one) for one in messages])
            db.archive_and_compact(name, messages)
            fresh = make_turn(70 + step, now + 1000 + step * 500, calls=1)
            for later in range(6):
                fresh += make_turn(
                    80 + step * 10 + later, now + 1100 + step * 500 + later * 9, calls=0
                )
            store(db, name, fresh)
            messages = [*messages, *fresh]
    elif kind == "rewound":
        users = db.list_recent_user_messages(name)
        db.rewind_to_message(name, users[0]["id"])
        store(db, name, make_turn(90, now + 900, calls=0))
    elif kind == "branched":
        child = f"{name}_b"
        db.create_session(
            child,
            source,
            model="openai/gpt-5",
            parent_session_id=name,
            model_config={"_branched_from": name},
        )
        store(db, child, [*messages, *make_turn(95, now + 950, calls=0)])
    elif kind == "crashed":
        store(db, name, make_turn(96, now + 960, calls=2, ends=False))
    elif kind == "delegated":
        child = f"{name}_d"
        db.create_session(
            child,
            "subagent",
            model="openai/gpt-5",
            parent_session_id=name,
            model_config={"_delegate_from": name},
        )
        store(db, child, make_turn(97, now + 970, calls=1))


def make_transcripts(store_: SessionStore) -> None:
    """Write what releases until 0.13 wrote beside the database."""
    for number in range(3):
        where = SessionSource(
            platform=Platform.SLACK, chat_id=f"C{number}", chat_type="group", user_id="U1"
        )
        name = store_.get_or_create_session(where).session_id
        store_.append_to_transcript(
            name, {"role": "session_meta", "model": "openai/gpt-5"}, skip_db=True
        )
        for one in make_turn(number, BEGUN + number, calls=number):
            store_.append_to_transcript(name, one, skip_db=True)
    store_._save()


def main(count: int) -> None:
    if hasattr(SessionStore, "get_transcript_path"):
        return make_transcripts(SessionStore(HOME / "sessions", GatewayConfig()))
    db = SessionDB(HOME / "state.db")
    routes = SessionStore(HOME / "sessions", GatewayConfig())
    for number in range(count):
        make_session(db, routes, number)
    make_rest()
    routes._save()
    db.close()
    dump()


def dump() -> None:
    """Write the tables that matter as SQL: the search index is large."""
    import sqlite3

    kept = ("schema_version", "sessions", "messages", "gateway_routing")
    source = sqlite3.connect(HOME / "state.db")
    for (name,) in source.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall():
        source.execute(f"DROP TRIGGER {name}")
    for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if name not in kept and not name.startswith("sqlite_"):
            source.execute(f'DROP TABLE IF EXISTS "{name}"')
    lines = [line for line in source.iterdump() if "INDEX" not in line and "fts" not in line]
    # SQL texts end at a NUL, with which content that is no text begins.
    query = "SELECT id, hex(CAST(content AS BLOB)) FROM messages WHERE instr(CAST(content AS BLOB), x'00')"
    for row, content in source.execute(query):
        lines.insert(
            -1, f"UPDATE messages SET content = CAST(x'{content}' AS TEXT) WHERE id = {row};"
        )
    (HOME / "state.sql").write_text("\n".join(lines).replace(str(HOME), "/srv/hermes"))


def make_rest() -> None:
    create_job("Water the roses", "0 7 * * *", name="Water", deliver="telegram:42")
    create_job("Look for weeds", "every 2h", name="Weeds")
    people = PairingStore()
    code = people.generate_code("telegram", "42", "Ada")
    people.approve_code("telegram", code)
    memories = HOME / "memories"
    memories.mkdir(exist_ok=True)
    (memories / "MEMORY.md").write_text("The garden is in the north.\n§\nRoses need water.\n")
    (memories / "USER.md").write_text("Ada likes roses.\n")
    skill = HOME / "skills" / "garden" / "pruning"
    skill.mkdir(parents=True, exist_ok=True)
    (skill / "SKILL.md").write_text(
        "---\nname: pruning\ndescription: Prune roses.\n---\nCut them.\n"
    )
    (HOME / "config.yaml").write_text(
        "model:\n  default: openai/gpt-5\n  provider: openrouter\ntimezone: Europe/Berlin\ncompression:\n  threshold: 0.6\n"
    )
    (HOME / ".env").write_text(
        "OPENROUTER_API_KEY=sk-none\nTELEGRAM_ALLOWED_USERS=42,43\nHERMES_LOG=1\n"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
