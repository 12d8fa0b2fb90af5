"""Scopes: whose a conversation is. Lists, titles, recall and chat commands stay inside one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NewType

from clew.core import route as routes

if TYPE_CHECKING:
    from clew.core.route import Route

Scope = NewType("Scope", str)

LOCAL = Scope("local")


def scope_of(route: Route) -> Scope:
    """``local`` for CLI and API, a person for direct messages, else the chat with its threads."""
    if route.platform == routes.LOCAL:
        return LOCAL
    kind = "person" if route.kind == "dm" else "chat"
    place = routes.Route(platform=route.platform, chat=route.chat, account=route.account)
    return Scope(f"{kind}:{place.key.removeprefix('agent:main:')}")


def sees(viewer: Scope, scope: Scope) -> bool:
    """Whether someone in ``viewer`` may see a conversation of ``scope``."""
    return viewer in (LOCAL, scope)
