"""A view in words: the lines around the conversation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from clew.core.text import truncate_text
from clew.tui.state.view import Link
from clew.tui.text.clean import clean

if TYPE_CHECKING:
    from clew.tui.state.view import Tool, View
    from clew.wire.records import ApprovalShape, UsageShape

#: Cells of the gauge.
_CELLS: Final = 10
_KINDS: Final = {"message": "", "command": "command ", "expiry": "expiry ", "completion": "result "}


def one_line(text: str, most: int = 200) -> str:
    """Text on one line."""
    return truncate_text(clean(" ".join(text.split())), most)


def doing(view: View) -> str:
    """What goes on, in a few words; "" for nothing."""
    if view.link is not Link.UP:
        return view.trouble or "connecting…"
    if view.gone:
        return "this conversation was deleted: F2 shows the others"
    if view.approvals:
        return "waiting for your approval"
    return view.trouble


def gauge(usage: UsageShape | None) -> str:
    """How full the context is, and what was spent."""
    if usage is None:
        return ""
    told = _context(usage)
    if usage.cost is not None:
        told += f"  ${usage.cost:.2f}" if usage.cost >= 0.1 else f"  ${usage.cost:.4f}"
    return told


def _context(usage: UsageShape) -> str:
    if not usage.context_window:
        return f"{short(usage.context_tokens)} tokens"
    share = min(1.0, usage.context_tokens / usage.context_window)
    full = round(share * _CELLS)
    return f"{'▰' * full}{'▱' * (_CELLS - full)} {share:.0%} of {short(usage.context_window)}"


def duration(seconds: float) -> str:
    """How long something took: ``3.2 s``, ``45 s``, ``2 min 5 s``, ``1 h 3 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, left = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {left} s"
    return f"{minutes // 60} h {minutes % 60} min"


def short(count: int) -> str:
    """A count of tokens: ``950``, ``12k``, ``1.2M``."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def queued(view: View) -> list[str]:
    """What waits, one line each."""
    items = view.state.queue if view.state else []
    return [f"{_KINDS[item.kind]}{one_line(item.text)}" for item in items]


def on_their_way(view: View) -> list[str]:
    """What was sent and is not confirmed, one line each."""
    why = "sending …" if view.link is Link.UP else "sent once the server is back"
    return [f"{one_line(item.text)}  {why}" for item in view.sending]


def asked(approval: ApprovalShape) -> str:
    """The beginning of a question: which tool, and with what."""
    return f"{clean(approval.tool)}({one_line(approval.args, 100)})"


def call_args(args: str) -> str:
    """Arguments of a call on one line, without the brackets of JSON."""
    try:
        found: object = json.loads(args)
    except ValueError:
        return clean(" ".join(args.split()))
    if not isinstance(found, dict):
        return clean(args)
    fields = cast("dict[str, object]", found)
    told = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())
    return clean(", ".join(told))


def unfolded(tool: Tool) -> str:
    """Everything about a call: its arguments and its result."""
    try:
        args = json.dumps(json.loads(tool.args), indent=1, ensure_ascii=False)
    except ValueError:
        args = tool.args
    return "\n".join(filter(None, [args if args not in ("{}", "") else "", tool.result]))


#: Why a session was opened, in words.
REASONS: Final = {
    "start": "started",
    "compression": "earlier messages summarised",
    "orphaned_compression": "a summary was not finished",
    "restore": "summary undone",
    "rewind": "rewound to an earlier message",
    "reopen": "continued",
    "branch": "branched",
    "import": "imported",
    "reset": "a new conversation was started",
    "idle": "nobody wrote for a long time",
    "daily": "a new day began",
    "tui_close": "the terminal was closed",
    "user_exit": "it was closed",
}


def reason(name: str | None) -> str:
    """A stored reason in words."""
    return REASONS.get(name or "", (name or "").replace("_", " "))
