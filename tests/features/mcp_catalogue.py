"""A thousand tools of twelve servers, as such servers name them, and a hundred wishes of people."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: What each server is about: its objects as tools name them, and as people call them.
SERVERS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "github": (
        ("pull_request", "pull request"), ("issue", "issue"), ("repository", "repository"),
        ("branch", "branch"), ("commit", "commit"), ("release", "release"),
        ("workflow_run", "workflow run"), ("code_review", "code review"), ("gist", "gist"),
        ("fork", "fork"), ("milestone", "milestone"), ("discussion", "discussion"),
    ),
    "calendar": (
        ("event", "event"), ("attendee", "attendee"), ("reminder", "reminder"),
        ("free_slot", "free slot"), ("recurrence", "recurrence"), ("invitation", "invitation"),
        ("room", "meeting room"), ("time_zone", "time zone"), ("holiday", "holiday"),
        ("shared_calendar", "shared calendar"), ("color", "color"), ("attachment", "attachment"),
    ),
    "mail": (
        ("message", "mail message"), ("draft", "draft"), ("label", "label"), ("thread", "thread"),
        ("filter", "filter"), ("signature", "signature"), ("folder", "mail folder"),
        ("contact_group", "contact group"), ("vacation_reply", "vacation reply"),
        ("spam_report", "spam report"), ("attachment", "mail attachment"), ("alias", "alias"),
    ),
    "slack": (
        ("channel", "channel"), ("message", "chat message"), ("reaction", "reaction"),
        ("user_group", "user group"), ("thread_reply", "thread reply"), ("pin", "pin"),
        ("status", "status"), ("emoji", "emoji"), ("huddle", "huddle"), ("canvas", "canvas"),
        ("bookmark", "bookmark"), ("workspace_app", "workspace app"),
    ),
    "postgres": (
        ("table", "table"), ("index", "index"), ("view", "view"), ("query_plan", "query plan"),
        ("schema", "schema"), ("role", "role"), ("extension", "extension"), ("lock", "lock"),
        ("sequence", "sequence"), ("trigger", "trigger"), ("vacuum_job", "vacuum job"),
        ("replication_slot", "replication slot"),
    ),
    "kubernetes": (
        ("pod", "pod"), ("deployment", "deployment"), ("service", "service"),
        ("config_map", "config map"), ("secret", "secret"), ("namespace", "namespace"),
        ("node", "node"), ("ingress", "ingress"), ("cron_job", "cron job"),
        ("volume_claim", "volume claim"), ("daemon_set", "daemon set"), ("rollout", "rollout"),
    ),
    "stripe": (
        ("customer", "customer"), ("invoice", "invoice"), ("payment_intent", "payment intent"),
        ("refund", "refund"), ("subscription", "subscription"), ("coupon", "coupon"),
        ("payout", "payout"), ("dispute", "dispute"), ("price", "price"), ("product", "product"),
        ("tax_rate", "tax rate"), ("balance", "balance"),
    ),
    "notion": (
        ("page", "page"), ("database", "notion database"), ("block", "block"),
        ("comment", "comment"), ("property", "property"), ("template", "template"),
        ("workspace_member", "workspace member"), ("backlink", "backlink"),
        ("favorite", "favorite"), ("wiki", "wiki"), ("board_view", "board view"),
        ("synced_block", "synced block"),
    ),
    "home": (
        ("light", "light"), ("thermostat", "thermostat"), ("door_lock", "door lock"),
        ("camera", "camera"), ("scene", "scene"), ("sensor", "sensor"), ("vacuum", "vacuum"),
        ("blind", "window blind"), ("speaker", "speaker"), ("alarm", "alarm"),
        ("energy_meter", "energy meter"), ("sprinkler", "sprinkler"),
    ),
    "crm": (
        ("lead", "lead"), ("deal", "deal"), ("account", "account"), ("pipeline", "pipeline"),
        ("quote", "quote"), ("call_log", "call log"), ("campaign", "campaign"),
        ("territory", "territory"), ("contract", "contract"), ("forecast", "forecast"),
        ("ticket", "support ticket"), ("survey", "survey"),
    ),
    "music": (
        ("track", "track"), ("playlist", "playlist"), ("album", "album"), ("artist", "artist"),
        ("podcast", "podcast"), ("queue", "queue"), ("lyrics", "lyrics"), ("device", "device"),
        ("equalizer", "equalizer"), ("radio_station", "radio station"), ("concert", "concert"),
        ("audiobook", "audiobook"),
    ),
    "maps": (
        ("route", "route"), ("place", "place"), ("traffic_report", "traffic report"),
        ("geocode", "geocode"), ("elevation", "elevation"), ("bike_lane", "bike lane"),
        ("transit_stop", "transit stop"), ("parking_spot", "parking spot"),
        ("map_tile", "map tile"), ("travel_time", "travel time"),
        ("saved_place", "saved place"), ("toll", "toll"),
    ),
}  # fmt: skip
#: Verbs of tools, what their descriptions say, and how people put it.
_VERBS: Final = (
    ("list", "Return all", "show me every"),
    ("get", "Fetch one", "look up a"),
    ("create", "Make a new", "create a new"),
    ("update", "Change the fields of a", "update a"),
    ("delete", "Remove a", "delete a"),
    ("search", "Find by words any", "search for a"),
    ("export", "Write to a file each", "exporting a"),
)
#: Of 12 servers with 12 objects and 7 verbs, 1,008 are too many.
SIZE, WISHES = 1_000, 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What somebody wants, and the tool for it."""

    query: str
    server: str
    tool: str


def make_tools() -> dict[str, dict[str, Any]]:
    """Return the tools of each server, as plans have them."""
    made: dict[str, dict[str, Any]] = {server: {} for server in SERVERS}
    for server, name, described, about in list(_iter_tools())[:SIZE]:
        made[server][name] = {
            "description": f"{described} {about} of {server}. Needs the rights of its owner.",
            "schema": {"properties": {"id": {"type": "string"}, "limit": {"type": "integer"}}},
        }
    return made


def _iter_tools() -> Iterator[tuple[str, str, str, str]]:
    for verb, described, _ in _VERBS:
        for server, objects in SERVERS.items():
            for name, about in objects:
                yield server, f"{verb}_{name}", described, about


def make_wishes(seed: int = 1) -> list[Wish]:
    """Return wishes in words of people: half of them name the server, none the tool."""
    chance = random.Random(seed)
    made = make_tools()
    found: list[Wish] = []
    while len(found) < WISHES:
        server = chance.choice([*SERVERS])
        name, about = chance.choice(SERVERS[server])
        verb, _, words = chance.choice(_VERBS)
        if (tool := f"{verb}_{name}") in made[server]:
            place = f" in {server}" if chance.random() < 0.5 else ""
            found.append(Wish(query=f"{words} {about}{place}", server=server, tool=tool))
    return found
