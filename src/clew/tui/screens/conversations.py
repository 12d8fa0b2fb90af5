"""Conversation picker: all conversations, searched by title and content."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding
from textual.widgets import Input

from clew.tui.screens.picker import Picker, PickerItem, PickerResult
from clew.tui.state.labels import flatten_text
from clew.wire import methods
from clew.wire.errors import CallFailed
from clew.wire.params import ListParams, SearchParams

if TYPE_CHECKING:
    from textual.binding import BindingType

    from clew.tui.controller import ConversationController
    from clew.wire.models import ConversationShape

#: Seconds without typing before a search starts.
_SEARCH_DELAY: Final = 0.15


class ConversationPicker(Picker):
    """Picker of conversations, last used first; searches titles and messages."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+n", "new", "New"),
        Binding("ctrl+d", "pick('delete')", "Delete"),
        Binding("ctrl+r", "undelete", "Undelete"),
    ]
    keys = "Enter opens · ^N new · ^D deletes · ^R undeletes · Esc leaves"
    heading = "Conversations"

    def __init__(self, desk: ConversationController) -> None:
        super().__init__()
        self._desk = desk
        #: The query of the current list.
        self._searched_query: str | None = None

    def on_mount(self) -> None:
        self._start_search("")

    def on_input_changed(self, event: Input.Changed) -> None:
        self._start_search(event.value.strip())

    def _start_search(self, query: str) -> None:
        self.run_worker(partial(self._search, query), exclusive=True, group="look")

    async def _search(self, query: str) -> None:
        if query:
            await asyncio.sleep(_SEARCH_DELAY)
        try:
            listed = await self._desk.call(methods.LIST, ListParams(query=query, limit=50))
            choices = [self._make_item(one) for one in listed.items]
            if query:
                choices += await self._search_messages(query, {choice.key for choice in choices})
        except CallFailed as error:
            choices = [PickerItem(key="", text=str(error))]
        self.show_items(choices)
        self._searched_query = query

    @property
    def is_list_current(self) -> bool:
        return self._searched_query == self.query_one("#query", Input).value.strip()

    def _make_item(self, one: ConversationShape) -> PickerItem:
        there = self._desk.view.conversation
        names = ", ".join(route.rpartition(":")[2] for route in one.routes)
        copied = one.origin.seq or 0 if one.origin is not None else 0
        count = f"{one.entries + copied} entries"
        more = f"{names}  {count}  {one.updated_at[:16].replace('T', ' ')}"
        return PickerItem(
            key=one.id,
            text=flatten_text(one.title or names or one.id, 60),
            more=more.strip(),
            marked=there is not None and there.id == one.id,
        )

    async def _search_messages(self, query: str, known: set[str]) -> list[PickerItem]:
        hits = await self._desk.call(methods.SEARCH, SearchParams(query=query, limit=20))
        return [
            PickerItem(
                key=hit.conversation,
                text=flatten_text(hit.title or hit.conversation, 40),
                more=f"“{flatten_text(hit.snippet, 120)}”",
            )
            for hit in hits.items
            if hit.conversation not in known
        ]

    def action_new(self) -> None:
        self.close(PickerResult(key="", action="new"))

    def action_undelete(self) -> None:
        self.close(PickerResult(key="", action="undelete"))
