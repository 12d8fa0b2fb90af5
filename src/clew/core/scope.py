"""Scopes: the owner of a conversation; limits lists, titles, recall and chat commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, NewType

from clew.core import route as routes

if TYPE_CHECKING:
    from clew.core.route import Route

Scope = NewType("Scope", str)

LOCAL = Scope("local")


def scope_of(route: Route) -> Scope:
    """
    Return ``local`` for CLI and API, a person for direct messages, else the chat.

    Threads of a chat share its scope.
    """
    if route.platform == routes.LOCAL:
        return LOCAL
    kind = "person" if route.kind == "dm" else "chat"
    place = routes.Route(platform=route.platform, chat=route.chat, account=route.account)
    return Scope(f"{kind}:{place.key.removeprefix('agent:main:')}")


def can_see(viewer: Scope, scope: Scope) -> bool:
    """Return whether ``viewer`` may see a conversation of ``scope``."""
    return viewer in (LOCAL, scope)
