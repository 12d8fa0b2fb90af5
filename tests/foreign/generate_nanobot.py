"""
Make a home of nanobot with its own storage classes.

It needs ``nanobot-ai``, so the suite runs on what it made::

    HOME=/tmp/home python tests/foreign/generate_nanobot.py 50
"""
# pyright: basic

from __future__ import annotations

import json
import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

from nanobot.session.manager import SessionManager

HOME = Path.home() / ".nanobot"
WORKSPACE = HOME / "workspace"
RANDOM = random.Random(7)
BEGUN = datetime(2026, 1, 5, 8)
KEYS = (
    "telegram:{}",
    "telegram:-100{}:topic:7",
    "discord:{}",
    "slack:C{}:1700.5",
    "cli:direct{}",
    "websocket:{}",
)


def add_turn(session, number: int, now: datetime, *, calls: int, ends: bool = True) -> None:
    def add(role: str, content: str, **more) -> None:
        session.add_message(role, content, **more)
        session.messages[-1]["timestamp"] = now.isoformat()

    add("user", f"Question {number}: what grows here?")
    if calls:
        ids = [f"call_{number}_{index}" for index in range(calls)]
        function = {"name": "exec", "arguments": '{"command": "ls"}'}
        add(
            "assistant",
            "",
            tool_calls=[{"id": one, "type": "function", "function": function} for one in ids],
            reasoning_content="I look.",
        )
        for one in ids if ends else ids[:-1]:
            add("tool", f"rose {one}", tool_call_id=one, name="exec")
    if ends:
        add("assistant", f"Answer {number}: roses.")


def make_session(manager, number: int) -> None:
    key = KEYS[number % len(KEYS)].format(1000 + number)
    now = BEGUN + timedelta(hours=number)
    session = manager.get_or_create(key)
    session.created_at = now
    session.metadata["title"] = f"Garden {number}"
    for turn in range(RANDOM.randint(1, 4)):
        add_turn(session, turn, now + timedelta(minutes=turn), calls=RANDOM.choice((0, 0, 1, 2)))
    kind = ("plain", "summary", "two", "crashed", "fork", "command", "old")[number % 7]
    if kind in ("summary", "two") and hasattr(session, "commit_summary_checkpoint"):
        for step in range(1 if kind == "summary" else 2):
            session.commit_summary_checkpoint(f"The garden, {step}.")
            session.messages[-1]["timestamp"] = (now + timedelta(minutes=30)).isoformat()
            add_turn(session, 50 + step, now + timedelta(minutes=40 + step), calls=1)
    elif kind == "crashed":
        add_turn(session, 60, now + timedelta(minutes=50), calls=0, ends=False)
        manager.save(session)
        call = {"id": "call_c", "type": "function", "function": {"name": "exec", "arguments": "{}"}}
        session.metadata["runtime_checkpoint"] = {
            "phase": "awaiting_tools",
            "assistant_message": {
                "role": "assistant",
                "content": "",
                "tool_calls": [call, {**call, "id": "call_d"}],
            },
            "completed_tool_results": [
                {"role": "tool", "tool_call_id": "call_c", "name": "exec", "content": "half"}
            ],
            "pending_tool_calls": [{**call, "id": "call_d"}],
        }
        if hasattr(manager, "save_runtime_checkpoint"):
            manager.save_runtime_checkpoint(session)
            return
    elif kind == "command":
        session.add_message("user", "/status", _command=True)
    elif kind == "old":
        session.last_consolidated = 2
    manager.save(session)
    if kind == "fork" and hasattr(manager, "fork_session_before_user_index"):
        manager.fork_session_before_user_index(key, f"websocket:fork{number}", 1)


def make_rest() -> None:
    schedule = {
        "kind": "cron",
        "atMs": None,
        "everyMs": None,
        "expr": "0 7 * * *",
        "tz": "Europe/Berlin",
    }
    payload = {
        "kind": "agent_turn",
        "message": "Water the roses",
        "deliver": True,
        "channel": "telegram",
        "to": "42",
    }
    jobs = [
        {
            "id": "a1",
            "name": "Water",
            "enabled": True,
            "schedule": schedule,
            "payload": payload,
            "state": {},
        },
        {
            "id": "a2",
            "name": "Weeds",
            "enabled": False,
            "schedule": {"kind": "every", "everyMs": 7200000},
            "payload": {**payload, "channel": None, "to": None},
            "state": {},
        },
    ]
    files = {
        WORKSPACE / "cron" / "jobs.json": json.dumps({"version": 1, "jobs": jobs}, indent=1),
        WORKSPACE / "memory" / "MEMORY.md": "# Memory\n\n- The garden is in the north.\n",
        WORKSPACE / "USER.md": "- Ada likes roses.\n",
        WORKSPACE
        / "skills"
        / "pruning"
        / "SKILL.md": "---\nname: pruning\ndescription: Prune roses.\n---\nCut them.\n",
        HOME / "config.json": json.dumps(
            {
                "agents": {
                    "defaults": {
                        "model": "anthropic/claude-opus-4-5",
                        "timezone": "Europe/Berlin",
                        "maxToolIterations": 50,
                    }
                },
                "channels": {
                    "telegram": {"enabled": True, "token": "1:none", "allowFrom": ["42|ada", "*"]}
                },
                "providers": {"anthropic": {"apiKey": "sk-none"}},
            }
        ),
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def pair() -> None:
    from nanobot.pairing import store

    store.approve_code(store.generate_code("telegram", "43"))


if __name__ == "__main__":
    made = SessionManager(WORKSPACE)
    for each in range(int(sys.argv[1])):
        make_session(made, each)
    make_rest()
    try:
        pair()
    except ImportError:
        pass
