"""All conversations: by title, and by what was said in them."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding
from textual.widgets import Input

from clew.tui.screens.picker import Choice, Picked, Picker
from clew.tui.state.words import one_line
from clew.wire import methods
from clew.wire.errors import CallFailed
from clew.wire.params import ListParams, SearchParams

if TYPE_CHECKING:
    from textual.binding import BindingType

    from clew.tui.desk import Desk
    from clew.wire.records import ConversationShape

#: Seconds that a person may pause while typing before it is looked for.
_PAUSE: Final = 0.15


class Sessions(Picker):
    """The last used first; what is typed is looked for in titles and in everything said."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+n", "new", "New"),
        Binding("ctrl+d", "pick('delete')", "Delete"),
        Binding("ctrl+r", "undelete", "Undelete"),
    ]
    keys = "Enter opens · ^N new · ^D deletes · ^R undeletes · Esc leaves"
    heading = "Conversations"

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk
        #: What was looked for when the list was made.
        self._found_with: str | None = None

    def on_mount(self) -> None:
        self._look("")

    def on_input_changed(self, event: Input.Changed) -> None:
        self._look(event.value.strip())

    def _look(self, query: str) -> None:
        self.run_worker(partial(self._found, query), exclusive=True, group="look")

    async def _found(self, query: str) -> None:
        if query:
            await asyncio.sleep(_PAUSE)
        try:
            listed = await self._desk.call(methods.LIST, ListParams(query=query, limit=50))
            choices = [self._choice(one) for one in listed.items]
            if query:
                choices += await self._said(query, {choice.key for choice in choices})
        except CallFailed as error:
            choices = [Choice(key="", text=str(error))]
        self.offer(choices)
        self._found_with = query

    @property
    def is_listed(self) -> bool:
        return self._found_with == self.query_one("#query", Input).value.strip()

    def _choice(self, one: ConversationShape) -> Choice:
        there = self._desk.view.conversation
        names = ", ".join(route.rpartition(":")[2] for route in one.routes)
        more = f"{names}  {one.entries} entries  {one.updated_at[:16].replace('T', ' ')}"
        return Choice(
            key=one.id,
            text=one_line(one.title or names or one.id, 60),
            more=more.strip(),
            marked=there is not None and there.id == one.id,
        )

    async def _said(self, query: str, known: set[str]) -> list[Choice]:
        hits = await self._desk.call(methods.SEARCH, SearchParams(query=query, limit=20))
        return [
            Choice(
                key=hit.conversation,
                text=one_line(hit.title or hit.conversation, 40),
                more=f"“{one_line(hit.snippet, 120)}”",
            )
            for hit in hits.items
            if hit.conversation not in known
        ]

    def action_new(self) -> None:
        self.close(Picked(key="", deed="new"))

    def action_undelete(self) -> None:
        self.close(Picked(key="", deed="undelete"))
