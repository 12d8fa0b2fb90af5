"""The lineage of a conversation, drawn as a tree."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clew.tui.screens.lineage import build_lineage
from clew.wire.models import ConversationShape, OriginShape, SessionShape
from tests.unit.test_tui_view import CONVERSATION

if TYPE_CHECKING:
    from clew.tui.screens.picker import Picker

AT = "2026-03-01T10:00:00.000Z"


def session(number: int, opened_by: str, *, seq: int, end: str | None) -> SessionShape:
    return SessionShape(
        id=f"ses_{number}",
        predecessor=f"ses_{number - 1}" if number > 1 else None,
        opened_at=AT,
        opened_by=opened_by,
        opened_seq=seq,
        ended_at=None if end is None else AT,
        end_reason=end,
        messages=number,
    )


def branch(name: str, *, seq: int | None, origin: str = "cnv_1") -> ConversationShape:
    given = {"id": f"cnv_{name}", "title": name, "origin": OriginShape(id=origin, seq=seq)}
    return CONVERSATION.model_copy(update={**given, "created_at": AT})


def shown(screen: Picker) -> list[tuple[str, str]]:
    time = datetime.fromisoformat(AT).astimezone().strftime("%Y-%m-%d %H:%M")
    return [
        (choice.text, choice.more.replace(time, "TIME"))
        for choice in screen._choices  # pyright: ignore[reportPrivateUsage]
    ]


def test_sessions_stand_in_order_with_their_reasons_and_branches() -> None:
    sessions = [
        session(1, "start", seq=0, end="compression"),
        session(2, "compression", seq=8, end="rewind"),
        session(3, "rewind", seq=12, end=None),
    ]
    conversation = CONVERSATION.model_copy(
        update={"sessions": sessions, "head_session": "ses_3", "entries": 14}
    )
    related = [
        branch("Plan B", seq=7),
        branch("Plan C", seq=13),
        branch("other", seq=3, origin="cnv_9"),
    ]
    assert shown(build_lineage(conversation, related)) == [
        ("├─ 1  Started", "1 message · TIME"),
        ("│  ╰─ Plan B", "branch at message 7 · TIME"),
        ("├─ 2  Earlier messages summarised", "2 messages · TIME"),
        ("╰─ 3  Rewound to an earlier message", "3 messages · TIME · current"),
        ("   ╰─ Plan C", "branch at message 13 · TIME"),
    ]


def test_a_branch_leads_back_to_its_origin_and_a_closed_session_says_why() -> None:
    only = session(1, "branch", seq=0, end="reset")
    conversation = branch("Plan B", seq=7, origin="cnv_1").model_copy(
        update={"sessions": [only], "head_session": "ses_1"}
    )
    origin = CONVERSATION.model_copy(update={"title": "Plan A"})
    rows = shown(build_lineage(conversation, [origin]))
    assert rows[0] == ("╭ from “Plan A”", "branched at message 7")
    assert rows[1][1] == "1 message · TIME · closed: a new conversation was started"
    assert shown(build_lineage(conversation))[0][0] == "╭ from “cnv_1”"
    came = build_lineage(conversation.model_copy(update={"imported_from": "hermes:20260105"}))
    assert came.heading == "Sessions of this conversation, imported from hermes:20260105"
    imported = conversation.model_copy(update={"origin": OriginShape(id="cnv_1", seq=None)})
    assert shown(build_lineage(imported))[0][1] == "branched"
