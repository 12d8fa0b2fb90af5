"""Welcome box: the agent, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text
from textual.widgets import Static

from clew.tui.state.labels import flatten_text
from clew.tui.state.view import LinkState
from clew.tui.text.sanitize import strip_controls

if TYPE_CHECKING:
    from rich.console import RenderableType

    from clew.tui.state.view import ViewState

_WORDMARK: Final = "▄▀▀ █   █▀▀ █   █\n█   █   █▀  █ █ █\n▀▄▄ █▄▄ █▄▄ ▀▄▀▄▀"
#: Tools that are listed by name.
_MAX_TOOLS: Final = 4
#: Screen height from which the box has a large name and a frame.
_MIN_FULL_HEIGHT: Final = 20
#: Lines reserved for other widgets.
_RESERVED_LINES: Final = 4


class Welcome(Static):
    """Box shown while a conversation is empty."""

    DEFAULT_CSS = """
    Welcome { height: auto; margin: 1 2 0 2; padding: 1 2; border: round $primary 60%;
        display: none; }
    Welcome.open { display: block; }
    Welcome.low { margin: 0; padding: 0 1; border: none; }
    """

    def show_view(self, view: ViewState, *, lines: int) -> None:
        """Show the agent's details while the conversation is empty."""
        is_open = view.seq == 0 and not view.blocks and not view.live.text and not view.is_running
        self.set_class(is_open, "open")
        self.set_class(lines < _MIN_FULL_HEIGHT, "low")
        self.styles.max_height = max(1, lines - _RESERVED_LINES)
        if is_open:
            self.update(_build_content(view, is_high=lines >= _MIN_FULL_HEIGHT))


def _build_content(view: ViewState, *, is_high: bool) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True, min_width=12)
    table.add_column(overflow="ellipsis", no_wrap=not is_high)
    for name, value in _agent_facts(view):
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
    for line in _next_steps(view) if is_high else _next_steps(view)[:2]:
        whole.add_row(line)
    return whole


def _agent_facts(view: ViewState) -> list[tuple[str, str]]:
    if view.agent is None:
        return (
            []
            if view.link is LinkState.UP
            else [("Status", strip_controls(view.trouble) or "connecting…")]
        )
    agent = view.agent
    model = view.state.model if view.state else agent.model
    tools = ", ".join(agent.tools[:_MAX_TOOLS])
    if (more := len(agent.tools) - _MAX_TOOLS) > 0:
        tools += f" and {more} more"
    return [
        (
            "Model",
            "offline script (answers without a model)"
            if model == "offline"
            else strip_controls(model),
        ),
        ("Tools", strip_controls(tools) or "none"),
        ("Home", strip_controls(_abbreviate_home(agent.home))),
        ("Conversation", flatten_text(view.title, 60)),
    ]


def _next_steps(view: ViewState) -> list[Text]:
    """Return the next steps, with keys in bold."""
    if view.agent is not None and view.agent.offline:
        choose = Text.assemble("Run ", ("clew setup", "bold"), " to choose a model.")
    else:
        choose = Text.assemble("Attach a file with ", ("@path", "bold"), ".")
    first = Text.assemble("Type a message and press ", ("Enter", "bold"), ".")
    keys = Text.assemble(("/help", "bold"), " lists commands, ", ("?", "bold"), " the keys.")
    return [first, keys, choose]


def _abbreviate_home(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
