"""The first screen: who answers here, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text
from textual.widgets import Static

from clew.tui.state.view import Link
from clew.tui.state.words import one_line
from clew.tui.text.clean import clean

if TYPE_CHECKING:
    from rich.console import RenderableType

    from clew.tui.state.view import View

_WORDMARK: Final = "▄▀▀ █   █▀▀ █   █\n█   █   █▀  █ █ █\n▀▄▄ █▄▄ █▄▄ ▀▄▀▄▀"
#: Tools that are named before the rest is counted.
_TOOLS: Final = 8
#: Lines of the screen from which the name is drawn large, and a frame around everything.
_HIGH: Final = 20
#: Lines that belong to others.
_AROUND: Final = 4


class Welcome(Static):
    """Shown while a conversation is empty."""

    DEFAULT_CSS = """
    Welcome { height: auto; margin: 1 2 0 2; padding: 1 2; border: round $primary 60%;
        display: none; }
    Welcome.open { display: block; }
    Welcome.low { margin: 0; padding: 0 1; border: none; }
    """

    def show(self, view: View, *, lines: int) -> None:
        """Show what is known of the agent, where nothing was said yet."""
        is_open = view.seq == 0 and not view.blocks and not view.live.text and not view.is_running
        self.set_class(is_open, "open")
        self.set_class(lines < _HIGH, "low")
        self.styles.max_height = max(1, lines - _AROUND)
        if is_open:
            self.update(_welcome(view, is_high=lines >= _HIGH))


def _welcome(view: View, *, is_high: bool) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True, min_width=12)
    table.add_column(overflow="ellipsis", no_wrap=not is_high)
    for name, value in _facts(view):
        table.add_row(name, value)
    whole = Table.grid()
    version = f"  {view.agent.version}" if view.agent else ""
    name = Text(_WORDMARK, style="bold") if is_high else Text("clew", style="bold")
    whole.add_row(name + Text(version, style="dim not bold"))
    if is_high:
        whole.add_row("")
    whole.add_row(table)
    if is_high:
        whole.add_row("")
    for line in _next(view) if is_high else _next(view)[:2]:
        whole.add_row(line)
    return whole


def _facts(view: View) -> list[tuple[str, str]]:
    if view.agent is None:
        return [] if view.link is Link.UP else [("Status", clean(view.trouble) or "connecting…")]
    agent = view.agent
    model = view.state.model if view.state else agent.model
    tools = ", ".join(agent.tools[:_TOOLS])
    if (more := len(agent.tools) - _TOOLS) > 0:
        tools += f" and {more} more"
    return [
        (
            "Model",
            "offline script (answers without a model)" if model == "offline" else clean(model),
        ),
        ("Tools", clean(tools) or "none"),
        ("Home", clean(_short_path(agent.home))),
        ("Conversation", one_line(view.title, 60)),
    ]


def _next(view: View) -> list[Text]:
    """What to do next, with the keys in bold."""
    if view.agent is not None and view.agent.offline:
        choose = Text.assemble("Run ", ("clew setup", "bold"), " to choose a model.")
    else:
        choose = Text.assemble("Attach a file with ", ("@path", "bold"), ".")
    first = Text.assemble("Type a message and press ", ("Enter", "bold"), ".")
    keys = Text.assemble(("/help", "bold"), " lists commands, ", ("?", "bold"), " the keys.")
    return [first, keys, choose]


def _short_path(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
