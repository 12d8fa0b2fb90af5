"""The chat commands ``/memory``, ``/remember`` and ``/forget``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import UsageError
from clew.features.memory import facts, forgetting, front, linking, links, proposals, writing
from clew.features.memory.facts import SHARED, FactWriter
from clew.features.memory.memories import get_memory
from clew.features.memory.wording import format_fact, format_listed, format_proposals

if TYPE_CHECKING:
    from clew.core.scope import Scope
    from clew.features.memory.forgetting import Forgotten
    from clew.plugin import CommandCall
    from clew.store.contract import Tx

_NONE_YET = "Nothing is remembered here: /remember TEXT keeps a sentence."


async def run_memory(call: CommandCall, argument: str) -> str:
    """List what is remembered, or show a fact and where it comes from."""
    words = argument.split()
    if not words:
        return await call.services.store.read(_list, call)
    if words[0] == "proposed":
        return await call.services.store.write(_run_proposed, call, words[1:])
    if words[0] in ("pin", "unpin") and len(words) == 2:
        return await call.services.store.write(_pin, call, words[1], words[0] == "pin")
    if words[0] == "edit" and len(words) > 2:
        text = argument.split(maxsplit=2)[2]
        return await call.services.store.write(_edit, call, words[1], text)
    name = words[1] if words[0] == "why" and len(words) == 2 else argument
    return await call.services.store.read(_show, call, name)


async def run_remember(call: CommandCall, argument: str) -> str:
    """Keep a sentence."""
    if not argument.strip():
        raise UsageError("/remember needs a sentence: /remember I am allergic to nuts")
    name = writing.make_fact_id(call.services.ids.new_operation_id())
    return await call.services.store.write(_remember, call, name, argument)


async def run_forget(call: CommandCall, argument: str) -> str:
    """Erase a fact."""
    done = await call.services.store.write(_forget, call, argument.strip())
    return forgetting.tell_forgotten(call.services, done)


async def run_link(call: CommandCall, argument: str) -> str:
    """Give a code, or link the account to the one that has given it."""
    store, viewer = call.services.store, call.viewer
    if not argument.strip():
        code = await store.write(links.make_code, viewer)
        return f"Write /link {code} from your other account within 10 minutes."
    if await linking.link_account(call.services, viewer, argument) is None:
        raise UsageError("invalid or expired code: /link in the other account gives a new one")
    return "This account is linked: it shares what is remembered. /unlink parts it again."


async def run_unlink(call: CommandCall, argument: str) -> str:
    """Part the account from the others."""
    if argument.strip():
        raise UsageError("/unlink takes no arguments")
    if not await linking.unlink_account(call.services, call.viewer):
        raise UsageError("this account is not linked: /link gives a code for another one")
    return "The accounts are parted; the first one keeps what is remembered."


def _get_memory(t: Tx, call: CommandCall) -> Scope:
    profile = call.services.find_profile(t, call.conversation_id, call.route)
    return get_memory(t, call.viewer, profile)


def _run_proposed(t: Tx, call: CommandCall, words: list[str]) -> str:
    """List what is proposed, or answer."""
    memory = _get_memory(t, call)
    if words:
        return front.answer_proposals(t, memory, words)
    waiting = proposals.list_waiting(t, memory)
    proposals.mark_told(t, waiting)
    return format_proposals(waiting) if waiting else "Nothing is proposed."


def _list(t: Tx, call: CommandCall) -> str:
    viewer = _get_memory(t, call)
    own, shared = facts.list_active(t, viewer), facts.list_active(t, SHARED)
    if not own and not shared:
        return _NONE_YET
    lines = [*map(format_listed, own), *(f"for everybody: {one.text}" for one in shared)]
    return "\n".join(
        [*lines, "/memory N shows where one comes from; edit N TEXT, pin N, or /forget N."]
    )


def _show(t: Tx, call: CommandCall, name: str) -> str:
    viewer = _get_memory(t, call)
    fact = facts.get_named(t, name, viewer=viewer)
    return front.format_details(t, fact, facts.list_replaced(t, fact))


def _pin(t: Tx, call: CommandCall, name: str, on: bool) -> str:
    viewer = _get_memory(t, call)
    fact = facts.get_named(t, name, viewer=viewer)
    return format_listed(writing.pin(t, fact, on=on, written_by=FactWriter.PERSON))


def _edit(t: Tx, call: CommandCall, name: str, text: str) -> str:
    viewer = _get_memory(t, call)
    fact = facts.get_named(t, name, viewer=viewer)
    return format_listed(writing.edit(t, fact, text, written_by=FactWriter.PERSON))


def _remember(t: Tx, call: CommandCall, name: str, text: str) -> str:
    known = call.conversation_id
    source = None if known is None else writing.FactSource(conversation=known)
    made = writing.remember(
        t,
        writing.NewFact(
            id=name,
            scope=_get_memory(t, call),
            text=text,
            written_by=FactWriter.PERSON,
            source=source,
        ),
    )
    return f"Remembered as {format_fact(made)}"


def _forget(t: Tx, call: CommandCall, name: str) -> Forgotten:
    viewer = _get_memory(t, call)
    if not name:
        raise UsageError("/forget needs the number of a fact: /memory lists them")
    fact = facts.get_named(t, name, viewer=viewer)
    return forgetting.forget(t, fact, written_by=FactWriter.PERSON)
