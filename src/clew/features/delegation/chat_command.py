"""The chat command ``/agents``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.errors import UsageError
from clew.features.delegation import front
from clew.features.delegation.children import sum_tree_tokens

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.features.delegation.children import Child
    from clew.features.delegation.settings import DelegationSettings
    from clew.plugin import CommandCall
    from clew.store.contract import Tx

_ACTIONS: Final = ("stop", "tell", "read")


async def run_agents_command(call: CommandCall, argument: str, settings: DelegationSettings) -> str:
    """List the tasks of a conversation, show one, or stop or tell it."""
    action, _, rest = argument.partition(" ")
    store, viewer = call.services.store, call.viewer
    if action not in _ACTIONS:
        if argument:
            return await store.read(_show, argument, viewer)
        return await store.read(_list, call.conversation_id, viewer)
    name, _, text = rest.strip().partition(" ")
    if not name:
        raise UsageError(f"/agents {action} needs the id of a task: /agents lists them")
    if action == "stop":
        return await store.write(_stop, name, viewer)
    if action == "read":
        return await store.read(_read, name, viewer)
    child = await store.read(front.find_task, name, viewer=viewer)
    item = call.services.ids.new_inbox_id()
    told = await store.write(front.tell_by_person, child, text, settings, item=item)
    call.services.work_on(told.conversation_id)
    return f"{told.title} is told so."


def _list(t: Tx, conversation: ConversationId | None, viewer: Scope) -> str:
    found = front.list_visible(t, viewer=viewer, below=conversation, done=conversation is not None)
    if not found:
        return "There are no tasks here."
    lines = [front.format_child(t, child) for child in found]
    if conversation is not None:
        used = sum_tree_tokens(t, conversation)
        lines.append(f"With this conversation: {used:,} tokens.")
    more = "/agents ID shows one; stop, tell or read ID. /resume ID talks to it."
    return "\n".join([*lines, more])


def _show(t: Tx, name: str, viewer: Scope) -> str:
    child = front.find_task(t, name, viewer=viewer)
    return "\n".join([front.format_child(t, child), *_describe(t, child)])


def _describe(t: Tx, child: Child) -> list[str]:
    told = front.describe_task(t, child)
    return [
        f"asked for in: {child.parent_conversation}",
        f"steps: {told['steps']} of {told['max_steps']}, tokens at most {told['max_tokens']:,}",
        *([] if not told["waits"] else ["it waits for /approve or /deny"]),
    ]


def _stop(t: Tx, name: str, viewer: Scope) -> str:
    child = front.stop_task(t, front.find_task(t, name, viewer=viewer), reason="stopped")
    return front.format_child(t, child)


def _read(t: Tx, name: str, viewer: Scope) -> str:
    part = front.read_part(t, front.find_task(t, name, viewer=viewer))
    return part.text or "It has said nothing yet."
