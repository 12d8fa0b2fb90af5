"""Labels: the text of the bars around the conversation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from clew.core.text import truncate_text
from clew.tui.state.view import LinkState
from clew.tui.text.sanitize import strip_controls

if TYPE_CHECKING:
    from clew.tui.state.view import ToolCallView, ViewState
    from clew.wire.models import ApprovalShape, UsageShape

#: Cells of the gauge.
_GAUGE_CELLS: Final = 10
_KINDS: Final = {"message": "", "command": "command ", "expiry": "expiry ", "completion": "result "}


def flatten_text(text: str, most: int = 200) -> str:
    """Return text on one line."""
    return truncate_text(strip_controls(" ".join(text.split())), most)


def status_text(view: ViewState) -> str:
    """Return the current status in a few words; "" for none."""
    if view.link is not LinkState.UP:
        return view.trouble or "connecting…"
    if view.gone:
        return "this conversation was deleted: F2 shows the others"
    if view.approvals:
        return "waiting for your approval"
    return view.trouble


def context_gauge(usage: UsageShape | None) -> str:
    """Return how full the context is, and the cost."""
    if usage is None:
        return ""
    told = _format_context(usage)
    if usage.cost is not None:
        told += f"  ${usage.cost:.2f}" if usage.cost >= 0.1 else f"  ${usage.cost:.4f}"
    return told


def _format_context(usage: UsageShape) -> str:
    if not usage.context_window:
        return f"{format_count(usage.context_tokens)} tokens"
    share = min(1.0, usage.context_tokens / usage.context_window)
    full = round(share * _GAUGE_CELLS)
    return (
        f"{'▰' * full}{'▱' * (_GAUGE_CELLS - full)} {share:.0%} of "
        f"{format_count(usage.context_window)}"
    )


def format_duration(seconds: float) -> str:
    """Format a duration: ``3.2 s``, ``45 s``, ``2 min 5 s``, ``1 h 3 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, left = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {left} s"
    return f"{minutes // 60} h {minutes % 60} min"


def format_count(count: int) -> str:
    """Format a count of tokens: ``950``, ``12k``, ``1.2M``."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def queue_lines(view: ViewState) -> list[str]:
    """Return the waiting inputs, one line each."""
    items = view.state.queue if view.state else []
    return [f"{_KINDS[item.kind]}{flatten_text(item.text)}" for item in items]


def sending_lines(view: ViewState) -> list[str]:
    """Return the unconfirmed texts, one line each."""
    why = "sending …" if view.link is LinkState.UP else "sent once the server is back"
    return [f"{flatten_text(item.text)}  {why}" for item in view.sending]


def commands_summary(view: ViewState) -> str:
    """Return how many commands run in the background, and the latest; "" for none."""
    if not view.commands:
        return ""
    count = len(view.commands)
    return f"{count} command{'s' * (count > 1)}: {flatten_text(view.commands[0])}"


def approval_summary(approval: ApprovalShape) -> str:
    """Return the tool and the start of its arguments."""
    return f"{strip_controls(approval.tool)}({flatten_text(approval.args, 100)})"


def format_arguments(args: str) -> str:
    """Return the arguments of a call on one line, without the brackets of JSON."""
    try:
        found: object = json.loads(args)
    except ValueError:
        return strip_controls(" ".join(args.split()))
    if not isinstance(found, dict):
        return strip_controls(args)
    fields = cast("dict[str, object]", found)
    told = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())
    return strip_controls(", ".join(told))


def tool_details(tool: ToolCallView) -> str:
    """Return the full arguments and the result of a call."""
    try:
        args = json.dumps(json.loads(tool.args), indent=1, ensure_ascii=False)
    except ValueError:
        args = tool.args
    return "\n".join(filter(None, [args if args not in ("{}", "") else "", tool.result]))


#: Labels of the reasons why a session was opened.
REASONS: Final = {
    "start": "started",
    "compression": "earlier messages summarised",
    "orphaned_compression": "a summary was not finished",
    "restore": "summary undone",
    "rewind": "rewound to an earlier message",
    "reload": "tools loaded again",
    "reopen": "continued",
    "branch": "branched",
    "import": "imported",
    "reset": "a new conversation was started",
    "idle": "it was idle for a long time",
    "daily": "a new day began",
    "tui_close": "the terminal was closed",
    "user_exit": "it was closed",
}


def reason_label(name: str | None) -> str:
    """Return the label of a stored reason."""
    return REASONS.get(name or "", (name or "").replace("_", " "))
